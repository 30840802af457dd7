//! `top` on a real terminal: a person sees the board, acts on it, and keeps the terminal whatever ends the view.

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use crate::harness::{Fleet, Screen, User};

/// A worker that asks, and goes on with the answer.
const ASKS: &str = "if supervisor context | grep '^> Answer: SQLite'; then exit 0; fi
    supervisor block --kind needs_input --question 'which database?' --choice PostgreSQL --choice SQLite";

fn top(fleet: &Fleet, columns: u16, rows: u16) -> Screen {
    Screen::run(&mut fleet.command(["top"]), columns, rows)
}

#[test]
fn a_person_answers_reads_a_log_cancels_and_sees_a_daemon_come_back() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let asks = fleet.create("store the figures", ASKS, &[]);
        fleet.wait_for(&asks, "blocked");
        let works = fleet.create("work for long", "echo awake; exec sleep 600", &[]);
        fleet.wait_for(&works, "running");
        let mut screen = top(&fleet, 80, 24);
        screen.shows("NEEDS A PERSON (1)");
        screen.shows("which database?");
        screen.shows("RUNNING (1)");

        screen.press("a");
        screen.shows("> 1. PostgreSQL");
        screen.press("2");
        screen.shows(&format!("answered {asks}: SQLite"));
        screen.shows("DONE (1)");
        assert_eq!(fleet.wait_for(&asks, "done")["comments"][0]["body"], "which database?\nAnswer: SQLite");

        screen.press("g");
        screen.shows(&format!("> {works}"));
        screen.press("\r");
        screen.shows("awake");
        screen.press("q");
        screen.shows("DONE (1)");

        fleet.kill_daemon();
        screen.shows("connection lost, trying again");
        screen.shows(&format!("> {works}"));
        fleet.start();
        screen.loses("connection lost");
        screen.shows("work for long");

        screen.press("c");
        screen.shows("Cancel the task? [y/n]");
        screen.press("y");
        screen.shows(&format!("cancelled {works}"));
        fleet.wait_for(&works, "blocked");
        screen.shows("NEEDS A PERSON (1)");
        // It asks nothing: it is tried again when somebody says so.
        screen.press("g");
        screen.shows("blocked");
        screen.shows("r retry");
        screen.press("q");
        assert!(screen.end().success());
    }
}

#[test]
fn a_start_is_denied_a_task_reprioritized_and_the_list_is_narrowed() {
    let fleet = Fleet::offline();
    let create = |title: &str, more: &[&str]| {
        let created = fleet.json([&["create", title], more].concat());
        created["id"].as_str().unwrap().to_owned()
    };
    let approval = ["--tenant", "acme", "--require-approval", "--approval-class", "spend"];
    let task = create("draft the notes", &approval);
    let other = create("read the logs", &[]);
    let mut screen = top(&fleet, 120, 30);
    screen.shows("no daemon is running");
    screen.shows("NEEDS A PERSON (1)");

    screen.press("A");
    screen.shows("waits for the approval of a person");
    screen.press("n");
    screen.shows("Why not?");
    screen.press("too expensive\r");
    screen.shows(&format!("denied {task}"));
    screen.shows("triage");
    assert_eq!(fleet.show(&task)["comments"][0]["body"], "too expensive");

    screen.press("G");
    screen.shows(&format!("> {other}"));
    screen.press("+");
    screen.shows(&format!("the priority of {other} is 1"));
    assert_eq!(fleet.show(&other)["task"]["priority"], 1);

    screen.press("tacme\r");
    screen.loses("read the logs");
    screen.press("\x1b");
    screen.shows("read the logs");
    screen.press("/logs\r");
    screen.loses("draft the notes");
    screen.press("q");
    assert!(screen.end().success());
}

#[test]
fn the_terminal_is_given_back_when_a_signal_ends_or_stops_the_view() {
    let fleet = Fleet::offline();
    fleet.json(["create", "a\u{202e}task"]);
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129), (Signal::SIGINT, 130)] {
        let mut screen = top(&fleet, 80, 24);
        screen.shows("a\\u{202e}task");
        assert!(!screen.is_as_before());
        screen.signal(signal);
        assert_eq!(screen.end().code(), Some(code));
    }
    let mut screen = top(&fleet, 80, 24);
    screen.shows("a\\u{202e}task");
    for stop in ["signal", "key"] {
        match stop {
            "signal" => screen.signal(Signal::SIGTSTP),
            _ => screen.press("\x1a"),
        }
        let stopped = waitpid(screen.pid(), Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert!(matches!(stopped, WaitStatus::Stopped(..)), "{stopped:?}");
        assert!(screen.is_as_before(), "after a {stop}");
        screen.signal(Signal::SIGCONT);
        screen.press("?");
        screen.shows("redraw the screen");
        screen.press("x");
        screen.loses("redraw the screen");
        screen.shows("a\\u{202e}task");
    }
    screen.press("\x03");
    assert!(screen.end().success());
}

#[test]
fn what_is_no_terminal_is_refused_with_the_command_for_scripts() {
    let fleet = Fleet::offline();
    fleet.cli(["top"]).refused(2, "draws on a terminal");
    fleet.cli(["top", "--json"]).refused(2, "writes no JSON");
}

#[test]
fn the_list_is_narrow_from_the_start_where_that_is_asked_for() {
    let fleet = Fleet::offline();
    for (title, tenant) in
        [("draft the notes", "acme"), ("read the logs", "acme"), ("read the logs too", "globex")]
    {
        fleet.json(["create", title, "--tenant", tenant]);
    }
    let mut command = fleet.command(["top", "--tenant", "acme", "--search", "logs"]);
    let mut screen = Screen::run(&mut command, 120, 20);
    screen.shows("READY (1)");
    assert!(!screen.text().contains("logs too"), "{}", screen.text());
    screen.press("\x1b");
    screen.shows("draft the notes");
    screen.press("\x1b");
    screen.shows("read the logs too");
    screen.press("q");
    drop(command);
    assert!(screen.end().success());
}
