//! Workers at terminals: people look, one of them types, and everybody's terminal is as it was afterwards.

use std::fs;
use std::io::read_to_string;
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{Fleet, Screen, User};
use crate::http::Http;

/// A lane whose workers are the scripts of their tasks, at a terminal.
const LANE: &str = r#"argv = ["/bin/sh", "{prompt_file}"]
prompt = "body-file"
terminal = "100x30"
on_clean_exit = "complete"
"#;

/// A task at a terminal, which has begun: its first word is `ready`.
fn begun(user: User, script: &str) -> (Fleet, String) {
    let fleet = Fleet::offline_as(user);
    fleet.lane("pty", LANE);
    fleet.start();
    let task =
        fleet.json(["create", "at a terminal", "--assignee", "pty", "--max-retries", "1", "--body", script]);
    let task = task["id"].as_str().unwrap().to_owned();
    fleet.eventually("it has begun", || fleet.cli(["logs", &task]).stdout.contains("ready").then_some(()));
    (fleet, task)
}

fn attach(fleet: &Fleet, task: &str) -> Screen {
    Screen::run(&mut fleet.command(["attach", task]), 90, 25)
}

/// The events of a kind, with what they tell.
fn events_of(fleet: &Fleet, task: &str, kind: &str) -> Vec<String> {
    let page = fleet.json(["events", "--task", task]);
    let events = page["events"].as_array().unwrap().iter().filter(|event| event["kind"] == kind);
    events.map(|event| event["payload"].to_string()).collect()
}

#[test]
fn a_person_types_at_the_terminal_of_a_worker_leaves_it_and_comes_back() {
    for user in User::all() {
        let script = "stty size; printf 'ready \\033]0;title\\007\\033]52;c;AAAA\\007\\033[6n\\033[1mbold\\033[0m\\n'; \
                      read line; echo \"got $line\"; stty size; read line; echo \"then $line\"";
        let (fleet, task) = begun(user, script);
        let mut screen = attach(&fleet, &task);
        screen.shows("Ctrl-] detaches");
        screen.shows("30 100");
        screen.shows("bold");
        screen.press("hello\r");
        screen.shows("got hello");
        screen.shows("25 90");
        screen.press("\x1d");
        screen.shows("Detached from the terminal. Run 1 continues");
        assert!(screen.end().success());
        assert_eq!(fleet.status_of(&task), "running");
        let who = fleet.eventually("it is recorded", || events_of(&fleet, &task, "terminal_typed").pop());
        assert!(who.contains("\"bytes\":6"), "{who}");
        assert_eq!(events_of(&fleet, &task, "terminal_taken").len(), 1);
        assert!(
            !fleet.cli(["events", "--task", &task, "--json"]).stdout.contains("hello"),
            "what was typed is not"
        );
        let mut screen = attach(&fleet, &task);
        screen.shows("got hello");
        screen.press("more\r");
        screen.shows("then more");
        screen.shows("the task is done");
        screen.loses("it has written nothing");
        assert!(screen.end().success());
        let shown = fleet.wait_for(&task, "done");
        let summary = shown["latest_summary"].as_str().unwrap();
        assert!(summary.contains("then more") && !summary.contains('\u{1b}'), "{summary:?}");
    }
}

#[test]
fn one_person_types_and_the_others_look() {
    let (fleet, task) = begun(User::current(), "echo ready; while read line; do echo \"got $line\"; done");
    let mut first = attach(&fleet, &task);
    first.shows("ready");
    first.press("one\r");
    first.shows("got one");
    let mut second = attach(&fleet, &task);
    second.shows("got one");
    second.shows("types here: you can watch");
    second.press("two\r");
    first.press("three\r");
    second.shows("got three");
    assert!(!second.text().contains("two"), "{}", second.text());
    fleet.cli(["type", &task, "four", "--enter"]).refused(4, "types at the terminal of run 1");
    first.press("\x1d");
    assert!(first.end().success());
    second.press("five\r");
    second.shows("got five");
    second.press("\x1d");
    assert!(second.end().success());
}

