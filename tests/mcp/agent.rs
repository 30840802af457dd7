//! An agent program as the server sees it: messages go in and come out, one a line.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Fleet;
use crate::listeners::socket_of;

/// Time limit for a reply on a host under load.
const ANSWER: Duration = Duration::from_mins(5);

/// A conversation with `supervisor mcp`.
pub(super) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    asked: u64,
}

impl Agent {
    /// Starts the server for the operator.
    pub(super) fn of_the_operator(fleet: &Fleet) -> Self {
        Agent::start(&mut fleet.command(["mcp"]))
    }

    /// Starts the server for the worker of a run.
    pub(super) fn of_a_worker(fleet: &Fleet, task: &str, token: &str) -> Self {
        Agent::of_a_worker_with(fleet, task, token, &[])
    }

    /// The same with other variables.
    pub(super) fn of_a_worker_with(fleet: &Fleet, task: &str, token: &str, more: &[(&str, &str)]) -> Self {
        let mut command = fleet.command(["mcp"]);
        command.env("SUPERVISOR_TOKEN", token).env("SUPERVISOR_TASK", task);
        command.env("SUPERVISOR_SOCKET", socket_of(fleet, token)).envs(more.iter().copied());
        Agent::start(&mut command)
    }

    fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Agent { child, input, lines, asked: 0 }
    }

    /// Writes a line as it is.
    pub(super) fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).and_then(|()| input.write_all(b"\n")).unwrap();
        input.flush().unwrap();
    }

    /// Sends a request and returns its number.
    pub(super) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params});
        self.write(message.to_string().as_bytes());
        self.asked
    }

    /// The next message of the server.
    #[track_caller]
    pub(super) fn next(&self) -> Value {
        let line = self.lines.recv_timeout(ANSWER).expect("the server says something");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: the server wrote {line:?}"))
    }

    /// Sends a request and returns what comes back: `result` or `error`.
    #[track_caller]
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        loop {
            let answer = self.next();
            if answer["id"] == json!(id) {
                return answer;
            }
        }
    }

    /// Opens the conversation with a protocol version, and returns what the server says of itself.
    #[track_caller]
    pub(super) fn open(&mut self, version: &str) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let opened = self.ask("initialize", &params);
        self.write(br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
        opened["result"].clone()
    }

    /// The names of the tools.
    #[track_caller]
    pub(super) fn tools(&mut self) -> Vec<String> {
        names(&self.ask("tools/list", &json!({}))["result"])
    }

    /// Calls a tool and returns its result.
    #[track_caller]
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Closes the input.
    pub(super) fn say_no_more(&mut self) {
        drop(self.input.take());
    }

    /// Closes the input, waits for the end of the server, and returns what it wrote to standard error.
    pub(super) fn close(mut self) -> (ExitStatus, String) {
        drop(self.input.take());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The names of listed tools.
pub(super) fn names(listed: &Value) -> Vec<String> {
    let tools = listed["tools"].as_array().unwrap_or_else(|| panic!("no tools: {listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The text of a result.
#[track_caller]
pub(super) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}
