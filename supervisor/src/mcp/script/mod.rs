//! `execute_code`: runs a Python script of the agent, which calls tools and prints its results.
//!
//! ```text
//! agent ── stdio ── `supervisor mcp` ── socket pair ── python3, in a Landlock domain and a session of its own
//!                        │ allow-list, count, log
//!                        └── Client ── socket of the run ─▶ verb
//! ```
//!
//! The script is a child of this process, so it is confined like the run, counts for the run, and ends with it. It
//! neither has the run's token nor can read it: its only access to the board is the inherited socket, where [`calls`]
//! decides. All its processes are ended when the script is over. So scripts run one after the other, and all
//! descendants of this process belong to one script.
//!
//! See decision 0168.

mod calls;
mod confined;
mod head;
mod process;
mod stubs;

pub(crate) use confined::main;

use std::sync::Arc;
use std::time::{Duration, Instant};

use kernel::{ToolCall, ToolResult};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::board::ToolBoard;
use super::catalog;
use crate::client::Client;
use base::exit::Code;
use base::failure::Failure;
use calls::{ScriptCalls, allowed};
use process::{Script, ScriptEnd};

pub(super) const NAME: &str = "execute_code";
/// Longest and default time limit of a script, in seconds.
const LONGEST: u64 = 120;
/// Reason why an orchestrator has no scripts.
const NO_WORK: &str = "execute_code is not a tool of an orchestrator: it divides work and does none of it";
/// Size limit of a script, in bytes.
const CODE: usize = 1 << 20;

/// Runs a Python script that calls tools
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScriptArguments {
    /// The script. What it prints to standard output is the result
    code: String,
    /// Time limit in seconds: 1 to 120 [default: 120]
    #[schemars(range(min = 1, max = 120))]
    timeout_seconds: Option<u64>,
}

/// Result, with the fields of Hermes' tool.
#[derive(Debug, Serialize)]
struct ScriptResult {
    status: ToolResult,
    output: String,
    errors: String,
    tool_calls_made: u64,
    duration_seconds: f64,
}

/// Scripts of one server.
#[derive(Debug)]
pub(super) struct Scripts {
    client: Arc<Client>,
    /// Held by the running script.
    turn: Arc<Mutex<()>>,
    /// Cancelled when the client has closed the conversation.
    closing: CancellationToken,
}

impl Scripts {
    pub(super) fn new(client: Arc<Client>, closing: CancellationToken) -> Self {
        Scripts { client, turn: Arc::default(), closing }
    }

    /// Returns the description of the tool, for a caller who is offered these verbs.
    pub(super) fn tool(offered: &[String]) -> Tool {
        let names =
            allowed(offered).iter().map(|listed| listed.tool.name.as_ref()).collect::<Vec<_>>().join(", ");
        let description = format!(
            "Run a Python script that calls tools, and return what it prints. Use it for three or more calls with logic between them, to \
             filter large results before you read them, to branch or to loop; for one call, call the tool itself. Each script is a fresh \
             process: print what the next one needs. `from supervisor_tools import {names}`: each takes the arguments of the tool by their \
             names, returns its structured result, and raises `ToolError` where the tool refuses. The standard library is there. At most \
             {LONGEST} s, {} calls, 50 KB of output and 10 KB of errors.",
            calls::MOST
        );
        let annotations = ToolAnnotations::new().read_only(false).destructive(false).open_world(false);
        Tool::new(NAME, description, catalog::arguments(schema_for!(ScriptArguments)))
            .with_annotations(annotations)
    }

