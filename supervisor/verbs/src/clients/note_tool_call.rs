//! `note-tool-call`: logs that a script of a worker called a tool. `supervisor mcp` sends it.

use kernel::{TaskId, ToolCall};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::parse;
use api::{Call, Verb, verb};
use base::failure::Failure;

/// Record a tool call of a script of the run
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteToolCall {
    /// The task; inside a run, the run's own task if none is named
    #[serde(default)]
    pub task_id: Option<TaskId>,
    /// The call
    pub call: ToolCall,
}

/// Confirms that the call is in the log.
#[derive(Debug, Serialize, Deserialize)]
pub struct ToolCallNoted {
    pub task_id: TaskId,
}

impl Verb for NoteToolCall {
    verb! { "note-tool-call": Worker, Write => ToolCallNoted }

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    async fn run(self, call: Call) -> Result<ToolCallNoted, Failure> {
        let id = parse::named(self.task_id)?;
        let noted = self.call;
        let task = id.clone();
        call.write(move |board, actor| board.note_tool_call(&task, &noted, actor)).await?;
        Ok(ToolCallNoted { task_id: id })
    }
}
