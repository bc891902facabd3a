//! The cluster as the operator needs it: an object's finalizer, its status, and events about it.

use std::future::Future;

use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use thiserror::Error;

use crate::crd::{FINALIZER, Status};
use crate::managed::Managed;
use crate::metrics::{Metrics, WriteLabels, Written};
use crate::status::noted;

/// Something that happened, told where the object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub warning: bool,
    pub reason: &'static str,
    pub text: String,
}

#[derive(Debug, Error)]
pub enum ClusterError {
    /// The object is not what it was when it was read.
    #[error("the object changed meanwhile")]
    Conflict,
    /// The object is not there any more.
    #[error("the object is gone")]
    Gone,
    #[error("Kubernetes: {0}")]
    Other(String),
}

/// Every write is on the condition that the object still is as it was read: a decision about something else than
/// what is there is never carried out.
pub trait Cluster<K>: Send + Sync {
    fn add_finalizer(&self, object: &K) -> impl Future<Output = Result<K, ClusterError>> + Send;

    fn remove_finalizer(&self, object: &K) -> impl Future<Output = Result<(), ClusterError>> + Send;

    fn write_status(&self, object: &K, status: &Status) -> impl Future<Output = Result<K, ClusterError>> + Send;

    /// Tells; that it could not be told is no reason to stop.
    fn tell(&self, object: &K, note: Note) -> impl Future<Output = ()> + Send;
}

/// A real one.
#[derive(Clone)]
pub struct KubeCluster {
    client: Client,
    recorder: Recorder,
    metrics: Metrics,
}

impl std::fmt::Debug for KubeCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KubeCluster")
    }
}

const MANAGER: &str = "driftline-operator";

impl KubeCluster {
    pub fn new(client: Client, instance: String, metrics: Metrics) -> Self {
        let reporter = Reporter { controller: MANAGER.into(), instance: Some(instance) };
        Self { recorder: Recorder::new(client.clone(), reporter), client, metrics }
    }

    fn api<K: Managed>(&self, object: &K) -> Api<K> {
        Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default())
    }

    fn count(&self, what: Written) {
        self.metrics.kubernetes_writes.get_or_create(&WriteLabels { what }).inc();
    }
}

impl<K: Managed> Cluster<K> for KubeCluster {
    async fn add_finalizer(&self, object: &K) -> Result<K, ClusterError> {
        let mut finalizers = object.finalizers().to_vec();
        finalizers.push(FINALIZER.to_owned());
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.resource_version()}});
        self.count(Written::Finalizer);
        let answer = self.api(object).patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
        answer.map_err(cluster_error)
    }

    async fn remove_finalizer(&self, object: &K) -> Result<(), ClusterError> {
        let finalizers: Vec<&String> = object.finalizers().iter().filter(|one| *one != FINALIZER).collect();
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.resource_version()}});
        self.count(Written::Finalizer);
        let answer = self.api(object).patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
        match answer.map_err(cluster_error) {
            Ok(_) | Err(ClusterError::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn write_status(&self, object: &K, status: &Status) -> Result<K, ClusterError> {
        // Replaced as a whole: a member that is no more must go, and a merge would keep it.
        let mut whole = object.clone();
        whole.set_status(status.clone());
        whole.meta_mut().managed_fields = None;
        self.count(Written::Status);
        let answer = self.api(object).replace_status(&object.name_any(), &PostParams::default(), &whole).await;
        answer.map_err(cluster_error)
    }

    async fn tell(&self, object: &K, note: Note) {
        let type_ = if note.warning { EventType::Warning } else { EventType::Normal };
        // The recorder counts an event again that it has told before, whatever its note says now. So the note is part
        // of what makes two events one.
        let action = format!("Reconcile/{:08x}", digest(&note.text));
        let reason = note.reason.to_owned();
        tracing::info!(kind = K::KIND.name(), namespace = object.namespace(), name = object.name_any(), reason, "told");
        let event = Event { type_, reason, note: Some(noted(note.text)), action, secondary: None };
        self.count(Written::Event);
        if let Err(error) = self.recorder.publish(&event, &object.object_ref(&())).await {
            let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
            tracing::warn!(namespace, name, reason = note.reason, %error, "an event could not be told");
        }
    }
}

/// A short name for a text; FNV-1a.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn cluster_error(error: kube::Error) -> ClusterError {
    match error {
        kube::Error::Api(status) if status.code == 409 => ClusterError::Conflict,
        kube::Error::Api(status) if status.code == 404 => ClusterError::Gone,
        error => ClusterError::Other(error.to_string()),
    }
}
