//! Boards are written out, read back, and taken over from the established program.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::fleet::give;
use crate::harness::{Fleet, Output};

/// Returns the output of a board, without the users that its host has allocated.
fn output_of(fleet: &Fleet, board: &str, words: &[&str]) -> Value {
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

    let read = fleet.json(["--board", "copy", "import", "board.jsonl"]);

    assert_eq!(read["rows"], wrote["rows"]);
    let looks: [&[&str]; 3] = [&["list", "--archived"], &["show", &parent], &["show", &child]];
    for look in looks {
        assert_eq!(output_of(&fleet, "copy", look), output_of(&fleet, "default", look));
    }
    fleet.cli(["import", "board.jsonl"]).refused(4, "not empty");
    fleet.cli(["export", "--file", "board.jsonl"]).refused(4, "exists");
    fleet.cli(["--board", "other", "import", "none.jsonl"]).refused(3, "none.jsonl");
    let cut = streamed.lines().next().unwrap();
    fs::write(fleet.home().join("cut.jsonl"), cut).unwrap();
    fleet.cli(["--board", "other", "import", "cut.jsonl"]).refused(2, "cut off");
    assert_eq!(fleet.cli(["import"]).code, 2);
    let again = fleet.create("on the copy", "true", &["--board", "copy"]);
    fleet.eventually("the copy is served", || {
        let shown = fleet.json(["--board", "copy", "show", &again]);
        (shown["task"]["status"] == "done").then_some(())
    });
}

#[test]
fn files_and_details_go_out_and_come_back_on_another_root() {
    let fleet = Fleet::offline();
    let task = fleet.create("a", "true", &["--triage"]);
    // Of more than one line, and not text.
    let bytes: Vec<u8> = (0..700_000_u32).map(|at| at.to_be_bytes()[2]).collect();
    fs::write(fleet.home().join("big"), &bytes).unwrap();
    fleet.give(&fleet.home().join("big"));
    fleet.cli(["attach", &task, "big"]).ok();
    fleet.cli(["boards", "rename", "default", "Ours"]).ok();
    assert_eq!(fleet.json(["export", "--file", "board.jsonl"])["files"], 1);
    let text = fs::read_to_string(fleet.home().join("board.jsonl")).unwrap();
    let other = Fleet::offline();
    fs::write(other.home().join("board.jsonl"), &text).unwrap();
    let spoiled = text.replacen("\"hex\":\"00", "\"hex\":\"11", 1);
    assert_ne!(spoiled, text);
    fs::write(other.home().join("spoiled.jsonl"), spoiled).unwrap();

    other.cli(["import", "spoiled.jsonl"]).refused(2, "not those that were attached");
    assert_eq!(other.json(["list"]), json!([]));
    assert_eq!(fs::read_dir(other.root().join("boards/default/attachments")).unwrap().count(), 0);
    let read = other.json(["import", "board.jsonl"]);

    assert_eq!((&read["files"], &read["left"]), (&json!(1), &json!([])));
    let kept = other.json(["attachments", &task])[0]["stored_path"].as_str().unwrap().to_owned();
    assert!(fs::read(&kept).unwrap() == bytes && kept.starts_with(other.root().to_str().unwrap()), "{kept}");
    assert_eq!(other.json(["boards", "list"])[0]["name"], "Ours");
    let from = fleet.json(["attachments", &task])[0]["stored_path"].as_str().unwrap().to_owned();
    fs::remove_file(from).unwrap();
    let said = fleet.cli(["export"]).ok();
    assert!(said.stderr.contains("(big)") && said.stderr.contains("are missing"), "{}", said.stderr);
}

#[test]
fn tasks_under_a_wider_policy_are_imported_only_where_that_is_accepted() {
    let fleet = Fleet::offline();
    fleet.create("wide", "true", &["--policy", "unconfined"]);
    fleet.create("narrow", "true", &["--policy", "strict"]);
    fleet.json(["export", "--file", "board.jsonl"]);
    let import = ["--board", "copy", "import", "board.jsonl"];

    let refused = fleet.cli(import).refused(4, "1 task under `unconfined`");

    assert!(refused.stderr.contains("--accept-policy unconfined"), "{}", refused.stderr);
    assert_eq!(fleet.json(["--board", "copy", "list"]), json!([]));
    let other = ["--accept-policy", "network"];
    fleet.cli([import.as_slice(), &other].concat()).refused(4, "under `unconfined`");
    let read = fleet.json([import.as_slice(), &["--accept-policy", "unconfined"]].concat());
    assert_eq!(read["rows"]["tasks"], 2);
}

#[test]
fn an_import_with_a_row_that_no_reader_expects_is_refused() {
    let fleet = Fleet::offline();
    let task = fleet.create("a", "true", &[]);
    fleet.cli(["hold", &task, "--reason", "r"]).ok();
    let text = fleet.cli(["export"]).ok().stdout;
    let spoiled = text.replacen("\"within\":\"*\"", "\"within\":\"no tenant\"", 1);
    assert_ne!(spoiled, text);
    fs::write(fleet.home().join("spoiled.jsonl"), spoiled).unwrap();
    fleet.cli(["--board", "copy", "import", "spoiled.jsonl"]).refused(2, "invalid value");
    assert_eq!(fleet.json(["--board", "copy", "list"]), json!([]));
}

