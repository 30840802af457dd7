//! Waiting for the answer of a job process: within a limit, while it makes progress, and until the asker gives up.

use std::io::{ErrorKind, Read as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use procfs::process::Process;
use tokio_util::sync::CancellationToken;

/// How long a job process may sleep without being woken once. A read of a file wakes it in that time; a FIFO that nobody writes
/// to, or a lock that a worker holds, does not.
const STILL: Duration = Duration::from_secs(2);
/// The pause between two looks at a job process that has not answered: nothing announces that a process stands still.
const LOOK: Duration = Duration::from_millis(100);
/// The most bytes of an answer. The longest holds the texts of one commit's files.
const ANSWER: usize = 64 * 1024 * 1024;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The process waits for something that does not come.
    Stands(Duration),
    /// The process is still at work when its time is over.
    Overdue(Duration),
    /// The asker does not want it any more.
    Cancelled,
    /// The answer could not be read.
    Unread(std::io::Error),
}

/// Reads what a job process prints, up to its end. One that does not answer is ended; it has nothing of its own to save.
pub(super) fn answer_of(
    child: &mut Child,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<Vec<u8>, NoAnswer> {
    let Some(mut stdout) = child.stdout.take() else { return Ok(Vec::new()) };
    let read = read(&mut stdout, child.id(), limit, cancel);
    if read.is_err() {
        // It may have ended by itself meanwhile.
        drop(child.kill());
    }
    drop(stdout);
    read
}

fn read(
    stdout: &mut ChildStdout,
    pid: u32,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<Vec<u8>, NoAnswer> {
    let deadline = Instant::now() + limit;
    let mut answer = Vec::new();
    let mut buffer = [0_u8; 8192];
    let mut progress = Progress::new(pid);
    loop {
        let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::MAX)) {
            // The signal (a reload, a stop) is for others; poll is never restarted by itself (signal(7)).
            Ok(0) | Err(Errno::EINTR) => {
                if cancel.is_cancelled() {
                    return Err(NoAnswer::Cancelled);
                }
                if Instant::now() >= deadline {
                    return Err(NoAnswer::Overdue(limit));
                }
                if progress.has_stopped() {
                    return Err(NoAnswer::Stands(STILL));
                }
                continue;
            }
            Ok(_) => {}
            Err(errno) => return Err(NoAnswer::Unread(errno.into())),
        }
        match stdout.read(&mut buffer) {
            Ok(0) => return Ok(answer),
            Ok(n) if answer.len() + n > ANSWER => {
                return Err(NoAnswer::Unread(ErrorKind::FileTooLarge.into()));
            }
            Ok(n) => answer.extend_from_slice(buffer.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(NoAnswer::Unread(e)),
        }
    }
}

/// The progress of a process, as the kernel counts it.
struct Progress {
    pid: i32,
    last: Option<(u64, u64)>,
    since: Instant,
}

impl Progress {
    fn new(pid: u32) -> Self {
        Self { pid: i32::try_from(pid).unwrap_or(i32::MAX), last: None, since: Instant::now() }
    }

    /// Tells whether the process has slept through the whole time allowed. One that wants a processor, or waits for a disk,
    /// does not stand still, however slow the host is.
    fn has_stopped(&mut self) -> bool {
        let now = self.count();
        if now.is_none() || now != self.last {
            self.last = now;
            self.since = Instant::now();
        }
        now.is_some() && self.since.elapsed() >= STILL
    }

    /// The processor time and the wake-ups so far, while the process sleeps.
    fn count(&self) -> Option<(u64, u64)> {
        let process = Process::new(self.pid).ok()?;
        let stat = process.stat().ok().filter(|stat| stat.state == 'S')?;
        let status = process.status().ok()?;
        Some((stat.utime + stat.stime, status.voluntary_ctxt_switches.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use nix::sys::pthread::{pthread_kill, pthread_self};
    use nix::sys::signal::Signal;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_signal_does_not_end_the_wait_for_an_answer() {
        let taken = std::sync::Arc::default();
        signal_hook::flag::register(signal_hook::consts::SIGUSR2, std::sync::Arc::clone(&taken)).unwrap();
        // It works all the while: one that sleeps would stand still on a host that is too slow for the signals.
        let dir = tempfile::tempdir().unwrap();
        let go = dir.path().join("go");
        let mut child = shell(&format!("until [ -e {} ]; do :; done; echo here", go.display()));
        let (tell, told) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            tell.send(pthread_self()).unwrap();
            let answer = answer_of(&mut child, LONG, &CancellationToken::new());
            child.wait().unwrap();
            answer
        });
        let thread = told.recv().unwrap();
        for _ in 0..500 {
            pthread_kill(thread, Signal::SIGUSR2).unwrap();
            std::thread::yield_now();
        }
        std::fs::write(&go, "").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"here\n");
        assert!(taken.load(std::sync::atomic::Ordering::Relaxed));
    }

    #[test]
    fn who_waits_for_a_fifo_is_ended_long_before_its_time_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut child = shell(&format!("exec cat {}", fifo.display()));
        let started = Instant::now();
        let answer = answer_of(&mut child, LONG, &CancellationToken::new());
        assert!(matches!(answer, Err(NoAnswer::Stands(STILL))), "{answer:?}");
        assert!(started.elapsed() < LONG / 2);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn who_works_on_is_not_taken_for_one_that_stands() {
        let mut child = shell("read -r _; echo done");
        let mut stdin = child.stdin.take().unwrap();
        let begun = Instant::now();
        let writer = std::thread::spawn(move || {
            // Each line wakes the reader once more.
            while begun.elapsed() < STILL + STILL / 2 {
                stdin.write_all(b".").unwrap();
                std::thread::park_timeout(LOOK);
            }
            stdin.write_all(b"\n").unwrap();
        });
        assert_eq!(answer_of(&mut child, LONG, &CancellationToken::new()).unwrap(), b"done\n");
        writer.join().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn who_never_stops_working_is_ended_when_its_time_is_over() {
        let mut child = shell("while :; do :; done");
        let limit = Duration::from_millis(300);
        let answer = answer_of(&mut child, limit, &CancellationToken::new());
        assert!(matches!(answer, Err(NoAnswer::Overdue(_))), "{answer:?}");
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn an_asker_that_gives_up_ends_the_job() {
        let mut child = shell("while :; do :; done");
        let cancel = CancellationToken::new();
        cancel.cancel();
        let answer = answer_of(&mut child, LONG, &cancel);
        assert!(matches!(answer, Err(NoAnswer::Cancelled)), "{answer:?}");
        assert!(!child.wait().unwrap().success());
    }
}
