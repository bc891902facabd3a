//! The server: tools are listed and called; nothing else is on standard output.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, InitializeResult,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, Tool as Listed, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError, ServiceExt};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Map, Value};

use crate::tools::{self, INSTRUCTIONS, Tool};

/// Whoever knows the answers. Calls may block and are made outside the asynchronous runtime.
pub trait Answers: Send + Sync + 'static {
    /// Answers a tool of [`tools::all`]. The answer is an object as the tool's output schema has it, bounded and without
    /// secrets.
    fn answer(&self, tool: &str, arguments: Map<String, Value>) -> Result<Value, Refusal>;

    /// Whether it can; a tool that nobody answers is not offered.
    fn knows(&self, _tool: &str) -> bool {
        true
    }
}

/// Why there is no answer, and what to do next.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub message: String,
    pub hints: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot start the runtime")]
    Runtime(#[source] std::io::Error),
    #[error("the client did not begin as the protocol has it: {0}")]
    Initialize(String),
    #[error("the server ended early: {0}")]
    Ended(String),
}

/// Serves one client on standard input and output until it goes away.
pub fn serve(answers: impl Answers, version: &str) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Runtime)?;
    let mut tools = tools::all();
    tools.retain(|tool| answers.knows(tool.name));
    let server = Server { answers: Arc::new(answers), tools: Arc::new(tools), version: version.to_owned() };
    let outcome = runtime.block_on(async {
        let running = match server.serve(rmcp::transport::stdio()).await {
            Ok(running) => running,
            // It went away before it asked anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Initialize(error.to_string())),
        };
        running.waiting().await.map(|_| ()).map_err(|error| ServeError::Ended(error.to_string()))
    });
    // A question that nobody waits for any more need not be answered.
    runtime.shutdown_background();
    outcome
}

struct Server<A> {
    answers: Arc<A>,
    tools: Arc<Vec<Tool>>,
    version: String,
}

fn listed(tool: &Tool) -> Listed {
    let annotations =
        ToolAnnotations::with_title(tool.title).read_only(true).destructive(false).idempotent(true).open_world(false);
    let mut listed = Listed::new(tool.name, tool.about, tool.input.clone());
    listed.title = Some(tool.title.to_owned());
    listed.output_schema = Some(Arc::new(tool.output.clone()));
    listed.annotations = Some(annotations);
    listed
}

/// As words that a model reads, hints included.
fn refused(refusal: &Refusal) -> CallToolResult {
    let mut text = format!("error: {}", refusal.message);
    for hint in &refusal.hints {
        text += &format!("\nhint: {hint}");
    }
    CallToolResult::error(vec![ContentBlock::text(text)])
}

impl<A: Answers> ServerHandler for Server<A> {
    fn get_info(&self) -> InitializeResult {
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("driftline", self.version.clone()).with_title("Driftline"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.iter().map(listed).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Listed> {
        self.tools.iter().find(|tool| tool.name == name).map(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.tools.iter().any(|tool| tool.name == request.name) {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name).collect();
            let message = format!("there is no tool `{}`; the tools are {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        }
        let answers = self.answers.clone();
        let arguments = request.arguments.unwrap_or_default();
        let name = request.name.into_owned();
        let answering = tokio::task::spawn_blocking(move || answers.answer(&name, arguments));
        let answer = tokio::select! {
            answer = answering => answer,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
        };
        Ok(match answer {
            Ok(Ok(answer)) => CallToolResult::structured(answer),
            Ok(Err(refusal)) => refused(&refusal),
            Err(_) => return Err(ErrorData::internal_error("the answer broke down", None)),
        }
        .into())
    }
}
