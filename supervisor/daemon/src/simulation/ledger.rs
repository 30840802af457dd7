//! Replies to the people and workers of a simulation, on which they may rely.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Outcome, Profile, Request, RunId, TaskId, Tenant, VerdictKind};

/// Number of ended runs that are remembered, because their workers go on writing.
const PAST: usize = 24;

/// A task whose creation was acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct AcknowledgedTask {
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

/// A comment whose reply was lost, and that is sent again until a reply arrives.
#[derive(Clone, Debug)]
pub(super) struct Unanswered {
    pub(super) task: TaskId,
    pub(super) text: String,
    pub(super) request: Request,
}

/// All acknowledged facts.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) tasks: BTreeMap<TaskId, AcknowledgedTask>,
    /// Tasks whose deletion was requested, with or without a reply.
    pub(super) deleted: BTreeSet<TaskId>,
    /// Last verdict on each open run.
    pub(super) verdicts: BTreeMap<RunId, VerdictKind>,
    /// Open runs at the last check.
    pub(super) open: BTreeMap<RunId, TaskId>,
    /// Outcomes of runs that ended recently.
    pub(super) ended: BTreeMap<RunId, Outcome>,
    /// Workers of open runs, and of some ended ones.
    pub(super) speakers: Vec<Speaker>,
    /// Runs that a person has freed without a proof.
    pub(super) freed: BTreeSet<RunId>,
    pub(super) unanswered: Option<Unanswered>,
    /// Accepted writes of workers after the end of their run.
    pub(super) late: Vec<String>,
    /// Exits that were accepted twice.
    pub(super) twice: Vec<String>,
    serial: u64,
}

impl Ledger {
    /// Returns a unique number.
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

    /// Forgets a deleted task.
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
