//! The processes that a run has started: finds, signals and reaps them, and proves that they are gone.
//!
//! The shim is a child subreaper, so each living descendant has a chain of living parents up to the shim. Two facts
//! follow. A walk down from the shim's own children reaches all descendants, whatever sessions and groups they made.
//! When the kernel says that the shim has no child (`ECHILD`), it has no descendant. The walk may miss processes that
//! fork meanwhile, so it is repeated; `ECHILD` is the proof.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::wait;
use procfs::ProcResult;
use procfs::process::Process;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process, pidfd_open, pidfd_send_signal, wait,
};

use crate::init::Init;
use crate::rundir::Straggler;

/// Limit on the passes that stop a tree. If the tree still forks after them, the next KILL round reaches the rest.
const STOP_PASSES: usize = 16;
/// Pause between two KILL rounds of [`Tree::end`].
const ROUND: Duration = Duration::from_millis(2);

/// Result of reaping the ended children.
#[derive(Debug, Default)]
pub struct Reaped {
    /// Exit status of the worker, if it was among them.
    pub worker: Option<WaitStatus>,
    /// True if the shim has no child left, and so no descendant.
    pub childless: bool,
}

/// Descendants of the shim, and the cgroup in which they are, if there is one.
#[derive(Debug)]
pub struct Tree {
    me: i32,
    worker: i32,
    init: Option<Init>,
    work: Option<PathBuf>,
    killed: BTreeSet<(i32, u64)>,
    /// Pid of the relay, which ends when its agent does; none if the worker is no relay.
    relay: Option<i32>,
}

/// Live process below the shim.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) pid: i32,
    pub(crate) start_ticks: u64,
    pub(crate) state: char,
    /// Processor time of all its threads and of its reaped children, in clock ticks.
    pub(crate) cpu_ticks: u64,
    name: String,
    /// True once the process has ended and is not yet reaped.
    is_over: bool,
}

impl Tree {
    /// Describes the tree below the calling process, whose children `worker` and `init` are; `work` is a cgroup
    /// directory.
    pub(crate) fn new(worker: i32, init: Option<Init>, work: Option<PathBuf>) -> Self {
        Self {
            me: std::process::id().cast_signed(),
            worker,
            init,
            work,
            killed: BTreeSet::new(),
            relay: None,
        }
    }

    /// Describes the tree below the calling process, which is a child subreaper whose only child is `worker`.
    #[must_use]
    pub fn below(worker: i32) -> Self {
        Self::new(worker, None, None)
    }

    /// Marks the worker as a relay. A relay passes its signals on, so TERM to it would reach the agent twice.
    pub(crate) fn with_relay(self) -> Self {
        Self { relay: Some(self.worker), ..self }
    }

    /// Sends TERM, then CONT, to all processes except a relay. A stopped process gets TERM only once it continues.
    ///
    /// The walk is made twice before the first signal, because a list of children may lack a process if another one
    /// ends while it is read. A process that starts later, perhaps to clean up, ends by itself or by KILL.
    ///
    /// Returns true if the worker was among them: without `/proc` no process is found.
    pub fn terminate(&self) -> bool {
        let mut members = self.members();
        let identities: BTreeSet<_> = members.iter().map(Member::identity).collect();
        members.extend(self.members().into_iter().filter(|member| !identities.contains(&member.identity())));
        let has_worker = members.iter().any(|member| member.pid == self.worker);
        members.retain(|member| Some(member.pid) != self.relay);
        for signal in [Signal::TERM, Signal::CONT] {
            Self::signal(&members, signal);
        }
        has_worker
    }

    /// Sends KILL to all processes. Returns the number of processes that get it for the first time.
    ///
    /// The processes are stopped first, until a pass finds no new one, because a stopped process does not fork. If
    /// there is a cgroup, the kernel ends all its processes at once. The walk also reaches a worker that has not joined
    /// the cgroup yet.
    pub fn kill(&mut self) -> u32 {
        let mut signalled = BTreeSet::new();
        for _ in 0..STOP_PASSES {
            let fresh: Vec<Member> =
                self.members().into_iter().filter(|member| signalled.insert(member.identity())).collect();
            if fresh.is_empty() {
                break;
            }
            Self::signal(&fresh, Signal::STOP);
        }
        if let Some(work) = &self.work {
            // Kernels before 5.14 have no such file; the walk ends the same processes.
            fs::write(work.join("cgroup.kill"), "1").ok();
        }
        let members = self.members();
        signalled.extend(members.iter().map(Member::identity));
        if let Some(init) = self.init.as_ref().and_then(Init::pid) {
            // This process is not reaped yet, so the number is still its own. The kernel kills all processes of its
            // namespace with it.
            kill_process(init, Signal::KILL).ok();
        }
        Self::signal(&members, Signal::KILL);
        let before = self.killed.len();
        self.killed.append(&mut signalled);
        u32::try_from(self.killed.len() - before).unwrap_or(u32::MAX)
    }

