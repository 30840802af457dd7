//! Current work is shown as it happens: events, watch, tail, log, status.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::harness::{Fleet, User, tidy};

/// A command that goes on until it is dropped.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn of(fleet: &Fleet, args: &[&str]) -> Self {
        let mut command = fleet.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Follower { child, lines }
    }

    /// The first line that a look finds good. A command that ends instead fails the test.
    fn until(&mut self, good: impl Fn(&str) -> bool) -> String {
        self.lines.by_ref().map(Result::unwrap).find(|line| good(line)).expect("the command goes on")
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn kinds(page: &Value) -> Vec<&str> {
    page["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

#[test]
fn the_event_log_is_read_from_a_cursor_on_and_by_kind_task_and_tenant() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        let a = fleet.json(["create", "a", "--tenant", "acme"])["id"].as_str().unwrap().to_owned();
        let first = fleet.json(["events", "--since", "0"]);
        assert_eq!(kinds(&first), ["created"]);
        fleet.cli(["comment", &a, "x"]).ok();
        fleet.json(["create", "b"]);
        let cursor = first["cursor"].as_i64().unwrap().to_string();
        let since = fleet.json(["events", "--since", &cursor]);
        assert_eq!(kinds(&since), ["commented", "created"]);
        assert_eq!(since["cursor"], since["last_event"]);
        assert_eq!(kinds(&fleet.json(["events", "--task", &a])), ["created", "commented"]);
        assert_eq!(kinds(&fleet.json(["events", "--tenant", "acme", "--kind", "commented"])), ["commented"]);
        let page = fleet.json(["events", "--limit", "1"]);
        assert_eq!((kinds(&page).len(), &page["cursor"]), (1, &first["cursor"]));
    }
}

#[test]
fn a_kind_that_no_event_has_is_refused_with_the_kinds_that_there_are() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        fleet.json(["create", "a"]);
        let refused =
            fleet.cli(["events", "--kind", "created", "--kind", "bogus"]).refused(2, "has the kind `bogus`");
        assert!(refused.stderr.contains("blocked, budget_spent, cancelled, "), "{}", refused.stderr);
        let watched = fleet.cli(["watch", "--kinds", "bogus"]);
        assert!(watched.code == 2 && watched.stderr.contains("has the kind `bogus`"), "{}", watched.stderr);
    }
}

#[test]
fn a_reader_that_waits_for_an_event_gets_it_when_it_happens() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        let a = fleet.json(["create", "a"])["id"].as_str().unwrap().to_owned();
        let cursor = fleet.json(["events"])["cursor"].as_i64().unwrap().to_string();
        let waiting = ["events", "--json", "--wait", "30", "--since", &cursor];
        let child = fleet.command(waiting).stdout(Stdio::piped()).spawn().unwrap();

        fleet.cli(["comment", &a, "x"]).ok();

        let output = child.wait_with_output().unwrap();
        let page: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(kinds(&page), ["commented"]);
    }
}

#[test]
fn watch_and_tail_tell_of_changes_that_others_make() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        let a = fleet.json(["create", "a"])["id"].as_str().unwrap().to_owned();
        let mut tail = Follower::of(&fleet, &["tail", &a]);
        tail.until(|line| line.contains("created"));
        let mut watch =
            Follower::of(&fleet, &["watch", "--json", "--since", "0", "--kinds", "created,archived"]);
        watch.until(|line| line.contains("created"));

        fleet.cli(["comment", &a, "noise"]).ok();
        fleet.cli(["archive", &a]).ok();

        assert!(tail.until(|line| line.contains("archived")).contains(&a));
        let event: Value = serde_json::from_str(&watch.until(|_| true)).unwrap();
        assert_eq!((&event["kind"], &event["task_id"]), (&json!("archived"), &json!(a)));
    }
}

#[test]
fn a_log_is_shown_whole_or_its_tail_and_can_be_followed_to_the_end_of_the_run() {
    let fleet = Fleet::boot();
    let gate = fleet.home().join("gate");
    std::fs::create_dir(&gate).unwrap();
    let task = fleet.create(
        "talks",
        "echo one; echo two >&2; while [ ! -e go ]; do sleep 0.02; done; echo three",
        &[],
    );
    let workspace = fleet.eventually("the run has a workspace", || {
        let path = fleet.show(&task)["runs"][0]["workspace_path"].as_str()?.to_owned();
        fleet.cli(["log", &task]).stdout.contains("two").then_some(path)
    });
    let mut follower = Follower::of(&fleet, &["log", &task, "--follow"]);
    assert_eq!(follower.until(|_| true), "one");

    std::fs::write(format!("{workspace}/go"), "").unwrap();

    follower.until(|line| line == "three");
    assert!(follower.lines.next().is_none(), "the run has ended");
    fleet.wait_for(&task, "done");
    assert_eq!(fleet.cli(["log", &task]).ok().stdout, "one\ntwo\nthree\n");
    // `log` counts as that of `hermes kanban` does, `logs` as docker does.
    assert_eq!(fleet.cli(["log", &task, "--tail", "6"]).ok().stdout, "three\n");
    assert_eq!(fleet.cli(["logs", &task, "--bytes", "6"]).ok().stdout, "three\n");
    assert_eq!(fleet.cli(["logs", &task, "--tail", "2"]).ok().stdout, "two\nthree\n");
    let nothing = fleet.cli(["logs", &task, "-n", "0"]).ok();
    assert_eq!((nothing.stdout.as_str(), nothing.stderr.as_str()), ("", ""));
    assert_eq!(fleet.json(["log", &task, "--run", "1"])["ended"], true);
    fleet.cli(["log", &task, "--run", "99"]).refused(3, "no run 99");
}