#[test]
fn an_attached_terminal_outlives_the_daemon_and_is_given_back_at_a_signal() {
    let (fleet, task) = begun(User::current(), "echo ready; while read line; do echo \"got $line\"; done");
    let mut screen = attach(&fleet, &task);
    screen.shows("ready");
    fleet.kill_daemon();
    fleet.start();
    screen.press("again\r");
    screen.shows("got again");
    screen.signal(Signal::SIGTERM);
    assert_eq!(screen.end().code(), Some(143));
    assert_eq!(fleet.status_of(&task), "running");
}

#[test]
fn who_attaches_and_never_reads_keeps_nobody() {
    let (fleet, task) = begun(User::current(), "trap 'exit 0' INT; echo ready; yes");
    let deaf = Screen::run(&mut fleet.command(["attach", &task]), 90, 25);
    fleet.eventually("its terminal takes no more", || deaf.is_full().then_some(()));
    let mut reader = attach(&fleet, &task);
    reader.shows("y\ny\ny");
    deaf.signal(Signal::SIGTERM);
    reader.press("\x1d");
    assert!(reader.end().success());
    fleet
        .eventually("the keyboard is free", || (fleet.cli(["type", &task, "\u{3}"]).code == 0).then_some(()));
    fleet.wait_for(&task, "done");
    assert_eq!(deaf.end().code(), Some(143));
}

#[test]
fn the_log_of_a_worker_that_writes_faster_than_anybody_reads_is_shown_as_it_stands() {
    let (fleet, task) = begun(User::current(), "trap 'exit 0' INT; echo ready; yes");
    for _ in 0..5 {
        // Each of them ends, though the worker goes on.
        assert!(fleet.cli(["logs", &task]).ok().stdout.contains('y'));
        assert!(fleet.cli(["logs", &task, "-n", "3"]).ok().stdout.starts_with("y\n"));
    }
    fleet
        .eventually("its end is asked for", || (fleet.cli(["type", &task, "\u{3}"]).code == 0).then_some(()));
    fleet.wait_for(&task, "done");
}