    /// Sends KILL until no process is left.
    pub(crate) fn end(mut self) {
        while !self.reap().childless {
            self.kill();
            std::thread::sleep(ROUND);
        }
    }

    /// Reaps all children that have ended.
    pub fn reap(&mut self) -> Reaped {
        let mut reaped = Reaped::default();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == self.worker => {
                    reaped.worker = Some(status);
                }
                Ok(Some((pid, _))) if self.init.as_ref().and_then(Init::pid) == Some(pid) => self.init = None,
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return reaped,
                Err(_) => {
                    // The error is ECHILD: waitid(2) has no other error for any child.
                    reaped.childless = true;
                    return reaped;
                }
            }
        }
    }

    /// Returns true if the run's cgroup has a process. False without a cgroup, where the children are the only
    /// evidence.
    pub(crate) fn is_populated(&self) -> bool {
        self.cgroup_value("cgroup.events", "populated").is_some_and(|value| value > 0)
    }

    /// Returns the number of processes of the run that the out-of-memory killer ended; none without a memory controller.
    pub(crate) fn oom_kills(&self) -> Option<u64> {
        self.cgroup_value("memory.events", "oom_kill")
    }

    /// Returns the largest memory of all processes in the run's cgroup at one time, in bytes; none without a memory
    /// controller.
    pub(crate) fn memory_peak(&self) -> Option<u64> {
        fs::read_to_string(self.work.as_ref()?.join("memory.peak")).ok()?.trim().parse().ok()
    }

    /// Returns true if the signal that ended the worker dumped its core. None if no signal ended it, and for a relay,
    /// which ends itself by the signal of its agent.
    pub(crate) fn core_dumped(&self, ended: WaitStatus) -> Option<bool> {
        let pid = nix::unistd::Pid::from_raw(self.worker);
        match wait::WaitStatus::from_raw(pid, ended.as_raw()) {
            Ok(wait::WaitStatus::Signaled(_, _, core)) if self.relay.is_none() => Some(core),
            Ok(_) | Err(_) => None,
        }
    }

    fn cgroup_value(&self, file: &str, key: &str) -> Option<u64> {
        flat_value(&fs::read_to_string(self.work.as_ref()?.join(file)).ok()?, key)
    }

    /// Returns the processor time of all present and past processes of the run's cgroup, in microseconds; none without
    /// a cgroup. The kernel counts it even if no controller is enabled.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        self.cgroup_value("cpu.stat", "usage_usec")
    }

    /// Returns true if the run's cgroup is frozen. Its processes cannot freeze it themselves.
    pub(crate) fn is_frozen(&self) -> bool {
        self.cgroup_value("cgroup.events", "frozen").is_some_and(|value| value > 0)
    }

    /// Walks the tree. Returns all live processes, parents before children.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.walk(usize::MAX).unwrap_or_default()
    }

    /// Walks the tree as [`Tree::members`] does. None if there are more processes and threads than `most`.
    pub(crate) fn walk(&self, most: usize) -> Option<Vec<Member>> {
        let mut source = Children::source(most);
        let mut members = Vec::new();
        let mut known = BTreeSet::from([self.me]);
        let mut queue: Vec<i32> =
            Process::new(self.me).map_or_else(|_| Some(Vec::new()), |me| source.children_of(&me))?;
        while let Some(pid) = queue.pop() {
            let Ok((process, member, parent)) = read_member(pid) else { continue };
            if !known.contains(&parent) || !known.insert(pid) {
                continue;
            }
            queue.extend(source.children_of(&process)?);
            let is_init = self.init.as_ref().is_some_and(|init| init.identity.pid == pid);
            // The first process of the namespace is the shim's own, and ends when all others were asked to.
            if !is_init && !member.is_over {
                members.push(member);
            }
        }
        Some(members)
    }

    /// Signals the given processes, if their numbers still belong to them.
    ///
    /// A number alone may belong to another process by now. The pidfd is opened between two reads of one `/proc`
    /// directory, so it stands for the process with the expected start time.
    fn signal(members: &[Member], signal: Signal) {
        for member in members {
            let Some(pid) = Pid::from_raw(member.pid) else { continue };
            let Ok(process) = Process::new(member.pid) else { continue };
            let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if process.stat().is_ok_and(|stat| stat.starttime == member.start_ticks) {
                // ESRCH: the process has ended. EPERM: it has other credentials; the rounds go on, and the record names
                // it.
                pidfd_send_signal(&pidfd, signal).ok();
            }
        }
    }
}

