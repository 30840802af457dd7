//! Finds processes of a run without the help of its shim: by the nonce of its claim in their environment (the mark), by
//! the session of its worker, and by its user where no other run has that user.
//!
//! A process with the mark belongs to the run. A process that has only the session or the user may belong to others,
//! because both numbers are reused. A process that has shed the mark, the session and the user is not found. So an empty
//! list does not prove that the run is over, and only processes with the mark are ever killed.
//!
//! See decision 0039.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use procfs::process::Process;
use rustix::process::Signal;

use shim::shortage::unless_short;

use host::proc_file::{Beginning, ENVIRONMENT, of_process, read_bounded, users};
use host::{cgroup, watch};

/// Variable in the environment of workers that identifies their root.
pub(super) const ROOT_ID: &str = "SUPERVISOR_ROOT_ID";

/// Features by which a run's processes are recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Nonce of the claim, in the environment of the worker and of all that it starts.
    pub(super) nonce: Option<String>,
    /// Identity of the root, in the same environment. A copy of a root has the same nonces, but its runs have other
    /// processes.
    pub(super) root: String,
    /// Pid of the worker, which is also its session's id.
    pub(super) session: Option<i32>,
    /// User that this run alone has; none if its user has other runs too.
    pub(super) uid: Option<u32>,
    /// User of the run, which other runs may share; none if unknown.
    pub(super) user: Option<u32>,
}

/// Process that surely or perhaps belongs to the run. Pid and start time identify it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Survivor {
    pub(super) pid: i32,
    start_ticks: u64,
    name: String,
    belongs: Belongs,
}

/// Relation of a process to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belongs {
    /// Certain: it carries the mark.
    Surely,
    /// Possible, for one of three reasons: the process has the session or the sole user of the run; it has the mark
    /// with the identity of another root, and one of the two roots is a copy of the other; or its environment is longer
    /// than the part that is read, and its real user can be the run's.
    Perhaps,
}

impl Mark {
    /// Finds the live processes, zombies excluded. Processes that are hidden from this user are skipped.
    ///
    /// # Errors
    /// The host lacks resources at present, so that a process of the run could be missed.
    pub(super) fn find(&self) -> io::Result<Vec<Survivor>> {
        let own_pid = std::process::id().cast_signed();
        let all = procfs::process::all_processes().map_err(io::Error::other)?;
        let mut survivors = Vec::new();
        for process in all {
            // For lack of resources, a process of the run may be unreadable: then the search fails rather than miss it.
            let Some(process) = of_process(process)? else { continue };
            if process.pid() != own_pid {
                survivors.extend(self.look(&process)?);
            }
        }
        Ok(survivors)
    }

    fn look(&self, process: &Process) -> io::Result<Option<Survivor>> {
        let stat = of_process(process.stat())?.filter(|stat| !matches!(stat.state, 'Z' | 'X'));
        let Some(stat) = stat else { return Ok(None) };
        let pid = process.pid();
        let belongs = match self.on(pid)? {
            Some(belongs) => Some(belongs),
            None => self.is_alike(pid, stat.session)?.then_some(Belongs::Perhaps),
        };
        Ok(belongs.map(|belongs| Survivor { pid, start_ticks: stat.starttime, name: stat.comm, belongs }))
    }

    /// Returns true if a process has the session of the run, or the user that this run alone has. Each of its four uids
    /// counts.
    fn is_alike(&self, pid: i32, session: i32) -> io::Result<bool> {
        if self.session == Some(session) {
            return Ok(true);
        }
        let Some(uid) = self.uid else { return Ok(false) };
        Ok(users(pid)?.is_some_and(|own| own.contains(&uid)))
    }

    /// Returns the nonce if it is a random UUID (version 4), as every claim makes it. A restored or imported board may
    /// have another text in its column, and a short text occurs in the environment of every process of the host.
    fn nonce(&self) -> Option<&str> {
        self.nonce.as_deref().filter(|nonce| kernel::is_nonce(nonce))
    }

