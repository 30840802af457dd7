//! Report of a release about the runs and boards that it would take over, and its treatment of those of other formats.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

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
    assert!(refused.stdout.contains("has version 99, and this release reads 2"), "{}", refused.stdout);
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
    assert_eq!((&told["ok"], &told["run_directories"]), (&json!(true), &json!({"oldest": 2, "newest": 2})));
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

    let conn = rusqlite::Connection::open(&file).unwrap();
    conn.pragma_update(None, "application_id", 0x7375_7076).unwrap();
    drop(conn);
    let older = check(&[]);
    assert!(older.code == 1 && older.stdout.contains("a format older than 0.1.0"), "{older:?}");
}
