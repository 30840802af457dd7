//! Lets chosen calls of a daemon and of what it starts fail, as a broken or a full disk does, or a host without descriptors,
//! memory or processes: a tracer that answers in the kernel's place.
//!
//! The tracer is this test binary again, as the parent of the daemon; a signal that kills it kills the daemon. It follows the
//! daemon's threads, and its children too where that is asked for, and takes its orders from a socket:
//!
//! ```text
//! arm <calls that pass> <errno> <any|sync> <path> …      →  ok
//! step <number> <part> <call> <calls that pass> <once|lasting>  →  ok
//! record                                              →  ok
//! disarm                                              →  failed, or nothing, or <part>:<call>:<count> …
//! ```
//! After `arm` a call counts if its descriptor is of a file whose path ends with one of those that were named, or lies in one
//! of them that ends with a slash. After `step` and `record` those of a start count (`steps.rs`), until its command runs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::{env, fs, thread};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::harness::{Fleet, binary, skip};
use crate::steps::{Start, Step, part};

/// Calls that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Whatever changes a file's content, length or durability.
    Any,
    /// Those that make it durable.
    Sync,
}

/// Traced processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// The daemon.
    Daemon,
    /// The daemon and the shims that it starts.
    Shims,
    /// All that the daemon starts, until it runs another program.
    Starts,
}

impl Whom {
    const ALL: [(Whom, &str); 3] =
        [(Whom::Daemon, "daemon"), (Whom::Shims, "shims"), (Whom::Starts, "starts")];

    fn word(self) -> &'static str {
        Whom::ALL.iter().find(|(whom, _)| *whom == self).map_or("", |(_, word)| word)
    }
}

/// Result for the call that should fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeenCall {
    /// It has failed.
    Failed,
    /// This many calls were not made.
    Nothing,
}

/// The door to a tracer.
#[derive(Debug)]
pub(crate) struct Injector {
    socket: PathBuf,
}

impl Injector {
    /// Starts the fleet's daemon under a tracer and waits until it serves. None where this host cannot.
    pub(crate) fn start(fleet: &Fleet, whom: Whom) -> Option<Self> {
        Injector::spawn(fleet, whom, "")
    }

    /// The same, for the calls that one part of each start makes.
    pub(crate) fn start_part(fleet: &Fleet, part: &str) -> Option<Self> {
        Injector::spawn(fleet, Whom::Starts, part)
    }