    /// Returns the relation of a process to the run by its environment; none if nothing there points to the run.
    fn on(&self, pid: i32) -> io::Result<Option<Belongs>> {
        let Some(nonce) = self.nonce() else { return Ok(None) };
        let path = format!("/proc/{pid}/environ");
        let read = unless_short(read_bounded(path.as_ref(), ENVIRONMENT))?;
        let Some(Beginning { bytes: environment, is_cut }) = read else { return Ok(None) };
        let is_marked = environment.windows(nonce.len()).any(|window| window == nonce.as_bytes());
        let mut words = environment.split(|byte| *byte == 0);
        let root = words.find_map(|word| word.strip_prefix(ROOT_ID.as_bytes())?.strip_prefix(b"="));
        // A process of the run may have removed the variable.
        let is_ours = root.is_none_or(|root| root == self.root.as_bytes());
        Ok(match (is_marked, is_ours) {
            (true, true) => Some(Belongs::Surely),
            (true, false) => Some(Belongs::Perhaps),
            (false, _) => (is_cut && self.may_be_of(pid)?).then_some(Belongs::Perhaps),
        })
    }

    /// Returns true if the process can belong to the run by its user. This decides when the mark may be in the unread
    /// part of the environment.
    ///
    /// The real user counts. A run's processes keep it, also in a set-user-ID program, and it cannot be taken without
    /// that user's privilege. So no other user of the host can delay a run by a long environment, nor by giving one to
    /// a set-user-ID program. If the run's user is unknown, every process counts.
    fn may_be_of(&self, pid: i32) -> io::Result<bool> {
        Ok(users(pid)?.is_some_and(|[real, ..]| self.user.is_none_or(|user| user == real)))
    }

    /// Sends SIGKILL to the processes that surely belong to the run. Returns all processes that were found before, the
    /// possible ones included.
    pub(super) fn kill(&self) -> io::Result<Vec<Survivor>> {
        let found = self.find()?;
        for survivor in found.iter().filter(|survivor| survivor.belongs == Belongs::Surely) {
            let Some(handle) = watch::open(survivor.pid)? else { continue };
            // The pid may have been reused between the search and the opening of the handle. If a second look finds the
            // same start time, the process has had the pid all the time, and the handle refers to it.
            let again = of_process(Process::new(survivor.pid))?;
            let again = again.map(|process| self.look(&process)).transpose()?.flatten();
            if again.as_ref() == Some(survivor) {
                watch::signal(&handle, Signal::KILL)?;
            }
        }
        Ok(found)
    }
}

/// Returns true if at least one process surely belongs to the run.
pub(super) fn are_surely(survivors: &[Survivor]) -> bool {
    !sure(survivors).is_empty()
}

/// Returns the pids of the processes that surely belong to the run.
pub(super) fn sure(survivors: &[Survivor]) -> Vec<i32> {
    let certain = survivors.iter().filter(|survivor| survivor.belongs == Belongs::Surely);
    certain.map(|survivor| survivor.pid).collect()
}

/// Returns the cgroups of runs in which the processes that surely belong to the run are.
pub(super) fn groups(survivors: &[Survivor]) -> BTreeSet<PathBuf> {
    let certain = survivors.iter().filter(|survivor| survivor.belongs == Belongs::Surely);
    certain.filter_map(|survivor| cgroup::run_of(survivor.pid)).collect()
}

