//! Tool calls of a script: permitted tools, a limit on their number, and a log entry for each.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kernel::{ToolCall, ToolResult};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::task::JoinHandle;

use super::super::board::ToolBoard;
use super::super::catalog::{self, VerbTool};
use crate::client::Client;
use verbs::NoteToolCall;

/// Limit on the calls of one script.
pub(super) const MOST: u64 = 50;
/// Size limit of a request, in bytes. An attached file has up to 4 MiB.
const LINE: u64 = 8 << 20;
/// Time in which a call in progress at the end of the script must be completed and logged.
const LAST: Duration = Duration::from_secs(5);

/// Verbs that a script may call, if they are offered to its worker. Verbs that end a run, wait for a person or decide
/// about others' work are decisions of the agent. Scripts cannot start scripts.
const ALLOWED: [&str; 9] =
    ["show", "list", "assignees", "attachments", "attach", "comment", "create", "link", "heartbeat"];

/// Returns the tools for a script whose worker is offered these verbs.
pub(super) fn allowed(offered: &[String]) -> Vec<&'static VerbTool> {
    let is_allowed =
        |listed: &&VerbTool| ALLOWED.contains(&listed.verb) && offered.iter().any(|verb| verb == listed.verb);
    catalog::all().iter().filter(is_allowed).collect()
}

/// A call as a script writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptCall {
    tool: String,
    #[serde(default)]
    args: JsonObject,
}

/// Reply to a call of a script: the value, and whether the tool worked.
struct CallReply {
    result: ToolResult,
    value: Value,
}

impl CallReply {
    fn refused(why: impl Into<String>) -> Self {
        CallReply { result: ToolResult::Error, value: json!({ "error": why.into(), "code": "refused" }) }
    }
}

/// Server's end of a script's socket.
#[derive(Debug)]
pub(super) struct ScriptCalls {
    made: Arc<AtomicU64>,
    serving: JoinHandle<()>,
}

impl ScriptCalls {
    /// Serves the calls of a script until it closes its end.
    pub(super) fn serve(board: Arc<ToolBoard>, tools: Vec<&'static VerbTool>, socket: UnixStream) -> Self {
        let made = Arc::new(AtomicU64::new(0));
        let handler = CallHandler { board, tools, made: Arc::clone(&made) };
        let serving = tokio::spawn(async move {
            if let Err(error) = handler.answer_all(socket).await {
                tracing::debug!(%error, "script_left");
            }
        });
        ScriptCalls { made, serving }
    }

    /// Waits for the last call. Returns the number of calls.
    pub(super) async fn over(mut self) -> u64 {
        if tokio::time::timeout(LAST, &mut self.serving).await.is_err() {
            self.serving.abort();
        }
        self.made.load(Ordering::Relaxed)
    }
}

struct CallHandler {
    board: Arc<ToolBoard>,
    tools: Vec<&'static VerbTool>,
    made: Arc<AtomicU64>,
}

impl CallHandler {
    async fn answer_all(&self, socket: UnixStream) -> std::io::Result<()> {
        socket.set_nonblocking(true)?;
        let mut stream = BufReader::new(tokio::net::UnixStream::from_std(socket)?);
        loop {
            let mut line = Vec::new();
            (&mut stream).take(LINE).read_until(b'\n', &mut line).await?;
            if line.is_empty() {
                return Ok(());
            }
            let is_whole = line.last() == Some(&b'\n');
            let answer = if is_whole {
                self.answer(&line).await
            } else {
                CallReply::refused("a request has at most 8 MiB").value
            };
            let mut text = answer.to_string();
            text.push('\n');
            stream.write_all(text.as_bytes()).await?;
            if !is_whole {
                return Ok(());
            }
        }
    }

    /// Handles one request, and logs it before the reply is sent.
    async fn answer(&self, line: &[u8]) -> Value {
        let request: ScriptCall = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(e) => {
                return CallReply::refused(format!(
                    "a request is a line of JSON with `tool` and `args`: {e}"
                ))
                .value;
            }
        };
        let began = Instant::now();
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        if number >= MOST {
            // Not logged: a script may repeat this until its time limit.
            self.made.store(MOST, Ordering::Relaxed);
            return CallReply::refused(format!(
                "this script has made its {MOST} calls: print what there is, and begin another"
            ))
            .value;
        }
        let tool: String = request.tool.chars().take(64).collect();
        let answer = match self.tools.iter().find(|listed| listed.tool.name == request.tool) {
            Some(listed) => self.call(listed, request.args).await,
            None => CallReply::refused(self.why_not(&tool)),
        };
        let CallReply { result, value } = answer;
        let noted = ToolCall {
            tool: if tool.trim().is_empty() { "(none)".to_owned() } else { tool },
            result,
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            request_bytes: u64::try_from(line.len()).unwrap_or(u64::MAX),
            reply_bytes: u64::try_from(value.to_string().len()).unwrap_or(u64::MAX),
            tool_calls: None,
        };
        if let ToolBoard::Script(client) = self.board.as_ref() {
            note(client, noted).await;
        }
        value
    }

    async fn call(&self, listed: &VerbTool, arguments: JsonObject) -> CallReply {
        let result = listed.call(&self.board, arguments).await;
        let value = result.structured_content.unwrap_or_default();
        if result.is_error != Some(true) {
            return CallReply { result: ToolResult::Success, value: json!({ "result": value }) };
        }
        let text = result.content.first().and_then(|block| block.as_text()).map(|text| text.text.clone());
        let why = text.unwrap_or_else(|| value.to_string());
        let code = value.pointer("/error/code").cloned().unwrap_or_default();
        CallReply { result: ToolResult::Error, value: json!({ "error": why, "code": code }) }
    }

    fn why_not(&self, tool: &str) -> String {
        if tool == super::NAME {
            return "a script begins no other script".to_owned();
        }
        if catalog::find(tool).is_some() {
            return format!(
                "Tool '{tool}' is not available in execute_code. Use it as a normal tool call instead."
            );
        }
        let names: Vec<&str> = self.tools.iter().map(|listed| listed.tool.name.as_ref()).collect();
        format!("Unknown tool: {tool}. Available: {}", names.join(", "))
    }
}

/// Logs a call. A refusal does not end the script, because the log has the changes of its calls in any case.
pub(super) async fn note(client: &Client, call: ToolCall) {
    let task_id = client.worker().map(|worker| worker.task.clone());
    let tool = call.tool.clone();
    if let Err(failure) = client.call(&NoteToolCall { task_id, call }).await {
        tracing::warn!(tool, error = failure.message, "tool_call_not_noted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(offered: &[&str]) -> Vec<&'static str> {
        let offered: Vec<String> = offered.iter().map(|verb| (*verb).to_owned()).collect();
        allowed(&offered).iter().map(|listed| listed.tool.name.as_ref()).collect()
    }

    #[test]
    fn a_script_has_what_stands_in_the_list_and_is_offered_to_its_worker() {
        assert_eq!(
            names(&["show", "comment", "complete", "block", "ask", "approve"]),
            ["kanban_show", "kanban_comment"]
        );
        assert!(names(&["complete", "unblock", "consult", "schedules"]).is_empty());
        assert!(names(&[]).is_empty());
    }

    #[test]
    fn each_verb_of_the_list_is_a_tool() {
        for verb in ALLOWED {
            assert_eq!(names(&[verb]).len(), 1, "{verb}");
        }
    }
}
