//! Runs of the supervisor's own, from the claim to the first instruction.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Board, Record, SYSTEM};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::hold::Target;
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::run::{Purpose, Run};
use crate::model::spent::Spent;
use crate::model::state::{Change, State};
use crate::model::time_limit::TimeLimit;
use crate::store::runs::NewRun;

/// What a run of the supervisor's starts with.
#[derive(Clone, Debug)]
pub struct Start {
    /// The profile that can run it; refused if the task is for another one. None accepts any.
    pub profile: Option<Profile>,
    /// `<host>:<pid>:<uuid>`.
    pub claim_lock: String,
    /// The SHA-256 hash of the run's token.
    pub token_hash: [u8; 32],
    /// What ties the run to its directory.
    pub nonce: String,
    /// The policy that it runs under, which bounds the tasks that its worker makes.
    pub policy: Option<String>,
    /// The account whose limits it counts against.
    pub account: Option<String>,
    /// Where its output is kept.
    pub log_path: Option<String>,
    /// How long it may take.
    pub max_runtime: Option<TimeLimit>,
    /// The boot that `deadline_boottime` belongs to.
    pub boot_id: String,
    /// When it has to end, on the clock since boot.
    pub deadline_boottime: Option<Duration>,
    /// Whether its agent takes messages while it works.
    pub takes_messages: bool,
}

/// Where a run works.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// The directory.
    pub path: String,
    /// The branch of a worktree, by its short name.
    pub branch: Option<String>,
    /// The user its worker runs as.
    pub worker_uid: Option<u32>,
}

impl Board<'_> {
    /// Opens a run of the supervisor's: the task must be ready (or in review) and have no open run.
    #[expect(clippy::needless_pass_by_value, reason = "a caller builds it for this call only")]
    pub fn start_run(&mut self, id: &TaskId, start: Start) -> Result<Run, Error> {
        let (task, from) = self.stands(id)?;
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
            // A check is nobody's: it is run as what the supervisor says.
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
            // What proves the work has no say about it.
            token_hash: Some(start.token_hash).filter(|_| purpose != Purpose::Check),
            nonce: Some(&start.nonce),
            policy: start.policy.as_deref(),
            account: start.account.as_deref(),
            log_path: start.log_path.as_deref(),
            max_runtime: start.max_runtime,
            deadline_boottime: start.deadline_boottime,
            ..NewRun::of(&task, purpose, &start.boot_id, self.now())
        });
        // The index of open runs refuses a second one; the state machine says it better.
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
        let record = Record::new(EventKind::Claimed, payload, SYSTEM).of(run);
        self.shift(id, &from, Change::Started { run }, record)?;
        self.begin_probes(&task, run, probes)?;
        self.expect_run(run)
    }

    /// Records where an open run's output is kept. The path may depend on the run's id, which only its start tells.
    pub fn record_log_path(&mut self, run: RunId, path: &str) -> Result<(), Error> {
        fence(self.tx.set_log_path(run, path)?, run)
    }

    /// Records where an open run works.
    pub fn record_workspace(&mut self, run: RunId, place: &Placement) -> Result<(), Error> {
        let Some(task) =
            self.tx.set_run_workspace(run, &place.path, place.branch.as_deref(), place.worker_uid)?
        else {
            // It has ended, or was never there.
            return self.open_run(run).map(drop);
        };
        // A branch that was named is where the worktree starts from, in each run.
        self.tx.set_task_place(&task, &place.path, place.branch.as_deref())
    }

    /// Records that an open run's command started, and what was really enforced on it.
    pub fn record_spawned(&mut self, run: RunId, pid: i32, sandbox: &Value) -> Result<bool, Error> {
        let open = self.open_run(run)?;
        fence(self.tx.set_spawned(run, pid, sandbox, self.now())?, run)?;
        let is_news = open.spawned_at.is_none();
        if is_news {
            let task = self.expect_task(&open.task_id)?;
            self.append(&task, Some(run), EventKind::Spawned, Some(json!({ "pid": pid })), SYSTEM)?;
        }
        Ok(is_news)
    }

    /// Records what the agent of an open run says that it has used so far. Ends the run where that is its whole budget, and no proxy
    /// refuses its requests.
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
