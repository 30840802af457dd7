//! Session of a worker: without an inherited signal mask, ignored signal, umask or protection from the OOM killer, and
//! with a lower priority than the supervisor.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::sys::signal::SigSet;

/// Value of `oom_score_adj`, with which a worker dies before its supervisor when memory runs out.
const OOM_SCORE: &str = "500";

/// Niceness of a worker above its supervisor's (nice(2)): when both want the processor, the worker gets a third of its time.
const NICER: i32 = 5;

/// Leads a new session, without a controlling terminal.
///
/// # Errors
/// Fails if the process already leads a process group, but not its session.
pub(crate) fn detach() -> Result<(), nix::Error> {
    match nix::unistd::setsid() {
        Ok(_) => Ok(()),
        Err(error) => {
            let leads = nix::unistd::getsid(None).is_ok_and(|session| session == nix::unistd::getpid());
            if leads { Ok(()) } else { Err(error) }
        }
    }
}

/// Unblocks every signal, and gives every ignored signal a handler. At the exec, a signal with a handler returns to its
/// default (execve(2)), and an ignored one would stay ignored.
///
/// # Errors
/// Fails if the mask or a handler cannot be set.
pub(crate) fn reset_signals() -> Result<(), std::io::Error> {
    SigSet::empty().thread_set_mask()?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let flag = Arc::new(AtomicBool::new(false));
    // 32 and 33 belong to the C library.
    let ours = (1..32).chain(34..=64).filter(|signal| !signal_hook::consts::FORBIDDEN.contains(signal));
    for signal in ours.filter(|signal| ignored & (1 << (signal - 1)) != 0) {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(())
}

/// Closes new files to other users.
pub(crate) fn set_umask() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// Refuses a process with several threads: some restrictions bind only the thread that asks for them.
///
/// # Errors
/// Fails if there is another thread, or if that cannot be determined.
pub(crate) fn require_one_thread() -> Result<(), std::io::Error> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads == 1 {
        Ok(())
    } else {
        Err(std::io::Error::other(format!("the process has {threads} threads")))
    }
}

/// Makes the worker the preferred victim when memory runs out.
pub(crate) fn prefer_for_oom() -> Result<(), std::io::Error> {
    std::fs::write("/proc/self/oom_score_adj", OOM_SCORE)
}

/// Lets the supervisor run before the worker if processor time is short.
///
/// # Errors
/// Fails if the priority cannot be changed.
pub(crate) fn give_way() -> Result<(), rustix::io::Errno> {
    // Decision 0080.
    // If the kernel shares processors between sessions (sched(7), "The autogroup feature"), this counts only within the
    // run's session. The session keeps its share: with a lower one, any other load of the host could slow all runs.
    rustix::process::nice(NICER).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_another_thread_is_not_restricted() {
        let refused = std::thread::spawn(require_one_thread).join().unwrap().unwrap_err().to_string();
        assert!(refused.starts_with("the process has "), "{refused}");
    }
}
