//! The operator: a controller for each kind and namespace, and what they share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use driftline_core::StreamId;
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, PartialObjectMeta};
use kube::runtime::controller::{self, Action, Config, Controller};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{Predicate as _, PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Client, ResourceExt as _};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, broadcast, watch};

use crate::cloud::Cloud;
use crate::cloudcontrol::CloudControl;
use crate::cloudfront::CloudFront;
use crate::cluster::KubeCluster;
use crate::context::{Clock, Context, Fence};
use crate::crd::{AwsResource, DistributionTenant};
use crate::lease::{Leadership, LeaseOptions};
use crate::ledger::{Entry, Ledger, Seen};
use crate::managed::Managed;
use crate::metrics::Metrics;
use crate::reconcile::{Next, reconcile};
use crate::serve::{Ready, serve};
use crate::settings::{Defaults, POLICY};

/// Takes an observation; says why not.
pub type Sink = Arc<dyn Fn(Seen) -> Result<(), String> + Send + Sync>;

/// How to run.
#[derive(Clone)]
pub struct Options {
    pub defaults: Defaults,
    /// None: all of them.
    pub namespaces: Vec<String>,
    pub listen: SocketAddr,
    pub max_concurrent: u16,
    pub lease: Option<LeaseOptions>,
    /// What this process is called in events.
    pub identity: String,
    pub clock: Clock,
    /// Where observations go, and what the cluster and the stream are called in them.
    pub store: Option<(String, StreamId, Sink)>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("defaults", &self.defaults).finish_non_exhaustive()
    }
}

#[derive(Debug, Error)]
pub enum OperatorError {
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("the API server has no `{kind}` objects of driftline.dev/v1alpha1")]
    NoDefinition { kind: &'static str },
    #[error("the API server does not let this operator list {what}: {message}")]
    Forbidden { what: &'static str, message: String },
    #[error("the API server does not answer as it should")]
    Api(#[source] Box<kube::Error>),
    #[error("the lease was lost; another process may lead now")]
    LeaseLost,
    #[error("the listener for metrics and health ended: {0}")]
    Served(String),
}

/// Refuses to start where nothing could be done: an operator that watches nothing looks healthy.
pub async fn check_definitions(client: &Client, namespaces: &[String]) -> Result<(), OperatorError> {
    async fn check<K: Managed>(client: &Client, namespaces: &[String]) -> Result<(), OperatorError> {
        let api: Api<K> = api(client, namespaces.first());
        match api.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                Err(OperatorError::NoDefinition { kind: K::KIND.name() })
            }
            Err(error) => Err(refused(K::KIND.name(), error)),
        }
    }
    check::<DistributionTenant>(client, namespaces).await?;
    check::<AwsResource>(client, namespaces).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.list_metadata(&ListParams::default().limit(1)).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refused("namespaces (their annotations have policies)", error)),
    }
}

fn refused(what: &'static str, error: kube::Error) -> OperatorError {
    match error {
        kube::Error::Api(status) if status.code == 403 => OperatorError::Forbidden { what, message: status.message },
        error => OperatorError::Api(Box::new(error)),
    }
}