    fn spawn(fleet: &Fleet, whom: Whom, part: &str) -> Option<Self> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            skip("writes that fail: the tracer knows the calls of x86_64 only");
            return None;
        }
        if let Ok(scope) = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
            && scope.trim() == "3"
        {
            skip("writes that fail: this host lets nobody trace");
            return None;
        }
        let socket = fleet.home().join("injector");
        let log = fs::File::options().create(true).append(true).open(fleet.log_file()).unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        fleet.dress(&mut command);
        command
            .args(["--exact", "injector::the_tracer", "--ignored", "--nocapture", "--test-threads=1"])
            .env("RUST_LOG", "info")
            .env("SUPERVISOR_TEST_BINARY", binary())
            .env("INJECTOR_SOCKET", &socket)
            .env("INJECTOR_ROOT", fleet.root())
            .env("INJECTOR_WHOM", whom.word())
            .env("INJECTOR_PART", part)
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let before = fleet.log().len();
        fleet.adopt(command.spawn().unwrap());
        fleet.eventually("the traced daemon serves", || {
            fleet.log()[before..].contains(" serves ").then_some(())
        });
        Some(Injector { socket })
    }

    /// Lets one call fail after this many of its kind have passed.
    pub(crate) fn arm(&self, pass: u64, errno: Errno, calls: Calls, paths: &[&str]) {
        let calls = if calls == Calls::Any { "any" } else { "sync" };
        let said = self.ask(&format!("arm {pass} {} {calls} {}", errno as i32, paths.join(" ")));
        assert_eq!(said, "ok");
    }

    /// Lets one call of a start fail.
    pub(crate) fn fail_step(&self, step: &Step, pass: u64, errno: Errno) {
        self.fail(step, pass, errno, "once");
    }

    /// Lets all calls of a kind fail from one on, as long as the command of no start runs.
    pub(crate) fn fail_steps(&self, step: &Step, pass: u64, errno: Errno) {
        self.fail(step, pass, errno, "lasting");
    }

    fn fail(&self, step: &Step, pass: u64, errno: Errno, last: &str) {
        let said = self.ask(&format!("step {} {} {} {pass} {last}", errno as i32, step.part, step.call));
        assert_eq!(said, "ok");
    }

    /// Notes the calls of the next start.
    pub(crate) fn record(&self) {
        assert_eq!(self.ask("record"), "ok");
    }

    /// The calls that were noted.
    pub(crate) fn recorded(&self) -> Vec<Step> {
        self.ask("disarm").split_whitespace().map(Step::parse).collect()
    }

    /// Lets everything pass again.
    pub(crate) fn disarm(&self) -> SeenCall {
        let said = self.ask("disarm");
        if said == "failed" { SeenCall::Failed } else { SeenCall::Nothing }
    }

    /// Kills the daemon as `kill -9` does, with its tracer, and waits until it is gone.
    pub(crate) fn kill(self, fleet: &Fleet) {
        fleet.kill_daemon();
        fs::remove_file(self.socket).unwrap();
        // The kernel kills the daemon after its tracer, in its own time; the last of it to go is its lock.
        fleet.eventually("the daemon's lock is free", || {
            let file = fs::File::open(fleet.root().join("board.lock")).unwrap();
            Flock::lock(file, FlockArg::LockExclusiveNonblock).ok().map(drop)
        });
    }

    fn ask(&self, order: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        writeln!(stream, "{order}").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

/// Orders for the tracer.
#[derive(Debug, Default)]
struct Orders {
    paths: Vec<String>,
    pass: u64,
    errno: i64,
    only_sync: bool,
    armed: bool,
    calls: u64,
    start: Start,
}

impl Orders {
    /// Takes an order and says what comes of it.
    fn take(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["arm", pass, errno, calls, paths @ ..] = &words[..] {
            *self = Orders {
                paths: paths.iter().map(|path| (*path).to_owned()).collect(),
                pass: pass.parse().unwrap(),
                errno: errno.parse().unwrap(),
                only_sync: *calls == "sync",
                armed: true,
                ..Orders::default()
            };
            return "ok".to_owned();
        }
        if let Some(start) = Start::parse(&words) {
            *self = Orders { start, ..Orders::default() };
            return "ok".to_owned();
        }
        self.armed = false;
        if let Some(said) = std::mem::take(&mut self.start).report() {
            return said;
        }
        let failed = self.calls > self.pass;
        if failed { "failed" } else { "nothing" }.to_owned()
    }

    /// Decides about a call: the number of the error that it gets.
    fn decide(&mut self, call: Call, path: &Path) -> Option<i64> {
        let path = path.to_string_lossy();
        let is_named = |name: &String| path.ends_with(name) || (name.ends_with('/') && path.contains(name));
        let is_kind = call == Call::Sync || !self.only_sync;
        if !(self.armed && is_kind && self.paths.iter().any(is_named)) {
            return None;
        }
        self.calls += 1;
        let fails = self.calls == self.pass + 1;
        fails.then_some(self.errno)
    }
}

/// A call that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Write,
    Sync,
}

impl Call {
    /// Classifies a system call of `x86_64` by its number.
    fn of(number: u64) -> Option<Self> {
        match number {
            // write, pwrite64, writev, ftruncate, fallocate, pwritev
            1 | 18 | 20 | 77 | 285 | 296 => Some(Call::Write),
            // fsync, fdatasync, sync_file_range
            74 | 75 | 277 => Some(Call::Sync),
            _ => None,
        }
    }
}

#[test]
#[ignore = "the tracer: tests start it for their daemon"]
fn the_tracer() {
    let Some(socket) = env::var_os("INJECTOR_SOCKET") else { return };
    let root = env::var("INJECTOR_ROOT").unwrap();
    let word = env::var("INJECTOR_WHOM").unwrap();
    let whom = Whom::ALL.into_iter().find(|(_, known)| *known == word).unwrap().0;
    let orders = Arc::new(Mutex::new(Orders::default()));
    let listener = UnixListener::bind(socket).unwrap();
    let taken = Arc::clone(&orders);
    // It ends with the process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let reply = taken.lock().unwrap().take(&line);
            writeln!(stream, "{reply}").unwrap();
        }
    });
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    trace(&root, whom, &orders);
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    panic!("{root} {whom:?} {orders:?}");
}

