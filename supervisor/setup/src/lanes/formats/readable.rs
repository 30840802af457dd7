//! Converts a line of an agent's output for a person: its words, its tool calls with their results, and its use.
//!
//! Events of unknown form, and events of no interest to a person, are omitted; a line that is no JSON is shown
//! unchanged. All of it is the worker's text, and must be made printable before it is printed.
//!
//! All displays use these forms, the dashboard by `log` with `readable`. The log on disk stays as it was written,
//! because forms change and logs stay.

use serde_json::Value;

use super::Format;
use base::terminal::{Ink, Screen, printable_lines};

/// Limit on a call or its result, in characters; the rest is cut off.
const SHORT: usize = 200;

/// An item to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readable {
    Words(String),
    /// Message to the agent.
    Heard(String),
    /// Tool call with its arguments.
    Call(String),
    /// Result of a tool call.
    Outcome(String),
    /// Note about the run.
    Note(String),
}

impl Readable {
    /// Returns the style and the text. The text is the agent's and may contain any character.
    pub fn drawn(self) -> (Option<Ink>, String) {
        match self {
            Readable::Words(text) => (None, text),
            Readable::Heard(text) => (Some(Ink::Bold), format!("> {text}")),
            Readable::Call(text) => (Some(Ink::Cyan), format!("→ {}", in_a_line(&text))),
            Readable::Outcome(text) => (Some(Ink::Dim), format!("← {}", in_a_line(&text))),
            Readable::Note(text) => (Some(Ink::Dim), format!("[{}]", in_a_line(&text))),
        }
    }
}

/// Returns the converted line, printable, each item with its newline; none if the line is shown unchanged.
pub fn shown(line: &str, format: Option<Format>, screen: &Screen) -> Option<String> {
    let read = format.and_then(|format| format.readable(line))?;
    let shown = |one: Readable| {
        let (ink, text) = one.drawn();
        let text = printable_lines(&text);
        ink.map_or_else(|| text.clone(), |ink| screen.paint(ink, &text))
    };
    Some(read.into_iter().map(|one| shown(one) + "\n").collect())
}

/// Joins lines, because the mark stands before the first line only and a second line would look like another item.
fn in_a_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Returns the text at a JSON pointer, unless it is blank.
fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// Returns a value on one line, cut.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = line.chars().take(SHORT).collect();
    if cut.len() < line.len() {
        cut.push('…');
    }
    cut
}

/// Makes a tool call; for a call that runs a command, only the command is shown.
fn call(name: &str, input: &Value) -> Readable {
    let input = input.get("command").unwrap_or(input);
    Readable::Call(format!("{name} {}", short(input)).trim_end().to_owned())
}

fn outcome(value: &Value) -> Readable {
    // Several programs report text as blocks.
    let blocks = value.as_array().map(|blocks| {
        blocks.iter().filter_map(|block| text(block, "/text")).collect::<Vec<_>>().join(" ").into()
    });
    Readable::Outcome(short(blocks.as_ref().unwrap_or(value)))
}

fn words(value: Option<&str>) -> Option<Readable> {
    value.map(|text| Readable::Words(text.trim_end().to_owned()))
}

fn note(text: impl Into<String>) -> Readable {
    Readable::Note(text.into())
}

/// Makes the note for the beginning of a session, with the model if the agent names it.
fn session(line: &Value) -> Readable {
    let model = text(line, "/model").map(|_| format!(", model {}", short(&line["model"])));
    note(format!("session {}{}", short(&line["session_id"]), model.unwrap_or_default()))
}

pub(super) fn claude(line: &Value) -> Vec<Readable> {
    let blocks = || line.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
    let kind = |value: &Value| value["type"].as_str().unwrap_or_default().to_owned();
    match (kind(line).as_str(), line["subtype"].as_str()) {
        ("system", Some("init")) => vec![session(line)],
        ("system", Some("api_retry")) => {
            vec![note(format!("its service refuses it ({}), it tries again", short(&line["error_status"])))]
        }
        ("assistant", _) => blocks()
            .filter_map(|block| match kind(block).as_str() {
                "text" => words(text(block, "/text")),
                "tool_use" => Some(call(text(block, "/name").unwrap_or("tool"), &block["input"])),
                _ => None,
            })
            .collect(),
        ("user", _) if line["isReplay"] == true => {
            let report = text(line, "/message/content").or_else(|| text(line, "/message/content/0/text"));
            report.map(|text| Readable::Heard(text.to_owned())).into_iter().collect()
        }
        ("user", _) => blocks()
            .filter(|block| kind(block) == "tool_result")
            .map(|block| outcome(&block["content"]))
            .collect(),
        ("result", _) => {
            let cost = line["total_cost_usd"].as_f64().map(|cost| format!(", ${cost:.2}"));
            let turns = line["num_turns"].as_u64().map(|turns| format!(" after {turns} steps"));
            let how = if line["is_error"] == true { "failed" } else { "ended" };
            vec![note(format!("turn {how}{}{}", turns.unwrap_or_default(), cost.unwrap_or_default()))]
        }
        _ => Vec::new(),
    }
}

