//! Records the tool calls of workers' scripts.

use serde_json::json;

use super::charge::Cost;
use super::{Board, no_open_run};
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::TaskId;
use crate::model::limits;
use crate::model::quota::Bound;
use crate::model::tool_call::ToolCall;
use crate::rules::authority;

impl Board<'_> {
    /// Records a tool call from a script of the open run's worker. The record is charged like a note.
    pub fn note_tool_call(&mut self, id: &TaskId, call: &ToolCall, actor: &Actor) -> Result<(), Error> {
        let task = self.task_for(id, actor)?;
        authority::own_task(actor, id, task.current_run_id)?;
        limits::filled("tool", &call.tool, "name the tool")?;
        limits::bytes("tool", &call.tool, limits::WORD)?;
        let Some(run) = task.current_run_id else {
            return Err(no_open_run(&task, "nothing was noted"));
        };
        self.charge(actor, Cost::one(Bound::Notes).text([call.tool.as_str()]))?;
        self.append(&task, Some(run), EventKind::ToolCalled, json!(call), &actor.label())
    }
}