pub(crate) fn api<K: Managed>(client: &Client, namespace: Option<&String>) -> Api<K> {
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Runs until `stop` ends, or until it cannot go on.
pub async fn run(
    client: Client,
    aws: aws_wire::Client,
    options: Options,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), OperatorError> {
    check_definitions(&client, &options.namespaces).await?;
    let metrics = Metrics::default();
    let ready = Ready::default();
    let listener = TcpListener::bind(options.listen)
        .await
        .map_err(|source| OperatorError::Listen { address: options.listen, source })?;
    tracing::info!(listen = %options.listen, "metrics and health");
    let served = serve(listener, ready.clone(), metrics.clone(), options.clock);

    let (stopped, _) = watch::channel(false);
    let stopping = stopped.clone();
    let stop = async move {
        stop.await;
        tracing::info!("stopping: what is under way is brought to its end");
        stopping.send_replace(true);
    };
    tokio::pin!(stop);
    let work = work(client, aws, options, metrics, ready, stopped.clone());
    tokio::pin!(work);
    tokio::select! {
        ended = &mut work => ended,
        ended = served => Err(OperatorError::Served(ended.err().map_or_else(String::new, |error| error.to_string()))),
        () = &mut stop => work.await,
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // A sender that is gone stops, too.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn work(
    client: Client,
    aws: aws_wire::Client,
    options: Options,
    metrics: Metrics,
    ready: Ready,
    stopped: watch::Sender<bool>,
) -> Result<(), OperatorError> {
    let leadership =
        options.lease.clone().map(|lease| Leadership::new(client.clone(), lease, options.clock, metrics.clone()));
    let mut kept = None;
    if let Some(leadership) = &leadership {
        // One that waits for its turn is as ready as it can be.
        ready.set(true);
        tokio::select! {
            lease = leadership.acquire() => {
                let leadership = leadership.clone();
                kept = Some(tokio::spawn(async move { leadership.keep(lease).await }));
            }
            () = until(stopped.subscribe()) => return Ok(()),
        }
        ready.set(false);
    } else {
        metrics.leader.set(1);
    }
    let fence = leadership.as_ref().map_or_else(Fence::open, Leadership::fence);
    let work = control(client, aws, &options, metrics, ready, fence, stopped.clone());
    let lost = async {
        match kept {
            Some(kept) => drop(kept.await),
            None => std::future::pending().await,
        }
    };
    tokio::pin!(work, lost);
    let ended = tokio::select! {
        ended = &mut work => ended,
        () = &mut lost => {
            stopped.send_replace(true);
            let _ = tokio::time::timeout(Duration::from_secs(5), work).await;
            return Err(OperatorError::LeaseLost);
        }
    };
    if let Some(leadership) = &leadership {
        leadership.release().await;
    }
    ended
}

/// What all controllers share.
struct Shared {
    client: Client,
    namespaces: Store<PartialObjectMeta<Namespace>>,
    changed: broadcast::Sender<String>,
    permits: Arc<Semaphore>,
    concurrency: u16,
    stopped: watch::Sender<bool>,
}

async fn control(
    client: Client,
    aws: aws_wire::Client,
    options: &Options,
    metrics: Metrics,
    ready: Ready,
    fence: Fence,
    stopped: watch::Sender<bool>,
) -> Result<(), OperatorError> {
    let (namespaces, changed, watching) = watch_namespaces(client.clone());
    let watching = tokio::spawn(watching);
    let _ = namespaces.wait_until_ready().await;
    let shared = Shared {
        client: client.clone(),
        namespaces,
        changed,
        permits: Arc::new(Semaphore::new(usize::from(options.max_concurrent))),
        concurrency: options.max_concurrent,
        stopped: stopped.clone(),
    };
    let ledger = options.store.as_ref().map(|(cluster, stream, _)| Ledger::new(cluster, stream.clone()));
    let cluster = KubeCluster::new(client, options.identity.clone(), metrics.clone());
    let (defaults, clock) = (options.defaults, options.clock);
    let tenants = Context::new(
        CloudFront::new(aws.clone()),
        cluster.clone(),
        metrics.clone(),
        defaults,
        clock,
        fence.clone(),
        ledger.clone(),
    );
    let resources =
        Context::new(CloudControl::new(aws), cluster, metrics.clone(), defaults, clock, fence, ledger.clone());
    let (tenants, resources) = (Arc::new(tenants), Arc::new(resources));
    let places: Vec<Option<&String>> = match options.namespaces.is_empty() {
        true => vec![None],
        false => options.namespaces.iter().map(Some).collect(),
    };
    let mut running = Vec::new();
    let mut listings: Vec<Listing> = Vec::new();
    for place in places {
        let (listing, one) = control_kind::<DistributionTenant, _>(&shared, place, tenants.clone());
        listings.push(listing);
        running.push(tokio::spawn(one));
        let (listing, one) = control_kind::<AwsResource, _>(&shared, place, resources.clone());
        listings.push(listing);
        running.push(tokio::spawn(one));
    }
    for listing in &listings {
        until(listing.listed.clone()).await;
    }
    ready.set(true);
    tracing::info!("all objects are listed");
    let flushing = ledger.zip(options.store.clone()).map(|(ledger, (_, _, sink))| {
        tokio::spawn(flush(ledger, sink, listings, options.defaults.resync, clock, stopped.subscribe()))
    });
    for one in running {
        let _ = one.await;
    }
    if let Some(flushing) = flushing {
        let _ = flushing.await;
    }
    watching.abort();
    Ok(())
}

/// Adds all objects of a controller.
type Entries = Box<dyn Fn(&mut BTreeSet<Entry>) + Send + Sync>;

/// All objects of a controller, and whether they have been listed.
struct Listing {
    entries: Entries,
    listed: watch::Receiver<bool>,
}

fn entries<K: Managed>(store: Store<K>) -> Entries {
    Box::new(move |all| all.extend(store.state().iter().map(|object| Entry::of(&**object))))
}

/// A little longer than the time in which every object is looked at again.
async fn flush(
    ledger: Ledger,
    sink: Sink,
    listings: Vec<Listing>,
    resync: Duration,
    clock: Clock,
    stopped: watch::Receiver<bool>,
) {
    let mut known = BTreeSet::new();
    let every = resync * 5 / 4;
    loop {
        let last = tokio::select! {
            () = tokio::time::sleep(every) => false,
            () = until(stopped.clone()) => true,
        };
        let mut objects = BTreeSet::new();
        for listing in &listings {
            (listing.entries)(&mut objects);
        }
        for observation in ledger.close(&objects, &mut known, clock()) {
            let sink = sink.clone();
            let resources = observation.resources.len();
            match tokio::task::spawn_blocking(move || sink(observation)).await {
                Ok(Ok(())) => tracing::debug!(resources, "an observation was committed"),
                Ok(Err(error)) => tracing::error!(error, "an observation was not committed"),
                Err(error) => tracing::error!(%error, "an observation was not committed"),
            }
        }
        if last {
            return;
        }
    }
}

/// Namespaces by their annotations, and the names of those whose policy changed.
fn watch_namespaces(
    client: Client,
) -> (Store<PartialObjectMeta<Namespace>>, broadcast::Sender<String>, impl Future<Output = ()> + Send) {
    let (store, writer) = reflector::store();
    let (changed, _) = broadcast::channel(1024);
    let sender = changed.clone();
    let stream = watcher(Api::<PartialObjectMeta<Namespace>>::all(client), watcher::Config::default())
        .default_backoff()
        .modify(|namespace| namespace.managed_fields_mut().clear())
        .reflect(writer)
        .touched_objects();
    let watching = async move {
        let mut known: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            match event {
                Ok(namespace) => {
                    let policy = namespace.annotations().get(POLICY).cloned();
                    let before = known.insert(namespace.name_any(), policy.clone());
                    if before.is_some_and(|before| before != policy) {
                        let _ = sender.send(namespace.name_any());
                    }
                }
                Err(error) => tracing::warn!(%error, "watching namespaces"),
            }
        }
    };
    (store, changed, watching)
}

fn control_kind<K, C>(
    shared: &Shared,
    namespace: Option<&String>,
    context: Arc<Context<C, KubeCluster>>,
) -> (Listing, impl Future<Output = ()> + Send + 'static)
where
    K: Managed,
    C: Cloud<K> + 'static,
{
    let (store, writer) = reflector::store();
    // A store wakes only one of those who wait for it, and that is its controller.
    let (listing, listed) = watch::channel(false);
    // Its own writes to the status do not wake it: only what the user changes does.
    let stream = watcher(api::<K>(&shared.client, namespace), watcher::Config::default())
        .default_backoff()
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(writer)
        .inspect_ok(move |event| {
            if matches!(event, watcher::Event::InitDone) {
                listing.send_replace(true);
            }
        })
        .touched_objects()
        .predicate_filter(predicates::generation.combine(predicates::annotations), PredicateConfig::default());
    let objects = store.clone();
    let of_namespace = tokio_stream(shared.changed.subscribe()).flat_map(move |name| {
        let all = objects.state();
        let its = all.into_iter().filter(move |object| object.namespace().as_ref() == Some(&name));
        futures_util::stream::iter(its.map(|object| ObjectRef::from_obj(&*object)).collect::<Vec<_>>())
    });
    let metrics = context.metrics.clone();
    let (namespaces, permits, stopped) =
        (shared.namespaces.clone(), shared.permits.clone(), shared.stopped.subscribe());
    let running = Controller::for_stream(stream, store.clone())
        .with_config(Config::default().concurrency(shared.concurrency))
        .reconcile_on(of_namespace)
        .graceful_shutdown_on(until(stopped))
        .run(
            move |object: Arc<K>, context: Arc<Context<C, KubeCluster>>| {
                let (namespaces, permits) = (namespaces.clone(), permits.clone());
                async move {
                    let name = object.namespace().unwrap_or_default();
                    // Without its namespace nobody knows the policy; it is on its way.
                    let Some(namespace) = namespaces.get(&ObjectRef::new(&name)) else {
                        return Ok::<_, std::convert::Infallible>(Action::requeue(Duration::from_millis(300)));
                    };
                    let _permit = permits.acquire().await;
                    let Next(after) = reconcile(&context, (*object).clone(), namespace.annotations()).await;
                    Ok(after.map_or_else(Action::await_change, Action::requeue))
                }
            },
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            context,
        )
        .for_each(move |ended| {
            match ended {
                // It went without our finalizer: somebody took that away.
                Err(controller::Error::ObjectNotFound(object)) => {
                    let namespace = object.namespace.unwrap_or_default();
                    metrics.gone(&format!("{}/{namespace}/{}", K::KIND.name(), object.name));
                }
                Err(error) => tracing::debug!(%error, "watching"),
                Ok(_) => {}
            }
            std::future::ready(())
        });
    (Listing { entries: entries(store), listed }, running)
}

/// The names that are sent; who was too slow for some goes on with the next.
fn tokio_stream(receiver: broadcast::Receiver<String>) -> impl futures_util::Stream<Item = String> + Send {
    futures_util::stream::unfold(receiver, |mut receiver| async move {
        loop {
            match receiver.recv().await {
                Ok(name) => return Some((name, receiver)),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    })
}