#[test]
fn control_characters_of_a_worker_do_not_reach_the_terminal() {
    let fleet = Fleet::boot();
    let task = fleet.create("paints", r"printf 'a\033[31mb\007c\n'; printf 'd\033]0;x\007e\n'", &[]);
    fleet.wait_for(&task, "done");
    for args in [["log", &task], ["show", &task], ["runs", &task], ["tail", &task]] {
        if args[0] == "tail" {
            let line = Follower::of(&fleet, &args).until(|line| line.contains("completed"));
            assert!(!line.contains('\x1b'), "{line:?}");
        } else {
            let text = fleet.cli(args).ok().stdout;
            assert!(!text.contains(['\x1b', '\x07']), "{args:?}: {text:?}");
        }
    }
}

#[test]
fn status_without_a_daemon_says_so_with_its_code() {
    let fleet = Fleet::offline();
    let _tidy = tidy();
    fleet.json(["create", "a"]);
    let status = fleet.cli(["status"]);
    assert_eq!(status.code, 3);
    assert_snapshot!(status.stdout, @r"
    ○ no daemon is running; start one with: supervisor daemon
      root [dir]/r, board default: 1 ready

    Waiting
    t_[id]  a: has no assignee: `supervisor assign t_[id] <assignee>`
    ");
    let status = fleet.cli(["status", "--json"]);
    assert_eq!((status.code, &status.json()["daemon"]), (3, &Value::Null));
}

#[test]
fn status_shows_each_live_worker_with_what_it_uses_and_what_confines_it() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "supervisor heartbeat --note here; while [ ! -e go ]; do sleep 0.02; done";
        let task = fleet.create("lives", script, &["--tenant", "acme", "--max-runtime", "1h"]);
        let worker = fleet.eventually("the worker runs and has had a heartbeat", || {
            let status = fleet.json(["status"]);
            let worker = status["workers"].as_array()?.first()?.clone();
            let beats = worker["last_heartbeat_at"].is_number() && worker["phase"] == "running";
            beats.then_some(worker)
        });
        assert_eq!(
            (&worker["task"], &worker["profile"], &worker["tenant"], &worker["phase"]),
            (&json!(task), &json!("shell"), &json!("acme"), &json!("running"))
        );
        assert!(worker["left_seconds"].as_u64().unwrap() > 3000, "{worker:#}");
        assert!(worker["usage"]["memory_bytes"].as_u64().unwrap() > 0, "{worker:#}");
        let pid = worker["pid"].as_i64().unwrap();
        let seen = fleet.processes_with(&format!("SUPERVISOR_TASK={task}"));
        assert!(seen.iter().any(|process| i64::from(process.pid) == pid), "{seen:#?}");
        assert!(!worker["sandbox"].as_str().unwrap().is_empty(), "{worker:#}");
        let daemon = &fleet.json(["status"])["daemon"];
        assert_eq!(daemon["pid"], fleet.daemon_pid());
        let text = fleet.cli(["status", "--tenant", "acme"]).ok().stdout;
        for word in [task.as_str(), "running", "shell", "acme", "Live workers"] {
            assert!(text.contains(word), "`{word}` is not in\n{text}");
        }
        assert_eq!(fleet.json(["status", "--tenant", "other"])["workers"], json!([]));
        fleet.cli(["status", "--watch", "--interval", "-1"]).refused(2, "-1 is not a valid interval");
        let mut watch = Follower::of(&fleet, &["status", "--watch", "--interval", "0.1"]);
        for _ in 0..2 {
            // Nothing moves the cursor in what reads a pipe.
            let line = watch.until(|line| line.contains(&task));
            assert!(!line.contains('\x1b'), "{line:?}");
        }

        std::fs::write(format!("{}/go", worker["workspace_path"].as_str().unwrap()), "").unwrap();

        fleet.wait_for(&task, "done");
        fleet.eventually("nobody works any more", || {
            (fleet.json(["status"])["workers"] == json!([])).then_some(())
        });
    }
}

#[test]
fn what_waits_says_what_it_waits_for() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nmax_running = 1\n");
    fleet.start();
    let first = fleet.create("first", "while [ ! -e go ]; do sleep 0.02; done", &[]);
    let path = fleet.eventually("the first runs", || {
        fleet.show(&first)["runs"][0]["workspace_path"].as_str().map(str::to_owned)
    });
    let second = fleet.create("second", "true", &[]);
    let child = fleet.create("child", "true", &["--parent", &second]);
    let blocked = fleet.create("held", "true", &["--initial-status", "blocked"]);
    let ghost = fleet.json(["create", "x", "--assignee", "ghost"])["id"].as_str().unwrap().to_owned();

    let waiting = fleet.eventually("everything that waits is shown", || {
        let waiting = fleet.json(["status"])["waiting"].as_array()?.clone();
        (waiting.len() == 4).then_some(waiting)
    });

    let why =
        |task: &str| waiting.iter().find(|one| one["task"] == task).unwrap()["why"]["text"].as_str().unwrap();
    assert!(why(&second).contains("slot"), "{}", why(&second));
    assert!(why(&child).contains(&second), "{}", why(&child));
    assert!(!why(&blocked).is_empty());
    assert!(why(&ghost).contains("ghost"), "{}", why(&ghost));
    std::fs::write(format!("{path}/go"), "").unwrap();
    fleet.wait_for(&child, "done");
}
