//! A fleet under disturbances: its daemon, shims and workers are killed, its disk is filled, its sockets are removed,
//! and its listeners are kept busy.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::evidence;
use super::scripts::script;
use super::setting::{Setting, SettingPlace};
use crate::crash::{Chance, has_died};
use crate::harness::{Fleet, User, binary};
use crate::invariants::{Broken, BrokenInvariant, faults, left_over};
use crate::journal::{Attempts, Journal, records};

/// Limit on open tasks: some run, some wait.
const OPEN: usize = 40;
/// Limit on killed shims and workers of one task, which waits longer after each loss.
const LOSSES: usize = 4;
/// Number of concurrent slow clients.
const CLIENTS: usize = 48;
/// The room of the disk beside the copy of the binary.
const ROOM: u64 = 48 << 20;
/// Time limit for the remaining tasks of a fleet once the disturbances have ended.
const REST: Duration = Duration::from_mins(4);

/// Counts of disturbances.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) daemons: usize,
    pub(super) shims: usize,
    pub(super) workers: usize,
    pub(super) full_disks: usize,
    pub(super) sockets: usize,
    pub(super) clients: usize,
    pub(super) stopped: usize,
}

impl Done {
    pub(super) fn others(&self) -> usize {
        self.full_disks + self.sockets + self.clients + self.stopped
    }

    pub(super) fn add(&mut self, other: &Done) {
        self.daemons += other.daemons;
        self.shims += other.shims;
        self.workers += other.workers;
        self.full_disks += other.full_disks;
        self.sockets += other.sockets;
        self.clients += other.clients;
        self.stopped += other.stopped;
    }
}

/// Result of a fleet.
pub(super) struct SeenTask {
    pub(super) tasks: usize,
    pub(super) runs: usize,
    pub(super) done: Done,
    pub(super) faults: Vec<BrokenInvariant>,
}

/// Fleet under attack. Its root is a small file system of its own if this user may mount one.
pub(super) struct Chaos {
    fleet: Fleet,
    journal: Journal,
    setting: Setting,
    place: Option<SettingPlace>,
    is_small: bool,
    /// The disk has been full since the daemon was started, which may then have ended.
    was_full: bool,
    tasks: Vec<String>,
    killed: BTreeMap<String, BTreeSet<i64>>,
    stopped: Vec<(Instant, i32)>,
    clients: VecDeque<UnixStream>,
    done: Done,
    faults: Vec<BrokenInvariant>,
}

impl Chaos {
    pub(super) fn begin(setting: Setting) -> Self {
        let fleet = Fleet::offline_as(setting.user());
        // Only where the mounts of this process are its own, which tests/soak/run sees to.
        let is_small = User::current() == User::Root && std::env::var_os("SOAK_OWN_MOUNTS").is_some();
        if is_small {
            let size = fs::metadata(binary()).unwrap().len() + ROOM;
            let options = format!("mode=711,size={size}");
            mount(Some("soak"), &fleet.root(), Some("tmpfs"), MsFlags::empty(), Some(options.as_str()))
                .unwrap();
            fleet.give(&fleet.root());
        }
        let journal = Journal::of(&fleet, 8, "failure_limit = 1000000\ngrace = 1\n");
        let tasks = journal.dir().join("tasks");
        fs::create_dir(&tasks).unwrap();
        fs::set_permissions(&tasks, fs::Permissions::from_mode(0o777)).unwrap();
        let place = SettingPlace::of(setting, &fleet);
        let chaos = Chaos {
            fleet,
            journal,
            setting,
            place,
            is_small,
            was_full: false,
            tasks: Vec::new(),
            killed: BTreeMap::new(),
            stopped: Vec::new(),
            clients: VecDeque::new(),
            done: Done::default(),
            faults: Vec::new(),
        };
        chaos.launch();
        chaos.serves();
        let has_cgroups = !chaos.fleet.log().contains("no_cgroups");
        assert_eq!(has_cgroups, setting.has_cgroups(), "{}", chaos.fleet.log());
        chaos
    }

    fn launch(&self) {
        let log = fs::File::options().create(true).append(true).open(self.fleet.log_file()).unwrap();
        let mut command = self.setting.daemon(&self.fleet, self.place.as_ref());
        command.stdout(log.try_clone().unwrap()).stderr(log).env("RUST_LOG", "info");
        self.fleet.adopt(command.spawn().unwrap());
    }

    fn serves(&self) {
        // 3 is that no daemon runs, and 1 that something is wrong.
        let serves = || [0, 1].contains(&self.fleet.cli(["status"]).code).then_some(());
        self.fleet.eventually("the daemon serves", serves);
    }

