//! A run directory with everything around it, a shim over it, and what a host may have to track its processes with.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A uid that nothing else on a test host uses.
pub(crate) const WORKER: u32 = 61_234;
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A cgroup of version 1 whose frozen processes do not die of SIGKILL, as in an uninterruptible wait.
pub(crate) struct Freezer(PathBuf);

impl Freezer {
    pub(crate) fn make() -> Option<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("supervisor-test-").disable_cleanup(true);
        let place = builder.tempdir_in("/sys/fs/cgroup/freezer").ok()?;
        Some(Self(place.path().to_owned()))
    }

    pub(crate) fn freeze(&self, pid: i32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
        fs::write(self.0.join("freezer.state"), "FROZEN").unwrap();
        let state = || fs::read_to_string(self.0.join("freezer.state")).unwrap();
        eventually("frozen", || state().trim() == "FROZEN");
    }

    pub(crate) fn thaw(&self) {
        fs::write(self.0.join("freezer.state"), "THAWED").unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw();
        let removed = eventually_ok(|| fs::remove_dir(&self.0).is_ok());
        assert!(removed || std::thread::panicking(), "{} is in use", self.0.display());
    }
}

/// Means by which the run's processes are tracked.
#[derive(Debug)]
pub(crate) enum Host {
    Bare,
    Cgroup(PathBuf),
}

