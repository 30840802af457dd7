//! Terminals of live runs: the permission to type, and the events about typing. The board never stores the typed text.

use serde_json::json;

use super::Board;
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{RunId, TaskId};
use crate::model::run::Run;
use crate::rules::authority;

impl View<'_> {
    /// Returns the open run of a task if the caller may type at its terminal.
    ///
    /// # Errors
    /// Refuses a worker, a task that the caller does not see, a task without a run, and a run that is ending.
    pub fn run_to_type_at(&self, id: &TaskId, actor: &Actor) -> Result<Run, Error> {
        let task = self.task_for(id, actor)?;
        authority::person(actor, "type at the terminal of a run")?;
        let refused = |why: String| {
            let hint = format!("`supervisor attach {id}` shows what it wrote");
            Error::conflict(format!("nothing was typed: {why}"), hint)
        };
        let Some(run) = task.current_run_id else {
            return Err(refused(format!("{id} has no worker, its status is {}", task.status)));
        };
        let run = self.expect_run(run)?;
        if run.verdict.is_some() || run.stop_reason.is_some() {
            return Err(refused(format!("run {} of {id} is ending", run.id)));
        }
        Ok(run)
    }
}

impl Board<'_> {
    /// Records that a person begins to type at the terminal of a task's open run. Returns the run.
    ///
    /// # Errors
    /// The errors of [`View::run_to_type_at`].
    pub fn begin_typing(&mut self, id: &TaskId, actor: &Actor) -> Result<RunId, Error> {
        let run = self.run_to_type_at(id, actor)?;
        let task = self.expect_task(id)?;
        let payload = json!({ "by": actor.name });
        self.append(&task, Some(run.id), EventKind::TerminalTaken, payload, &actor.label())?;
        Ok(run.id)
    }

    /// Records the number of bytes that a person has typed at the terminal of a run. The run may have ended since.
    pub fn record_typed(&mut self, run: RunId, bytes: u64, actor: &Actor) -> Result<(), Error> {
        let run = self.expect_run(run)?;
        let task = self.expect_task(&run.task_id)?;
        let payload = json!({ "by": actor.name, "bytes": bytes });
        self.append(&task, Some(run.id), EventKind::TerminalTyped, payload, &actor.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, alice};

    #[test]
    fn people_type_at_a_live_run_and_nobody_else_anywhere() {
        let bench = Bench::new();
        let id = bench.ready();
        let begin = |actor: Actor| {
            let id = id.clone();
            bench.call(move |board| board.begin_typing(&id, &actor))
        };
        let error = begin(alice()).unwrap_err();
        assert!(error.to_string().contains("has no worker, its status is ready"), "{error}");
        let run = bench.start(&id);
        assert_eq!(begin(alice()).unwrap(), run);
        let worker = Actor::worker("bob", run, id.clone(), None);
        assert!(begin(worker).unwrap_err().to_string().contains("may not type at the terminal"));
        let elsewhere = Actor { tenant: Some("acme".parse().unwrap()), ..alice() };
        assert!(matches!(begin(elsewhere), Err(Error::NotFound { .. })), "to it there is none");
        let task = id.clone();
        bench.call(move |board| board.reclaim(&task, None, &alice()).map(drop)).unwrap();
        assert!(begin(alice()).unwrap_err().to_string().contains("is ending"));
    }
}
