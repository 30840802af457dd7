//! Boards are written out, read back, and taken over from the established program.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Fleet, Output};

/// What a board says, without the users that its host has allocated.
fn said(fleet: &Fleet, board: &str, words: &[&str]) -> Value {
    let text = fleet.cli([&["--board", board, "--json"], words].concat()).ok().stdout;
    let parts = text.split("\"worker_uid\":").enumerate().map(|(at, part)| {
        if at == 0 {
            part
        } else {
            part.trim_start_matches(|c: char| c.is_ascii_digit() || c.is_ascii_lowercase())
        }
    });
    serde_json::from_str(&parts.collect::<Vec<_>>().join("\"worker_uid\":null")).unwrap()
}

#[test]
fn a_board_goes_out_and_comes_back_the_same() {
    let fleet = Fleet::boot();
    let parent = fleet.create("parent", "echo from the parent", &[]);
    fleet.wait_for(&parent, "done");
    let child = fleet.create("child", "true", &["--parent", &parent, "--max-retries", "1"]);
    fleet.wait_for(&child, "done");
    fleet.cli(["comment", &child, "well done"]).ok();
    let wrote = fleet.json(["export", "--file", "board.jsonl"]);
    assert_eq!(wrote["rows"]["tasks"], 2);
    let streamed = fleet.cli(["export"]).ok().stdout;
    assert_eq!(streamed, fs::read_to_string(fleet.home().join("board.jsonl")).unwrap());
    fleet.cli(["--board", "copy", "import", "board.jsonl"]).refused(4, "in use");
    fleet.stop(&["--wait"]);

    let read = fleet.json(["--board", "copy", "import", "board.jsonl"]);

    assert_eq!(read["rows"], wrote["rows"]);
    let looks: [&[&str]; 3] = [&["list", "--archived"], &["show", &parent], &["show", &child]];
    for look in looks {
        assert_eq!(said(&fleet, "copy", look), said(&fleet, "default", look));
    }
    fleet.cli(["import", "board.jsonl"]).refused(4, "not empty");
    fleet.cli(["export", "--file", "board.jsonl"]).refused(4, "exists");
    fleet.cli(["--board", "other", "import", "none.jsonl"]).refused(3, "none.jsonl");
    let cut = streamed.lines().next().unwrap();
    fs::write(fleet.home().join("cut.jsonl"), cut).unwrap();
    fleet.cli(["--board", "other", "import", "cut.jsonl"]).refused(2, "cut off");
    assert_eq!(fleet.cli(["import"]).code, 2);
    fleet.start();
    let again = fleet.create("on the copy", "true", &["--board", "copy"]);
    fleet.eventually("the copy is served", || {
        let shown = fleet.json(["--board", "copy", "show", &again]);
        (shown["task"]["status"] == "done").then_some(())
    });
}

#[test]
fn a_board_of_the_established_program_is_taken_over_and_goes_on() {
    let fleet = Fleet::offline();
    let theirs = fleet.home().join("kanban.db");
    let script = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.executescript('''
CREATE TABLE tasks (id TEXT PRIMARY KEY, title TEXT NOT NULL, body TEXT, assignee TEXT, status TEXT NOT NULL,
  created_at INTEGER NOT NULL, workspace_kind TEXT NOT NULL DEFAULT 'scratch');
CREATE TABLE task_links (parent_id TEXT, child_id TEXT);
INSERT INTO tasks VALUES ('t_0000000a', 'theirs', 'echo taken over', 'shell', 'ready', 1700000000, 'scratch');
INSERT INTO tasks VALUES ('t_0000000b', 'next', 'true', 'shell', 'todo', 1700000001, 'scratch');
INSERT INTO task_links VALUES ('t_0000000a', 't_0000000b'), ('t_0000000b', 't_0000000a');
''')
";
    let made = Output::of(Command::new("python3").args(["-c", script]).arg(&theirs));
    if made.code != 0 {
        crate::harness::skip("python3 with sqlite3");
        return;
    }
    fleet.give(&theirs);
    let before = fs::read(&theirs).unwrap();

    let taken = fleet.json(["import", "--from-hermes", "kanban.db"]);

    assert_eq!(taken["rows"]["tasks"], 2);
    assert_eq!(taken["left"], json!(["1 links close a circle"]));
    assert_eq!(fs::read(&theirs).unwrap(), before);
    fleet.cli(["--board", "b", "import", "--from-hermes", "none.db"]).refused(3, "missing");
    fs::write(
        fleet.home().join("text"),
        "not a database, and longer than the smallest one could ever be".repeat(20),
    )
    .unwrap();
    let refused = fleet.cli(["--board", "b", "import", "--from-hermes", "text"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    fleet.start();
    assert_eq!(fleet.wait_for("t_0000000a", "done")["latest_summary"], "taken over");
    fleet.wait_for("t_0000000b", "done");
    assert_eq!(fleet.json(["doctor", "--replay"])["ok"], true);
}
