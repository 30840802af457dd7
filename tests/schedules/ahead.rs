//! Stored times of a daemon whose clock was years ahead: the next daemon recomputes them, and `status` says so.

use rusqlite::params;

use crate::harness::Fleet;

/// Ten years, in microseconds.
const AHEAD: i64 = 3650 * 86_400 * 1_000_000;

#[test]
fn times_of_a_clock_that_was_years_ahead_are_recomputed_and_status_says_so() {
    let fleet = Fleet::boot();
    let add = ["schedules", "add", "each", "--cron", "* * * * *", "--title", "x", "--assignee", "nobody"];
    fleet.cli(add).ok();
    let limited = fleet.create("limited", "exit 75", &["--max-retries", "2"]);
    fleet.wait_for(&limited, "scheduled");
    fleet.stop(&["--wait"]);
    let board = rusqlite::Connection::open(fleet.root().join("boards/default/board.db")).unwrap();
    for sql in [
        "UPDATE schedules SET decided = decided + ?1, next = next + ?1",
        "UPDATE task_runs SET ended_at = ended_at + ?1",
        "UPDATE tasks SET not_before = not_before + ?1 WHERE status = 'scheduled'",
        "DELETE FROM delays WHERE ?1 > 0",
    ] {
        board.execute(sql, params![AHEAD]).unwrap();
    }
    drop(board);

    fleet.start();

    let set = fleet.eventually("the correction", || {
        let set = fleet.json(["status"])["clock_set"].clone();
        set.is_object().then_some(set)
    });
    assert_eq!((&set["schedules"], &set["tasks"]), (&1.into(), &1.into()), "{set}");
    let now = set["at"].as_i64().unwrap();
    let next = fleet.json(["schedules", "show", "each"])["next"].clone();
    let next = next.as_i64().or_else(|| next[0].as_i64()).unwrap();
    assert!((now..=now + 120).contains(&next), "{next} after {now}");
    let not_before = fleet.show(&limited)["task"]["not_before"].as_i64().unwrap();
    assert!((now..now + 3600).contains(&not_before), "{not_before} after {now}");
    let text = fleet.cli(["status"]).stdout;
    assert!(text.contains("stored times lay in the future; recomputed: 1 schedule, 1 task"), "{text}");
}
