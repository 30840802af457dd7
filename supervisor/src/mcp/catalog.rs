//! Catalog of the tools that `supervisor mcp` offers: one for each verb of the table that defines a tool.

use std::sync::LazyLock;

use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use schemars::{Schema, schema_for};
use serde_json::Value;

use super::board::ToolBoard;
use super::outcome::{self, Verdict};
use api::command::{AnyCommand, Command, Replies, request};
use api::{Effect, Unfit, VerbEntry};
use base::failure::Failure;
use base::table;
use verbs::{CallPluginTool, OfPlugin};

/// Prefix of a tool's name, as in Hermes Kanban.
const PREFIX: &str = "kanban_";

/// Function that parses the arguments of a call.
type ParseCommand = fn(&[u8]) -> Result<Box<dyn AnyCommand>, Unfit>;

/// Verb that agents see as a tool.
#[derive(Debug)]
pub(super) struct VerbTool {
    pub(super) verb: &'static str,
    pub(super) tool: Tool,
    entry: VerbEntry,
    parse: ParseCommand,
    verdict: Verdict,
}

macro_rules! of_the_tools {
    (
        $($group:literal {
            commands { $($command:ident($arguments:ty) => $_run:path,)* }
            verbs { $($verb:ident $(=> $_special:path)?,)* }
        })*
        api { $($hidden:ident,)* }
        nouns { $($nouns:tt)* }
    ) => {
        fn made() -> Vec<VerbTool> {
            let schedules = [
                VerbTool::for_verb::<verbs::ListSchedules>(),
                VerbTool::for_verb::<verbs::SaveSchedule>(),
                VerbTool::for_verb::<verbs::PauseSchedule>(),
                VerbTool::for_verb::<verbs::RunSchedule>(),
                VerbTool::for_verb::<verbs::RemoveSchedule>(),
            ];
            vec![$($(VerbTool::for_verb::<verbs::$verb>(),)*)*].into_iter().chain(schedules).flatten().collect()
        }
    };
}

table!(of_the_tools);

/// Returns all tools, in the order of the table. It takes milliseconds to make their schemas, so they are made once, at
/// the first call.
pub(super) fn all() -> &'static [VerbTool] {
    static ALL: LazyLock<Vec<VerbTool>> = LazyLock::new(made);
    &ALL
}

/// Returns the tool with a name.
pub(super) fn find(name: &str) -> Option<&'static VerbTool> {
    all().iter().find(|listed| listed.tool.name == name)
}

impl VerbTool {
    fn for_verb<V: Command>() -> Option<Self> {
        let about = V::TOOL?.about;
        let schema = schema_for!(V);
        let about_request = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = format!("{}. {about}", about_request.trim_end_matches('.'));
        let reads = V::EFFECT == Effect::Read;
        let annotations = ToolAnnotations::new().read_only(reads).destructive(false).open_world(false);
        let tool = Tool::new(name_of(V::NAME), description.trim_end().to_owned(), arguments(schema))
            .with_annotations(annotations);
        Some(VerbTool {
            verb: V::NAME,
            tool,
            entry: VerbEntry::for_verb::<V>(),
            parse: request::<V>,
            verdict: Replies::of::<V>().verdict,
        })
    }

    /// Calls the tool.
    pub(super) async fn call(&self, board: &ToolBoard, arguments: JsonObject) -> CallToolResult {
        let outcome = match self.request(arguments) {
            Ok(verb) => board.call(verb).await,
            Err(refusal) => Err(refusal),
        };
        outcome::tool_result(&self.entry, self.verdict, outcome, board.is_of_a_worker())
    }

    fn request(&self, arguments: JsonObject) -> Result<Box<dyn AnyCommand>, Failure> {
        (self.parse)(Value::Object(arguments).to_string().as_bytes()).map_err(|unfit| {
            // The caller does not know the text, so its line and column say nothing.
            let (place, text) = (unfit.inner(), unfit.to_string());
            let place = format!(" at line {} column {}", place.line(), place.column());
            let text = text.strip_suffix(&place).unwrap_or(&text);
            Failure::usage(format!("invalid arguments: {text}"))
                .hint(format!("the arguments of {} are those of its input schema", name_of(self.verb)))
        })
    }
}

/// Returns true if the name has the form of a plugin's tool.
pub(super) fn is_of_plugin(name: &str) -> bool {
    name.starts_with("plugin_")
}

/// Returns the description of a plugin's tool.
pub(super) fn of_plugin(offered: &OfPlugin) -> Tool {
    let annotations = ToolAnnotations::new().read_only(false);
    let input = offered.input.clone();
    Tool::new(offered.name.clone(), offered.about.clone(), input).with_annotations(annotations)
}

