//! Leading by a Lease: of several processes one works, and it stops before another may begin.
//!
//! Another process's clock is not trusted: a lease has run out when it has not changed for its whole length as
//! measured here. And who leads counts itself out after two thirds of that length without a renewal.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::time::{Instant, sleep};

use crate::context::{Clock, Fence};
use crate::metrics::{Metrics, WriteLabels, Written};

/// Which lease, and who asks for it.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    pub name: String,
    pub namespace: String,
    /// Another one for every process.
    pub identity: String,
    pub length: Duration,
}

/// A lease that this process has, or tries to get.
#[derive(Clone)]
pub struct Leadership {
    api: Api<Lease>,
    options: LeaseOptions,
    clock: Clock,
    metrics: Metrics,
    /// Until when this process may write.
    until: Arc<Mutex<Option<Instant>>>,
}

impl std::fmt::Debug for Leadership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leadership").field("options", &self.options).finish_non_exhaustive()
    }
}

/// What the lease last said, and since when it says so.
struct Observed {
    holder: Option<String>,
    renewed: Option<MicroTime>,
    since: Instant,
}

impl Leadership {
    pub fn new(client: kube::Client, options: LeaseOptions, clock: Clock, metrics: Metrics) -> Self {
        let api = Api::namespaced(client, &options.namespace);
        Self { api, options, clock, metrics, until: Arc::default() }
    }

    /// Holds while this process leads.
    pub fn fence(&self) -> Fence {
        let until = self.until.clone();
        Fence::new(move || until.lock().is_ok_and(|until| until.is_some_and(|until| Instant::now() < until)))
    }

    /// Waits until this process leads.
    pub async fn acquire(&self) -> Lease {
        let mut observed: Option<Observed> = None;
        loop {
            let asked = Instant::now();
            match self.try_take(&mut observed).await {
                Ok(Some(lease)) => {
                    self.extend(asked);
                    self.metrics.leader.set(1);
                    tracing::info!(lease = self.options.name, identity = self.options.identity, "leading");
                    return lease;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(lease = self.options.name, %error, "the lease cannot be asked for"),
            }
            sleep(self.options.length / 5).await;
        }
    }

    /// Renews until that is no longer possible; returns when this process does not lead any more.
    pub async fn keep(&self, mut lease: Lease) {
        loop {
            sleep(self.options.length / 5).await;
            let asked = Instant::now();
            match self.replace(&lease, true).await {
                Ok(renewed) => {
                    lease = renewed;
                    self.extend(asked);
                }
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {
                    // Someone wrote it. If that was not this process with its answer lost, it is over.
                    match self.api.get_opt(&self.options.name).await {
                        Ok(Some(found)) if self.holds(&found) => lease = found,
                        Ok(_) => break,
                        Err(error) => tracing::warn!(%error, "the lease cannot be read"),
                    }
                }
                Err(error) => tracing::warn!(%error, "the lease cannot be renewed"),
            }
            let holds = self.until.lock().is_ok_and(|until| until.is_some_and(|until| Instant::now() < until));
            if !holds {
                break;
            }
        }
        self.forget();
    }

    /// Gives the lease back, so that the next process need not wait.
    pub async fn release(&self) {
        self.forget();
        if let Ok(Some(found)) = self.api.get_opt(&self.options.name).await
            && self.holds(&found)
        {
            let _ = self.replace(&found, false).await;
        }
    }

    fn forget(&self) {
        if let Ok(mut until) = self.until.lock() {
            *until = None;
        }
        self.metrics.leader.set(0);
    }

    fn extend(&self, asked: Instant) {
        if let Ok(mut until) = self.until.lock() {
            *until = Some(asked + self.options.length * 2 / 3);
        }
    }

    fn holds(&self, lease: &Lease) -> bool {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        holder == Some(self.options.identity.as_str())
    }

    async fn try_take(&self, observed: &mut Option<Observed>) -> Result<Option<Lease>, kube::Error> {
        let Some(found) = self.api.get_opt(&self.options.name).await? else {
            let fresh = Lease {
                metadata: ObjectMeta { name: Some(self.options.name.clone()), ..ObjectMeta::default() },
                spec: Some(self.spec(&LeaseSpec::default(), true)),
            };
            self.count();
            return match self.api.create(&PostParams::default(), &fresh).await {
                Ok(lease) => Ok(Some(lease)),
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
                Err(error) => Err(error),
            };
        };
        let spec = found.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty());
        let free = match &holder {
            None => true,
            Some(holder) if *holder == self.options.identity => true,
            Some(_) => {
                let same =
                    observed.as_ref().is_some_and(|seen| seen.holder == holder && seen.renewed == spec.renew_time);
                if !same {
                    *observed = Some(Observed { holder, renewed: spec.renew_time.clone(), since: Instant::now() });
                }
                let seconds = u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
                let length = self.options.length.max(Duration::from_secs(seconds));
                same && observed.as_ref().is_some_and(|seen| seen.since.elapsed() >= length)
            }
        };
        if !free {
            return Ok(None);
        }
        match self.replace(&found, true).await {
            Ok(lease) => Ok(Some(lease)),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the lease, if it still is as it was read.
    async fn replace(&self, lease: &Lease, held: bool) -> Result<Lease, kube::Error> {
        let mut next = lease.clone();
        next.spec = Some(self.spec(&lease.spec.clone().unwrap_or_default(), held));
        self.count();
        self.api.replace(&self.options.name, &PostParams::default(), &next).await
    }

    fn spec(&self, before: &LeaseSpec, held: bool) -> LeaseSpec {
        let now = MicroTime((self.clock)());
        let same = before.holder_identity.as_deref() == Some(self.options.identity.as_str());
        let mut spec = before.clone();
        spec.renew_time = Some(now.clone());
        spec.lease_duration_seconds = i32::try_from(self.options.length.as_secs()).ok();
        if !held {
            spec.holder_identity = None;
            return spec;
        }
        if !same {
            spec.acquire_time = Some(now);
            spec.lease_transitions = Some(before.lease_transitions.map_or(0, |number| number.saturating_add(1)));
        }
        spec.holder_identity = Some(self.options.identity.clone());
        spec
    }

    fn count(&self) {
        self.metrics.kubernetes_writes.get_or_create(&WriteLabels { what: Written::Lease }).inc();
    }
}