impl Member {
    /// Identity of a process, unique in this boot.
    pub(crate) fn identity(&self) -> (i32, u64) {
        (self.pid, self.start_ticks)
    }
}

impl From<Member> for Straggler {
    fn from(member: Member) -> Self {
        Straggler { pid: member.pid, name: member.name, state: member.state }
    }
}

fn read_member(pid: i32) -> ProcResult<(Process, Member, i32)> {
    let process = Process::new(pid)?;
    let stat = process.stat()?;
    // The first thread of a process may have ended while others live, and the state is that thread's alone.
    let is_over = matches!(stat.state, 'Z' | 'X' | 'x') && stat.num_threads <= 1;
    let of_children = [stat.cutime, stat.cstime].map(|ticks| u64::try_from(ticks).unwrap_or(0));
    let cpu_ticks = [stat.utime, stat.stime].into_iter().chain(of_children).fold(0, u64::saturating_add);
    let (start_ticks, state, name) = (stat.starttime, stat.state, stat.comm);
    let member = Member { pid, start_ticks, state, cpu_ticks, name, is_over };
    Ok((process, member, stat.ppid))
}

/// Sources of the children of a process.
enum Children {
    /// Lists of children of each thread of the process. The cost depends on the tree alone. The number is the limit on
    /// further threads.
    Listed(usize),
    /// Parents of all processes of the host, for kernels without `CONFIG_PROC_CHILDREN`.
    Scanned(Vec<(i32, i32)>),
}

impl Children {
    fn source(most: usize) -> Self {
        if Path::new("/proc/thread-self/children").exists() {
            return Self::Listed(most);
        }
        let all = procfs::process::all_processes().into_iter().flatten().flatten();
        Self::Scanned(all.filter_map(|process| Some((process.stat().ok()?.ppid, process.pid))).collect())
    }

    /// Returns the children of a process; none if the limit on threads would be exceeded.
    fn children_of(&mut self, process: &Process) -> Option<Vec<i32>> {
        match self {
            Self::Listed(left) => {
                let mut children = Vec::new();
                for task in process.tasks().into_iter().flatten().flatten() {
                    *left = left.checked_sub(1)?;
                    children.extend(task.children().into_iter().flatten().map(u32::cast_signed));
                }
                Some(children)
            }
            Self::Scanned(pairs) => {
                let children = pairs.iter().filter(|(parent, _)| *parent == process.pid);
                Some(children.map(|(_, child)| *child).collect())
            }
        }
    }
}

pub(crate) fn join_cgroup(directory: &Path) -> io::Result<()> {
    fs::write(directory.join("cgroup.procs"), "0")
}

/// Finds one value in a file of `key value` lines.
fn flat_value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_run_is_told_where_its_cgroup_tells_it() {
        let work = tempfile::tempdir().unwrap();
        let tree = || Tree::new(1, None, Some(work.path().to_owned()));
        assert_eq!((tree().memory_peak(), tree().oom_kills()), (None, None), "no memory controller");
        fs::write(work.path().join("memory.peak"), "35651584\n").unwrap();
        fs::write(work.path().join("memory.events"), "max 4\noom 1\noom_kill 2\n").unwrap();
        assert_eq!((tree().memory_peak(), tree().oom_kills()), (Some(35_651_584), Some(2)));
        assert_eq!(Tree::new(1, None, None).memory_peak(), None);
    }

    #[test]
    fn a_key_is_not_taken_for_a_longer_one() {
        let text = "oom 3\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(flat_value(text, "oom_kill"), Some(2));
        assert_eq!(flat_value(text, "oom"), Some(3));
        assert_eq!(flat_value(text, "kill"), None);
    }
}
