//! The interfaces of model providers that agents speak, as far as a script needs them: what a request says, and how an answer looks.

use serde_json::{Value, json};

/// API of a model provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Messages of Anthropic.
    Messages,
    /// The Responses interface of `OpenAI`.
    Responses,
    /// The Chat Completions interface of `OpenAI`.
    Chat,
    /// Generate Content of Gemini.
    Gemini,
}

/// The tools by which agents run a command in a shell, each with what it calls the command.
const SHELLS: [(&str, &str); 7] = [
    ("Bash", "command"),
    ("bash", "command"),
    ("exec_command", "cmd"),
    ("shell_command", "command"),
    ("shell", "command"),
    ("run_shell_command", "command"),
    ("terminal", "command"),
];

/// The tokens that each answer has used, as the provider says.
const IN: u64 = 11;
const OUT: u64 = 7;

impl Dialect {
    /// The interface of a request for an answer of the model, by its path.
    pub(super) fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        match path {
            _ if path.ends_with("/messages") => Some(Dialect::Messages),
            _ if path.ends_with("/responses") => Some(Dialect::Responses),
            _ if path.ends_with("/chat/completions") => Some(Dialect::Chat),
            _ if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => {
                Some(Dialect::Gemini)
            }
            _ => None,
        }
    }

    /// Returns the number of tool results in a request.
    pub(super) fn results(self, body: &Value) -> usize {
        let list = |key: &str| body[key].as_array().cloned().unwrap_or_default();
        let parts = |message: &Value, key: &str| message[key].as_array().cloned().unwrap_or_default();
        match self {
            Dialect::Messages => list("messages")
                .iter()
                .flat_map(|message| parts(message, "content"))
                .filter(|part| part["type"] == "tool_result")
                .count(),
            Dialect::Responses => {
                let is_result =
                    |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
                list("input").iter().filter(is_result).count()
            }
            Dialect::Chat => list("messages").iter().filter(|message| message["role"] == "tool").count(),
            Dialect::Gemini => list("contents")
                .iter()
                .flat_map(|content| parts(content, "parts"))
                .filter(|part| part.get("functionResponse").is_some())
                .count(),
        }
    }

    /// The type of the answer: events, unless the request wants one document.
    pub(super) fn content_type(self, path: &str, body: &Value) -> &'static str {
        if self.is_streamed(path, body) { "text/event-stream" } else { "application/json" }
    }

    fn is_streamed(self, path: &str, body: &Value) -> bool {
        match self {
            Dialect::Gemini => path.contains(":streamGenerateContent"),
            Dialect::Messages | Dialect::Responses | Dialect::Chat => body["stream"] == true,
        }
    }

    /// The answer of a model that says something and stops.
    pub(super) fn say(self, path: &str, body: &Value, text: &str) -> String {
        let streamed = self.is_streamed(path, body);
        match self {
            Dialect::Messages => {
                let delta = json!({"type": "text_delta", "text": text});
                messages(
                    streamed,
                    &json!({"type": "text", "text": ""}),
                    &json!({"text": text}),
                    &delta,
                    "end_turn",
                )
            }
            Dialect::Responses => {
                let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
                responses(
                    streamed,
                    &json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content}),
                )
            }
            Dialect::Chat => chat(streamed, &json!({"role": "assistant", "content": text}), "stop"),
            Dialect::Gemini => gemini(streamed, &json!({"text": text})),
        }
    }

    /// The answer of a model that has the agent run a command in a shell, if the agent offers one.
    pub(super) fn run(self, path: &str, body: &Value, command: &str, number: usize) -> Option<String> {
        let (tool, key) = shell(&self.tools(body))?;
        let mut input = json!({key: command});
        if ["Bash", "bash"].contains(&tool) {
            input["description"] = "Runs a command".into();
        }
        self.call(path, body, (tool, &input), number)
    }

    /// The answer of a model that calls a tool, if the agent offers it.
    pub(super) fn call(
        self,
        path: &str,
        body: &Value,
        (tool, input): (&str, &Value),
        number: usize,
    ) -> Option<String> {
        let streamed = self.is_streamed(path, body);
        self.tools(body).iter().find(|offered| *offered == tool)?;
        let id = format!("call_{number}");
        Some(match self {
            Dialect::Messages => {
                let id = format!("toolu_{number}");
                let begun = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
                let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
                messages(streamed, &begun, &json!({"input": input}), &delta, "tool_use")
            }
            Dialect::Responses => responses(
                streamed,
                &json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": tool,
                    "arguments": input.to_string(), "status": "completed"}),
            ),
            Dialect::Chat => {
                let call = json!({"index": 0, "id": id, "type": "function",
                    "function": {"name": tool, "arguments": input.to_string()}});
                chat(
                    streamed,
                    &json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                    "tool_calls",
                )
            }
            Dialect::Gemini => gemini(streamed, &json!({"functionCall": {"name": tool, "args": input}})),
        })
    }

    /// The tools that a request offers, by name; those that the service itself would run, such as a search, by their kind.
    pub(super) fn offered(self, body: &Value) -> Vec<String> {
        let named = self.tools(body);
        let all = body["tools"].as_array().into_iter().flatten();
        let is_named = |tool: &&Value| tool["name"].is_string() || tool["function"].is_object();
        let others = all.filter(|tool| !is_named(tool) && tool["functionDeclarations"].is_null());
        named.into_iter().chain(others.map(ToString::to_string)).collect()
    }

    /// The names of the tools that a request offers.
    fn tools(self, body: &Value) -> Vec<String> {
        let empty = Vec::new();
        let tools = body["tools"].as_array().unwrap_or(&empty);
        let names: Vec<&Value> = match self {
            Dialect::Messages | Dialect::Responses => tools.iter().map(|tool| &tool["name"]).collect(),
            Dialect::Chat => tools.iter().map(|tool| &tool["function"]["name"]).collect(),
            Dialect::Gemini => tools
                .iter()
                .flat_map(|tool| tool["functionDeclarations"].as_array().unwrap_or(&empty))
                .map(|tool| &tool["name"])
                .collect(),
        };
        names.into_iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    /// The body of a refusal.
    pub(super) fn error(self, status: u16) -> String {
        let (kind, gemini, words) = match status {
            401 => ("authentication_error", "UNAUTHENTICATED", "invalid x-api-key"),
            429 => {
                ("rate_limit_error", "RESOURCE_EXHAUSTED", "Number of requests has exceeded your rate limit")
            }
            _ => ("api_error", "INTERNAL", "Internal server error"),
        };
        match self {
            Dialect::Messages => json!({"type": "error", "error": {"type": kind, "message": words}}),
            Dialect::Responses | Dialect::Chat => {
                json!({"error": {"message": words, "type": kind, "param": null, "code": kind}})
            }
            Dialect::Gemini => json!({"error": {"code": status, "message": words, "status": gemini}}),
        }
        .to_string()
    }
}

