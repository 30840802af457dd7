//! A root of its own for a test, with a real daemon over it, and a look at everything it leaves behind.
//!
//! ```ignore
//! let fleet = Fleet::boot();                                   // a daemon over an empty root
//! let id = fleet.create("hello", "echo hi", &[]);              // a task of the shell lane
//! assert_eq!(fleet.wait_for(&id, "done")["latest_summary"], "hi");
//! ```
//!
//! [`Fleet::eventually`] is the only wait. A fleet that is dropped ends its daemon and its workers, and fails the test if
//! a process is left. What the host lacks is a [`skip`]: printed, and counted by `tests/run`.

mod fuse;
mod leftovers;
mod output;
mod repository;
mod screen;
mod terminal;
mod user;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use fuse::mount_fuse;
pub(crate) use leftovers::{Process, cgroup};
pub(crate) use output::{Output, tidy};
pub(crate) use repository::Repository;
pub(crate) use screen::Screen;
pub(crate) use skips::skip;
pub(crate) use terminal::Terminal;
pub(crate) use user::User;

/// The binary that is tested: the built one, unless `SUPERVISOR_TEST_BINARY` names another, such as a release build for a test
/// that measures, or an earlier one to see that a test fails.
pub(crate) fn binary() -> &'static str {
    static BINARY: LazyLock<String> = LazyLock::new(|| {
        std::env::var("SUPERVISOR_TEST_BINARY")
            .unwrap_or_else(|_| env!("CARGO_BIN_EXE_supervisor").to_owned())
    });
    &BINARY
}
/// Time limit of [`Fleet::eventually`]. It is generous, because a slow host under load is no defect. `FLEET_TIMEOUT` in
/// the environment sets another number of seconds, so that tests fail sooner.
fn timeout() -> Duration {
    let seconds = std::env::var("FLEET_TIMEOUT").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(60))
}
/// Time limit for the end of a killed fleet.
const FAREWELL: Duration = Duration::from_secs(30);
/// The pause between two looks.
const POLL: Duration = Duration::from_millis(10);
/// Number of uids for the workers of each fleet. Fleets of concurrent tests must not share any.
const UIDS: u32 = 16_384;

/// A root, and perhaps a daemon over it.
pub(crate) struct Fleet {
    dir: TempDir,
    user: User,
    binary: PathBuf,
    first_uid: u32,
    daemon: Mutex<Option<Child>>,
}

impl Fleet {
    /// A root without a daemon, for the test's own user.
    pub(crate) fn offline() -> Self {
        Fleet::offline_as(User::current())
    }

    /// A root with a daemon, for the test's own user.
    pub(crate) fn boot() -> Self {
        Fleet::boot_as(User::current())
    }

    /// A root with a daemon, for a user.
    pub(crate) fn boot_as(user: User) -> Self {
        let fleet = Fleet::offline_as(user);
        fleet.start();
        fleet
    }

