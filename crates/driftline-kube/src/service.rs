//! The operator as a process: its runtime, its connections, and the signals that end it.

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};

use crate::operator::{OperatorError, Options, run};
use crate::plan::{Planned, plan};
use crate::settings::Defaults;

/// What is asked, and of whom.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    /// The context of the kubeconfig; without it the current one, or the cluster that this process runs in.
    pub context: Option<String>,
    pub region: Option<String>,
    pub profile: Option<String>,
    pub user_agent: String,
}

#[derive(Debug, Error)]
pub enum ServiceError {
    #[error("cannot start")]
    Runtime(#[source] std::io::Error),
    #[error("no cluster to connect to: {0}")]
    Cluster(String),
    #[error("no account of AWS to connect to: {0}")]
    Aws(String),
    #[error(transparent)]
    Operator(#[from] OperatorError),
}

/// Two threads serve thousands of objects: what takes time is AWS.
fn runtime() -> Result<tokio::runtime::Runtime, ServiceError> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(ServiceError::Runtime)
}

/// The cluster's name as the kubeconfig has it; in a cluster nobody tells it.
pub fn cluster_name(context: Option<&str>) -> Option<String> {
    let config = Kubeconfig::read().ok()?;
    let wanted = context.map(ToOwned::to_owned).or(config.current_context)?;
    let found = config.contexts.into_iter().find(|one| one.name == wanted)?;
    found.context.map(|context| context.cluster)
}

async fn kubernetes(connections: &Connections) -> Result<kube::Client, ServiceError> {
    let failed = |error: &dyn std::error::Error| ServiceError::Cluster(error.to_string());
    let config = match &connections.context {
        Some(context) => {
            let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
            kube::Config::from_kubeconfig(&options).await.map_err(|error| failed(&error))?
        }
        None => kube::Config::infer().await.map_err(|error| failed(&error))?,
    };
    kube::Client::try_from(config).map_err(|error| failed(&error))
}

async fn aws(connections: &Connections) -> Result<aws_wire::Client, ServiceError> {
    let mut options = aws_wire::Options {
        profile: connections.profile.clone(),
        region: connections.region.clone(),
        user_agent: connections.user_agent.clone(),
        ..aws_wire::Options::default()
    };
    // An object that has to wait is looked at again anyway; here it would only keep others from their turn.
    options.schedule.attempts = 3;
    options.schedule.longest = Duration::from_secs(2);
    options.attempt_timeout = Duration::from_secs(20);
    aws_wire::Client::load(&options).await.map_err(|error| ServiceError::Aws(error.to_string()))
}

/// Runs until it is told to end, by SIGTERM or SIGINT, and what is under way has come to its end.
pub fn serve(connections: &Connections, options: Options) -> Result<(), ServiceError> {
    runtime()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(ServiceError::Runtime)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(ServiceError::Runtime)?;
        let stop = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let (kubernetes, aws) = (kubernetes(connections).await?, aws(connections).await?);
        Ok(run(kubernetes, aws, options, stop).await?)
    })
}

/// Looks once and writes nothing.
pub fn dry_run(
    connections: &Connections,
    defaults: Defaults,
    namespaces: &[String],
    clock: crate::context::Clock,
) -> Result<Vec<Planned>, ServiceError> {
    runtime()?.block_on(async {
        let (kubernetes, aws) = (kubernetes(connections).await?, aws(connections).await?);
        Ok(plan(kubernetes, aws, defaults, namespaces, clock).await?)
    })
}
