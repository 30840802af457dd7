//! The context of a task's worker, read from the board.

use super::view::View;
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::limits::Room;
use crate::rules::context::{Context, ContextLimits, Material, Parent, PlaceOf, context};

impl View<'_> {
    /// Returns the context of a task's worker, with its files at the paths that `place` returns.
    pub fn context(&self, id: &TaskId, limits: ContextLimits, place: &PlaceOf<'_>) -> Result<Context, Error> {
        let task = self.expect_task(id)?;
        let run = task.current_run_id.map(|run| self.expect_run(run)).transpose()?;
        let mut parents = Vec::new();
        for parent in self.parents(id)? {
            let task = self.expect_task(&parent)?;
            let (completed, artifacts) = (self.last_completed_run(&parent)?, self.artifacts(&task)?);
            parents.push(Parent { task, completed, artifacts });
        }
        let material = Material {
            purpose: run.map(|run| run.purpose),
            comments: self.tx.some_comments(id, None, Room::of_context())?.rows,
            parents,
            files: self.attachments(id)?,
            runs: self.runs(id)?,
            now: self.now(),
            task,
        };
        Ok(context(&material, limits, place))
    }
}