    /// A root without a daemon, for a user.
    pub(crate) fn offline_as(user: User) -> Self {
        static FLEETS: AtomicU32 = AtomicU32::new(0);
        let slot = (std::process::id() * 8 + FLEETS.fetch_add(1, Ordering::Relaxed)) % (1 << 17);
        let dir = tempfile::Builder::new().prefix("sv").rand_bytes(5).tempdir_in("/tmp").unwrap();
        // Workers of other uids go through it.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let binary = user.binary(dir.path());
        let fleet =
            Fleet { user, binary, first_uid: 2_000_000_000 + slot * UIDS, daemon: Mutex::new(None), dir };
        for dir in [fleet.root(), fleet.home()] {
            fs::create_dir(&dir).unwrap();
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o711)).unwrap();
            fleet.give(&dir);
        }
        fleet.configure("");
        fleet
    }

    /// The root.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("r")
    }

    /// The binary, where the fleet's user can run it.
    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    /// A directory beside the root for the test's own files; its owner is the fleet's user.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("h")
    }

    /// The file that has all that daemons of this fleet said.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.dir.path().join("daemon.log")
    }

    /// All that daemons of this fleet said.
    pub(crate) fn log(&self) -> String {
        fs::read(self.log_file())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Gives a path to the fleet's user.
    pub(crate) fn give(&self, path: &Path) {
        if let Some(id) = self.user.id() {
            chown(path, Some(id), Some(id)).unwrap();
        }
    }

    /// Writes `supervisor.toml`. Uids of this fleet's own are put in, unless the text says otherwise.
    pub(crate) fn configure(&self, text: &str) {
        let mut config: toml::Table = toml::from_str(text).unwrap();
        let worker = config.entry("worker").or_insert_with(|| toml::Table::new().into());
        let worker = worker.as_table_mut().unwrap();
        worker.entry("first_uid").or_insert(i64::from(self.first_uid).into());
        worker.entry("uid_count").or_insert(i64::from(UIDS).into());
        // Not the host's: a test leaves nothing behind.
        let ledger = self.dir.path().join("uids").display().to_string();
        worker.entry("uid_ledger").or_insert(ledger.into());
        self.write_config("supervisor.toml", &config.to_string());
    }

    /// Adds a lane.
    pub(crate) fn lane(&self, name: &str, text: &str) {
        self.write_config(&format!("lanes.d/{name}.toml"), text);
    }

    /// Adds a policy.
    pub(crate) fn policy(&self, name: &str, text: &str) {
        self.write_config(&format!("policies.d/{name}.toml"), text);
    }

    /// Writes a file of the configuration as it is.
    pub(crate) fn write_config(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        if let Some(dir) = path.parent().filter(|dir| !dir.is_dir()) {
            fs::create_dir(dir).unwrap();
            self.give(dir);
        }
        fs::write(&path, text).unwrap();
        self.give(&path);
    }

    /// A command of the binary over this root, with a small environment.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args);
        self.dress(&mut command);
        // Next steps repeat the options of the line.
        command.env("SUPERVISOR_ROOT", self.root());
        command
    }

    /// Gives a command the fleet's user, environment and directory.
    pub(crate) fn dress(&self, command: &mut Command) {
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home());
        command.env("LANG", "C.UTF-8").env("TZ", "UTC").env("NO_COLOR", "1");
        command.current_dir(self.home()).stdin(Stdio::null());
        if let Some(id) = self.user.id() {
            command.uid(id).gid(id);
        }
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn cli<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        Output::of(&mut self.command(args))
    }

    /// Returns the problems of a kind that `status` has, whatever its exit code.
    #[track_caller]
    pub(crate) fn problems(&self, kind: &str) -> Vec<Value> {
        let status = self.cli(["status", "--json"]).json();
        let problems = status["problems"].as_array().unwrap().iter();
        problems.filter(|problem| problem["kind"] == kind).cloned().collect()
    }

    /// Runs a command that must succeed, and returns its JSON. `status` says by its code how the service is.
    #[track_caller]
    pub(crate) fn json<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Value {
        let mut command = self.command(args);
        command.arg("--json");
        let is_status = command.get_args().any(|word| word == "status");
        let output = Output::of(&mut command);
        let is_told = is_status && [1, 3].contains(&output.code) && output.stderr.is_empty();
        if is_told { output.json() } else { output.ok().json() }
    }

    /// Creates a task of the shell lane with further arguments, and returns its id.
    #[track_caller]
    pub(crate) fn create(&self, title: &str, script: &str, more: &[&str]) -> String {
        let mut args = vec!["create", title, "--assignee", "shell", "--body", script];
        args.extend(more);
        let created = self.json(args);
        created["id"].as_str().unwrap().to_owned()
    }

    /// Everything about a task.
    #[track_caller]
    pub(crate) fn show(&self, id: &str) -> Value {
        self.json(["show", id])
    }

    /// The status of a task.
    #[track_caller]
    pub(crate) fn status_of(&self, id: &str) -> String {
        self.show(id)["task"]["status"].as_str().unwrap().to_owned()
    }

    /// Waits until a task has a status, and returns everything about it.
    #[track_caller]
    pub(crate) fn wait_for(&self, id: &str, status: &str) -> Value {
        self.eventually(&format!("{id} is {status}"), || {
            Some(self.show(id)).filter(|shown| shown["task"]["status"] == status)
        })
    }

    /// Waits until the worker of a task has started. The task is `running` before that, from its claim on.
    #[track_caller]
    pub(crate) fn wait_for_worker(&self, id: &str) {
        self.eventually(&format!("the worker of {id} has started"), || {
            let shown = self.show(id);
            let run = shown["runs"].as_array()?.last()?;
            (run["outcome"].is_null() && run["worker_pid"].is_i64()).then_some(())
        });
    }

    /// Waits until a look finds something. The only wait there is.
    #[track_caller]
    pub(crate) fn eventually<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        self.eventually_within(timeout(), what, look)
    }

    /// The same for what may take longer than anything of ours.
    #[track_caller]
    pub(crate) fn eventually_within<T>(
        &self,
        limit: Duration,
        what: &str,
        mut look: impl FnMut() -> Option<T>,
    ) -> T {
        let start = Instant::now();
        // A look is a command: what takes long is looked at less often.
        let poll = POLL.max(limit / 6000);
        loop {
            if let Some(found) = look() {
                return found;
            }
            let in_time = start.elapsed() < limit;
            assert!(in_time, "after {limit:?} it is not so that {what}\n{}", self.state());
            std::thread::sleep(poll);
        }
    }

    /// Describes the state for a failure message.
    fn state(&self) -> String {
        let looks = [["status", "--json"], ["list", "--archived"], ["events", "--limit=200"]];
        let said = looks.map(|args| (args[0], self.cli(args)));
        said.map(|(verb, output)| format!("--- {verb} ({})\n{}{}", output.code, output.stdout, output.stderr))
            .concat()
    }

    /// Starts a daemon and waits until it serves.
    #[track_caller]
    pub(crate) fn start(&self) {
        self.start_by(Command::new(&self.binary).arg("--root").arg(self.root()).arg("daemon"));
    }

    /// Starts a daemon with a session of its own, as a service manager does, and waits until it serves.
    #[track_caller]
    pub(crate) fn start_as_service(&self) {
        self.start_by(Command::new("setsid").arg(&self.binary).arg("--root").arg(self.root()).arg("daemon"));
    }

    /// Starts a daemon by a command of the test's own, which becomes it, and waits until it serves.
    #[track_caller]
    pub(crate) fn start_by(&self, command: &mut Command) {
        let before = self.log().len();
        let log = fs::File::options().create(true).append(true).open(self.log_file()).unwrap();
        self.dress(command);
        command.env("SUPERVISOR_ROOT", self.root());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        command.env("RUST_LOG", std::env::var("FLEET_LOG").unwrap_or_else(|_| "info".to_owned()));
        self.adopt(command.spawn().unwrap());
        self.eventually("the daemon serves", || {
            let ended = self.with_daemon(|child| child.try_wait().unwrap());
            assert!(ended.is_none(), "the daemon ended: {ended:?}\n{}", self.log());
            self.log()[before..].contains(" serves ").then_some(())
        });
    }

    /// Takes over a daemon that a test has started by its own command, in the place of an earlier one that has ended.
    pub(crate) fn adopt(&self, child: Child) {
        let former = self.daemon.lock().unwrap_or_else(PoisonError::into_inner).replace(child);
        assert!(former.is_none(), "a fleet has one daemon");
    }

    fn with_daemon<T>(&self, f: impl FnOnce(&mut Child) -> T) -> T {
        f(self.daemon.lock().unwrap_or_else(PoisonError::into_inner).as_mut().expect("a daemon was started"))
    }

    /// The daemon's pid.
    pub(crate) fn daemon_pid(&self) -> i32 {
        self.with_daemon(|child| i32::try_from(child.id()).unwrap())
    }

    /// The daemon's pid, where one was started that nobody has seen end.
    pub(crate) fn daemon(&self) -> Option<i32> {
        let daemon = self.daemon.lock().unwrap_or_else(PoisonError::into_inner);
        daemon.as_ref().map(|child| i32::try_from(child.id()).unwrap())
    }

    /// Sends a signal to the daemon.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.daemon_pid()), signal).unwrap();
    }

    /// Kills the daemon as `kill -9` does, and waits until it is gone. Its workers go on.
    pub(crate) fn kill_daemon(&self) {
        self.signal(Signal::SIGKILL);
        self.reap_daemon();
    }

    /// Kills the daemon and starts another.
    #[track_caller]
    pub(crate) fn restart(&self) {
        self.kill_daemon();
        self.start();
    }

    /// Stops the daemon with the given flags of `stop`, and waits until it has ended.
    #[track_caller]
    pub(crate) fn stop(&self, flags: &[&str]) -> ExitStatus {
        self.cli([&["stop"], flags].concat()).ok();
        self.reap_daemon()
    }

    /// Waits for the end of a daemon that ends by itself.
    pub(crate) fn reap_daemon(&self) -> ExitStatus {
        let mut child =
            self.daemon.lock().unwrap_or_else(PoisonError::into_inner).take().expect("a daemon was started");
        child.wait().unwrap()
    }

    /// The processes of this root: daemon, shims, workers and commands, whatever user, session or group they have.
    pub(crate) fn processes(&self) -> Vec<Process> {
        leftovers::processes(&self.root(), (self.first_uid, self.first_uid + UIDS))
    }

    /// The processes with a text in their environment or command line, such as `SUPERVISOR_TASK=t_…`.
    pub(crate) fn processes_with(&self, marker: &str) -> Vec<Process> {
        self.processes().into_iter().filter(|process| process.mentions(marker)).collect()
    }

    /// Ends the daemon, whatever state it is in, and says what is wrong with its end.
    fn end_daemon(&self) -> Option<String> {
        let mut child = self.daemon.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        if let Ok(Some(status)) = child.try_wait() {
            return Some(format!("the daemon ended by itself: {status}"));
        }
        let stopped = self.cli(["stop", "--kill"]);
        let until = Instant::now() + FAREWELL;
        while stopped.code == 0 && Instant::now() < until {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return None,
                Ok(Some(status)) => return Some(format!("the daemon ended with {status}")),
                Ok(None) | Err(_) => std::thread::sleep(POLL),
            }
        }
        // It is gone after this, one way or the other.
        drop(child.kill());
        drop(child.wait());
        Some(format!("the daemon did not stop: {}{}", stopped.stdout, stopped.stderr))
    }

    /// Returns processes that should have ended. Shims end by themselves a moment after their report.
    fn leftovers(&self) -> Vec<Process> {
        let until = Instant::now() + FAREWELL;
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() > until {
                return left;
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let failing = std::thread::panicking();
        let trouble = self.end_daemon();
        let left = if failing { self.processes() } else { self.leftovers() };
        for process in &left {
            process.kill();
        }
        if failing || trouble.is_some() || !left.is_empty() {
            println!("--- daemon log of {}\n{}---", self.root().display(), self.log());
        }
        if !failing {
            assert!(trouble.is_none(), "{}", trouble.unwrap_or_default());
            assert!(left.is_empty(), "left over: {left:#?}");
        }
    }
}