impl Host {
    /// A host without cgroup, and one with, where this machine lets us make one.
    pub(crate) fn all() -> Vec<Self> {
        let mut hosts = vec![Self::Bare];
        let root = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
            .map(Path::new)
            .into_iter()
            .find(|root| root.join("cgroup.controllers").exists());
        let mut builder = tempfile::Builder::new();
        builder.prefix("supervisor-test-").disable_cleanup(true);
        let made = root.and_then(|root| builder.tempdir_in(root).ok());
        match made {
            Some(place) => {
                fs::create_dir(place.path().join("shim")).unwrap();
                fs::create_dir(place.path().join("work")).unwrap();
                hosts.push(Self::Cgroup(place.path().to_owned()));
            }
            None => skips::skip("no writable cgroup"),
        }
        hosts
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Bare => None,
            Self::Cgroup(path) => Some(path),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.path().is_none_or(|path| {
            fs::read_to_string(path.join("cgroup.procs")).unwrap().is_empty()
                && fs::read_to_string(path.join("work/cgroup.events")).unwrap().contains("populated 0")
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(path) = self.path() {
            fs::write(path.join("cgroup.kill"), "1").ok();
            for part in ["shim", "work", ""] {
                let part = path.join(part);
                let removed = eventually_ok(|| fs::remove_dir(&part).is_ok());
                assert!(removed || std::thread::panicking(), "{} is in use", part.display());
            }
        }
    }
}

/// A run directory with everything around it.
pub(crate) struct Run {
    pub(crate) place: TempDir,
    cgroup: Option<PathBuf>,
}

impl Run {
    pub(crate) fn new(host: &Host) -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o711)).unwrap();
        fs::create_dir(place.path().join("run")).unwrap();
        for leaf in ["workspace", "home", "tmp"] {
            let leaf = place.path().join(leaf);
            fs::create_dir(&leaf).unwrap();
            if geteuid().is_root() {
                chown(&leaf, Some(WORKER), Some(WORKER)).unwrap();
            }
        }
        Self { place, cgroup: host.path().map(Path::to_owned) }
    }

    /// Writes a spec that runs `true`, changed as given.
    pub(crate) fn write(&self, change: &Value) {
        let place = self.place.path();
        let identity = geteuid().is_root().then(|| json!({"uid": WORKER, "gid": WORKER}));
        let mut spec = json!({
            "version": 2, "board": "b0a2d", "board_name": "default", "task": "t_00000001", "run": 7, "nonce": "n",
            "argv": ["true"], "env": {"PATH": "/usr/bin:/bin", "GREETING": "hi"}, "cwd": self.workspace(),
            "stdin": "null", "log": self.log(), "log_cap": 1_000_000, "stdout_cap": 1_000_000, "deadline_us": null, "grace_ms": 5_000,
            "policy": policies::Policy::builtin("default").unwrap(),
            "surroundings": {
                "workspace": self.workspace(), "home": place.join("home"), "tmp": place.join("tmp"), "read": [],
                "execute": [], "write": [], "identity": identity, "work_cgroup": null, "board": "none", "parent": 0,
            },
            "cgroup": self.cgroup, "poke": place.join("poke.sock"),
        });
        for (key, value) in change.as_object().unwrap() {
            spec[key] = value.clone();
        }
        fs::write(self.path().join("spec.json"), spec.to_string()).unwrap();
    }

    pub(crate) fn start(&self) -> Shim {
        let child = Command::new(env!("CARGO_BIN_EXE_supervisor"))
            .arg("__shim")
            .arg(self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Shim { child }
    }

    /// Starts a shim that has no run yet.
    pub(crate) fn wait(&self) -> Shim {
        let child = Command::new(env!("CARGO_BIN_EXE_supervisor"))
            .args(["__shim", "--wait"])
            .args(&self.cgroup)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Shim { child }
    }

    pub(crate) fn stop(&self, reason: &str, quiet_ms: u64, grace_ms: u64) {
        let request = json!({"version": 1, "reason": reason, "quiet_ms": quiet_ms, "grace_ms": grace_ms});
        fs::write(self.path().join("stop.new"), request.to_string()).unwrap();
        fs::rename(self.path().join("stop.new"), self.path().join("stop")).unwrap();
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.place.path().join("run")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.place.path().join("workspace")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.place.path().join("logs/t_00000001/7.log")
    }

    pub(crate) fn stdout(&self) -> PathBuf {
        self.path().join("stdout")
    }

    /// Waits for a process id that the worker writes to a file in its workspace.
    pub(crate) fn told(&self, file: &str) -> i32 {
        let path = self.workspace().join(file);
        let mut pid = None;
        eventually(file, || {
            pid = fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'));
            pid.is_some()
        });
        pid.unwrap().trim().parse().unwrap()
    }

    pub(crate) fn record(&self, name: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.path().join(name)).ok()?).ok()
    }

    pub(crate) fn exit_record(&self) -> Option<Value> {
        let bytes = fs::read(self.path().join("exit")).ok()?;
        let (line, rest) = bytes.split_at_checked(74)?;
        let length = usize::from_str_radix(std::str::from_utf8(&line[..8]).ok()?, 16).ok()?;
        serde_json::from_slice(rest.get(..length)?).ok()
    }

    pub(crate) fn exit(&self) -> Value {
        self.exit_record().expect("the shim left a whole exit record")
    }

    pub(crate) fn lock_is_free(&self) -> bool {
        let lock = fs::File::open(self.path().join("lock")).unwrap();
        nix::fcntl::Flock::lock(lock, nix::fcntl::FlockArg::LockExclusiveNonblock).is_ok()
    }
}

/// A shim that ends with its test.
pub(crate) struct Shim {
    pub(crate) child: Child,
}

impl Shim {
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    pub(crate) fn ends(mut self) -> ExitStatus {
        let mut status = None;
        eventually("the shim ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    pub(crate) fn private_kib(&self) -> u64 {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id())).unwrap();
        // Clean private pages are those of the binary itself, which nobody else has mapped at the moment.
        let values = rollup.lines().filter(|line| line.starts_with("Private_Dirty"));
        values.map(|line| line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            // Asked, not killed: a killed shim could not end what its worker has started.
            self.signal(Signal::SIGTERM);
            self.child.wait().ok();
        }
    }
}

pub(crate) fn alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])))
}

pub(crate) fn boottime_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000 + u64::try_from(now.tv_nsec).unwrap() / 1_000
}

pub(crate) fn eventually(what: &str, condition: impl FnMut() -> bool) {
    assert!(eventually_ok(condition), "in vain: {what}");
}

pub(crate) fn eventually_ok(mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > LIMIT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}
