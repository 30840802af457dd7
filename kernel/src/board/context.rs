//! Reads the context of a worker from the board.

use super::view::View;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::filter::EventFilter;
use crate::model::id::{RunId, TaskId};
use crate::model::limits::ReplyCapacity;
use crate::model::note::Event;
use crate::model::run::Run;
use crate::rules::context::{Context, ContextLimits, Material, Parent, PlaceOf, Reader, context, news};

/// Limit on the edits that are searched for the last change of the body.
const EDITS: u32 = 100;

impl View<'_> {
    /// Returns the context of a worker, with the files at the paths that `place` returns.
    pub fn context(&self, id: &TaskId, limits: ContextLimits, place: &PlaceOf<'_>) -> Result<Context, Error> {
        Ok(context(&self.material(id)?, limits, place))
    }

    /// Returns the context of a worker that a service or an agent elsewhere reads: it has no path of this host.
    pub fn context_elsewhere(&self, id: &TaskId, limits: ContextLimits) -> Result<Context, Error> {
        Ok(context(&self.material(id)?.elsewhere(), limits, &|_| None))
    }

    /// Returns the session in which a run can continue, and the earlier run that used it: the latest executed run of the
    /// task with the same profile and purpose. None if that run named no session.
    pub fn session_before(&self, run: &Run) -> Result<Option<(RunId, String)>, Error> {
        self.tx.session_before(run)
    }

    /// Returns the news for a worker whose session continues: the changes of the task since the run `last` began.
    pub fn news(
        &self,
        id: &TaskId,
        last: RunId,
        limits: ContextLimits,
        place: &PlaceOf<'_>,
    ) -> Result<Context, Error> {
        let (mut material, last) = (self.material(id)?, self.expect_run(last)?);
        if !self.is_body_changed(id, last.started_at)? {
            material.task.body = None;
        }
        Ok(news(material, &last, limits, place))
    }

    /// Returns true if the body of a task has changed since a time, by an edit or by a proposal.
    fn is_body_changed(&self, id: &TaskId, since: Timestamp) -> Result<bool, Error> {
        let kinds = [EventKind::Edited, EventKind::Specified, EventKind::Decomposed, EventKind::Planned];
        let kinds = kinds.map(|kind| kind.as_str().to_owned()).to_vec();
        let task = Some(id.clone());
        let edits = EventFilter { task, kinds, limit: EDITS, newest_first: true, ..EventFilter::default() };
        let names_body = |event: &Event| {
            let payload = event.payload.as_ref();
            let names = |key: &str| payload.and_then(|payload| payload[key].as_array());
            let fields = names("fields").or_else(|| names("changed_fields"));
            fields.is_some_and(|fields| fields.iter().any(|field| field == "body"))
        };
        Ok(self.events(&edits)?.iter().any(|event| event.created_at >= since && names_body(event)))
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
            reader: Reader::Here,
            purpose: run.map(|run| run.purpose),
            comments: self.tx.some_comments(id, None, ReplyCapacity::of_context())?.rows,
            parents,
            files: self.attachments(id)?,
            runs: self.runs(id)?,
            now: self.now(),
            proposal: self.proposal_of(id)?,
            task,
        })
    }
}
