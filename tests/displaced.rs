//! A board whose file is taken away under a running daemon: nothing is acknowledged that is not in the file that the path
//! names.

use std::fs;
use std::path::PathBuf;

use crate::harness::{Fleet, User};
use crate::invariants::invariants_hold;

fn board(fleet: &Fleet) -> PathBuf {
    fleet.root().join("boards/default/board.db")
}

#[test]
fn without_its_file_a_board_refuses_writes_and_says_so_and_goes_on_when_it_is_back() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let kept = fleet.create("kept", "true", &[]);
        fleet.wait_for(&kept, "done");
        let worker = fleet.create("works", "while [ ! -e go ]; do sleep 0.02; done", &[]);
        let workspace = fleet.eventually("it works", || {
            fleet.show(&worker)["runs"][0]["workspace_path"].as_str().map(str::to_owned)
        });
        fleet.eventually("its command runs", || {
            (fleet.show(&worker)["runs"][0]["worker_pid"].is_i64()).then_some(())
        });
        let away = fleet.home().join("away.db");
        fs::rename(board(&fleet), &away).unwrap();

        let refused = fleet.cli(["create", "lost", "--triage"]);

        assert_eq!(refused.code, 75, "{}", refused.stderr);
        for text in ["board.db was removed while it is in use", "supervisor restore"] {
            assert!(refused.stderr.contains(text), "{}", refused.stderr);
        }
        let status = fleet.json(["status"]);
        assert!(status["board_trouble"].as_str().unwrap().contains("was removed"), "{status:#}");
        let doctor = fleet.cli(["doctor"]);
        assert_eq!(doctor.code, 1);
        assert!(doctor.stdout.contains("was removed while it is in use"), "{}", doctor.stdout);
        // A worker that ends meanwhile waits for its board.
        fs::write(format!("{workspace}/go"), "").unwrap();
        fleet.eventually("its end waits", || {
            let workers = fleet.json(["status"])["workers"].clone();
            (workers[0]["phase"] == "settling").then_some(())
        });
        fs::rename(&away, board(&fleet)).unwrap();
        fleet.wait_for(&worker, "done");
        let after = fleet.create("after", "true", &[]);
        fleet.wait_for(&after, "done");
        assert_eq!(fleet.json(["status"])["board_trouble"], serde_json::Value::Null);
        assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 3);
    }
}

#[test]
fn beside_another_file_in_its_place_a_board_refuses_writes() {
    let fleet = Fleet::boot();
    fleet.create("one", "true", &["--triage"]);
    let copy = fleet.home().join("copy.db");
    fs::copy(board(&fleet), &copy).unwrap();
    fs::rename(&copy, board(&fleet)).unwrap();

    let refused = fleet.cli(["create", "lost", "--triage"]);

    assert_eq!(refused.code, 75, "{}", refused.stderr);
    assert!(refused.stderr.contains("was replaced by another file"), "{}", refused.stderr);
}

#[test]
fn a_board_that_is_cut_off_refuses_writes_and_status_says_so() {
    for length in [0, 8192] {
        let fleet = Fleet::boot();
        let before = fleet.create("before", "true", &[]);
        fleet.wait_for(&before, "done");
        fleet.json(["backup", "good.db"]);
        let worker = fleet.create("works", "sleep 600", &[]);
        fleet.wait_for_worker(&worker);
        fs::File::options().write(true).open(board(&fleet)).unwrap().set_len(length).unwrap();

        fleet.cli(["create", "lost", "--triage"]).refused(75, "supervisor restore");

        let status = fleet.json(["status"]);
        assert!(status["board_trouble"].as_str().unwrap().contains("was cut off"), "{status:#}");
        assert_eq!(status["workers"].as_array().unwrap().len(), 1, "{status:#}");
        // The backup knows nothing of the worker.
        assert!(fleet.stop(&["--kill"]).success());
        fleet.json(["restore", "good.db"]);
        fleet.start();
        assert_eq!(fleet.status_of(&before), "done");
        invariants_hold(&fleet);
    }
}

#[test]
fn a_board_whose_directory_is_moved_away_is_told_by_doctor() {
    let fleet = Fleet::boot();
    fleet.create("one", "true", &["--triage"]);
    fleet.cli(["--board", "other", "init"]).ok();
    fs::rename(fleet.root().join("boards/other"), fleet.home().join("away")).unwrap();

    let doctor = fleet.cli(["doctor"]);

    assert_eq!(doctor.code, 1, "{}", doctor.stdout);
    let line = doctor
        .stdout
        .lines()
        .find(|line| line.contains("board other: ") && line.starts_with("critical"))
        .unwrap();
    assert!(line.contains("was removed while it is in use"), "{line}");
}

#[test]
fn a_daemon_whose_board_is_gone_stops() {
    let fleet = Fleet::boot();
    let worker = fleet.create("works", "sleep 600", &[]);
    fleet.wait_for_worker(&worker);
    fs::remove_file(board(&fleet)).unwrap();
    let stopped = fleet.cli(["stop", "--kill", "--wait"]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    fleet.reap_daemon();
    assert!(fleet.processes().is_empty(), "{:#?}", fleet.processes());
    let started = fleet.cli(["status"]);
    assert!(started.stderr.contains("is missing"), "{} {}", started.stdout, started.stderr);
}

#[test]
fn a_daemon_that_was_started_without_its_board_stops() {
    let fleet = Fleet::boot();
    fleet.cli(["stop", "--wait"]).ok();
    fleet.reap_daemon();
    for end in ["", "-wal", "-shm"] {
        drop(fs::remove_file(format!("{}{end}", board(&fleet).display())));
    }
    fleet.start();
    let status = fleet.cli(["status"]);
    let text = status.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status.code == 1 && text.contains("is missing"), "{status:?}");
    fleet.cli(["--board", "nosuch", "status"]).refused(3, "there is no board `nosuch`");
    let stopped = fleet.cli(["stop", "--wait"]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    fleet.reap_daemon();
}
