//! What a daemon of an earlier release left behind: run directories of version 1, whose shims keep no standard output apart.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::harness::Fleet;
use crate::invariants::invariants_hold;
use crate::journal::{left, records};

/// Changes a record of a run directory.
fn edit(dir: &Path, name: &str, change: impl FnOnce(&mut Value)) {
    let path = dir.join(name);
    let mut record = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut record);
    fs::write(path, record.to_string()).unwrap();
}

/// Leaves in the directory of a live run what a daemon and a shim of version 1 write, and no more.
fn to_version_1(dir: &Path) {
    for name in ["spec.json", "pid", "started"] {
        edit(dir, name, |record| record["version"] = json!(1));
    }
    edit(dir, "spec.json", |spec| drop(spec.as_object_mut().unwrap().remove("stdout_cap").unwrap()));
    edit(dir, "daemon.json", |note| drop(note.as_object_mut().unwrap().remove("stdout").unwrap()));
    fs::remove_file(dir.join("stdout")).unwrap();
}

/// Writes the end of a run as a shim of version 1 does.
fn end_in_version_1(dir: &Path, code: i32, stdout_tail: &str) {
    let record = json!({
        "version": 1, "cause": "exited", "code": code, "stdout_tail": stdout_tail, "stderr_tail": "",
        "usage": { "user_us": 1000, "system_us": 1000, "max_rss_kib": 2048 },
        "started_at_us": 1, "ended_at_us": boottime_us(), "survivors": 0, "lingered": 0,
    });
    let json = record.to_string();
    let sum: Vec<String> = Sha256::digest(&json).iter().map(|byte| format!("{byte:02x}")).collect();
    let sum = sum.concat();
    fs::write(dir.join("exit"), format!("{:08x} {sum}\n{json}\n", json.len())).unwrap();
}

fn boottime_us() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let seconds: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    std::time::Duration::from_secs_f64(seconds).as_micros().try_into().unwrap()
}

/// A shim of version 1, as far as a daemon sees it: a process that the record names, and a lock that is held.
struct Shim {
    process: Child,
    lock: fs::File,
}

impl Shim {
    /// Takes the place of the shim of a run that no daemon watches.
    fn over(fleet: &Fleet, dir: &Path) -> Self {
        let real = serde_json::from_slice::<Value>(&fs::read(dir.join("pid")).unwrap()).unwrap();
        let real = i32::try_from(real["pid"].as_i64().unwrap()).unwrap();
        kill(Pid::from_raw(real), Signal::SIGKILL).unwrap();
        let lock = fs::File::options().read(true).write(true).open(dir.join("lock")).unwrap();
        lock.lock().unwrap();
        fleet.eventually("its worker is gone", || {
            fleet.processes_with("SUPERVISOR_TASK=").is_empty().then_some(())
        });
        let process = Command::new("sleep").arg("600").stdin(Stdio::null()).env_clear().spawn().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
        let began: u64 = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().parse().unwrap();
        edit(dir, "pid", |record| {
            record["pid"] = json!(process.id());
            record["start_ticks"] = json!(began);
            record.as_object_mut().unwrap().remove("pidfs_inode");
        });
        Shim { process, lock }
    }

