//! Decides whether a run is over: proof that nothing of it is left, and the ending for the board. Nothing else frees a
//! claim.
//!
//! `super::evidence_of_life` collects the proof on the host; this module judges it without input or output.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kernel::{EndCause, Ending, Run};
use shim::rundir::{self, FailedStart, Straggler};

use super::remaining_processes::RemainingProcesses;
use setup::lanes::Contact;

/// Result of examining a run.
#[derive(Debug)]
pub(crate) enum Proof {
    /// The run is over, with this ending.
    Ended(Box<Ending>),
    /// The run ended before its command was started, for this reason; the ending has the other facts.
    NotStarted(FailedStart, Box<Ending>),
    /// The end of the run's processes cannot be proved here.
    Unknown {
        /// Reason, with the processes found.
        why: String,
        /// Process whose end is a reason to examine it again.
        watch: Option<i32>,
    },
    /// The shim has gone, and SIGKILL does not end the processes that it left.
    Unkillable(Vec<Straggler>),
    /// The lock is held: the run lives.
    Alive,
}

/// Knowledge of the daemon about a run beside its directory, which may have been removed.
#[derive(Clone, Debug)]
pub(crate) struct RunFacts {
    /// Path where its directory is, or should be.
    pub path: PathBuf,
    /// Identity of the root, as in the environment of its workers.
    pub root: String,
    pub boot_id: String,
    /// Run as the board has it.
    pub run: Run,
    /// Known cgroups of the run.
    pub groups: BTreeSet<PathBuf>,
    /// True if the board has facts of the run that are only known once its directory was made.
    pub(crate) was_prepared: bool,
    /// Fate of its shim, as far as this daemon knows.
    pub shim: Shim,
    /// Contact with its services, as its proxy saw it.
    pub contact: Contact,
}

/// Fate of a run's shim, as seen by this daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shim {
    /// Not seen: another daemon started it, if any did.
    Unseen,
    /// Started by this daemon, and ended abnormally.
    Gone,
    /// Ended by itself, after it had seen that nothing of the run was left.
    Finished,
}

/// Access to the traces of a run on its host.
pub(crate) trait Traces {
    /// Reads the run directory. If its lock was free, no shim can take it from then on.
    fn directory(&mut self) -> Result<Directory, String>;
    /// Makes sure that a shim which comes up late runs nothing.
    fn revoke(&mut self) -> Result<(), String>;
    /// Ends the remains of a killed shim if it can be proved, and otherwise looks for them.
    fn remaining_processes(&mut self) -> Result<RemainingProcesses, String>;
    /// Finds processes by the mark of the run.
    fn marked(&mut self) -> Result<Marked, String>;
    /// Returns true if there is a process in one of these cgroups.
    fn is_populated(&mut self, groups: &BTreeSet<PathBuf>) -> Result<bool, String>;
}

/// Content of a run directory.
#[derive(Debug)]
pub(crate) enum Directory {
    /// Missing.
    Absent,
    /// Copied from another root.
    Copied,
    /// Locked by a shim.
    Held,
    /// A shim has recorded the end of the run. The failure is given if its command was never started.
    Exited(Option<FailedStart>, Box<Ending>),
    /// No shim has written its pid record.
    Unnamed,
    /// The shim has gone without a record of the end. `boot_id` is the boot in which it started; `failure_limit`
    /// failures in a row block the task. `requested` is given if the daemon killed the shim because it did not end the run
    /// on request.
    Killed { boot_id: String, failure_limit: Option<u32>, requested: Option<EndCause> },
    /// A record is invalid, for this reason.
    Damaged(String),
    /// Made by a later release, with this version.
    Later(u32),
}

/// Processes with the mark of a run.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    /// Their names as text; empty if there are none.
    pub named: String,
    /// Process of these whose end is a reason to examine it again.
    pub watch: Option<i32>,
    /// Cgroups that contain them.
    pub groups: BTreeSet<PathBuf>,
}