/// Returns a list of the processes for a person, such as `17 (make), 18 (sh, perhaps another's)`.
pub(super) fn named(survivors: &[Survivor]) -> String {
    let name = |survivor: &Survivor| match survivor.belongs {
        Belongs::Surely => format!("{} ({})", survivor.pid, survivor.name),
        Belongs::Perhaps => format!("{} ({}, perhaps another's)", survivor.pid, survivor.name),
    };
    survivors.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper(nonce: &str) -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").env("HERMES_KANBAN_CLAIM_LOCK", format!("host:1:{nonce}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
    }

    fn mark(nonce: &str) -> Mark {
        let user = Some(rustix::process::getuid().as_raw());
        Mark { nonce: Some(nonce.to_owned()), root: "1:2".to_owned(), session: None, uid: None, user }
    }

    #[test]
    fn what_carries_the_mark_is_ended_and_nothing_else() {
        let nonces = [(); 2].map(|()| uuid::Uuid::new_v4().to_string());
        let mut children = nonces.clone().map(|nonce| sleeper(&nonce));
        let own = mark(&nonces[0]);
        let seen = || own.find().unwrap().iter().map(|survivor| survivor.pid).collect::<Vec<_>>();
        // Between its fork and its exec, a child has its parent's environment.
        while seen() != [children[0].id().cast_signed()] {
            std::thread::yield_now();
        }

        own.kill().unwrap();

        children[0].wait().unwrap();
        assert!(seen().is_empty());
        assert!(matches!(children[1].try_wait(), Ok(None)), "the neighbour lives");
        children[1].kill().unwrap();
        children[1].wait().unwrap();
    }

    #[test]
    fn what_another_root_has_started_is_not_the_runs_though_it_carries_its_nonce() {
        let nonce = uuid::Uuid::new_v4().to_string();
        let mut command = Command::new("sleep");
        command.arg("600").env("HERMES_KANBAN_CLAIM_LOCK", &nonce).env(ROOT_ID, "1:3");
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let theirs = Mark { root: "1:3".to_owned(), ..mark(&nonce) };
        while theirs.find().unwrap().is_empty() {
            std::thread::yield_now();
        }
        let own = mark(&nonce);
        // Between its fork and its exec, a child has its parent's environment.
        while own.find().unwrap().len() != 1 {
            std::thread::yield_now();
        }
        assert!(!are_surely(&own.kill().unwrap()));
        assert!(matches!(child.try_wait(), Ok(None)), "it lives");
        theirs.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn who_only_shares_a_user_or_a_session_is_shown_and_not_ended() {
        let mut child = sleeper("none of theirs");
        let pid = child.id().cast_signed();
        let session = Process::new(pid).unwrap().stat().unwrap().session;
        let alike = Mark { session: Some(session), ..mark(&uuid::Uuid::new_v4().to_string()) };
        let found = alike.kill().unwrap();
        let one: Vec<_> = found.into_iter().filter(|survivor| survivor.pid == pid).collect();
        assert!(named(&one).ends_with("perhaps another's)"), "{one:?}");
        assert!(matches!(child.try_wait(), Ok(None)), "it lives");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_of_the_runs_user_with_a_long_environment_is_perhaps_the_runs() {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::null());
        // A single variable may have 128 KiB.
        for number in 0..20 {
            command.env(format!("LONG_{number}"), "x".repeat(100 * 1024));
        }
        let mut child = command.spawn().unwrap();
        let pid = child.id().cast_signed();
        let own = mark(&uuid::Uuid::new_v4().to_string());
        let look = |mark: &Mark| mark.find().unwrap().into_iter().find(|survivor| survivor.pid == pid);
        // Between its fork and its exec, a child has its parent's environment.
        while look(&own).is_none() {
            std::thread::yield_now();
        }
        let of = |user| look(&Mark { user, ..own.clone() }).map(|survivor| survivor.belongs);
        assert_eq!(of(own.user), Some(Belongs::Perhaps));
        assert_eq!(of(None), Some(Belongs::Perhaps), "nobody knows the run's user");
        assert_eq!(of(own.user.map(|user| user + 1)), None, "it is another user's");
        own.kill().unwrap();
        assert!(matches!(child.try_wait(), Ok(None)), "it lives");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_run_without_the_nonce_of_a_claim_has_no_processes() {
        let mut child = sleeper("=PATH");
        for nonce in ["", "=", "PATH", "00000000-0000-0000-0000-000000000000"] {
            assert_eq!(mark(nonce).find().unwrap(), [], "{nonce:?}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