/// Calls a tool of a plugin.
pub(super) async fn call_plugin(board: &ToolBoard, tool: String, arguments: JsonObject) -> CallToolResult {
    let outcome = board.call(Box::new(CallPluginTool { tool, arguments })).await;
    let (entry, replies) = (VerbEntry::for_verb::<CallPluginTool>(), Replies::of::<CallPluginTool>());
    outcome::tool_result(&entry, replies.verdict, outcome, board.is_of_a_worker())
}

fn name_of(verb: &str) -> String {
    format!("{PREFIX}{}", verb.replace('-', "_"))
}

/// Returns a schema of arguments for a model, without the parts that the tool has elsewhere. An argument whose default
/// is the empty text is listed as required.
pub(super) fn arguments(schema: Schema) -> JsonObject {
    let mut schema = match schema.to_value() {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    for told_elsewhere in ["$schema", "title", "description"] {
        schema.remove(told_elsewhere);
    }
    let mut required: Vec<Value> =
        schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    for (name, property) in properties.as_object_mut().into_iter().flatten() {
        let default = property.as_object_mut().and_then(|property| property.remove("default"));
        // In the requests of tools, the default of a text that the verb requires is empty.
        if default.is_some_and(|default| default == "") {
            required.push(name.as_str().into());
        }
    }
    schema.insert("required".to_owned(), required.into());
    schema
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use api::Scope;
    use verbs::entries;

    /// Returns the names of the tools of a scope.
    fn of_a(scope: Scope) -> String {
        let of = |listed: &&VerbTool| {
            entries().iter().any(|e| e.name == listed.verb && e.tool.is_some_and(|tool| tool.scope == scope))
        };
        let names: Vec<&str> = all().iter().filter(of).map(|listed| listed.tool.name.as_ref()).collect();
        names.join(" ")
    }

    #[test]
    fn each_scope_has_the_tools_of_the_established_board_and_those_of_reviews() {
        let worker = "kanban_create kanban_show kanban_link kanban_comment kanban_attach kanban_attachments \
                      kanban_heartbeat kanban_complete kanban_block kanban_request_review kanban_ask kanban_consult";
        assert_eq!(of_a(Scope::Worker), worker);
        assert_eq!(of_a(Scope::Reviewer), "kanban_approve kanban_request_changes");
        assert_eq!(of_a(Scope::Orchestrator), "kanban_list kanban_assign kanban_assignees kanban_unblock");
    }

    #[test]
    fn a_tool_takes_the_request_of_its_verb() {
        for listed in all() {
            let entry = entries().into_iter().find(|entry| entry.name == listed.verb).unwrap();
            let request = (entry.request)();
            let names = |value: Option<&Value>| -> Vec<String> {
                value.and_then(Value::as_object).into_iter().flat_map(|p| p.keys().cloned()).collect()
            };
            assert_eq!(names(listed.tool.input_schema.get("properties")), names(request.get("properties")));
            assert_eq!(listed.tool.input_schema["type"], "object", "{}", listed.verb);
            assert_eq!(listed.tool.input_schema["additionalProperties"], false, "{}", listed.verb);
        }
    }

    #[test]
    fn what_a_model_reads_of_a_tool() {
        let listed = find("kanban_comment").unwrap();
        assert_snapshot!(serde_json::to_string_pretty(&listed.tool).unwrap(), @r#"
        {
          "name": "kanban_comment",
          "description": "Add a comment to a task. The people and the later workers of the task read it.",
          "inputSchema": {
            "additionalProperties": false,
            "properties": {
              "author": {
                "description": "The author [default: the caller]",
                "type": [
                  "string",
                  "null"
                ]
              },
              "body": {
                "description": "The text",
                "type": "string"
              },
              "max_len": {
                "description": "Cut a longer text to this many characters and mark the cut",
                "format": "uint32",
                "minimum": 0,
                "type": [
                  "integer",
                  "null"
                ]
              },
              "task_id": {
                "description": "The task; inside a run, the run's own task if none is named",
                "pattern": "^(t_[0-9A-Za-z][0-9A-Za-z_-]{0,61}|[0-9a-f]{1,8})$",
                "type": [
                  "string",
                  "null"
                ]
              }
            },
            "required": [
              "body"
            ],
            "type": "object"
          },
          "annotations": {
            "readOnlyHint": false,
            "destructiveHint": false,
            "openWorldHint": false
          }
        }
        "#);
    }
}
