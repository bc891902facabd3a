//! What every reconcile of a kind shares.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;

use crate::cloud::CloudResult;
use crate::ledger::Ledger;
use crate::metrics::{CallLabels, CallOutcome, Metrics, Operation};
use crate::settings::Defaults;
use crate::trouble::Trouble;

/// Tells the time.
pub type Clock = fn() -> Timestamp;

/// Says whether this process may write.
#[derive(Clone)]
pub struct Fence(Arc<dyn Fn() -> bool + Send + Sync>);

impl Fence {
    pub fn new(holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(holds))
    }

    /// For a process that is alone.
    pub fn open() -> Self {
        Self::new(|| true)
    }

    pub fn holds(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fence({})", self.holds())
    }
}

/// The cloud, the cluster, and what holds for all objects.
#[derive(Debug)]
pub struct Context<C, W> {
    pub cloud: C,
    pub cluster: W,
    pub metrics: Metrics,
    pub defaults: Defaults,
    pub clock: Clock,
    pub fence: Fence,
    pub ledger: Option<Ledger>,
    /// How often in a row a reconcile of an object did not come to its end.
    failures: Mutex<BTreeMap<String, u32>>,
}

impl<C, W> Context<C, W> {
    pub fn new(
        cloud: C,
        cluster: W,
        metrics: Metrics,
        defaults: Defaults,
        clock: Clock,
        fence: Fence,
        ledger: Option<Ledger>,
    ) -> Self {
        Self { cloud, cluster, metrics, defaults, clock, fence, ledger, failures: Mutex::default() }
    }

    /// A call to the cloud, measured.
    pub async fn call<T>(&self, operation: Operation, call: impl Future<Output = CloudResult<T>>) -> CloudResult<T> {
        let begin = tokio::time::Instant::now();
        let answer = call.await;
        let outcome = answer.as_ref().map_or_else(|error| CallOutcome::Fault(error.fault), |_| CallOutcome::Ok);
        let labels = CallLabels { operation, outcome };
        self.metrics.call_seconds.get_or_create(&labels).observe(begin.elapsed().as_secs_f64());
        answer
    }

    /// A call that changes something: only who leads may make it.
    pub async fn write<T>(
        &self,
        operation: Operation,
        call: impl Future<Output = CloudResult<T>>,
    ) -> Result<T, Trouble> {
        if !self.fence.holds() {
            return Err(Trouble::NotLeader);
        }
        self.metrics.aws_writes.inc();
        Ok(self.call(operation, call).await?)
    }

    /// One more failure of an object: how many there were in a row.
    pub fn failed(&self, key: &str) -> u32 {
        let Ok(mut failures) = self.failures.lock() else { return 1 };
        let count = failures.entry(key.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    pub fn succeeded(&self, key: &str) {
        if let Ok(mut failures) = self.failures.lock() {
            failures.remove(key);
        }
    }
}
