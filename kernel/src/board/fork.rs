//! The verb `fork`: a new task whose first run starts from the session of another task's run. The other session stays
//! unchanged.
//!
//! A fork needs the real session and not a transcript in a prompt, so a lane without arguments for a fork refuses it. A
//! session is not forked while a run of its task is open, because the run's program may be writing the session. If a
//! run is ended before it has a session of its own, the next run of its task forks again.

use super::Board;
use super::create::Created;
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::id::{RunId, TaskId};
use crate::model::outcome::Outcome;
use crate::model::run::{Purpose, Run};
use crate::model::state::InitialState;
use crate::model::task::{Approval, Check, Client, Goal, Limits, Lineage, NewTask, Origin};
use crate::rules::authority;

#[derive(Clone, Debug)]
pub struct Fork {
    /// Run whose session is forked; none means the latest run with a session.
    pub run: Option<RunId>,
    /// Title of the new task.
    pub title: String,
    /// Text of the new task.
    pub body: String,
    /// Branch from which the new worktree starts, if the task works in a worktree; none means the branch of the other
    /// task.
    pub branch: Option<String>,
}

/// Run with the session from which another run starts.
#[derive(Clone, Debug, PartialEq)]
pub struct ForkedFrom {
    /// The run, which is over.
    pub run: Run,
    pub session: String,
}

impl View<'_> {
    /// Returns a run of a task whose session can be forked: the given run, or the latest run with a session.
    ///
    /// # Errors
    /// Fails for a worker, for a task that the caller may not see, for a task with an open run, and if no such run has
    /// a session.
    pub fn to_fork(&self, id: &TaskId, run: Option<RunId>, actor: &Actor) -> Result<ForkedFrom, Error> {
        let task = self.task_for(id, actor)?;
        authority::person(actor, "fork a session")?;
        if let Some(live) = task.current_run_id {
            return Err(Error::conflict(
                format!("run {live} of {id} goes on, and its agent may be in the session"),
                format!(
                    "fork it when the run has ended (supervisor wait {id}), or speak to the agent: supervisor steer {id} '…'"
                ),
            ));
        }
        let is_meant = |one: &Run| one.purpose == Purpose::Work && run.is_none_or(|run| run == one.id);
        for one in self.runs(id)?.into_iter().rev().filter(is_meant) {
            let session = self.tx.spent_of(one.id)?.and_then(|spent| spent.session);
            if let Some(session) = session.filter(|_| one.profile.is_some()) {
                return Ok(ForkedFrom { run: one, session });
            }
        }
        let which = run.map_or_else(|| format!("no run of {id}"), |run| format!("run {run} of {id}"));
        let not = if run.is_some() { "has no session" } else { "has a session" };
        Err(Error::conflict(
            format!("there is nothing to fork: {which} {not}"),
            format!(
                "`supervisor show {id}` has the sessions of its runs; `supervisor create` makes a task that begins anew"
            ),
        ))
    }

    /// Returns the session from which a run has to start, if its task is a fork and has the profile of the forked run.
    /// Returns none once an earlier run of the task has a session of its own, or has failed to start in the forked one.
    pub fn forked_by(&self, run: &Run) -> Result<Option<ForkedFrom>, Error> {
        let task = self.expect_task(&run.task_id)?;
        let (Some(from), Some(session)) = (task.origin.forked_run, task.origin.forked_session) else {
            return Ok(None);
        };
        let Some(from) = self.run(from)?.filter(|from| from.profile == run.profile) else { return Ok(None) };
        if run.purpose != Purpose::Work || from.task_id == run.task_id {
            return Ok(None);
        }
        for earlier in self.runs(&run.task_id)?.iter().filter(|earlier| earlier.id < run.id) {
            let has_own = self.tx.spent_of(earlier.id)?.is_some_and(|spent| spent.session.is_some());
            let found_none = earlier.spawned_at.is_some() && earlier.outcome == Some(Outcome::SpawnFailed);
            if has_own || found_none {
                return Ok(None);
            }
        }
        Ok(Some(ForkedFrom { run: from, session }))
    }
}