pub(super) fn codex(line: &Value) -> Vec<Readable> {
    let item = &line["item"];
    let read = match (line["type"].as_str().unwrap_or_default(), item["type"].as_str().unwrap_or_default()) {
        ("thread.started", _) => Some(note(format!("session {}", short(&line["thread_id"])))),
        ("item.completed", "agent_message") => words(text(item, "/text")),
        ("item.started", "command_execution") => Some(call("shell", &item["command"])),
        ("item.completed", "command_execution") => Some(outcome(&item["aggregated_output"])),
        ("item.completed", "mcp_tool_call") => Some(call(&short(&item["tool"]), &item["arguments"])),
        ("item.completed", "file_change") => Some(call("edit", &item["changes"])),
        ("turn.completed", _) => {
            let used = |key: &str| line["usage"][key].as_u64().unwrap_or_default();
            Some(note(format!(
                "turn ended, {} tokens in, {} out",
                used("input_tokens"),
                used("output_tokens")
            )))
        }
        ("turn.failed", _) => Some(note(format!("turn failed: {}", short(&line["error"]["message"])))),
        ("error", _) => Some(note(short(&line["message"]))),
        _ => None,
    };
    read.into_iter().collect()
}

pub(super) fn codex_app_server(line: &Value) -> Vec<Readable> {
    let item = &line["params"]["item"];
    let method = line["method"].as_str().unwrap_or_default();
    let read = match (method, item["type"].as_str().unwrap_or_default()) {
        ("thread/started", _) => Some(note(format!("session {}", short(&line["params"]["thread"]["id"])))),
        ("item/completed", "agentMessage") => words(text(item, "/text")),
        ("item/completed", "userMessage") => {
            text(item, "/content/0/text").map(|text| Readable::Heard(text.to_owned()))
        }
        ("item/started", "commandExecution") => Some(call("shell", &item["command"])),
        ("item/completed", "commandExecution") => Some(outcome(&item["aggregatedOutput"])),
        ("item/completed", "mcpToolCall") => Some(call(&short(&item["tool"]), &item["arguments"])),
        ("item/completed", "fileChange") => Some(call("edit", &item["changes"])),
        ("turn/completed", _) => {
            let turn = &line["params"]["turn"];
            let why = text(turn, "/error/message").map(|why| format!(": {}", short(&why.into())));
            Some(note(format!("turn {}{}", short(&turn["status"]), why.unwrap_or_default())))
        }
        ("error", _) => Some(note(short(&line["params"]["error"]["message"]))),
        _ => None,
    };
    read.into_iter().collect()
}

pub(super) fn acp(line: &Value) -> Vec<Readable> {
    let update = &line["params"]["update"];
    let read = match update["sessionUpdate"].as_str().unwrap_or_default() {
        "agent_message_chunk" => words(text(update, "/content/text")),
        "user_message_chunk" => text(update, "/content/text").map(|text| Readable::Heard(text.to_owned())),
        "tool_call" => Some(call(&short(&update["title"]), &update["rawInput"])),
        "tool_call_update" => text(update, "/content/0/content/text").map(|text| outcome(&text.into())),
        _ => text(line, "/result/stopReason").map(|reason| note(format!("turn ended ({reason})"))),
    };
    read.into_iter().collect()
}

