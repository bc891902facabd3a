//! Asking: a session within limits, one query, its answer.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::execution::context::{SQLOptions, SessionState};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures_util::StreamExt;
use tokio::sync::Notify;

use crate::answer::Answer;
use crate::error::SqlError;
use crate::extent;
use crate::functions;
use crate::history::Texts;
use crate::objects::{Opener, Stores};
use crate::views::{self, Asked};

/// What one query may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub time: Duration,
    /// Bytes of memory, the result included.
    pub memory: u64,
    /// Bytes on disk, for what does not fit into memory.
    pub spill: u64,
    /// Where a folder for that is made. It is gone when the query ends.
    pub folder: PathBuf,
    /// Rows of the result, where more are of no use; the answer says if there were more.
    pub rows: Option<usize>,
}

/// Ends a query from outside.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Notify>);

impl Stop {
    pub fn now(&self) {
        self.0.notify_one();
    }
}

/// Where a query runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// In this process.
    Here,
    /// On a Ballista cluster: the address of its scheduler.
    #[cfg(feature = "ballista")]
    Ballista(String),
}

impl Engine {
    /// How texts are held there.
    fn texts(&self) -> Texts {
        match self {
            Engine::Here => Texts::Viewed,
            #[cfg(feature = "ballista")]
            Engine::Ballista(_) => Texts::Plain,
        }
    }
}

/// Plans are walked by functions that call themselves; address space is not memory.
pub(crate) const STACK: usize = 64 << 20;

/// Names of catalog and schema, as `information_schema` shows them.
pub(crate) const CATALOG: &str = "driftline";
pub(crate) const SCHEMA: &str = "store";

pub(crate) fn config() -> SessionConfig {
    let mut config =
        SessionConfig::new().with_information_schema(true).with_default_catalog_and_schema(CATALOG, SCHEMA);
    // Times are UTC, in and out.
    config.options_mut().execution.time_zone = Some("UTC".into());
    // Our files are read whole or by row group; their footers are small.
    config.options_mut().execution.parquet.metadata_size_hint = Some(64 * 1024);
    config
}

fn runtime_env(limits: &Limits, folder: PathBuf, open: Opener) -> Result<RuntimeEnv, SqlError> {
    const TOLD: NonZeroUsize = NonZeroUsize::MIN;
    let disk = match limits.spill {
        0 => DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled),
        most => DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![folder]))
            .with_max_temp_directory_size(most),
    };
    let memory = usize::try_from(limits.memory).unwrap_or(usize::MAX);
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(TrackConsumersPool::new(FairSpillPool::new(memory), TOLD)))
        .with_disk_manager_builder(disk)
        .with_object_store_registry(Arc::new(Stores::new(open)))
        .build()
        .map_err(|error| SqlError::of(error, limits))
}

/// The rules of the optimizer but one, and its second pass. It takes columns of one name for one column (`DataFusion`
/// 55.2: a filter above a join of tables whose columns have equal names), which leaves rows out. Filters reach our
/// files without it.
fn rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    PhysicalOptimizer::new().rules.into_iter().filter(|rule| !rule.name().starts_with("FilterPushdown")).collect()
}

/// The same of plans. These two take a column for the one of its name further down, whatever was made of it in between
/// (`DataFusion` 55.2: a part of a text beside the whole of it, and a `LIMIT`).
fn plan_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let left_out = ["extract_leaf_expressions", "push_down_leaf_projections"];
    Optimizer::new().rules.into_iter().filter(|rule| !left_out.contains(&rule.name())).collect()
}

/// A session with our functions, which make no more than fits into so much memory.
pub(crate) fn state(
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
    memory: u64,
) -> datafusion::error::Result<SessionState> {
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_optimizer_rules(plan_rules())
        .with_physical_optimizer_rules(rules())
        .build();
    functions::register(&mut state, memory)?;
    Ok(state)
}

/// Asks one question of the views and waits for the whole answer.
pub fn ask(
    asked: &Asked,
    open: Opener,
    sql: &str,
    engine: &Engine,
    limits: &Limits,
    stop: &Stop,
) -> Result<Answer, SqlError> {
    let (asked, texts) = (asked.clone(), engine.texts());
    run_on(open, sql, engine, limits, stop, move |context| views::register(context, &asked, texts))
}

/// Asks one question of whatever tables are given, within limits.
pub(crate) fn run_on(
    open: Opener,
    sql: &str,
    engine: &Engine,
    limits: &Limits,
    stop: &Stop,
    tables: impl FnOnce(&SessionContext) -> datafusion::error::Result<()> + Send + 'static,
) -> Result<Answer, SqlError> {
    let started = |error: std::io::Error| SqlError::Start(error.to_string());
    // Where nothing may be put aside there is nothing to leave behind.
    let folder = || tempfile::Builder::new().prefix("driftline-query-").tempdir_in(&limits.folder).map_err(started);
    let folder = (limits.spill > 0).then(folder).transpose()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build().map_err(started)?;
    let running = Running::default();
    let work = {
        let (sql, limits, engine, running) = (sql.to_owned(), limits.clone(), engine.clone(), running.clone());
        let aside = folder.as_ref().map(|folder| folder.path().to_owned()).unwrap_or_default();
        let environment = Arc::new(runtime_env(&limits, aside, open)?);
        async move { answer(&sql, &engine, &limits, environment, &running, tables).await }
    };
    let work = runtime.spawn(work);
    // This thread keeps the time by itself: what is at work may not stop to look at it.
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(started)?;
    let outcome = waiting.block_on(async {
        tokio::select! {
            done = work => match done {
                Ok(answer) => answer,
                Err(error) => Err(SqlError::Start(format!("a query ended without an answer: {error}"))),
            },
            () = tokio::time::sleep(limits.time) => Err(SqlError::Time(limits.time)),
            () = stop.0.notified() => Err(SqlError::Interrupted),
        }
    });
    #[cfg(feature = "ballista")]
    if let (Engine::Ballista(address), Err(SqlError::Time(_) | SqlError::Interrupted | SqlError::Result(_))) =
        (engine, &outcome)
        && let Some(plan) = running.get()
    {
        waiting.block_on(crate::cluster::jobs::take_back(address, plan.as_ref()));
    }
    runtime.shutdown_background();
    outcome
}