impl Board<'_> {
    /// Creates a task that starts from the session of another task's run. The fork has the assignee of that run, and the
    /// tenant, the workspace, the policy and the time limit of that task.
    ///
    /// # Errors
    /// The errors of [`View::to_fork`] and of [`Board::create`].
    pub fn fork(&mut self, id: &TaskId, fork: Fork, actor: &Actor) -> Result<Created, Error> {
        let ForkedFrom { run, session } = self.to_fork(id, fork.run, actor)?;
        let task = self.expect_task(id)?;
        let new = NewTask {
            title: fork.title,
            body: Some(fork.body),
            assignee: run.profile,
            tenant: task.tenant,
            priority: task.priority,
            workspace: Some(task.workspace),
            branch: fork.branch.or(task.branch_name),
            skills: task.skills,
            pools: task.pools,
            commits: task.commits,
            policy: task.policy,
            limits: Limits {
                max_runtime: task.limits.max_runtime,
                max_retries: None,
                budget_usd_micros: None,
            },
            client: Client { model_override: task.client.model_override, ..Client::default() },
            origin: Origin {
                forked_from: Some(id.clone()),
                forked_run: Some(run.id),
                forked_session: Some(session),
                ..Origin::default()
            },
            // Parents, approvals, checks and similar fields of the other task do not apply to the fork. All fields are
            // listed, so that the compiler requires a decision for each new field.
            parents: Vec::new(),
            initial_state: InitialState::default(),
            idempotency_key: None,
            not_before: None,
            created_by: None,
            notes: None,
            artifacts: Vec::new(),
            check: Check::default(),
            approval: Approval::default(),
            goal: Goal::default(),
            lineage: Lineage::default(),
        };
        self.create(new, actor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, alice, start};
    use crate::{EndCause, Ending, Spent, Start};

    fn profile() -> crate::Profile {
        "coder".parse().unwrap()
    }

    /// Opens and ends a run of a task as `coder`, with or without a session.
    fn run(bench: &Bench, id: &TaskId, session: Option<&'static str>) -> RunId {
        let begin = Start { profile: Some(profile()), ..start(&*bench.clock) };
        let task = id.clone();
        let run = bench.call(move |board| board.start_run(&task, begin)).unwrap().id;
        let mut ending = Ending::new(EndCause::Exited { code: 1 });
        ending.spent = session.map(|session| Spent { session: Some(session.to_owned()), ..Spent::default() });
        bench.call(move |board| board.finish_run(run, ending).map(drop)).unwrap();
        run
    }

    fn fork(bench: &Bench, id: &TaskId, of: Option<RunId>) -> Result<TaskId, Error> {
        let id = id.clone();
        bench.call(move |board| {
            let order = Fork { run: of, title: "other".to_owned(), body: "try it".to_owned(), branch: None };
            Ok(board.fork(&id, order, &alice())?.task.id)
        })
    }

    #[test]
    fn a_fork_is_a_task_that_names_whose_session_it_begins_from() {
        let bench = Bench::new();
        let id = bench.ready();
        let task = id.clone();
        bench.call(move |board| board.assign(&task, Some(profile()), &alice())).unwrap();
        assert!(fork(&bench, &id, None).unwrap_err().to_string().contains("no run of"));
        let first = run(&bench, &id, Some("s-1"));
        let forked = fork(&bench, &id, None).unwrap();
        let task = bench.readers.with(|view| view.expect_task(&forked)).unwrap();
        assert_eq!(task.origin.forked_from.as_ref(), Some(&id));
        assert_eq!(
            (task.origin.forked_run, task.origin.forked_session.as_deref()),
            (Some(first), Some("s-1"))
        );
        assert_eq!(task.assignee, Some(profile()));
        bench.check();
    }
}
