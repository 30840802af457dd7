//! In a container: a user namespace with 65,536 ids, in which root has no id that the host's root has.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::harness::{Fleet, Output, User, binary, skip};
use crate::journal::outcomes;

/// The host's id of the container's root.
const FIRST: u32 = 300_000;

/// A user namespace with a mount namespace of its own, held by a process that sleeps in them.
struct Container(Child);

/// A root of the container's own root.
struct Inside<'a> {
    fleet: &'a Fleet,
    container: Container,
    root: PathBuf,
    supervisor: String,
}

impl Container {
    /// Makes one as container engines do: the ids are mapped from outside. None where the host permits none.
    fn make(fleet: &Fleet) -> Option<Self> {
        let mut holder = Command::new("unshare");
        holder.args(["--user", "--mount", "--", "sleep", "600"]).stdin(Stdio::null()).stderr(Stdio::null());
        let mut container = Container(holder.spawn().ok()?);
        let pid = container.0.id();
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user")).ok();
        let made = fleet.eventually("the namespace is made, or refused", || {
            let ended = container.0.try_wait().unwrap().is_some();
            let sleeps = fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
            let own = sleeps && namespace(&pid.to_string()) != namespace("self");
            (ended || own).then_some(own)
        });
        let map = |kind: &str| fs::write(format!("/proc/{pid}/{kind}_map"), format!("0 {FIRST} 65536\n"));
        (made && map("uid").is_ok() && map("gid").is_ok()).then_some(container)
    }

    /// A command of the container's root.
    fn command(&self, fleet: &Fleet, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--user", "--mount", "--setuid", "0", "--setgid", "0", "--target"]);
        command.arg(self.0.id().to_string()).args(["--", "sh", "-c", script]);
        fleet.dress(&mut command);
        command.current_dir("/");
        command
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl<'a> Inside<'a> {
    fn new(fleet: &'a Fleet) -> Option<Self> {
        if User::current() != User::Root {
            skip("a container with 65536 ids: needs root");
            return None;
        }
        let Some(container) = Container::make(fleet) else {
            skip("a container with 65536 ids: this host makes no user namespaces");
            return None;
        };
        let root = fleet.home().join("container");
        fs::create_dir(&root).unwrap();
        // The build directory may be closed to the container.
        let copy = fleet.home().join("supervisor");
        fs::copy(binary(), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        // A container has a ledger of its own in its /var/lib, which this one shares with the host.
        let ledger = format!("[worker]\nuid_ledger = '{}'\n", root.join("uids").display());
        fs::write(root.join("supervisor.toml"), ledger).unwrap();
        chown(&root, Some(FIRST), Some(FIRST)).unwrap();
        let supervisor = format!("{} --root {}", copy.display(), root.display());
        Some(Inside { fleet, container, root, supervisor })
    }

    /// Starts a daemon where none can make a namespace, and waits until it serves.
    fn start_without_namespaces(&self) -> Daemon<'_> {
        let log = fs::File::create(self.fleet.log_file()).unwrap();
        let script = format!(
            "for kind in mnt pid user; do echo 0 > /proc/sys/user/max_${{kind}}_namespaces; done; exec {} daemon",
            self.supervisor
        );
        let mut command = self.container.command(self.fleet, &script);
        command.stdout(log.try_clone().unwrap()).stderr(log).env("RUST_LOG", "info");
        let daemon = Daemon { inside: self, child: command.spawn().unwrap() };
        self.fleet.eventually("the daemon serves", || self.fleet.log().contains(" serves ").then_some(()));
        daemon
    }

    fn cli(&self, words: &str) -> Output {
        Output::of(&mut self.container.command(self.fleet, &format!("{} {words}", self.supervisor)))
    }

    fn json(&self, words: &str) -> Value {
        let output = self.cli(&format!("{words} --json"));
        // It exits with 1 where the host is weaker than its policies.
        if words == "status" && output.code == 1 { output.json() } else { output.ok().json() }
    }

    /// The workspace of a task.
    fn place(&self, task: &str) -> PathBuf {
        self.root.join("workspaces/default").join(task)
    }

    /// A record of a task's only run directory.
    fn record(&self, task: &str, name: &str) -> Option<Value> {
        let read = |dir: &Path, name: &str| -> Option<Value> {
            serde_json::from_slice(&fs::read(dir.join(name)).ok()?).ok()
        };
        let dirs = fs::read_dir(self.root.join("runs/default")).ok()?.flatten();
        let mut own =
            dirs.filter(|dir| read(&dir.path(), "spec.json").is_some_and(|spec| spec["task"] == task));
        read(&own.next()?.path(), name)
    }
}

/// A daemon in the container, which ends with this.
struct Daemon<'a> {
    inside: &'a Inside<'a>,
    child: Child,
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        self.inside.cli("stop --kill");
        let ended = self.child.wait();
        if std::thread::panicking() {
            println!("{ended:?}\n{}", self.inside.fleet.log());
        }
    }
}