/// Starts the daemon and traces it to its end.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[expect(clippy::zombie_processes, reason = "what traces a process waits for it by its pid")]
fn trace(root: &str, whom: Whom, orders: &Mutex<Orders>) {
    // It waits to be traced before it becomes the daemon.
    let daemon = Command::new("sh")
        .args(["-c", "kill -STOP $$; exec \"$0\" --root \"$1\" daemon", binary(), root])
        .env_remove("INJECTOR_SOCKET")
        .env_remove("INJECTOR_ROOT")
        .env_remove("INJECTOR_WHOM")
        .env_remove("INJECTOR_PART")
        .spawn()
        .unwrap();
    let daemon = Pid::from_raw(i32::try_from(daemon.id()).unwrap());
    let stopped = waitpid(daemon, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert_eq!(stopped, WaitStatus::Stopped(daemon, Signal::SIGSTOP));
    let mut options = ptrace::Options::PTRACE_O_TRACESYSGOOD
        | ptrace::Options::PTRACE_O_TRACECLONE
        | ptrace::Options::PTRACE_O_EXITKILL;
    if whom != Whom::Daemon {
        options |= ptrace::Options::PTRACE_O_TRACEVFORK | ptrace::Options::PTRACE_O_TRACEFORK;
    }
    if whom == Whom::Starts {
        options |= ptrace::Options::PTRACE_O_TRACEEXEC;
    }
    ptrace::seize(daemon, options).unwrap();
    kill(daemon, Signal::SIGCONT).unwrap();
    let only = env::var("INJECTOR_PART").unwrap();
    let mut known = BTreeMap::new();
    let mut parts = BTreeMap::new();
    let mut failing = BTreeMap::new();
    loop {
        let (pid, signal) = match waitpid(None, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::Exited(pid, code) if pid == daemon => {
                assert_eq!(code, 0, "the daemon's exit code");
                return;
            }
            WaitStatus::Signaled(pid, signal, _) if pid == daemon => panic!("the daemon got {signal}"),
            WaitStatus::PtraceSyscall(pid) => {
                at_call(pid, whom, orders, &mut failing);
                (pid, None)
            }
            WaitStatus::PtraceEvent(pid, _, event) if event == ptrace::Event::PTRACE_EVENT_EXEC as i32 => {
                parts.remove(&pid);
                if !is_own_program(pid) {
                    orders.lock().unwrap().start.has_begun();
                    ptrace::detach(pid, None).ok();
                    continue;
                }
                (pid, None)
            }
            WaitStatus::PtraceEvent(pid, ..) => {
                let follow =
                    || if whom == Whom::Starts { is_own_program(pid) } else { is_followed(pid, daemon) };
                if pid != daemon && !*known.entry(pid).or_insert_with(follow) {
                    known.remove(&pid);
                    // A worker, or a thread that has ended meanwhile.
                    ptrace::detach(pid, None).ok();
                    continue;
                }
                (pid, None)
            }
            WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
            WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) => {
                known.remove(&pid);
                parts.remove(&pid);
                failing.remove(&pid);
                continue;
            }
            WaitStatus::Continued(_) | WaitStatus::StillAlive => continue,
        };
        // Each stop costs the whole start time: who is not meant goes on without any.
        let is_meant = whom != Whom::Starts || *parts.entry(pid).or_insert_with(|| part(pid)) == only;
        // It may be killed at any time.
        if is_meant {
            ptrace::syscall(pid, signal).ok()
        } else {
            ptrace::cont(pid, signal).ok()
        };
    }
}

/// Returns true if a new thread or process belongs to the daemon, or is a child of it. Children of its shims are
/// workers.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn is_followed(pid: Pid, daemon: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().parse::<i32>().ok())
    };
    let (group, parent) = (number("Tgid:"), number("PPid:"));
    group == Some(daemon.as_raw()) || parent == Some(daemon.as_raw())
}

/// Returns true if a process runs the binary under test.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn is_own_program(pid: Pid) -> bool {
    let runs = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    // A file that was replaced has a word behind its name; a root has a copy of its own.
    runs.file_name().is_some_and(|name| name.to_string_lossy().starts_with("supervisor"))
}

/// Lets a call pass, or answers it: at its beginning it becomes none, at its end it gets its error.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn at_call(pid: Pid, whom: Whom, orders: &Mutex<Orders>, failing: &mut BTreeMap<Pid, i64>) {
    let Ok(mut registers) = ptrace::getregs(pid) else { return };
    if let Some(errno) = failing.remove(&pid) {
        registers.rax = errno.wrapping_neg().cast_unsigned();
        ptrace::setregs(pid, registers).ok();
        return;
    }
    // What a call returns as long as it has not begun.
    let begins = registers.rax == (-i64::from(Errno::ENOSYS as i32)).cast_unsigned();
    if !begins {
        return;
    }
    let errno = if whom == Whom::Starts {
        orders.lock().unwrap().start.decide(pid, &registers)
    } else {
        let Some(call) = Call::of(registers.orig_rax) else { return };
        let Ok(path) = fs::read_link(format!("/proc/{pid}/fd/{}", registers.rdi)) else { return };
        orders.lock().unwrap().decide(call, &path)
    };
    if let Some(errno) = errno {
        registers.orig_rax = u64::MAX;
        if ptrace::setregs(pid, registers).is_ok() {
            failing.insert(pid, errno);
        }
    }
}
