//! The context of a task's worker, read from the board.

use super::view::View;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::filter::EventFilter;
use crate::model::id::{RunId, TaskId};
use crate::model::limits::Room;
use crate::model::run::Run;
use crate::rules::context::{Context, ContextLimits, Material, Parent, PlaceOf, context, news};

impl View<'_> {
    /// Returns the context of a task's worker, with its files at the paths that `place` returns.
    pub fn context(&self, id: &TaskId, limits: ContextLimits, place: &PlaceOf<'_>) -> Result<Context, Error> {
        Ok(context(&self.material(id)?, limits, place))
    }

    /// Returns the session in which a run can go on, and the run before it there: the last one of its task that was executed, by
    /// the same profile and for the same purpose. None where that has named no session.
    pub fn session_before(&self, run: &Run) -> Result<Option<(RunId, String)>, Error> {
        self.tx.session_before(run)
    }

    /// Returns what a worker has to know whose session goes on: what has happened on its task since the run `last` began.
    pub fn news(
        &self,
        id: &TaskId,
        last: RunId,
        limits: ContextLimits,
        place: &PlaceOf<'_>,
    ) -> Result<Context, Error> {
        let (mut material, last) = (self.material(id)?, self.expect_run(last)?);
        let kinds = vec![EventKind::Edited.as_str().to_owned()];
        let task = Some(id.clone());
        let edits = EventFilter { task, kinds, limit: 1, newest_first: true, ..EventFilter::default() };
        let is_edited = self.events(&edits)?.iter().any(|event| event.created_at >= last.started_at);
        if !is_edited {
            material.task.body = None;
        }
        Ok(news(material, &last, limits, place))
    }

    fn material(&self, id: &TaskId) -> Result<Material, Error> {
        let task = self.expect_task(id)?;
        let run = task.current_run_id.map(|run| self.expect_run(run)).transpose()?;
        let mut parents = Vec::new();
        for parent in self.parents(id)? {
            let task = self.expect_task(&parent)?;
            let (completed, artifacts) = (self.last_completed_run(&parent)?, self.artifacts(&task)?);
            parents.push(Parent { task, completed, artifacts });
        }
        Ok(Material {
            purpose: run.map(|run| run.purpose),
            comments: self.tx.some_comments(id, None, Room::of_context())?.rows,
            parents,
            files: self.attachments(id)?,
            runs: self.runs(id)?,
            now: self.now(),
            proposal: self.proposal_of(id)?,
            task,
        })
    }
}