pub(super) fn opencode(line: &Value) -> Vec<Readable> {
    let part = &line["part"];
    match line["type"].as_str().unwrap_or_default() {
        "text" => words(text(part, "/text")).into_iter().collect(),
        "tool_use" => {
            let state = &part["state"];
            let used = call(&short(&part["tool"]), &state["input"]);
            let came = ["output", "error"].iter().find_map(|key| text(state, &format!("/{key}")));
            std::iter::once(used).chain(came.map(|text| outcome(&text.into()))).collect()
        }
        "step_finish" if part["reason"] != "tool-calls" => {
            let used = |key: &str| part["tokens"][key].as_u64().unwrap_or_default();
            vec![note(format!("turn ended, {} tokens in, {} out", used("input"), used("output")))]
        }
        "error" => vec![note(short(&line["error"]))],
        _ => Vec::new(),
    }
}

pub(super) fn gemini(line: &Value) -> Vec<Readable> {
    let read = match line["type"].as_str().unwrap_or_default() {
        "init" => Some(session(line)),
        "message" if line["role"] == "assistant" => words(text(line, "/content")),
        "tool_use" => Some(call(&short(&line["tool_name"]), &line["parameters"])),
        "tool_result" => Some(outcome(&line["output"])),
        "result" => {
            let used = |key: &str| line["stats"][key].as_u64().unwrap_or_default();
            let (status, input, output) =
                (short(&line["status"]), used("input_tokens"), used("output_tokens"));
            Some(note(format!("turn ended ({status}), {input} tokens in, {output} out")))
        }
        _ => None,
    };
    read.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reader: fn(&Value) -> Vec<Readable>, lines: &[&str]) -> Vec<String> {
        let all = lines.iter().flat_map(|line| reader(&serde_json::from_str(line).unwrap()));
        all.map(|one| format!("{one:?}")).collect()
    }

    #[test]
    fn an_agent_is_read_in_its_words_its_calls_and_what_came_of_them() {
        let claude = read(
            claude,
            &[
                r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#,
                r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look."},
                    {"type":"tool_use","name":"Bash","input":{"command":"ls\n  -l"}}]}}"#,
                r#"{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"a\nb"}]}]}}"#,
                r#"{"type":"user","isReplay":true,"message":{"content":[{"type":"text","text":"more"}]}}"#,
                r#"{"type":"result","is_error":false,"num_turns":3,"total_cost_usd":0.5}"#,
                r#"{"type":"stream_event"}"#,
            ],
        );
        insta::assert_snapshot!(claude.join("\n"), @r#"
        Note("session s, model m")
        Words("I look.")
        Call("Bash ls -l")
        Outcome("a b")
        Heard("more")
        Note("turn ended after 3 steps, $0.50")
        "#);
        let codex = read(
            codex,
            &[
                r#"{"type":"item.started","item":{"type":"command_execution","command":"ls"}}"#,
                r#"{"type":"item.completed","item":{"type":"command_execution","aggregated_output":"a\n"}}"#,
                r#"{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}"#,
                r#"{"type":"turn.completed","usage":{"input_tokens":7,"output_tokens":2}}"#,
            ],
        );
        assert_eq!(
            codex,
            [
                r#"Call("shell ls")"#,
                r#"Outcome("a")"#,
                r#"Words("Done.")"#,
                r#"Note("turn ended, 7 tokens in, 2 out")"#
            ]
        );
        let opencode = read(
            opencode,
            &[
                r#"{"type":"tool_use","part":{"tool":"bash","state":{"input":{"command":"ls"},"output":"a"}}}"#,
            ],
        );
        assert_eq!(opencode, [r#"Call("bash ls")"#, r#"Outcome("a")"#]);
        let gemini = read(
            gemini,
            &[
                r#"{"type":"init","session_id":"s","model":""}"#,
                r#"{"type":"message","role":"assistant","content":"Hi."}"#,
            ],
        );
        assert_eq!(gemini, [r#"Note("session s")"#, r#"Words("Hi.")"#]);
    }

    #[test]
    fn what_an_agent_makes_up_is_cut_and_breaks_nothing() {
        let long = "x".repeat(5000);
        let Readable::Call(text) = call("Bash", &serde_json::json!({ "command": long })) else {
            unreachable!()
        };
        assert_eq!(text.chars().count(), "Bash ".len() + SHORT + 1);
        for odd in
            ["[]", "7", "{\"type\":7}", "{\"type\":\"assistant\",\"message\":[]}", "{\"type\":\"user\"}"]
        {
            let odd = serde_json::from_str(odd).unwrap();
            for reader in [claude, codex, opencode, gemini] {
                assert!(reader(&odd).is_empty());
            }
        }
    }
}