/// The plan that is being run, once there is one.
type Running = Arc<OnceLock<Arc<dyn ExecutionPlan>>>;

async fn answer(
    sql: &str,
    engine: &Engine,
    limits: &Limits,
    environment: Arc<RuntimeEnv>,
    running: &Running,
    tables: impl FnOnce(&SessionContext) -> datafusion::error::Result<()> + Send,
) -> Result<Answer, SqlError> {
    let wrong = |error| SqlError::of(error, limits);
    extent::check(sql)?;
    let room = MemoryConsumer::new("result").register(&environment.memory_pool);
    let here = || state(config(), environment.clone(), limits.memory).map(SessionContext::new_with_state);
    let mut context = match engine {
        Engine::Here => here().map_err(wrong)?,
        #[cfg(feature = "ballista")]
        Engine::Ballista(address) => crate::cluster::context(address, environment.clone(), limits).await?,
    };
    tables(&context).map_err(wrong)?;
    let options = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let plan = context.state().create_logical_plan(sql).await.map_err(wrong)?;
    extent::check_plan(&plan)?;
    options.verify_plan(&plan).map_err(wrong)?;
    // What is told of a plan, or of a view, is no table that could be cut.
    let is_table = !matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_));
    // What a view has is known here.
    if matches!(plan, LogicalPlan::DescribeTable(_)) {
        context = here().map_err(wrong)?;
    }
    let mut question = context.execute_logical_plan(plan).await.map_err(wrong)?;
    if let Some(rows) = limits.rows.filter(|_| is_table) {
        question = question.limit(0, Some(rows.saturating_add(1))).map_err(wrong)?;
    }
    let schema = Arc::new(question.schema().as_arrow().clone());
    let told = |error| told(error, engine, limits);
    let task = Arc::new(question.task_ctx());
    let plan = question.create_physical_plan().await.map_err(told)?;
    let plan = running.get_or_init(|| plan);
    let mut stream = execute_stream(plan.clone(), task).map_err(told)?;
    let mut batches = Vec::new();
    let mut count = 0;
    while let Some(batch) = stream.next().await {
        let batch = compact(&batch.map_err(told)?).map_err(wrong)?;
        room.try_grow(batch.get_array_memory_size()).map_err(|_| SqlError::Result(limits.memory))?;
        count += batch.num_rows();
        batches.push(batch);
    }
    let cut = limits.rows.filter(|rows| count > *rows);
    Answer::new(schema, batches, cut).map_err(|error| wrong(error.into()))
}

fn told(error: datafusion::error::DataFusionError, engine: &Engine, limits: &Limits) -> SqlError {
    match engine {
        Engine::Here => SqlError::of(error, limits),
        #[cfg(feature = "ballista")]
        Engine::Ballista(address) => crate::cluster::told(error, address, limits),
    }
}

/// The same rows without what else was in their buffers: a view of one name may hold a page of them.
fn compact(batch: &RecordBatch) -> datafusion::error::Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()) as Arc<dyn Array>,
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        _ => column.clone(),
    });
    let options = datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns.collect(), &options)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use datafusion::arrow::array::StringArray;
    use datafusion::datasource::{MemTable, ViewTable, provider_as_source};
    use datafusion::functions::expr_fn::upper;
    use datafusion::logical_expr::LogicalPlanBuilder;
    use datafusion::prelude::col;

    use super::*;

    /// Beside a part of it, and with a limit, a column is what its view makes of it and not what is below of that name.
    #[test]
    fn a_column_is_what_its_view_makes_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits {
            time: Duration::from_mins(1),
            memory: 64 << 20,
            spill: 0,
            folder: folder.path().to_owned(),
            rows: Some(20),
        };
        let tables = |context: &SessionContext| {
            let rows = RecordBatch::try_from_iter([
                ("id", Arc::new(StringArray::from(vec!["a"])) as Arc<dyn Array>),
                ("text", Arc::new(StringArray::from(vec![r#"{"a":"b"}"#]))),
            ])?;
            let below = Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows]])?);
            let columns = vec![col("id"), upper(col("text")).alias("text")];
            let plan = LogicalPlanBuilder::scan("below", provider_as_source(below), None)?.project(columns)?.build()?;
            context.register_table("above", Arc::new(ViewTable::new(plan, None))).map(drop)
        };
        let sql = "SELECT json_get_str(text, 'A') AS x, 'p' || text AS z FROM above";
        let open: Opener = Arc::new(|_| unreachable!("no store is asked"));
        let answer = run_on(open, sql, &Engine::Here, &limits, &Stop::default(), tables).unwrap();
        let row = [Some("B".to_owned()), Some(r#"p{"A":"B"}"#.to_owned())];
        assert_eq!(answer.cells().unwrap(), [row]);
    }
}