#[test]
fn tasks_that_work_in_directories_are_imported_only_where_that_is_accepted() {
    let fleet = Fleet::offline();
    let place = fleet.home().join("place");
    fs::create_dir(&place).unwrap();
    give(&place);
    let place = format!("dir:{}", place.display());
    fleet.create("there", "true", &["--workspace", &place]);
    fleet.create("scratch", "true", &[]);
    fleet.json(["export", "--file", "board.jsonl"]);
    let import = ["--board", "copy", "import", "board.jsonl"];

    let refused = fleet.cli(import).refused(4, &format!("1 task in {place}"));

    assert!(refused.stderr.contains("--accept-workspaces"), "{}", refused.stderr);
    assert_eq!(fleet.json(["--board", "copy", "list"]), json!([]));
    let read = fleet.json([import.as_slice(), &["--accept-workspaces"]].concat());
    assert_eq!(read["rows"]["tasks"], 2);
}

#[test]
fn a_backup_that_another_program_has_changed_is_not_restored() {
    let fleet = Fleet::offline();
    fleet.create("a", "true", &["--triage"]);
    fleet.json(["backup", "board.db"]);
    let copy = fleet.home().join("board.db");
    let trigger = "CREATE TRIGGER wide AFTER INSERT ON tasks BEGIN \
         UPDATE tasks SET policy = 'unconfined' WHERE id = new.id; END";
    rusqlite::Connection::open(&copy).unwrap().execute_batch(trigger).unwrap();
    fleet.give(&copy);

    fleet.cli(["restore", "board.db"]).refused(1, "the trigger `wide` does not belong to this program");

    assert_eq!(fleet.json(["list"]).as_array().map(Vec::len), Some(1));
    assert_eq!(
        fleet.json(["show", &fleet.create("b", "true", &["--triage"])])["task"]["policy"],
        json!(null)
    );
}

#[test]
fn attached_files_of_the_established_program_come_along() {
    let fleet = Fleet::offline();
    let home = fleet.home();
    let files = home.join("kanban/attachments/t_0000000a");
    fs::create_dir_all(&files).unwrap();
    fs::write(files.join("spec.md"), "theirs").unwrap();
    let theirs = home.join("kanban.db");
    let conn = rusqlite::Connection::open(&theirs).unwrap();
    conn.execute_batch(&format!(
        "CREATE TABLE tasks (id TEXT PRIMARY KEY, title TEXT NOT NULL, body TEXT, assignee TEXT, status TEXT NOT NULL,
           created_at INTEGER NOT NULL, workspace_kind TEXT NOT NULL DEFAULT 'scratch');
         CREATE TABLE task_attachments (id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL,
           filename TEXT NOT NULL, stored_path TEXT NOT NULL, content_type TEXT, size INTEGER NOT NULL DEFAULT 0,
           uploaded_by TEXT, created_at INTEGER NOT NULL);
         INSERT INTO tasks VALUES ('t_0000000a', 'theirs', NULL, NULL, 'triage', 1700000000, 'scratch');
         INSERT INTO task_attachments VALUES
           (41, 't_0000000a', 'spec.md', '{files}/spec.md', 'text/markdown', 6, 'ann', 1700000001),
           (42, 't_0000000a', 'gone.md', '{files}/gone.md', NULL, 6, NULL, 1700000002),
           (43, 't_0000000a', 'passwd', '/etc/passwd', NULL, 6, NULL, 1700000003);",
        files = files.display()
    ))
    .unwrap();
    drop(conn);
    for path in [&theirs, &files, &files.join("spec.md")] {
        fleet.give(path);
    }

    let taken = fleet.json(["import", "--from-hermes", "kanban.db"]);

    assert_eq!((&taken["files"], &taken["rows"]["task_attachments"]), (&json!(1), &json!(1)), "{taken}");
    let left = taken["left"].to_string();
    assert!(left.contains("gone.md") && left.contains("passwd"), "{left}");
    let kept = &fleet.json(["attachments", "t_0000000a"])[0];
    assert_eq!(
        (&kept["id"], &kept["content_type"], &kept["uploaded_by"], &kept["created_at"]),
        (&json!(41), &json!("text/markdown"), &json!("ann"), &json!(1_700_000_001))
    );
    assert_eq!(fs::read_to_string(kept["stored_path"].as_str().unwrap()).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(files.join("spec.md")).unwrap(), "theirs");
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
    assert_eq!(taken["left"], json!(["1 links close a cycle (t_0000000b → t_0000000a)"]));
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

#[test]
fn a_backup_with_rows_that_no_board_has_is_not_restored_and_doctor_names_such_rows() {
    let fleet = Fleet::offline();
    let task = fleet.create("a", "true", &["--triage"]);
    fleet.json(["backup", "board.db"]);
    let copy = fleet.home().join("board.db");
    let change = |path: &std::path::Path| {
        let conn = rusqlite::Connection::open(path).unwrap();
        conn.execute_batch("UPDATE tasks SET workspace = '=', created_at = -1").unwrap();
        fleet.give(path);
    };
    change(&copy);

    let refused =
        fleet.cli(["restore", "board.db"]).refused(1, &format!("tasks {task}: created_at is no time"));

    assert!(refused.stderr.contains("unknown workspace kind \"=\""), "{}", refused.stderr);
    assert!(refused.stderr.contains("--accept-rows"), "{}", refused.stderr);
    assert_eq!(fleet.show(&task)["task"]["workspace"], "scratch");
    assert!(fleet.cli(["doctor"]).stdout.contains("each value is one that a board can have"));
    change(&fleet.root().join("boards/default/board.db"));
    let told = fleet.cli(["doctor"]);
    assert!(told.stdout.contains(&format!("tasks {task}: created_at is no time")), "{}", told.stdout);
    assert_eq!(told.code, 1, "{}", told.stdout);
    let restored = fleet.cli(["restore", "board.db", "--accept-rows"]).ok();
    assert!(restored.stderr.contains(&format!("warning: tasks {task}: created_at")), "{}", restored.stderr);
    assert_eq!(fleet.show(&task)["task"]["workspace"], "=");
}