    /// Runs a script to its end, or until `cancelled` or the end of the conversation. Runs on if the caller is dropped.
    pub(super) async fn run(&self, arguments: JsonObject, cancelled: CancellationToken) -> CallToolResult {
        let size = arguments.values().map(|value| value.as_str().map_or(0, str::len)).sum::<usize>();
        let arguments: ScriptArguments = match serde_json::from_value(Value::Object(arguments)) {
            Ok(arguments) => arguments,
            Err(e) => return refused(&format!("invalid arguments: {e}")),
        };
        if arguments.code.len() > CODE {
            return refused(
                "the script has more than 1 MiB: keep data in a file of the workspace, and read it in the script",
            );
        }
        let seconds = arguments.timeout_seconds.unwrap_or(LONGEST);
        if !(1..=LONGEST).contains(&seconds) {
            return refused(&format!("timeout_seconds: {seconds} is not between 1 and {LONGEST}"));
        }
        let (client, turn, closing) =
            (Arc::clone(&self.client), Arc::clone(&self.turn), self.closing.clone());
        // Spawned, so that the script is ended in order even if the caller is dropped.
        let script = tokio::spawn(async move {
            let _turn = turn.lock_owned().await;
            let limit = Duration::from_secs(seconds);
            let (began, outcome) =
                (Instant::now(), execute(&client, &arguments.code, limit, [&cancelled, &closing]).await);
            if let Ok(outcome) = &outcome {
                let noted = ToolCall {
                    tool: NAME.to_owned(),
                    result: outcome.status,
                    duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                    request_bytes: u64::try_from(size).unwrap_or(u64::MAX),
                    reply_bytes: u64::try_from(outcome.output.len() + outcome.errors.len())
                        .unwrap_or(u64::MAX),
                    tool_calls: Some(outcome.tool_calls_made),
                };
                calls::note(&client, noted).await;
            }
            outcome
        });
        match script.await {
            Ok(Ok(outcome)) => call_result(&outcome),
            Ok(Err(failure)) => {
                let hint = failure.hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                refused(&format!("{}{hint}", failure.message))
            }
            Err(e) => refused(&format!("the script was given up: {e}")),
        }
    }

    /// Waits until no script runs, after the conversation was closed.
    pub(super) async fn over(&self) {
        drop(self.turn.lock().await);
    }
}

async fn execute(
    client: &Arc<Client>,
    code: &str,
    limit: Duration,
    ends: [&CancellationToken; 2],
) -> Result<ScriptResult, Failure> {
    let board = Arc::new(ToolBoard::Script(Arc::clone(client)));
    let offered = board.offered().await?;
    if !offered.work {
        return Err(Failure::new(Code::NotPermitted, NO_WORK)
            .hint("kanban_create makes a task of what has to be run"));
    }
    let tools = allowed(&offered.verbs);
    let began = Instant::now();
    let (script, socket) = Script::start(code, &stubs::module(&tools))?;
    let calls = ScriptCalls::serve(board, tools, socket);
    let [cancelled, closing] = ends;
    let end = tokio::select! {
        ended = script.ended() => ScriptEnd::Itself(ended),
        () = tokio::time::sleep(limit) => ScriptEnd::Timeout,
        () = cancelled.cancelled() => ScriptEnd::Interrupted,
        () = closing.cancelled() => ScriptEnd::Interrupted,
    };
    // The script ends before its calls: its end closes the socket, on which they wait.
    let (status, output) = script.finish(end).await;
    let tool_calls_made = calls.over().await;
    let duration = began.elapsed();
    let note = match status {
        ToolResult::Timeout => format!("[ended: it took longer than {} s]", limit.as_secs()),
        ToolResult::Interrupted => "[ended: it was interrupted]".to_owned(),
        ToolResult::Success | ToolResult::Error => output.how,
    };
    let errors =
        [output.errors, note, output.left].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
    Ok(ScriptResult {
        status,
        output: output.output,
        errors: errors.join("\n"),
        tool_calls_made,
        duration_seconds: (duration.as_secs_f64() * 1000.0).round() / 1000.0,
    })
}

fn call_result(outcome: &ScriptResult) -> CallToolResult {
    let is_whole = outcome.status == ToolResult::Success;
    match serde_json::to_value(outcome) {
        Ok(value) if is_whole => CallToolResult::structured(value),
        Ok(value) => CallToolResult::structured_error(value),
        Err(e) => refused(&format!("the result cannot be written: {e}")),
    }
}

/// Makes the result of a script that was not run.
pub(super) fn refused(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(format!("error: {why}\nNothing was run."))])
}
