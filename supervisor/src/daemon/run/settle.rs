//! The end of a run: proof that nothing of it is left, and what is reported to the board. Nothing else frees a claim.
//!
//! The proof is looked for on a host (`super::traces`), and judged here without a look at anything else.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kernel::{EndCause, Ending, Run};
use shim::rundir::{self, FailedStart, Straggler};

use super::remains::Remains;
use crate::lanes::Answer;

/// What a run directory says once nobody owns its lock.
#[derive(Debug)]
pub(in crate::daemon) enum Proof {
    /// The run is over, and this is how it ended.
    Ended(Box<Ending>),
    /// The run is over before its command was started, and why; with what else is known of its end.
    NotStarted(FailedStart, Box<Ending>),
    /// Whether the processes of the run are gone cannot be known here.
    Unknown {
        /// Why, and what was found.
        why: String,
        /// A process whose end is worth another look.
        watch: Option<i32>,
    },
    /// The shim is gone, and SIGKILL does not end what it has left.
    Unkillable(Vec<Straggler>),
    /// The lock is owned: the run lives.
    Alive,
}

/// What the daemon knows of a run beside its directory, which somebody may have taken away.
#[derive(Clone, Debug)]
pub(in crate::daemon) struct Known {
    /// Where its directory is, or should be.
    pub(in crate::daemon) path: PathBuf,
    /// The root, as the environment of its workers names it.
    pub(in crate::daemon) root: String,
    pub(in crate::daemon) boot_id: String,
    /// The run as the board has it.
    pub(in crate::daemon) run: Run,
    /// Its cgroups, as far as they are known.
    pub(in crate::daemon) groups: BTreeSet<PathBuf>,
    /// Whether the board has of it what is known only when its directory was made.
    pub(in crate::daemon) was_prepared: bool,
    /// How its shim went, as far as this daemon knows.
    pub(in crate::daemon) shim: Shim,
    /// What hosts have answered last to what it has asked by brokers.
    pub(in crate::daemon) answers: Vec<Answer>,
}

/// What this daemon saw of a run's shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::daemon) enum Shim {
    /// Nothing: another daemon started it, if any did.
    Unseen,
    /// It was started, and has gone in another way than its own.
    Gone,
    /// It has ended by itself, after it had seen that nothing of the run was left.
    Finished,
}

/// Where the proof is looked for: the host that a run was started on.
pub(in crate::daemon) trait Traces {
    /// Reads the run directory. From then on no shim takes its lock where that was free.
    fn directory(&mut self) -> Result<Directory, String>;
    /// Makes sure that a shim which comes up late runs nothing.
    fn revoke(&mut self) -> Result<(), String>;
    /// Ends what a killed shim has left where that can be proved, and else looks for it.
    fn remains(&mut self) -> Result<Remains, String>;
    /// Finds processes by the mark of the run.
    fn marked(&mut self) -> Result<Marked, String>;
    /// Whether there is a process in one of these groups.
    fn is_populated(&mut self, groups: &BTreeSet<PathBuf>) -> Result<bool, String>;
}

/// What a run directory says.
#[derive(Debug)]
pub(in crate::daemon) enum Directory {
    /// It is not there.
    Absent,
    /// It is a copy of another root's.
    Copied,
    /// Its lock is owned.
    Held,
    /// Its shim has recorded how the run ended, and whether its command was started at all.
    Exited(Option<FailedStart>, Box<Ending>),
    /// No shim has said who it is.
    Unnamed,
    /// Its shim has gone without a record: it was started in this boot, and `failure_limit` failures in a row block the task. The daemon
    /// has killed it where it was `told` to end the run and did not.
    Killed { boot_id: String, failure_limit: Option<u32>, told: Option<EndCause> },
    /// A record makes no sense, and why.
    Damaged(String),
    /// A later release has made it, of this version.
    Later(u32),
}

/// The processes that carry the mark of a run.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Marked {
    /// They, in words; empty where there is none.
    pub(in crate::daemon) named: String,
    /// One of them, whose end is worth another look.
    pub(in crate::daemon) watch: Option<i32>,
    /// The cgroups in which they are.
    pub(in crate::daemon) groups: BTreeSet<PathBuf>,
}

