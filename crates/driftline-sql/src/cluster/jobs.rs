//! The end of work that nobody waits for any more. Who asks takes a job back; an executor looks whether the job it
//! works on is still wanted, because nobody can call an executor that asks for work by itself.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::execution_plans::DistributedQueryExec;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, GetJobStatusParams, RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport,
    job_status,
};
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, replace_children_if_necessary};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties, ReplaceChildrenOptions,
};
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::LogicalPlanNode;
use futures_util::{Stream, StreamExt};

/// How long a scheduler may take to hear that a job is not wanted.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often an executor looks whether a job is.
const LOOK: Duration = Duration::from_secs(1);

/// Takes back the job that a plan was sent as. What cannot be told within a moment is left to the job's own limit.
pub(crate) async fn take_back(address: &str, plan: &dyn ExecutionPlan) {
    let told = async {
        // The scheduler names a job a moment after it was asked.
        let job = loop {
            match job_of(plan) {
                Some(job) => break job,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        cancel(address, &job).await;
    };
    let _ = tokio::time::timeout(PATIENCE, told).await;
}

async fn cancel(address: &str, job: &JobId) {
    let Ok(mut scheduler) = SchedulerGrpcClient::connect(format!("http://{address}")).await else { return };
    let _ = scheduler.cancel_job(CancelJobParams { job_id: job.to_string() }).await;
}

fn job_of(plan: &dyn ExecutionPlan) -> Option<JobId> {
    let here = plan.downcast_ref::<DistributedQueryExec<LogicalPlanNode>>().and_then(DistributedQueryExec::job_id);
    here.or_else(|| plan.children().into_iter().find_map(|child| job_of(child.as_ref())))
}

/// What goes with a question to every node.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// How many seconds the answer is waited for; nothing is if it is 0.
    pub seconds: u64,
}

impl ConfigExtension for Wanted {
    const PREFIX: &'static str = "driftline";
}

const SECONDS: &str = "seconds";

/// Written out, because the macro for it tells entries without their prefix, and then no other node knows them.
impl ExtensionOptions for Wanted {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let unknown = || DataFusionError::Configuration(format!("`{key}` cannot be `{value}`"));
        match key {
            SECONDS => self.seconds = value.parse().map_err(|_| unknown())?,
            _ => return Err(unknown()),
        }
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        vec![ConfigEntry {
            key: format!("{}.{SECONDS}", Self::PREFIX),
            value: Some(self.seconds.to_string()),
            description: "how many seconds the answer is waited for",
        }]
    }
}

/// Ballista's own engine, with an eye on whether its work is still wanted.
pub(super) struct Watching {
    scheduler: String,
    inner: DefaultExecutionEngine,
}

impl Watching {
    pub(super) fn new(scheduler: &str) -> Self {
        Self { scheduler: scheduler.to_owned(), inner: DefaultExecutionEngine::new() }
    }
}

impl ExecutionEngine for Watching {
    fn create_query_stage_exec(
        &self,
        job: JobId,
        stage: usize,
        task: usize,
        parts: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        folder: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let unwanted = Arc::new(AtomicBool::new(false));
        let plan = watched(plan, &unwanted)?;
        let seconds = config.options().extensions.get::<Wanted>().map_or(0, |wanted| wanted.seconds);
        let inner = self.inner.create_query_stage_exec(job.clone(), stage, task, parts, plan, folder, config)?;
        Ok(Arc::new(Stage { inner, job, scheduler: self.scheduler.clone(), seconds, unwanted }))
    }
}

/// The same plan with an eye below the last node that has one input only. Those above take what it gives, and end with
/// it; how Ballista numbers parts goes by the nodes above, too.
fn watched(plan: Arc<dyn ExecutionPlan>, unwanted: &Arc<AtomicBool>) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children();
    match children.as_slice() {
        [only] => {
            let below = watched(Arc::clone(only), unwanted)?;
            replace_children_if_necessary(Arc::clone(&plan), vec![below])
        }
        _ => Ok(Arc::new(Eye { input: plan, unwanted: unwanted.clone() })),
    }
}