    /// Ends as a shim does that has written its record.
    fn end(mut self) {
        self.lock.unlock().unwrap();
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// A run of version 1 under a daemon of this release that has adopted it.
fn adopted() -> (Fleet, String, PathBuf, Shim) {
    let fleet = Fleet::boot();
    let id = fleet.create("begun before", "exec sleep 600", &[]);
    fleet.eventually("the run has begun", || (!records(&fleet, "started").is_empty()).then_some(()));
    let (dir, _) = records(&fleet, "pid").pop().unwrap();
    fleet.kill_daemon();
    let shim = Shim::over(&fleet, &dir);
    to_version_1(&dir);
    fleet.start();
    fleet.eventually("the run is adopted", || {
        let worker = fleet.json(["status"])["workers"][0].clone();
        (worker["task"] == *id && worker["phase"] == "running").then_some(())
    });
    (fleet, id, dir, shim)
}

#[test]
fn a_live_run_of_version_1_is_adopted_and_its_end_is_read_from_its_record() {
    let (fleet, id, dir, shim) = adopted();
    end_in_version_1(&dir, 0, "from before\n");
    shim.end();
    let shown = fleet.wait_for(&id, "done");
    assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "{shown:#}");
    assert_eq!(
        (&shown["runs"][0]["outcome"], &shown["latest_summary"]),
        (&json!("completed"), &json!("from before"))
    );
    invariants_hold(&fleet);
}

#[test]
fn the_rules_that_a_run_of_version_1_began_with_hold_at_its_end() {
    let (fleet, id, dir, shim) = adopted();
    end_in_version_1(&dir, 75, "");
    shim.end();
    let shown = fleet.wait_for(&id, "scheduled");
    assert_eq!(shown["runs"][0]["outcome"], "rate_limited", "{shown:#}");
    assert_eq!(shown["task"]["consecutive_failures"], 0, "{shown:#}");
    invariants_hold(&fleet);
}

#[test]
fn a_run_of_a_newer_release_is_shown_and_neither_lost_nor_run_again() {
    let fleet = Fleet::boot();
    let id = fleet.create("begun later", "[ -e again ] && exit; touch again; exec sleep 600", &[]);
    fleet.eventually("the run has begun", || (!records(&fleet, "started").is_empty()).then_some(()));
    left(&fleet, &id, "again");
    let (dir, pid) = records(&fleet, "pid").pop().unwrap();
    fleet.kill_daemon();
    edit(&dir, "spec.json", |spec| spec["version"] = json!(99));
    let refused = fleet.cli(["upgrade", "--check"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stdout.contains("has version 99, and this release reads 1 to 2"), "{}", refused.stdout);
    fleet.start();
    fleet.eventually("the run is watched", || {
        (fleet.json(["status"])["workers"][0]["phase"] == "running").then_some(())
    });

    kill(Pid::from_raw(pid["pid"].as_i64().unwrap().try_into().unwrap()), Signal::SIGKILL).unwrap();

    fleet.eventually("status says that this release cannot read it", || {
        let worker = fleet.json(["status"])["workers"][0].clone();
        (worker["phase"] == "unknown" && worker["note"].as_str()?.contains("has version 99")).then_some(())
    });
    assert_eq!(fleet.show(&id)["runs"].as_array().unwrap().len(), 1);
    assert_eq!(fleet.status_of(&id), "running");
    fleet.cli(["reclaim", &id]).ok();
    let shown = fleet.wait_for(&id, "done");
    assert_eq!(shown["runs"][0]["outcome"], "reclaimed", "{shown:#}");
    invariants_hold(&fleet);
}

#[test]
fn what_a_release_would_adopt_is_told_run_by_run_board_by_board_and_file_by_file() {
    let fleet = Fleet::boot();
    let id = fleet.create("works", "while [ ! -e go ]; do sleep 0.05; done", &[]);
    fleet.eventually("the run has begun", || (!records(&fleet, "started").is_empty()).then_some(()));
    let check = |more: &[&str]| fleet.cli([&["upgrade", "--check"], more].concat());

    let told = check(&["--json"]).ok().json();
    assert_eq!((&told["ok"], &told["run_directories"]), (&json!(true), &json!({"oldest": 1, "newest": 2})));
    let run = &told["runs"][0];
    assert_eq!(
        (&run["task"], &run["version"], &run["adopted"]),
        (&json!(id), &json!(2), &json!(true)),
        "{told:#}"
    );
    let board = &told["boards"][0];
    assert!(board["served"] == true && board["schema"] == board["known"], "{told:#}");
    // The release of another program looks itself.
    let other = check(&[fleet.binary().to_str().unwrap(), "--json"]).ok().json();
    assert_eq!(other, told);
    // What is no release prints no record, whatever it prints and exits with.
    for other in ["/bin/true", "/bin/echo", "/bin/false"] {
        check(&[other]).refused(1, "does not say what it would take over");
        let refused = check(&[other, "--json"]);
        assert!(refused.code == 1 && refused.json()["error"]["code"] == "failed", "{refused:?}");
    }
    check(&["/no/such/program"]).refused(3, "/no/such/program");
    fleet.cli(["upgrade"]).refused(2, "--check");

    fleet.write_config("supervisor.toml", "[limits]\nmax_running = \"many\"\n");
    let refused = check(&[]);
    assert!(refused.code == 1 && refused.stdout.contains("max_running"), "{refused:?}");
    assert!(refused.stdout.contains("It does not adopt all of it"), "{refused:?}");
    fleet.configure("");

    assert!(fleet.stop(&["--kill"]).success());
    let file = fleet.root().join("boards/default/board.db");
    let set = |schema: i64| {
        let conn = rusqlite::Connection::open(&file).unwrap();
        conn.pragma_update(None, "user_version", schema).unwrap();
    };
    let known = board["known"].as_i64().unwrap();
    set(known - 1);
    let older = check(&[]).ok();
    assert!(older.stdout.contains(&format!("migrates schema {} to {known}", known - 1)), "{}", older.stdout);
    set(known + 1);
    let newer = check(&[]);
    assert!(newer.code == 1 && newer.stdout.contains(&format!("it has schema {}", known + 1)), "{newer:?}");
    set(known);
}