/// Judges what a run has left. Nothing else says that a run is over.
pub(in crate::daemon) fn judge(known: &mut Known, traces: &mut impl Traces) -> Result<Proof, String> {
    Ok(match traces.directory()? {
        Directory::Absent => return without_directory(known, traces),
        Directory::Copied => of_a_copy(known),
        Directory::Held => Proof::Alive,
        Directory::Exited(Some(failed), ending) => Proof::NotStarted(failed, ending),
        Directory::Exited(None, ending) => Proof::Ended(ending),
        Directory::Unnamed => {
            // A shim that is only now coming up will find this and run nothing.
            traces.revoke()?;
            ended(Ending::new(EndCause::NeverStarted))
        }
        Directory::Killed { boot_id, .. } if boot_id != known.boot_id => {
            ended(Ending::new(EndCause::LostReboot))
        }
        Directory::Killed { failure_limit, told, .. } => match traces.remains()? {
            Remains::Nothing => lost(told.unwrap_or(EndCause::ShimKilled), failure_limit),
            Remains::Unkillable(left) => Proof::Unkillable(left),
            Remains::Unknown { found, watch } => {
                Proof::Unknown { why: survivors_unknown(&known.run, "the shim was killed", &found), watch }
            }
        },
        Directory::Later(version) => {
            Proof::Unknown { why: of_another_version(&known.run, version), watch: None }
        }
        // It says nothing, now or later: a person has to look.
        Directory::Damaged(why) => {
            let Marked { named, watch, .. } = traces.marked()?;
            let why = format!("the shim was killed, and its record is damaged: failed to {why}");
            Proof::Unknown { why: survivors_unknown(&known.run, &why, &named), watch }
        }
    })
}

/// What is shown of a run whose directory this release cannot read.
fn of_another_version(run: &Run, version: u32) -> String {
    let (oldest, newest, task) = (rundir::OLDEST, rundir::VERSION, &run.task_id);
    format!(
        "its run directory has version {version}, and this release reads {oldest} to {newest}: the release that made it \
         tells how the run has ended; `supervisor reclaim {task}` frees the task without that"
    )
}

/// The proof where the directory of a run is a copy: the run is another root's, which alone may end it.
fn of_a_copy(known: &Known) -> Proof {
    if known.run.boot_id.as_ref().is_some_and(|boot| *boot != known.boot_id) {
        return ended(Ending::new(EndCause::LostReboot));
    }
    let task = &known.run.task_id;
    let why = format!(
        "its run directory {} was copied from another root, and its worker belongs to that one. Nothing of it is touched; \
         `supervisor reclaim {task}` frees the task on this board only",
        known.path.display()
    );
    Proof::Unknown { why, watch: None }
}

/// The proof where a run has no directory.
///
/// The directory of a run is made before its shim, and is removed when the board knows the end. So one that is not there
/// was never made, or somebody has taken it away: then the run is over only if that is seen by other means.
fn without_directory(known: &mut Known, traces: &mut impl Traces) -> Result<Proof, String> {
    if known.run.boot_id.as_ref().is_some_and(|boot| *boot != known.boot_id) {
        return Ok(ended(Ending::new(EndCause::LostReboot)));
    }
    let Marked { named, watch, groups } = traces.marked()?;
    known.groups.extend(groups);
    let is_populated = traces.is_populated(&known.groups)?;
    let was_launched = known.shim != Shim::Unseen || known.was_prepared;
    if named.is_empty() && !is_populated {
        if known.shim == Shim::Finished || (was_launched && !known.groups.is_empty()) {
            return Ok(lost(EndCause::ShimKilled, None));
        }
        if !was_launched {
            return Ok(ended(Ending::new(EndCause::NeverStarted)));
        }
    }
    let why = format!("its run directory {} is gone", known.path.display());
    Ok(Proof::Unknown { why: survivors_unknown(&known.run, &why, &named), watch })
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

/// The end of a run whose shim has left no word of it.
fn lost(cause: EndCause, failure_limit: Option<u32>) -> Proof {
    let mut ending = Ending::new(cause);
    ending.failure_limit = failure_limit.unwrap_or(ending.failure_limit);
    ended(ending)
}
