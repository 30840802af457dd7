//! MCP server: its identity, the tools for a caller, and tool calls.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::Semaphore;

use super::board::ToolBoard;
use super::catalog::{self, VerbTool};
use super::script::{self, Scripts};
use base::failure::Failure;

/// Limit on the tool calls of one server in progress; others wait. A run may have 16 requests in progress by default,
/// and its worker makes some without this server.
const CALLS: usize = 8;

/// Instructions that an agent reads before its first call.
const INSTRUCTIONS: &str = "\
The board of tasks that you work for. Inside a run, tools that take a task mean your own where you name none. Read it with \
kanban_show first. End the run with exactly one of kanban_complete, kanban_block and kanban_request_review: a process that \
exits without one has failed. An error says whether anything was changed and what to do next.";

/// Reason why a caller has no scripts.
const NO_SCRIPTS: &str = "execute_code is a tool of `supervisor mcp` inside a run: a script is confined as its run is, and there is no run here";

/// Server of one caller.
#[derive(Clone, Debug)]
pub(super) struct McpServer {
    board: Arc<ToolBoard>,
    calls: Arc<Semaphore>,
    /// None without a process of the caller's own.
    scripts: Option<Arc<Scripts>>,
}

impl McpServer {
    pub(super) fn new(board: Arc<ToolBoard>, scripts: Option<Arc<Scripts>>) -> Self {
        McpServer { board, calls: Arc::new(Semaphore::new(CALLS)), scripts }
    }
}

/// Supported versions of the protocol; the last one has no handshake. Agents built with an early library begin with one
/// of the first two, and fail if another is offered.
const VERSIONS: &[ProtocolVersion] = &[
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

impl ServerHandler for McpServer {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("supervisor", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered = self.board.offered().await.map_err(|failure| internal(&failure))?;
        let is_offered = |listed: &&VerbTool| offered.verbs.iter().any(|verb| verb == listed.verb);
        let tools = catalog::all().iter().filter(is_offered).map(|listed| listed.tool.clone());
        let of_plugins = offered.plugins.iter().map(catalog::of_plugin);
        let script = self.scripts.as_ref().filter(|_| offered.work).map(|_| Scripts::tool(&offered.verbs));
        Ok(ListToolsResult::with_all_items(tools.chain(of_plugins).chain(script).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        // Holds the message's permit until the call is over.
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == script::NAME {
            let Some(scripts) = &self.scripts else { return Ok(script::refused(NO_SCRIPTS).into()) };
            let arguments = request.arguments.unwrap_or_default();
            return Ok(scripts.run(arguments, context.ct.clone()).await.into());
        }
        if catalog::is_of_plugin(&request.name) {
            let _turn = self.calls.acquire().await.ok();
            let arguments = request.arguments.unwrap_or_default();
            return Ok(catalog::call_plugin(&self.board, request.name.into_owned(), arguments).await.into());
        }
        let Some(listed) = catalog::find(&request.name) else {
            return Err(ErrorData::invalid_params(
                format!("no such tool: {}; tools/list lists them", short(&request.name)),
                None,
            ));
        };
        // The semaphore is never closed.
        let _turn = self.calls.acquire().await.ok();
        let arguments = request.arguments.unwrap_or_default();
        Ok(listed.call(&self.board, arguments).await.into())
    }
}

/// Makes a protocol error from a failure to handle a protocol request.
fn internal(failure: &Failure) -> ErrorData {
    let hint = failure.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
    ErrorData::internal_error(format!("{}{hint}", failure.message), None)
}

/// Shortens a name sent by a client.
fn short(name: &str) -> String {
    name.chars().take(64).collect()
}
