//! Records of a run that the supervisor starts, from its claim to the start of its command.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Board, Record, SYSTEM};
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::hold::Target;
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::note::Comment;
use crate::model::run::{Purpose, Run};
use crate::model::spent::Spent;
use crate::model::state::{Change, State};
use crate::model::time_limit::TimeLimit;
use crate::store::runs::NewRun;

/// Settings of a run that the supervisor starts.
#[derive(Clone, Debug)]
pub struct Start {
    /// Profile that performs the task. The start is refused if the task now names another one; none accepts any.
    pub profile: Option<Profile>,
    /// Text that identifies the claim to people: `<host>:<pid>:<uuid>`.
    pub claim_lock: String,
    /// SHA-256 hash of the run's token.
    pub token_hash: [u8; 32],
    /// Random text by which the run's directory and its processes are recognised.
    pub nonce: String,
    /// Name of the policy of the run, which also limits the policies of the tasks that its worker makes.
    pub policy: Option<String>,
    /// Account whose limits the run counts against.
    pub account: Option<String>,
    pub log_path: Option<String>,
    /// Time limit of the run.
    pub max_runtime: Option<TimeLimit>,
    /// Id of the boot that `deadline_boottime` belongs to.
    pub boot_id: String,
    /// Deadline of the run, as time since that boot; none without a time limit.
    pub deadline_boottime: Option<Duration>,
    /// True if the agent takes messages during its work.
    pub takes_messages: bool,
}

/// Workspace of a run, as it was prepared.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// Directory of the workspace.
    pub path: String,
    /// Branch of a worktree, by its short name.
    pub branch: Option<String>,
    /// User id of the worker; none if unknown.
    pub worker_uid: Option<u32>,
}

