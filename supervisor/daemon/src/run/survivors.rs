//! Finds processes of a run without its shim: by the mark of its claim in their environment, and by the session of its
//! worker.
//!
//! A process with the mark belongs to the run. A process in the session of an ended worker may belong to others, and a
//! process that has shed both is not found at all. So an empty list is no proof, and only processes with the mark are
//! ever ended.
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
    /// Identity of the root, in the same environment. A copy of the root has the same nonces, and other processes.
    pub(super) root: String,
    /// Pid of the worker, which is also its session's id.
    pub(super) session: Option<i32>,
    /// User that no other run of this host has.
    pub(super) uid: Option<u32>,
    /// User of the run, which others may have; none if unknown.
    pub(super) user: Option<u32>,
}

/// A process.
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
    /// Possible: it shares a session or a user with the run, or carries its mark for another root, of which one is a
    /// copy. Or its environment exceeds the part that is read, and its user may be the run's.
    Perhaps,
}

impl Mark {
    /// Finds the live processes, as far as this user may look.
    pub(super) fn find(&self) -> io::Result<Vec<Survivor>> {
        let own = std::process::id().cast_signed();
        let all = procfs::process::all_processes().map_err(io::Error::other)?;
        let mut found = Vec::new();
        for process in all {
            // An unreadable process may belong to the run, so the search fails rather than miss it.
            let Some(process) = of_process(process)? else { continue };
            if process.pid() != own {
                found.extend(self.look(&process)?);
            }
        }
        Ok(found)
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

    /// Returns true if a process shares the session or the user of the run.
    fn is_alike(&self, pid: i32, session: i32) -> io::Result<bool> {
        if self.session == Some(session) {
            return Ok(true);
        }
        let Some(uid) = self.uid else { return Ok(false) };
        Ok(users(pid)?.is_some_and(|own| own.contains(&uid)))
    }

    /// Returns the nonce, if it is a random UUID as each claim makes one. A board that was restored or imported may have
    /// any other text there, and a short one is part of the environment of every process of the host.
    fn nonce(&self) -> Option<&str> {
        self.nonce.as_deref().filter(|nonce| kernel::is_nonce(nonce))
    }

    /// Returns the relation of a process by the mark that it carries; none without a mark.
    fn on(&self, pid: i32) -> io::Result<Option<Belongs>> {
        let Some(nonce) = self.nonce() else { return Ok(None) };
        let path = format!("/proc/{pid}/environ");
        let read = unless_short(read_bounded(path.as_ref(), ENVIRONMENT))?;
        let Some(Beginning { bytes: environment, is_cut }) = read else { return Ok(None) };
        let is_marked = environment.windows(nonce.len()).any(|window| window == nonce.as_bytes());
        let mut words = environment.split(|byte| *byte == 0);
        let root = words.find_map(|word| word.strip_prefix(ROOT_ID.as_bytes())?.strip_prefix(b"="));
        // An earlier release set no such variable.
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

    /// Kills the processes with the mark. Returns all that were found before.
    pub(super) fn kill(&self) -> io::Result<Vec<Survivor>> {
        let found = self.find()?;
        for survivor in found.iter().filter(|survivor| survivor.belongs == Belongs::Surely) {
            let Some(handle) = watch::open(survivor.pid)? else { continue };
            // The pid may have been reused before the handle was opened, so it is compared again through the handle.
            let again = of_process(Process::new(survivor.pid))?;
            let again = again.map(|process| self.look(&process)).transpose()?.flatten();
            if again.as_ref() == Some(survivor) {
                watch::signal(&handle, Signal::KILL)?;
            }
        }
        Ok(found)
    }
}

/// True if one of them surely belongs to the run.
pub(super) fn are_surely(survivors: &[Survivor]) -> bool {
    !sure(survivors).is_empty()
}

/// Returns the pids of the processes that surely belong to the run.
pub(super) fn sure(survivors: &[Survivor]) -> Vec<i32> {
    let own = survivors.iter().filter(|survivor| survivor.belongs == Belongs::Surely);
    own.map(|survivor| survivor.pid).collect()
}

/// Returns the run cgroups of the processes that surely belong to the run.
pub(super) fn groups(survivors: &[Survivor]) -> BTreeSet<PathBuf> {
    let own = survivors.iter().filter(|survivor| survivor.belongs == Belongs::Surely);
    own.filter_map(|survivor| cgroup::run_of(survivor.pid)).collect()
}

/// Names the processes for a person: pid, name, and whether they belong to the run.
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