#[test]
fn who_looks_goes_on_when_the_log_was_cut() {
    let fleet = Fleet::offline();
    fleet.lane("pty", LANE);
    fleet.configure("[worker]\nlog_cap = 4096\n");
    fleet.start();
    // Each round fills the log more than once, and the last word of it is what a person waits for.
    let script = "stty -echo; echo ready; n=0; while read word; do n=$((n + 1)); \
                  seq 10000 11500; echo \"round $n of $word\"; done";
    let task = fleet.json(["create", "a flood", "--assignee", "pty", "--max-retries", "1", "--body", script]);
    let task = task["id"].as_str().unwrap().to_owned();
    let mut follower = fleet.command(["logs", &task, "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut screen = attach(&fleet, &task);
    screen.shows("ready");
    for (round, word) in [(1, "one"), (2, "two"), (3, "three")] {
        screen.press(&format!("{word}\r"));
        screen.shows(&format!("round {round} of {word}"));
    }
    let log = fleet.show(&task)["runs"][0]["log_path"].as_str().unwrap().to_owned();
    assert!(fs::metadata(log).unwrap().len() <= 4096);
    // The end of its input ends the script, and the last of it is shown.
    screen.press("\u{4}");
    screen.shows("the task is done");
    assert!(screen.end().success());
    assert!(follower.wait().unwrap().success());
    let said = read_to_string(follower.stdout.take().unwrap()).unwrap();
    assert!(said.contains("round 3 of three"), "{said}");
}

#[test]
fn keys_are_typed_by_a_command_and_refused_where_there_is_no_terminal() {
    let (fleet, task) =
        begun(User::current(), "echo ready; read line; echo \"got $line\"; stty raw -echo; sleep 600");
    let said = fleet.cli(["type", &task, "it's", "--enter"]).ok().stdout;
    assert!(said.starts_with("Typed 5 bytes at the terminal of run 1 of t_"), "{said}");
    fleet.eventually("it is read", || fleet.cli(["logs", &task]).stdout.contains("got it's").then_some(()));
    let who = events_of(&fleet, &task, "terminal_typed");
    assert!(who.len() == 1 && who[0].contains("\"bytes\":5"), "{who:?}");
    fleet.cli(["type", &task]).refused(2, "nothing to type");
    fleet.cli(["type", &task, &"x".repeat(5000)]).refused(2, "at most 4093");
    let full = fleet.eventually("it is full", || {
        let typed = fleet.cli(["type", &task, &"x".repeat(4000)]);
        (typed.code != 0).then_some(typed)
    });
    full.refused(75, "does not read what was typed before");
    let plain = fleet.create("plain", "sleep 600", &[]);
    fleet.wait_for(&plain, "running");
    fleet.cli(["type", &plain, "x"]).refused(4, "run 2 has no terminal");
    fleet.cli(["cancel", &plain]).ok();
    fleet.wait_for(&plain, "blocked");
    fleet.cli(["type", &plain, "x"]).refused(4, "has no worker");
    // Without a terminal of one's own the stream is lines, which drive nothing.
    let lines = fleet.command(["logs", &task]).output().unwrap();
    assert!(!String::from_utf8_lossy(&lines.stdout).contains('\u{1b}'));
}

#[test]
fn who_hangs_up_while_it_types_leaves_the_keyboard_free() {
    let fleet = Fleet::offline();
    fleet.lane("pty", LANE);
    let hangs = fleet.home().join("hangs");
    fleet.start_by(
        fleet.command(["daemon"]).env("SUPERVISOR_HANG_POINT", format!("begin@{}", hangs.display())),
    );
    let script = "stty -echo; echo ready; while read line; do echo \"got $line\"; done";
    let task =
        fleet.json(["create", "at a terminal", "--assignee", "pty", "--max-retries", "1", "--body", script]);
    let task = task["id"].as_str().unwrap().to_owned();
    fleet.eventually("it has begun", || fleet.cli(["logs", &task]).stdout.contains("ready").then_some(()));
    // Nothing is written to any board as long as the file is there.
    fs::write(&hangs, "").unwrap();
    let first = || fleet.command(["type", &task, "first", "--enter"]).stderr(Stdio::null()).spawn().unwrap();
    let mut gone = first();
    let key = fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    let door = Http::at(fleet.root().join("run/supervisor.sock")).with("x-supervisor-key", &key);
    let other = |leave| {
        let typed = json!({ "task_id": task, "holder": "other", "leave": leave });
        door.post("/api/v1/verbs/type", &typed).json(200)
    };
    fleet.eventually("it has the keyboard, and waits for the board", || {
        let typist = other(false)["typist"].clone();
        other(true);
        if gone.try_wait().unwrap().is_some() {
            // It came when the other one had the keyboard.
            gone = first();
        }
        typist.is_string().then_some(())
    });
    gone.kill().unwrap();
    gone.wait().unwrap();
    fs::remove_file(&hangs).unwrap();
    fleet.eventually("the keyboard is free", || {
        (fleet.cli(["type", &task, "second", "--enter"]).code == 0).then_some(())
    });
    fleet.eventually("both are typed", || {
        let log = fleet.cli(["logs", &task]).stdout;
        (log.contains("got second") && log.contains("got first")).then_some(())
    });
}

#[test]
fn a_lane_at_a_terminal_is_shown_and_one_that_cannot_be_is_refused() {
    let fleet = Fleet::offline();
    fleet.lane("pty", LANE);
    let shown = fleet.cli(["lane", "show", "pty"]).ok().stdout;
    assert!(shown.contains("terminal") && shown.contains("100x30"), "{shown}");
    fleet.lane("deaf", "argv = [\"/bin/sh\"]\nterminal = true\n");
    let defect = fleet.cli(["doctor", "--json"]).stdout;
    assert!(defect.contains("its standard input is the terminal"), "{defect}");
}

#[test]
fn a_message_of_a_person_in_lines_is_still_one() {
    let (fleet, task) = begun(User::current(), "echo ready; read line; echo \"got $line\"");
    // Standard output is no terminal: nothing drives one, and no key goes to the worker.
    let mut command = fleet.command(["attach", &task]);
    let output =
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    fleet.cli(["type", &task, "x", "--enter"]).ok();
    let output = output.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("got x") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn what_was_drawn_below_the_cursor_is_gone_when_a_person_leaves() {
    let script = "printf 'ready\\n> \\r\\n-- the foot --\\033[1A\\033[3G'; read line";
    let (fleet, task) = begun(User::current(), script);
    let mut screen = attach(&fleet, &task);
    screen.shows("-- the foot --");
    screen.press("\x1d");
    screen.shows("Detached from the terminal. Run 1 continues");
    screen.loses("-- the foot --");
    assert!(screen.end().success());
}
