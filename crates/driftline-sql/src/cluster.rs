//! Queries and drift on a Ballista cluster: what is sent, and what comes back. The nodes are in `nodes.rs`.

mod codec;
pub mod net;
pub mod nodes;

use std::sync::Arc;

use ballista_core::extension::{SessionConfigExt, SessionStateExt};
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::error::SqlError;
use crate::query::{Limits, config, state};

/// The largest message between nodes: a plan with the rows of `findings` in it is one.
const MESSAGE: u32 = 256 << 20;
/// Into how many parts work is cut; a small cluster has fewer processors, and a large one not many more streams.
const PARTS: usize = 8;

/// What a session of a cluster knows, on every node: how our tables are written down.
fn shared(config: SessionConfig) -> SessionConfig {
    config
        .with_target_partitions(PARTS)
        .upgrade_for_ballista()
        .with_ballista_grpc_client_max_message_size(MESSAGE as usize)
        // With it, a job that loses an executor at the wrong moment never ends (Ballista 55.0).
        .with_ballista_adaptive_query_planner(false)
        .with_ballista_logical_extension_codec(Arc::new(codec::Tables::default()))
}

/// A session whose plans are run by a cluster.
pub(crate) async fn context(
    address: &str,
    environment: Arc<RuntimeEnv>,
    limits: &Limits,
) -> Result<SessionContext, SqlError> {
    reach(address).await?;
    let made = || {
        let state = state(shared(config()), environment)?.upgrade_for_ballista(format!("http://{address}"))?;
        // Ballista brings a list of functions of its own.
        let mut state = state;
        crate::functions::register(&mut state)?;
        Ok(SessionContext::new_with_state(state))
    };
    made().map_err(|error| SqlError::of(error, limits))
}

/// Ballista tries for long before it says that nobody is there.
async fn reach(address: &str) -> Result<(), SqlError> {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
    let away = |what: String| SqlError::Cluster { address: address.to_owned(), what };
    match tokio::time::timeout(PATIENCE, tokio::net::TcpStream::connect(address)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(away(format!("cannot be reached: {error}"))),
        Err(_) => Err(away("does not answer".into())),
    }
}

/// An error of the cluster, in which that of one of its parts is only text.
pub(crate) fn told(error: DataFusionError, address: &str, limits: &Limits) -> SqlError {
    match SqlError::of(error, limits) {
        SqlError::Query { message, .. } => {
            // The job's name is of no use to whoever asked, and neither are the names of Ballista's own types.
            let what = message.rsplit_once("failed: ").map_or(message.as_str(), |(_, what)| what);
            SqlError::Cluster { address: address.to_owned(), what: format!("could not do it: {what}") }
        }
        other => other,
    }
}