/// Returns true if a process runs. A process that has ended may wait to be reaped.
fn lives(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[test]
fn a_container_with_65536_ids_gives_its_workers_uids_that_it_has() {
    let fleet = Fleet::offline();
    let Some(inside) = Inside::new(&fleet) else { return };
    let supervisor = &inside.supervisor;
    let script = format!(
        "exec 2>&1; {supervisor} create x --assignee shell --body 'id -u' && {supervisor} dispatch --json && \
         {supervisor} doctor && {supervisor} list"
    );
    let output = Output::of(&mut inside.container.command(&fleet, &script));
    assert!(output.stdout.contains("\"completed\""), "{}{}", output.stdout, output.stderr);
    let given = fs::read_to_string(inside.root.join("uids/ranges.json")).unwrap();
    let given: Value = serde_json::from_str(&given).unwrap();
    let range = &given["ranges"][0];
    let (first, last) = (range["first"].as_u64().unwrap(), range["last"].as_u64().unwrap());
    assert!(first >= 1000 && last < 65_536 && last - first >= 1024, "{given}");
}

/// Root of a container that has neither cgroups nor namespaces for runs: only the uid of a run tells whether something is left.
#[test]
fn root_without_cgroups_and_namespaces_ends_what_is_surely_a_killed_shims_and_shows_the_rest() {
    let fleet = Fleet::offline();
    let Some(inside) = Inside::new(&fleet) else { return };
    let _daemon = inside.start_without_namespaces();
    let create = |stray: &str| {
        let script = format!(
            "test -e again && exec echo twice; touch again; {stray} & echo $! > new; mv new stray; exec sleep 600"
        );
        let made =
            inside.json(&format!("create x --assignee shell --body \"{}\"", script.replace('$', "\\$")));
        made["id"].as_str().unwrap().to_owned()
    };
    let marked = create("setsid sh -c 'trap : TERM; while :; do sleep 1; done'");
    let bare = create("env -i setsid sleep 600");
    let stray = |task: &str| {
        fleet.eventually("its stray has left", || {
            let text = fs::read_to_string(inside.place(task).join("stray")).ok()?;
            text.trim().parse::<i32>().ok()
        })
    };
    let (marked_stray, bare_stray) = (stray(&marked), stray(&bare));
    // Until `env` has replaced the shell, its environment carries the mark too.
    fleet.eventually("the bare one has dropped its environment", || {
        fs::read_to_string(format!("/proc/{bare_stray}/comm"))
            .is_ok_and(|comm| comm == "sleep\n")
            .then_some(())
    });
    for task in [&marked, &bare] {
        let (spec, record) = (inside.record(task, "spec.json").unwrap(), inside.record(task, "pid").unwrap());
        assert!(spec["cgroup"].is_null() && record["init"].is_null(), "{spec:#} {record:#}");
        let shim = i32::try_from(record["pid"].as_i64().unwrap()).unwrap();
        kill(Pid::from_raw(shim), Signal::SIGKILL).unwrap();
    }
    let show = |task: &str| inside.json(&format!("show {task}"));
    let done = |task: &str| {
        fleet.eventually("it is done", || Some(show(task)).filter(|shown| shown["task"]["status"] == "done"))
    };

    // What carries the mark of the run is ended, and then nobody has its uid: it runs again.
    let shown = done(&marked);
    assert_eq!(outcomes(&shown), ["lost", "completed"], "{shown:#}");
    assert!(!lives(marked_stray));
    // What only has its uid is shown and not ended, and no second run starts beside it.
    let note = fleet.eventually("status shows what is left", || {
        let status = inside.json("status");
        let worker =
            status["workers"].as_array()?.iter().find(|worker| worker["phase"] == "unknown")?.clone();
        Some(worker["note"].as_str()?.to_owned())
    });
    assert!(
        note.contains(&format!("{bare_stray} (sleep, perhaps another's)")) && note.contains("reclaim"),
        "{note}"
    );
    assert!(lives(bare_stray) && outcomes(&show(&bare)) == ["open"]);
    // The report of a run says what it had not, and the host's says it too.
    let layers = shown["runs"][0]["sandbox"]["layers"].as_array().unwrap();
    for missing in ["cgroup", "mounts"] {
        let layer = layers.iter().find(|layer| layer["layer"] == missing).unwrap();
        assert_eq!(layer["state"], "absent", "{layer}");
    }
    kill(Pid::from_raw(bare_stray), Signal::SIGKILL).unwrap();
    assert_eq!(outcomes(&done(&bare)), ["lost", "completed"]);
}
