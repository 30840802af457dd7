//! Waits for the reply of a job process. The wait ends early at a time limit, when the process hangs, or when the caller
//! gives up.

use std::io::{ErrorKind, Read as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use procfs::process::Process;
use tokio_util::sync::CancellationToken;

/// Time for which a job process may sleep without a wake-up before it counts as hanging. Each read of a file ends in a
/// wake-up; the open of a FIFO without a writer and the wait for a worker's lock do not.
const STILL: Duration = Duration::from_secs(2);
/// Interval between looks at the job process. It is polled because no event announces that a process hangs.
const LOOK: Duration = Duration::from_millis(100);
/// Limit on a reply, in bytes. The largest reply has the texts of the files of one commit.
const ANSWER: usize = 64 * 1024 * 1024;

/// Reason for a missing reply.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The process has slept for this time without a wake-up.
    Stands(Duration),
    /// The process was still at work at this time limit.
    Overdue(Duration),
    /// The caller gave up.
    Cancelled,
    /// The reply could not be read.
    Unread(std::io::Error),
}

/// Limits of a wait, and the receiver of progress reports.
pub(super) struct Terms<'a> {
    /// Longest time for the whole reply.
    pub(super) limit: Duration,
    pub(super) cancel: &'a CancellationToken,
    /// Takes each whole line of the output, which reports progress. The reply comes after the last line.
    pub(super) on_line: &'a dyn Fn(&[u8]),
}

/// Reads the output of a job process to its end. Returns the bytes after the last line: the reply. A process from which no
/// reply is read is killed; it has no state to save.
pub(super) fn answer_of(child: &mut Child, terms: &Terms<'_>) -> Result<Vec<u8>, NoAnswer> {
    let Some(mut stdout) = child.stdout.take() else { return Ok(Vec::new()) };
    let read = read(&mut stdout, child.id(), terms);
    if read.is_err() {
        // This fails if the process has ended by itself meanwhile, which is as good.
        drop(child.kill());
    }
    drop(stdout);
    read
}

fn read(stdout: &mut ChildStdout, pid: u32, terms: &Terms<'_>) -> Result<Vec<u8>, NoAnswer> {
    let Terms { limit, cancel, on_line } = *terms;
    let deadline = Instant::now() + limit;
    let mut answer = Vec::new();
    let mut buffer = [0_u8; 8192];
    let mut progress = Progress::new(pid);
    loop {
        if cancel.is_cancelled() {
            return Err(NoAnswer::Cancelled);
        }
        // Checked in each round: a process that reports progress without end would never leave poll idle.
        if Instant::now() >= deadline {
            return Err(NoAnswer::Overdue(limit));
        }
        let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::MAX)) {
            // A signal such as reload or stop is for other threads. It interrupts poll even with SA_RESTART (signal(7)).
            Ok(0) | Err(Errno::EINTR) => {
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
            Ok(n) => {
                answer.extend_from_slice(buffer.get(..n).unwrap_or_default());
                while let Some(end) = answer.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = answer.drain(..=end).collect();
                    on_line(&line);
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(NoAnswer::Unread(e)),
        }
    }
}

/// Progress of a process, measured by counters of the kernel.
struct Progress {
    pid: i32,
    /// Latest counters; none if the process did not sleep at the last look.
    last: Option<(u64, u64)>,
    since: Instant,
}

impl Progress {
    fn new(pid: u32) -> Self {
        Self { pid: i32::try_from(pid).unwrap_or(i32::MAX), last: None, since: Instant::now() }
    }

    /// Returns true if the process has slept without a wake-up for [`STILL`]. A process that waits for a processor or a
    /// disk is in another state, so a slow host never makes it count as hanging.
    fn has_stopped(&mut self) -> bool {
        let now = self.count();
        if now.is_none() || now != self.last {
            self.last = now;
            self.since = Instant::now();
        }
        now.is_some() && self.since.elapsed() >= STILL
    }

    /// Returns the processor time in clock ticks and the number of voluntary context switches, if the process sleeps
    /// (state `S` in `proc_pid_stat(5)`).
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

    fn answer(child: &mut Child, limit: Duration) -> Result<Vec<u8>, NoAnswer> {
        answer_of(child, &Terms { limit, cancel: &CancellationToken::new(), on_line: &|_| {} })
    }

    #[test]
    fn lines_come_before_the_answer() {
        let mut child = shell("echo one; echo two; printf three");
        let lines = std::cell::RefCell::new(Vec::new());
        let on_line = |line: &[u8]| lines.borrow_mut().push(String::from_utf8_lossy(line).into_owned());
        let terms = Terms { limit: LONG, cancel: &CancellationToken::new(), on_line: &on_line };
        assert_eq!(answer_of(&mut child, &terms).unwrap(), b"three");
        assert_eq!(*lines.borrow(), ["one\n", "two\n"]);
        child.wait().unwrap();
    }

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_signal_does_not_end_the_wait_for_an_answer() {
        let taken = std::sync::Arc::default();
        signal_hook::flag::register(signal_hook::consts::SIGUSR2, std::sync::Arc::clone(&taken)).unwrap();
        // This process works all the time: a sleeping one would seem to hang if the host is too slow for the signals.
        let dir = tempfile::tempdir().unwrap();
        let go = dir.path().join("go");
        let mut child = shell(&format!("until [ -e {} ]; do :; done; printf here", go.display()));
        let (sender, receiver) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            sender.send(pthread_self()).unwrap();
            let answer = answer(&mut child, LONG);
            child.wait().unwrap();
            answer
        });
        let thread = receiver.recv().unwrap();
        for _ in 0..500 {
            pthread_kill(thread, Signal::SIGUSR2).unwrap();
            std::thread::yield_now();
        }
        std::fs::write(&go, "").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"here");
        assert!(taken.load(std::sync::atomic::Ordering::Relaxed));
    }

    #[test]
    fn who_waits_for_a_fifo_is_ended_long_before_its_time_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut child = shell(&format!("exec cat {}", fifo.display()));
        let started = Instant::now();
        let answer = answer(&mut child, LONG);
        assert!(matches!(answer, Err(NoAnswer::Stands(STILL))), "{answer:?}");
        assert!(started.elapsed() < LONG / 2);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn who_works_on_is_not_taken_for_one_that_stands() {
        let mut child = shell("read -r _; printf done");
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
        assert_eq!(answer(&mut child, LONG).unwrap(), b"done");
        writer.join().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn who_never_stops_working_is_ended_when_its_time_is_over() {
        let mut child = shell("while :; do :; done");
        let limit = Duration::from_millis(300);
        let answer = answer(&mut child, limit);
        assert!(matches!(answer, Err(NoAnswer::Overdue(_))), "{answer:?}");
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn an_asker_that_gives_up_ends_the_job() {
        let mut child = shell("while :; do :; done");
        let cancel = CancellationToken::new();
        cancel.cancel();
        let answer = answer_of(&mut child, &Terms { limit: LONG, cancel: &cancel, on_line: &|_| {} });
        assert!(matches!(answer, Err(NoAnswer::Cancelled)), "{answer:?}");
        assert!(!child.wait().unwrap().success());
    }
}
