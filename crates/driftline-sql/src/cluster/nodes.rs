//! The nodes of a cluster: Ballista's own scheduler and executor, with our functions, and stores in place of files.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::runtime::Builder;

use super::jobs::Watching;
use super::{MESSAGE, codec, shared};
use crate::error::SqlError;
use crate::objects::{Opener, Stores};
use crate::query::{STACK, config, state};

/// Hands on what a node says of itself.
struct Told;

type Tell = Box<dyn Fn(&str, &str) + Send + Sync>;
static TELL: OnceLock<Tell> = OnceLock::new();

impl log::Log for Told {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if let Some(tell) = TELL.get() {
            tell(record.level().as_str(), &record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Lets a node say what goes wrong, and with `more` also what it does: a level and a text. Once for a process.
pub fn listen(more: bool, tell: impl Fn(&str, &str) + Send + Sync + 'static) {
    if TELL.set(Box::new(tell)).is_ok() && log::set_logger(&Told).is_ok() {
        log::set_max_level(if more { log::LevelFilter::Info } else { log::LevelFilter::Warn });
    }
}

/// How long a node may be silent before its work is given to others.
const SILENCE: u64 = 20;
/// What a function may use while a question is planned, and its value is the same for all rows.
const PLANNING: u64 = 256 << 20;
/// How often it is heard of.
const HEARTBEAT: u64 = 5;

fn failed(error: impl std::fmt::Display) -> SqlError {
    SqlError::Start(error.to_string())
}

fn runtime() -> Result<tokio::runtime::Runtime, SqlError> {
    Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build().map_err(failed)
}

fn environment(open: Opener, work: Option<&PathBuf>) -> datafusion::error::Result<Arc<RuntimeEnv>> {
    let builder = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(Stores::new(open)));
    match work {
        Some(work) => builder.with_temp_file_path(work).build_arc(),
        None => builder.build_arc(),
    }
}

/// Runs a scheduler until a signal ends it. `ready` is told where it listens.
pub fn scheduler(bind: SocketAddr, open: Opener, ready: impl FnOnce(SocketAddr)) -> Result<(), SqlError> {
    let plans = environment(open, None).map_err(failed)?;
    let settings = SchedulerConfig {
        bind_host: bind.ip().to_string(),
        bind_port: bind.port(),
        external_host: bind.ip().to_string(),
        grpc_server_max_decoding_message_size: MESSAGE,
        grpc_server_max_encoding_message_size: MESSAGE,
        grpc_client_max_message_size: MESSAGE,
        // Executors ask for work: nobody has to reach them but for results, and one port each is enough.
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        executor_timeout_seconds: SILENCE,
        expire_dead_executor_interval_seconds: HEARTBEAT,
        no_executors_grace_period_seconds: SILENCE,
        override_config_producer: Some(Arc::new(|| shared(config()))),
        override_session_builder: Some(Arc::new(move |config| state(config, plans.clone(), PLANNING))),
        override_logical_codec: Some(Arc::new(codec::Tables::default())),
        ..SchedulerConfig::default()
    };
    runtime()?.block_on(async {
        let cluster = BallistaCluster::new_from_config(&settings).await.map_err(failed)?;
        let scheduler =
            create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(settings)).await.map_err(failed)?;
        let listener = tokio::net::TcpListener::bind(bind).await.map_err(|error| taken(bind, &error))?;
        ready(listener.local_addr().map_err(failed)?);
        tokio::select! {
            served = start_grpc_service_with_listener(listener, scheduler) => served.map_err(failed),
            () = ended() => Ok(()),
        }
    })
}

/// The first signal that asks it to end.
async fn ended() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

fn taken(bind: SocketAddr, error: &std::io::Error) -> SqlError {
    SqlError::Start(format!("cannot listen on {bind}: {error}"))
}

/// What an executor is told.
#[derive(Clone, Debug)]
pub struct Executor {
    /// Host and port of the scheduler.
    pub scheduler: String,
    pub bind: SocketAddr,
    /// The name by which others reach it.
    pub advertise: Option<String>,
    pub tasks: Option<u16>,
    pub memory: u64,
    /// Where a folder is made in which results are kept until they are asked for.
    pub folder: PathBuf,
}

/// Runs an executor until a signal ends it. `ready` is told where it listens.
pub fn executor(node: &Executor, open: Opener, ready: impl FnOnce(SocketAddr)) -> Result<(), SqlError> {
    let wrong =
        || SqlError::Start(format!("`{}` is not an address; write it like ballista://host:50050", node.scheduler));
    let (host, port) = node.scheduler.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    // It tells others its port before it listens there, so a free one is looked for first.
    let bind =
        TcpListener::bind(node.bind).and_then(|free| free.local_addr()).map_err(|error| taken(node.bind, &error))?;
    let functions = environment(open.clone(), None).and_then(|plain| state(shared(config()), plain, node.memory));
    let functions = functions.map_err(failed)?;
    let work = tempfile::Builder::new().prefix("driftline-executor-").tempdir_in(&node.folder).map_err(failed)?;
    let kept = work.path().to_owned();
    let settings = ExecutorProcessConfig {
        bind_host: bind.ip().to_string(),
        external_host: Some(node.advertise.clone().unwrap_or_else(|| bind.ip().to_string())),
        port: bind.port(),
        scheduler_host: host.to_owned(),
        scheduler_port: port,
        scheduler_connect_timeout_seconds: 30,
        vcores: node.tasks.map_or(0, usize::from),
        work_dir: Some(kept.to_str().ok_or_else(|| failed("the folder for results is not Unicode"))?.to_owned()),
        job_data_ttl_seconds: 3600,
        job_data_clean_up_interval_seconds: 600,
        grpc_max_decoding_message_size: MESSAGE,
        grpc_max_encoding_message_size: MESSAGE,
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        executor_heartbeat_interval_seconds: HEARTBEAT,
        memory_pool_size: Some(node.memory),
        override_execution_engine: Some(Arc::new(Watching::new(&node.scheduler))),
        override_function_registry: Some(Arc::new(BallistaFunctionRegistry::from(&functions))),
        override_runtime_producer: Some(Arc::new(move |_| environment(open.clone(), Some(&kept)))),
        override_config_producer: Some(Arc::new(|| shared(config()))),
        override_logical_codec: Some(Arc::new(codec::Tables::default())),
        ..ExecutorProcessConfig::default()
    };
    runtime()?.block_on(async {
        super::reach(&node.scheduler).await?;
        ready(bind);
        start_executor_process(Arc::new(settings)).await.map_err(failed)
    })
}