/// A part of a job, given up when the job is.
#[derive(Debug)]
struct Stage {
    inner: Arc<dyn QueryStageExecutor>,
    job: JobId,
    scheduler: String,
    seconds: u64,
    unwanted: Arc<AtomicBool>,
}

impl Stage {
    /// Waits until nobody waits for the job.
    async fn unwanted(&self) {
        let looked = async {
            let mut scheduler = None;
            loop {
                tokio::time::sleep(LOOK).await;
                if scheduler.is_none() {
                    scheduler = SchedulerGrpcClient::connect(format!("http://{}", self.scheduler)).await.ok();
                }
                let Some(known) = &mut scheduler else { continue };
                match known.get_job_status(GetJobStatusParams { job_id: self.job.to_string() }).await {
                    Ok(told) => match told.into_inner().status.and_then(|status| status.status) {
                        Some(job_status::Status::Queued(_) | job_status::Status::Running(_)) => {}
                        // It failed, was taken back, or is one that the scheduler has never heard of.
                        _ => return,
                    },
                    // A scheduler that is away for a moment may come back.
                    Err(_) => scheduler = None,
                }
            }
        };
        match self.seconds {
            0 => looked.await,
            seconds => {
                if tokio::time::timeout(Duration::from_secs(seconds), looked).await.is_err() {
                    // Who asked has died without a word. Nobody is to try this again, nor begin its other parts.
                    let _ = tokio::time::timeout(PATIENCE, cancel(&self.scheduler, &self.job)).await;
                }
            }
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl QueryStageExecutor for Stage {
    async fn execute_query_stage(&self, task: usize, context: Arc<TaskContext>) -> Result<Vec<ShuffleWritePartition>> {
        let work = self.inner.execute_query_stage(task, context);
        tokio::pin!(work);
        tokio::select! {
            done = &mut work => return done,
            () = self.unwanted() => self.unwanted.store(true, Ordering::Relaxed),
        }
        // What it started would go on if it were only dropped; so it is told, and waited for.
        work.await
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.inner.collect_plan_metrics()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.inner.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.inner.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.inner.collect_column_stats()
    }
}

/// Hands on what its input gives, until nobody wants it.
#[derive(Debug)]
struct Eye {
    input: Arc<dyn ExecutionPlan>,
    unwanted: Arc<AtomicBool>,
}

impl DisplayAs for Eye {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Eye")
    }
}

impl ExecutionPlan for Eye {
    fn name(&self) -> &'static str {
        "Eye"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] =
            <[_; 1]>::try_from(children).map_err(|_| DataFusionError::Internal("an eye has one input".into()))?;
        Ok(Arc::new(Self { input, unwanted: self.unwanted.clone() }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, part: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(part, context)?;
        Ok(Box::pin(Seen { rows, unwanted: self.unwanted.clone() }))
    }
}

struct Seen {
    rows: SendableRecordBatchStream,
    unwanted: Arc<AtomicBool>,
}

impl Stream for Seen {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.unwanted.load(Ordering::Relaxed) {
            return Poll::Ready(Some(Err(DataFusionError::Execution("nobody waits for it any more".into()))));
        }
        self.rows.poll_next_unpin(context)
    }
}

impl RecordBatchStream for Seen {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

#[cfg(test)]
mod tests {
    use ballista_core::extension::SessionConfigHelperExt;

    use super::*;

    #[test]
    fn every_node_knows_how_long_an_answer_is_waited_for() {
        let asked = SessionConfig::new().with_option_extension(Wanted { seconds: 25 });
        let there = SessionConfig::new().with_option_extension(Wanted::default());
        let there = there.update_from_key_value_pair(&asked.to_key_value_pairs());
        assert_eq!(there.options().extensions.get::<Wanted>().map(|wanted| wanted.seconds), Some(25));
    }
}