fn shell(tools: &[String]) -> Option<(&'static str, &'static str)> {
    SHELLS.iter().copied().find(|(name, _)| tools.iter().any(|tool| tool == name))
}

/// Events with a name and a document each.
fn events(list: &[Value]) -> String {
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    list.iter().map(event).collect()
}

/// Events of documents alone.
fn documents(list: &[Value]) -> String {
    let event = |event: &Value| format!("data: {event}\n\n");
    list.iter().map(event).collect()
}

/// Returns a reply with one block of content. In a stream, `begun` starts the block and `delta` continues it; otherwise
/// `rest` completes `begun`.
fn messages(streamed: bool, begun: &Value, rest: &Value, delta: &Value, reason: &str) -> String {
    let usage = json!({"input_tokens": IN, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": OUT});
    let mut message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    if streamed {
        return events(&[
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": begun}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": OUT}}),
            json!({"type": "message_stop"}),
        ]);
    }
    let mut whole = begun.clone();
    for (key, value) in rest.as_object().into_iter().flatten() {
        whole[key] = value.clone();
    }
    message["content"] = json!([whole]);
    message["stop_reason"] = reason.into();
    message.to_string()
}

fn responses(streamed: bool, item: &Value) -> String {
    let usage = json!({"input_tokens": IN, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": OUT,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": IN + OUT});
    let response = |status: &str, output: Value, usage: Value| {
        json!({"id": "resp_1", "object": "response", "created_at": 0, "status": status, "model": "scripted",
            "output": output, "usage": usage})
    };
    let whole = response("completed", json!([item]), usage);
    if !streamed {
        return whole.to_string();
    }
    events(&[
        json!({"type": "response.created", "response": response("in_progress", json!([]), Value::Null)}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": whole}),
    ])
}

fn chat(streamed: bool, message: &Value, reason: &str) -> String {
    let usage = json!({"prompt_tokens": IN, "completion_tokens": OUT, "total_tokens": IN + OUT});
    let head = |object: &str, choice: Value, usage: Value| json!({"id": "chatcmpl_1", "object": object, "created": 0, "model": "scripted", "choices": [choice], "usage": usage});
    if !streamed {
        let choice = json!({"index": 0, "message": message, "finish_reason": reason});
        return head("chat.completion", choice, usage).to_string();
    }
    let object = "chat.completion.chunk";
    let begun = json!({"index": 0, "delta": message, "finish_reason": null});
    let ended = json!({"index": 0, "delta": {}, "finish_reason": reason});
    documents(&[head(object, begun, Value::Null), head(object, ended, usage)]) + "data: [DONE]\n\n"
}

fn gemini(streamed: bool, part: &Value) -> String {
    let answer = json!({
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": IN, "candidatesTokenCount": OUT, "totalTokenCount": IN + OUT},
        "modelVersion": "scripted",
    });
    if streamed { documents(&[answer]) } else { answer.to_string() }
}