impl Board<'_> {
    /// Opens a run of the supervisor and sets its task running. The task must be ready, in review or before its check.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the task has an open run or open parents, names another profile, or is on hold.
    #[expect(clippy::needless_pass_by_value, reason = "a caller builds it for this call only")]
    pub fn start_run(&mut self, id: &TaskId, start: Start) -> Result<Run, Error> {
        let (task, from) = self.task_with_state(id)?;
        let open = self.open_parents(id)?;
        if from.state == State::Ready && !open.is_empty() {
            return Err(Error::conflict(
                format!("{id} waits for {}", open[0]),
                "start it when its parents are done",
            ));
        }
        let purpose = super::review::purpose(from.state);
        let profile = match purpose {
            Purpose::Work | Purpose::Review => task.performer(purpose),
            // A task names no profile for its check, so the supervisor's choice stands.
            Purpose::Check => start.profile.as_ref(),
        };
        if start.profile.is_some() && start.profile.as_ref() != profile {
            return Err(Error::conflict(
                format!(
                    "{id} is no longer assigned to {}",
                    start.profile.as_ref().map_or("nobody", Profile::as_str)
                ),
                "list the ready tasks again",
            ));
        }
        let (tenant, account) = (task.tenant.as_ref(), start.account.as_deref());
        let target = Target { task: id, profile, tenant, account, mission: task.mission() };
        let probes = self.pass_holds(target)?;
        let run = self.tx.insert_run(&NewRun {
            profile,
            claim_lock: Some(&start.claim_lock),
            // A check gets no token: the command that proves the work must not change the board.
            token_hash: Some(start.token_hash).filter(|_| purpose != Purpose::Check),
            nonce: Some(&start.nonce),
            policy: start.policy.as_deref(),
            account: start.account.as_deref(),
            log_path: start.log_path.as_deref(),
            max_runtime: start.max_runtime,
            deadline_boottime: start.deadline_boottime,
            ..NewRun::by_supervisor(&task, purpose, &start.boot_id, self.now())
        });
        // The unique index of open runs refuses a second run, but the state machine gives the better message.
        let run = match run {
            Err(_) if matches!(from.state, State::Running { .. }) => {
                return Err(super::illegal(id, from.state, Change::Started { run: RunId(0) }));
            }
            other => other?,
        };
        if start.takes_messages && purpose != Purpose::Check {
            self.tx.open_inbox(run)?;
        }
        let payload = json!({ "lock": start.claim_lock, "expires": null, "run_id": run });
        let record = Record::new(EventKind::Claimed, payload, SYSTEM).in_run(run);
        self.shift(id, &from, Change::Started { run }, record)?;
        self.begin_probes(&task, run, probes)?;
        self.expect_run(run)
    }

    /// Records the path of an open run's log. Its own call, because the path may contain the id of the run, which
    /// [`Self::start_run`] draws.
    pub fn record_log_path(&mut self, run: RunId, path: &str) -> Result<(), Error> {
        fence(self.tx.set_log_path(run, path)?, run)
    }

    /// Records the workspace of an open run, with the run and with its task.
    pub fn record_workspace(&mut self, run: RunId, place: &Placement) -> Result<(), Error> {
        let Some(task) =
            self.tx.set_run_workspace(run, &place.path, place.branch.as_deref(), place.worker_uid)?
        else {
            // The run has ended, or never existed.
            return self.open_run(run).map(drop);
        };
        // A branch that the task names already is kept, because the worktree of each of its runs begins there.
        self.tx.set_task_place(&task, &place.path, place.branch.as_deref())
    }

    /// Adds notes about the workspace of an open run to its task, as one comment. Does nothing if the task has the same
    /// comment already.
    pub fn note_workspace(&mut self, run: RunId, notes: &[String]) -> Result<(), Error> {
        let task = self.open_run(run)?.task_id;
        let text = notes.join("\n\n");
        let system = Actor::system();
        let is_known = |comment: &Comment| comment.author == system.name && comment.body == text;
        if text.is_empty() || self.tx.comments_of(&task)?.iter().any(is_known) {
            return Ok(());
        }
        self.add_comment(&task, &text, None, &system).map(drop)
    }

    /// Records that the command of an open run has started, with the report of the enforced sandbox. Returns true for the
    /// first record of the run, which also appends an event. A repeated record changes nothing.
    pub fn record_spawned(&mut self, run: RunId, pid: i32, sandbox: &Value) -> Result<bool, Error> {
        let open = self.open_run(run)?;
        let is_news = open.spawned_at.is_none();
        if !is_news && open.worker_pid == Some(pid) {
            return Ok(false);
        }
        fence(self.tx.set_spawned(run, pid, sandbox, self.now())?, run)?;
        if is_news {
            let task = self.expect_task(&open.task_id)?;
            self.append(&task, Some(run), EventKind::Spawned, Some(json!({ "pid": pid })), SYSTEM)?;
        }
        Ok(is_news)
    }

    /// Records the use that the agent of an open run reports. Ends the run if its budget is used up, unless the run has a
    /// proxy, which then refuses further requests.
    pub fn record_spent(&mut self, run: RunId, spent: &Spent) -> Result<(), Error> {
        let open = self.open_run(run)?;
        self.keep_spent(&open, spent)?;
        self.end_over_budget(&open)
    }

    fn open_run(&self, run: RunId) -> Result<Run, Error> {
        let found = self.expect_run(run)?;
        fence(found.ended_at.is_none(), run)?;
        Ok(found)
    }
}

fn fence(open: bool, run: RunId) -> Result<(), Error> {
    if open {
        Ok(())
    } else {
        Err(Error::conflict(format!("run {run} has ended"), "nothing was done: its task may have moved on"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use serde_json::json;

    use crate::WriterOptions;
    use crate::testing::Bench;

    #[test]
    fn a_start_that_is_recorded_again_changes_nothing() {
        let commits = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&commits);
        let bench = Bench::with(|options| WriterOptions {
            on_commit: Arc::new(move |_| {
                counter.fetch_add(1, Ordering::Relaxed);
            }),
            ..options
        });
        let run = bench.start(&bench.ready());
        let record =
            |pid| bench.call(move |board| board.record_spawned(run, pid, &json!({ "uid": 1 }))).unwrap();
        assert!(record(7));
        let before = commits.load(Ordering::Relaxed);
        assert!(!record(7));
        assert_eq!(commits.load(Ordering::Relaxed), before);
        assert!(!record(8));
        let recorded = bench.readers.with(|view| view.expect_run(run)).unwrap();
        assert_eq!((commits.load(Ordering::Relaxed), recorded.worker_pid), (before + 1, Some(8)));
    }
}
