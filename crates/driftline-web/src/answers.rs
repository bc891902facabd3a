//! What the page asks, and how it is told no.

use std::sync::Arc;

use crate::model::{Acceptance, Accepted, Between, Posture, Resource, Snapshot, SourceVersions, Topology};

/// Whoever knows the answers. Every call may block and is made outside the asynchronous runtime.
pub trait Answers: Send + Sync + 'static {
    /// What the store holds now, as a text that changes whenever anything in it does. Cheap: it is asked every second.
    fn revision(&self) -> Result<String, Refusal>;

    /// Everything that is true of one revision. Dear: it is asked once for each revision.
    fn snapshot(&self) -> Result<Snapshot, Refusal>;

    /// One resource, by its canonical id, as everybody who saw it tells.
    fn resource(&self, id: &str) -> Result<Resource, Refusal>;

    /// The event and network graph at a point in time, marked with what became of it since another. Points are `v3`, a
    /// time, `now`, or the name of a baseline as `baseline:main`; without any, the baseline against now.
    fn topology(&self, from: Option<&str>, to: Option<&str>) -> Result<Arc<Topology>, Refusal>;

    /// Compliance by rule.
    fn posture(&self) -> Result<Arc<Posture>, Refusal>;

    /// The versions of every source, newest first.
    fn versions(&self) -> Result<Vec<SourceVersions>, Refusal>;

    /// Two points in time, held against each other.
    fn between(&self, from: &str, to: &str) -> Result<Arc<Between>, Refusal>;

    /// Accepts findings on top of the baseline. The only thing here that writes, and it writes to the store alone.
    fn accept(&self, acceptance: &Acceptance) -> Result<Accepted, Refusal>;
}

/// Why there is no answer: what failed, on what, and what to do next.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub kind: RefusalKind,
    pub message: String,
    pub hints: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// What was asked for is not there.
    NotFound,
    /// There is nothing to tell yet: something has to be observed or pinned first.
    NotYet,
    /// The question cannot be understood.
    BadQuestion,
    /// It was changed in the meantime, or cannot be written at the moment.
    Conflict,
    /// Something is wrong on our side.
    Failed,
}
