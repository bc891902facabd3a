//! What can get in the way of a reconcile.

use thiserror::Error;

use crate::cloud::CloudError;
use crate::cluster::ClusterError;

#[derive(Debug, Error)]
pub enum Trouble {
    #[error(transparent)]
    Cloud(CloudError),
    /// A request that AWS was working on came to a bad end.
    #[error(transparent)]
    Ended(CloudError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The object cannot be acted on as it is.
    #[error("{message}")]
    Refused { reason: &'static str, message: String },
    /// Another process has the lease: nothing may be written any more.
    #[error("another process leads")]
    NotLeader,
}
