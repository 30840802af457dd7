//! A daemon that cannot read its settings or its board still supervises its workers, and ends them on request.

use std::fs;
use std::os::unix::fs::FileExt as _;

use serde_json::json;

use crate::harness::Fleet;
use crate::journal::of_task;
use crate::service::{under_job, with_worker};

fn spoil_settings(fleet: &Fleet) {
    fs::write(fleet.root().join("supervisor.toml"), "garbage = [").unwrap();
}

/// Damages the board, and returns what puts it back.
fn spoil_board(fleet: &Fleet) -> impl Fn() + use<> {
    let path = fleet.root().join("boards/default/board.db");
    let whole = fs::read(&path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().write_all_at(&[7; 200], 0).unwrap();
    move || fs::write(&path, &whole).unwrap()
}

#[test]
fn a_stop_of_the_unit_ends_what_a_dead_daemon_left_though_the_settings_cannot_be_read() {
    let (fleet, task) = with_worker();
    fleet.kill_daemon();
    spoil_settings(&fleet);

    under_job(&fleet, "after-stop", "stop").ok();

    let left = fleet.processes();
    assert!(left.is_empty(), "{left:#?}");
    fs::remove_file(fleet.root().join("supervisor.toml")).unwrap();
    let shown = fleet.show(&task);
    assert_eq!(
        (&shown["task"]["status"], &shown["runs"][0]["outcome"]),
        (&json!("ready"), &json!("preempted"))
    );
}

#[test]
fn a_stop_of_the_unit_ends_what_a_dead_daemon_left_though_its_board_is_damaged() {
    let (fleet, task) = with_worker();
    fleet.kill_daemon();
    fleet.cli(["list"]).ok();
    let put_back = spoil_board(&fleet);

    under_job(&fleet, "after-stop", "stop").ok();

    let left = fleet.processes();
    assert!(left.is_empty(), "{left:#?}");
    // The records have waited for the board.
    put_back();
    fleet.start();
    fleet.eventually("its end is recorded", || {
        (fleet.show(&task)["runs"][0]["outcome"] == "preempted").then_some(())
    });
}

#[test]
fn a_daemon_that_does_not_serve_a_board_ends_its_workers_when_it_is_stopped() {
    let (fleet, task) = with_worker();
    fleet.kill_daemon();
    drop(spoil_board(&fleet));
    fleet.start();
    assert!(fleet.processes_with(&of_task(&task)).len() >= 2);

    let stopped = fleet.cli(["stop", "--now", "--wait"]);

    assert!(
        stopped.stdout.contains("It ends the runs of boards that it does not serve: default."),
        "{stopped:?}"
    );
    assert!(fleet.reap_daemon().success(), "{}", fleet.log());
    let left = fleet.processes();
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn a_daemon_with_workers_to_look_after_goes_on_with_the_last_good_settings() {
    let (fleet, task) = with_worker();
    fleet.kill_daemon();
    spoil_settings(&fleet);

    fleet.start();

    let status = fleet.cli(["status"]);
    assert_eq!(status.code, 1, "{status:?}");
    assert!(status.stdout.contains("garbage"), "{status:?}");
    assert_eq!(fleet.status_of(&task), "running");
    // The verbs of every day need the file as little as the daemon does.
    let ran = fleet.cli(["run", "--", "echo", "meanwhile"]).ok();
    assert_eq!(ran.stdout, "meanwhile\n");
    assert!(ran.stderr.contains("garbage") && ran.stderr.contains("the assignee is `shell`"), "{ran:?}");
    fleet.cli(["kill", &task]).ok();
    fleet.wait_for(&task, "blocked");
    // Without a worker the file is what counts.
    fleet.cli(["stop"]).ok();
    assert!(fleet.reap_daemon().success(), "{}", fleet.log());
    fleet.cli(["daemon"]).refused(2, "supervisor.toml:1 (garbage)");
}
