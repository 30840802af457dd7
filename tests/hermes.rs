//! The lane of Hermes Agent: its worker has a board of its own with one task, and what it does there is done on the true one.
//!
//! The program is a stand-in that writes as the tools of Hermes do. `tests/agents.rs` plays the real one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Fleet, User, skip};

/// Beginning of every script: the board, and the statements of the tools.
const TOOLS: &str = r#"#!/usr/bin/python3
import json, os, sqlite3, subprocess, sys, time
TASK, RUN = os.environ["HERMES_KANBAN_TASK"], int(os.environ["HERMES_KANBAN_RUN_ID"])
PATH = os.environ["HERMES_KANBAN_DB"]
db = sqlite3.connect(PATH, isolation_level=None, timeout=20)
db.row_factory = sqlite3.Row
db.execute("PRAGMA journal_mode=WAL")
now = lambda: int(time.time())
own = lambda: db.execute("SELECT * FROM tasks WHERE id = ?", (TASK,)).fetchone()
def event(task, kind, payload=None, run=None):
    db.execute("INSERT INTO task_events (task_id, run_id, kind, payload, created_at) VALUES (?, ?, ?, ?, ?)",
        (task, run, kind, json.dumps(payload), now()))
def create(id, title, parents=(), **more):
    db.execute("BEGIN IMMEDIATE")
    row = dict(id=id, title=title, assignee="nobody", status="ready", created_by="hermes", created_at=now(), workspace_kind="dir",
        workspace_path=own()["workspace_path"], **more)
    db.execute(f"INSERT INTO tasks ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
    for parent in parents:
        link(parent, id)
    event(id, "created", {"parents": list(parents)})
    db.execute("COMMIT")
def link(parent, child):
    db.execute("INSERT INTO task_links VALUES (?, ?)", (parent, child))
def comment(task, body):
    db.execute("INSERT INTO task_comments (task_id, author, body, created_at) VALUES (?, 'hermes', ?, ?)", (task, body, now()))
def end(outcome, summary, metadata=None, result=None, status=None, kind=None, cards=()):
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE tasks SET status = ?, result = ?, block_kind = ?, claim_lock = NULL, current_run_id = NULL WHERE id = ?",
        (status or ("done" if outcome == "completed" else "blocked"), result, kind, TASK))
    db.execute("UPDATE task_runs SET status = ?, outcome = ?, summary = ?, metadata = ?, ended_at = ? WHERE id = ?",
        ("done", outcome, summary, metadata and json.dumps(metadata), now(), RUN))
    event(TASK, outcome, {"verified_cards": list(cards)} if cards else {}, RUN)
    db.execute("COMMIT")
def until(what):
    while not what():
        time.sleep(0.05)
"#;