    /// Does one thing, and waits a moment.
    pub(super) fn step(&mut self, chance: &mut Chance) {
        if has_died(&self.fleet) {
            let status = self.fleet.reap_daemon();
            if !self.was_full {
                self.faults.push(BrokenInvariant::new(
                    Broken::Wrong,
                    format!("the daemon ended by itself: {status}"),
                ));
            }
            self.launch();
            self.was_full = false;
        }
        self.create(chance);
        match chance.below(100) {
            0..40 => self.kill_runs(chance),
            40..58 => {
                self.fleet.kill_daemon();
                self.done.daemons += 1;
                self.launch();
                self.was_full = false;
            }
            58..61 => self.fill_disk(chance),
            61..68 => self.lose_sockets(chance),
            68..82 => self.slow_client(chance),
            82..88 => self.stop_shim(chance),
            _ => {}
        }
        self.go_on(Instant::now());
        std::thread::sleep(Duration::from_millis(10 + chance.below(100)));
    }

    /// Creates a task or two. What is not acknowledged may be there or not.
    fn create(&mut self, chance: &mut Chance) {
        for _ in 0..=chance.below(2) {
            if self.tasks.len().saturating_sub(self.journal.ended()) >= OPEN {
                return;
            }
            let (title, body) = (format!("task {}", self.tasks.len()), script(chance));
            let created =
                self.fleet.cli(["create", &title, "--assignee", "shell", "--body", &body, "--json"]);
            if created.code == 0 {
                self.tasks.push(created.json()["id"].as_str().unwrap().to_owned());
            }
        }
    }