/// Judges the traces of a run. Only this function decides that a run is over.
pub(crate) fn judge(facts: &mut RunFacts, traces: &mut impl Traces) -> Result<Proof, String> {
    Ok(match traces.directory()? {
        Directory::Absent => return without_directory(facts, traces),
        Directory::Copied => of_a_copy(facts),
        Directory::Held => Proof::Alive,
        Directory::Exited(Some(failed), ending) => Proof::NotStarted(failed, ending),
        Directory::Exited(None, ending) => Proof::Ended(ending),
        Directory::Unnamed => {
            // A shim that comes up now will find this and run nothing.
            traces.revoke()?;
            ended(Ending::new(EndCause::NeverStarted))
        }
        // No process survives a reboot.
        Directory::Killed { boot_id, .. } if boot_id != facts.boot_id => {
            ended(Ending::new(EndCause::LostReboot))
        }
        Directory::Killed { failure_limit, requested, .. } => match traces.remaining_processes()? {
            RemainingProcesses::Nothing => lost(requested.unwrap_or(EndCause::ShimKilled), failure_limit),
            RemainingProcesses::Unkillable(left) => Proof::Unkillable(left),
            RemainingProcesses::Unknown { found, watch } => {
                Proof::Unknown { why: survivors_unknown(&facts.run, "the shim was killed", &found), watch }
            }
        },
        Directory::Later(version) => {
            Proof::Unknown { why: of_another_version(&facts.run, version), watch: None }
        }
        // A damaged record will not become readable, so a person has to look.
        Directory::Damaged(why) => {
            let Marked { named, watch, .. } = traces.marked()?;
            let why = format!("the shim was killed, and its record is damaged: failed to {why}");
            Proof::Unknown { why: survivors_unknown(&facts.run, &why, &named), watch }
        }
    })
}

/// Explains a run whose directory this release cannot read.
fn of_another_version(run: &Run, version: u32) -> String {
    let (known, task) = (rundir::versions(rundir::OLDEST, rundir::VERSION), &run.task_id);
    format!(
        "its run directory has version {version}, and this release reads {known}: the release that made it \
         tells how the run has ended; `supervisor reclaim {task}` frees the task without that"
    )
}

/// Judges a run with a copied directory, which belongs to another root. Only that root may end it.
fn of_a_copy(facts: &RunFacts) -> Proof {
    if facts.run.boot_id.as_ref().is_some_and(|boot| *boot != facts.boot_id) {
        return ended(Ending::new(EndCause::LostReboot));
    }
    let task = &facts.run.task_id;
    let why = format!(
        "its run directory {} was copied from another root, and its worker belongs to that one. Nothing of it is touched; \
         `supervisor reclaim {task}` frees the task on this board only",
        facts.path.display()
    );
    Proof::Unknown { why, watch: None }
}

/// Judges a run without a directory.
///
/// The directory of a run is made before its shim, and removed after the board has the end. A missing directory was
/// never made, or has been removed by another program. In the second case only other traces can prove that the run is
/// over.
fn without_directory(facts: &mut RunFacts, traces: &mut impl Traces) -> Result<Proof, String> {
    if facts.run.boot_id.as_ref().is_some_and(|boot| *boot != facts.boot_id) {
        return Ok(ended(Ending::new(EndCause::LostReboot)));
    }
    let Marked { named, watch, groups } = traces.marked()?;
    facts.groups.extend(groups);
    let is_populated = traces.is_populated(&facts.groups)?;
    let was_launched = facts.shim != Shim::Unseen || facts.was_prepared;
    if named.is_empty() && !is_populated {
        // Proof of the end: a shim that ended by itself saw nothing left, and an empty cgroup of a launched run has
        // held all its processes.
        if facts.shim == Shim::Finished || (was_launched && !facts.groups.is_empty()) {
            return Ok(lost(EndCause::ShimKilled, None));
        }
        // Neither this daemon nor the board knows of a shim, so none was started.
        if !was_launched {
            return Ok(ended(Ending::new(EndCause::NeverStarted)));
        }
    }
    let why = format!("its run directory {} is gone", facts.path.display());
    Ok(Proof::Unknown { why: survivors_unknown(&facts.run, &why, &named), watch })
}

fn survivors_unknown(run: &Run, why: &str, found: &str) -> String {
    let task = &run.task_id;
    if found.is_empty() {
        return format!(
            "survivors unknown: {why}, and nothing proves that the worker's processes are gone. None with the run's \
             mark is left, but one that has shed it cannot be seen; `supervisor reclaim {task}` frees the task when \
             you are sure"
        );
    }
    format!(
        "survivors unknown: {why}. Still there: {found}; `supervisor reclaim {task}` ends them and frees the task"
    )
}

fn ended(ending: Ending) -> Proof {
    Proof::Ended(Box::new(ending))
}

/// Makes the ending of a run whose shim left no record.
fn lost(cause: EndCause, failure_limit: Option<u32>) -> Proof {
    let mut ending = Ending::new(cause);
    ending.failure_limit = failure_limit.unwrap_or(ending.failure_limit);
    ended(ending)
}