/// A root whose lane `hermes` has a script for its program; none where the host has no Python.
fn fleet(user: User, script: &str) -> Option<Fleet> {
    if !Path::new("/usr/bin/python3").exists() {
        skip("the board of Hermes: needs python3");
        return None;
    }
    let fleet = Fleet::offline_as(user);
    let program = fleet.home().join("agents/bin/hermes");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, format!("{TOOLS}{script}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let built_in = include_str!("../supervisor/setup/src/lanes/builtin/hermes.toml");
    let text = built_in.replace("policy = \"agent\"", "policy = \"default\"");
    fleet.lane("hermes", &format!("install = [{:?}]\n{text}", fleet.home().join("agents").to_str().unwrap()));
    fleet.start();
    Some(fleet)
}

fn create(fleet: &Fleet, more: &[&str]) -> String {
    let words = ["create", "find it", "--assignee", "hermes", "--body", "the parser", "--max-retries", "1"];
    fleet.json([&words[..], more].concat())["id"].as_str().unwrap().to_owned()
}

/// The tasks with a title.
fn titled(fleet: &Fleet, title: &str) -> Vec<String> {
    let listed = fleet.json(["list", "--all"]);
    let tasks = listed["tasks"].as_array().or(listed.as_array()).unwrap().clone();
    let of_title = tasks.iter().filter(|task| task["title"] == title);
    of_title.map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_hermes_does_on_its_own_board_is_done_on_the_true_one_once() {
    for user in User::all() {
        let script = r#"
row = own()
assert (row["title"], row["body"], row["status"], row["current_run_id"]) == ("find it", "the parser", "running", RUN), dict(row)
assert row["claim_lock"] == os.environ["HERMES_KANBAN_CLAIM_LOCK"] and row["workspace_path"] == os.environ["HERMES_KANBAN_WORKSPACE"]
parent = db.execute("SELECT t.*, r.summary FROM task_links l JOIN tasks t ON t.id = l.parent_id JOIN task_runs r ON r.task_id = t.id "
    "WHERE l.child_id = ?", (TASK,)).fetchone()
assert (parent["status"], parent["summary"]) == ("done", "it is in lex.c"), dict(parent)
assert [one["body"] for one in db.execute("SELECT body FROM task_comments")] == ["look twice"]
assert db.execute("SELECT count(*) FROM tasks").fetchone()[0] == 2
comment(TASK, "I have looked")
create("t_aaaa1111", "mend it", [TASK], body="as it says", priority=3, max_runtime_seconds=600, skills='["lint"]')
create("t_bbbb2222", "test it", ["t_aaaa1111"], body="what t_aaaa1111 has done")
create("t_cccc3333", "tell it")
link("t_bbbb2222", "t_cccc3333")
event(TASK, "heartbeat", {"note": "half of it"}, RUN)
until(lambda: "go-on" in subprocess.run(["supervisor", "show", "--json"], capture_output=True, text=True).stdout)
open("found.txt", "w").write("here")
end("completed", "t_aaaa1111 goes on", {"artifacts": [os.path.abspath("found.txt")], "lines": 3}, "lex.c", cards=["t_aaaa1111", "t_bbbb2222"])
"#;
        let Some(fleet) = fleet(user, script) else { return };
        let before =
            fleet.json(["create", "look", "--assignee", "nobody"])["id"].as_str().unwrap().to_owned();
        let task = create(&fleet, &["--parent", &before]);
        fleet.cli(["comment", &task, "look twice"]).ok();
        fleet.cli(["complete", &before, "--summary", "it is in lex.c"]).ok();
        let run = fleet.eventually("it has told the board", || {
            let shown = fleet.show(&task);
            let is_told = shown["comments"].to_string().contains("I have looked")
                && !titled(&fleet, "tell it").is_empty()
                && shown["events"].to_string().contains("half of it");
            is_told.then_some(shown)
        });
        assert_eq!(run["task"]["status"], "running", "it is told while it works");
        // What is told is told by requests that are answered again alike, so that a daemon may die at any time.
        fleet.restart();
        fleet.cli(["comment", &task, "go-on"]).ok();
        let shown = fleet.wait_for(&task, "done");

        let [mend] = &titled(&fleet, "mend it")[..] else { panic!("{shown:#}") };
        let [test] = &titled(&fleet, "test it")[..] else { panic!("{shown:#}") };
        let [tell] = &titled(&fleet, "tell it")[..] else { panic!("{shown:#}") };
        assert_eq!(shown["latest_summary"], format!("{mend} goes on"), "{shown:#}");
        assert_eq!(shown["task"]["result"], "lex.c");
        let metadata = &shown["runs"][0]["metadata"];
        assert_eq!(metadata["created_cards"], serde_json::json!([mend, test]), "{metadata}");
        assert_eq!(metadata["lines"], 3);
        assert!(shown["attachments"].to_string().contains("found.txt"), "{shown:#}");
        let said: Vec<&str> =
            shown["comments"].as_array().unwrap().iter().filter_map(|one| one["body"].as_str()).collect();
        assert_eq!(said, ["look twice", "I have looked", "go-on"]);
        let child = fleet.show(mend);
        assert_eq!(child["parents"], serde_json::json!([task]));
        assert_eq!(child["children"], serde_json::json!([test]));
        let fields =
            ["body", "priority", "max_runtime_seconds", "workspace", "skills"].map(|key| &child["task"][key]);
        let wanted = serde_json::json!(["as it says", 3, 600, "scratch", ["lint"]]);
        assert_eq!(serde_json::json!(fields), wanted, "{child:#}");
        assert_eq!(fleet.show(test)["task"]["body"], format!("what {mend} has done"));
        assert_eq!(fleet.show(tell)["parents"], serde_json::json!([test]));
    }
}

#[test]
fn what_the_board_refuses_is_read_by_hermes_and_it_can_end_its_task_anew() {
    let script = r#"
comment("t_00000000", "to somebody else")
create("t_aaaa1111", "x" * 100000)
end("completed", "all of it is done", cards=["t_99999999"])
said = lambda: " ".join(one["body"] for one in db.execute("SELECT body FROM task_comments WHERE author = 'supervisor'"))
until(lambda: "kanban_complete" in said())
until(lambda: own()["status"] == "running" and own()["current_run_id"] == RUN)
assert "t_00000000" in said() and "t_aaaa1111" in said() and "t_99999999" in said(), said()
end("blocked", "which parser?", kind="needs_input")
"#;
    let Some(fleet) = fleet(User::current(), script) else { return };
    let task = create(&fleet, &[]);
    let shown = fleet.wait_for(&task, "blocked");
    assert_eq!(shown["task"]["block_kind"], "needs_input", "{shown:#}");
    assert_eq!(shown["task"]["block_reason"], "which parser?");
    let comments = shown["comments"].to_string();
    assert!(
        comments.contains("the comment on t_00000000") && comments.contains("the task t_aaaa1111"),
        "{comments}"
    );
    let run = shown["runs"][0]["id"].to_string();
    let log = fleet.cli(["log", &task]).ok().stdout;
    assert!(log.contains("The supervisor refused:") && log.contains("kanban_complete"), "run {run}: {log}");
}

#[test]
fn a_verdict_that_is_refused_when_hermes_has_ended_is_told_by_the_ending_of_its_run() {
    let Some(fleet) = fleet(User::current(), "end('completed', 'done', cards=['t_99999999'])\nos._exit(0)\n")
    else {
        return;
    };
    let task = create(&fleet, &[]);
    let shown = ended(&fleet, &task);
    assert_eq!(shown["runs"][0]["outcome"], "unreported", "{shown:#}");
    assert!(shown["runs"][0].to_string().contains("t_99999999"), "{shown:#}");
}

fn ended(fleet: &Fleet, task: &str) -> Value {
    fleet.eventually("its run has ended", || {
        let shown = fleet.show(task);
        shown["runs"][0]["outcome"].is_string().then_some(shown)
    })
}

#[test]
fn a_board_that_a_worker_has_damaged_ends_nothing_but_its_run() {
    let damages = [
        "os.remove(PATH)",
        "db.close(); open(PATH, 'wb').write(b'x' * 100000)",
        "os.remove(PATH); os.symlink('/etc/passwd', PATH)",
        "os.remove(PATH); os.mkfifo(PATH)",
        "db.execute('DROP TABLE task_comments'); db.execute('CREATE VIEW task_comments AS SELECT 1 AS id, id AS task_id, title AS body FROM tasks')",
        "db.execute('DROP TABLE task_runs')",
    ];
    for damage in damages {
        let Some(fleet) = fleet(User::current(), &format!("{damage}\ndb = None\nos._exit(0)\n")) else {
            return;
        };
        let task = create(&fleet, &[]);
        let shown = ended(&fleet, &task);
        assert_eq!(shown["runs"][0]["outcome"], "unreported", "{damage}: {shown:#}");
        let log = fleet.cli(["log", &task]).ok().stdout;
        assert!(log.contains("its own board cannot be read"), "{damage}: {log}");
    }
}

#[test]
fn a_board_with_very_many_rows_is_read_up_to_a_bound_and_its_verdict_counts() {
    let script = r#"
db.execute("BEGIN")
for n in range(5000):
    link(f"t_{n:08x}", TASK)
    db.execute("INSERT INTO task_comments (task_id, author, body, created_at) VALUES (?, 'hermes', '', 0)", ("t_none",))
db.execute("COMMIT")
db.execute("DELETE FROM task_comments")
end("completed", "it is done")
"#;
    let Some(fleet) = fleet(User::current(), script) else { return };
    let task = create(&fleet, &[]);
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["latest_summary"], "it is done");
    let comments = shown["comments"].to_string();
    assert!(comments.contains("more rows than are read") || comments.contains("and "), "{comments}");
}