    /// The runs whose processes can be killed: task, run, and the pids of shim and worker.
    fn runs(&self) -> Vec<(String, i64, Option<i32>, Option<i32>)> {
        let live: BTreeSet<i32> = self.fleet.processes().iter().map(|process| process.pid).collect();
        // A record outlives its process: the pid is still that one's only while it runs in this root, or is a shim's.
        let is_shim = |pid: i32| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim_end() == "supervisor-shim")
        };
        let pids = |name: &str, is_live: &dyn Fn(i32) -> bool| -> BTreeMap<PathBuf, i32> {
            let all = records(&self.fleet, name).into_iter();
            let pids =
                all.filter_map(|(dir, record)| Some((dir, i32::try_from(record["pid"].as_i64()?).ok()?)));
            pids.filter(|(_, pid)| is_live(*pid)).collect()
        };
        let (shims, workers) = (pids("pid", &is_shim), pids("started", &|pid| live.contains(&pid)));
        let specs = records(&self.fleet, "spec.json").into_iter();
        let runs = specs.filter_map(|(dir, spec)| {
            let run = dir.file_name()?.to_str()?.parse().ok()?;
            Some((
                spec["task"].as_str()?.to_owned(),
                run,
                shims.get(&dir).copied(),
                workers.get(&dir).copied(),
            ))
        });
        runs.collect()
    }

    fn kill_runs(&mut self, chance: &mut Chance) {
        let mut runs = self.runs();
        runs.retain(|(task, ..)| self.killed.get(task).is_none_or(|runs| runs.len() < LOSSES));
        if runs.is_empty() {
            return;
        }
        let (task, run, shim, worker) =
            runs.swap_remove(usize::try_from(chance.below(runs.len() as u64)).unwrap());
        let which = chance.below(3);
        // Before: it may be over in between.
        self.killed.entry(task).or_default().insert(run);
        for (pid, count) in [
            (shim.filter(|_| which != 1), &mut self.done.shims),
            (worker.filter(|_| which != 0), &mut self.done.workers),
        ] {
            if pid.is_some_and(|pid| kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok()) {
                *count += 1;
            }
        }
    }

    fn stop_shim(&mut self, chance: &mut Chance) {
        let mut shims: Vec<i32> = self.runs().into_iter().filter_map(|(_, _, shim, _)| shim).collect();
        if shims.is_empty() {
            return;
        }
        let pid = shims.swap_remove(usize::try_from(chance.below(shims.len() as u64)).unwrap());
        if kill(Pid::from_raw(pid), Signal::SIGSTOP).is_ok() {
            let until = Instant::now() + Duration::from_millis(100 + chance.below(900));
            self.stopped.push((until, pid));
            self.done.stopped += 1;
        }
    }

    /// Lets the shims go on whose time has come.
    fn go_on(&mut self, now: Instant) {
        self.stopped.retain(|(until, pid)| {
            if *until <= now {
                kill(Pid::from_raw(*pid), Signal::SIGCONT).ok();
            }
            *until > now
        });
    }

    fn fill_disk(&mut self, chance: &mut Chance) {
        if !self.is_small {
            return;
        }
        self.was_full = true;
        self.done.full_disks += 1;
        let filler = self.fleet.root().join("filler");
        if let Ok(mut file) = fs::File::create(&filler) {
            let block = vec![0_u8; 1 << 16];
            while file.write_all(&block).is_ok() {}
            while file.write_all(&block[..512]).is_ok() {}
        }
        let until = Instant::now() + Duration::from_millis(200 + chance.below(1000));
        while Instant::now() < until {
            self.create(chance);
            self.kill_runs(chance);
            std::thread::sleep(Duration::from_millis(50));
        }
        fs::remove_file(&filler).unwrap();
    }

    fn lose_sockets(&mut self, chance: &mut Chance) {
        let run = self.fleet.root().join("run");
        self.done.sockets += 1;
        match chance.below(3) {
            // None is there while the daemon is being started.
            0 => drop(fs::remove_file(run.join("supervisor.sock"))),
            1 => drop(fs::remove_file(run.join("poke.sock"))),
            _ => {
                // At once: a directory that is emptied step by step is filled again meanwhile.
                let aside = self.fleet.root().join("aside");
                if fs::rename(&run, &aside).is_ok() {
                    drop(fs::remove_dir_all(aside));
                }
            }
        }
    }

    /// Begins a request and does not end it, and sends one byte more of an earlier one.
    fn slow_client(&mut self, chance: &mut Chance) {
        if let Ok(mut client) = UnixStream::connect(self.fleet.root().join("run/supervisor.sock")) {
            client.set_nonblocking(true).unwrap();
            let begins = [
                "P",
                "POST /api/v1/verbs/create HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{",
                "GET /api/v1/tasks",
            ];
            let begin = begins[usize::try_from(chance.below(3)).unwrap()];
            // It may have been closed by a daemon that was killed.
            drop(client.write_all(begin.as_bytes()));
            self.clients.push_back(client);
            self.done.clients += 1;
        }
        if self.clients.len() > CLIENTS {
            self.clients.pop_front();
        }
        if let Some(client) = self.clients.front_mut() {
            drop(client.write_all(b" "));
        }
    }

    /// Describes the progress in a line.
    pub(super) fn progress(&self) -> String {
        let Done { daemons, shims, workers, full_disks, sockets, clients, stopped } = self.done;
        format!(
            "{}/{} tasks ended; killed: {daemons} daemons, {shims} shims, {workers} workers; {full_disks} full disks, \
             {sockets} lost sockets, {clients} slow clients, {stopped} stopped shims",
            self.journal.ended(),
            self.tasks.len()
        )
    }

    /// Disturbs nothing any more, waits for what is left, and looks at everything.
    pub(super) fn rest(mut self) -> SeenTask {
        self.go_on(Instant::now() + Duration::from_hours(1));
        self.clients.clear();
        self.fleet.kill_daemon();
        self.launch();
        self.serves();
        let mut found = std::mem::take(&mut self.faults);
        if !within(REST, || self.is_through()) {
            let status = self.fleet.cli(["status", "--json"]).stdout;
            found.push(BrokenInvariant::new(
                Broken::Lost,
                format!("tasks are not done after {REST:?}: {status}"),
            ));
        }
        let groups = SettingPlace::groups(self.place.as_ref(), &self.fleet);
        let groups = groups.filter(|_| self.setting.has_cgroups());
        if !within(REST / 4, || left_over(&self.fleet, groups.as_deref()).is_empty()) {
            let left = left_over(&self.fleet, groups.as_deref());
            found.extend(left.into_iter().map(|one| BrokenInvariant::new(Broken::LeftOver, one)));
        }
        found.extend(faults(&self.journal, &self.fleet, &self.tasks, Attempts::Many));
        let killed: BTreeSet<i64> = self.killed.values().flatten().copied().collect();
        found.extend(evidence::faults(&self.journal, &self.fleet, &killed));
        let seen =
            SeenTask { tasks: self.tasks.len(), runs: self.journal.begun(), done: self.done, faults: found };
        if !seen.faults.is_empty() {
            println!("--- daemon log of {}\n{}---", self.fleet.root().display(), self.fleet.log());
        }
        self.fleet.stop(&["--kill"]);
        seen
    }

    /// Returns true if the board has no work left.
    fn is_through(&self) -> bool {
        let status = self.fleet.cli(["status", "--json"]);
        let counts =
            serde_json::from_str::<serde_json::Value>(&status.stdout).unwrap_or_default()["counts"].take();
        let open = |(word, count): (&String, &serde_json::Value)| word != "done" && count.as_u64() != Some(0);
        counts.as_object().is_some_and(|counts| !counts.is_empty() && !counts.iter().any(open))
    }
}

impl Drop for Chaos {
    fn drop(&mut self) {
        self.go_on(Instant::now() + Duration::from_hours(1));
        if self.is_small {
            // Before the fleet removes its directory; a daemon that is still there keeps its own view.
            umount2(&self.fleet.root(), MntFlags::MNT_DETACH).ok();
        }
    }
}

/// Waits until something is so, for a limited time.
fn within(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    while !is_so() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}
