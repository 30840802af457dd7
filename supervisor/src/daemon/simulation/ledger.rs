//! What the people and workers of a simulation were told, and so may rely on.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Outcome, Profile, Request, RunId, TaskId, Tenant, VerdictKind};

/// How many runs are remembered that are over: their workers go on writing.
const PAST: usize = 24;

/// A task whose creation was acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) title: String,
    pub(super) comments: Vec<String>,
}

/// A worker, by its run.
#[derive(Clone, Debug)]
pub(super) struct Speaker {
    pub(super) run: RunId,
    pub(super) task: TaskId,
    pub(super) profile: Profile,
    pub(super) tenant: Option<Tenant>,
}

/// A comment whose reply was lost: it is sent again until somebody gets the reply.
#[derive(Clone, Debug)]
pub(super) struct Unanswered {
    pub(super) task: TaskId,
    pub(super) text: String,
    pub(super) request: Request,
}

/// Everything that was acknowledged.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) tasks: BTreeMap<TaskId, Told>,
    /// Tasks whose deletion was asked for, whether or not anybody got the reply.
    pub(super) deleted: BTreeSet<TaskId>,
    /// The last verdict on each open run.
    pub(super) verdicts: BTreeMap<RunId, VerdictKind>,
    /// The open runs when that was looked at last.
    pub(super) open: BTreeMap<RunId, TaskId>,
    /// How runs have ended that are not long over.
    pub(super) ended: BTreeMap<RunId, Outcome>,
    /// Workers of open runs, and of some that are over.
    pub(super) speakers: Vec<Speaker>,
    /// Runs that a person has freed without a proof.
    pub(super) freed: BTreeSet<RunId>,
    pub(super) unanswered: Option<Unanswered>,
    /// What workers have written after the end of their run, where that was accepted.
    pub(super) late: Vec<String>,
    /// Exits that were taken twice.
    pub(super) twice: Vec<String>,
    serial: u64,
}

impl Ledger {
    /// A number that nobody has had.
    pub(super) fn number(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub(super) fn task(&self, at: usize) -> Option<TaskId> {
        self.tasks.keys().nth(at % self.tasks.len().max(1)).cloned()
    }

    /// Remembers a worker.
    pub(super) fn hears(&mut self, speaker: Speaker) {
        if self.speakers.len() == PAST {
            self.speakers.remove(0);
        }
        self.speakers.push(speaker);
    }

    /// Forgets what nobody will ask for again.
    pub(super) fn forget(&mut self, task: &TaskId) {
        self.tasks.remove(task);
        self.speakers.retain(|speaker| speaker.task != *task);
    }

    pub(super) fn ends(&mut self, run: RunId, outcome: Outcome) {
        self.verdicts.remove(&run);
        self.ended.insert(run, outcome);
        while self.ended.len() > 2 * PAST {
            self.ended.pop_first();
        }
    }
}
