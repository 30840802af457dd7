//! Texts for people: times, texts that a terminal must not obey, hints that lead somewhere.

use serde_json::Value;

use crate::harness::{Fleet, Output};

/// A time that no test reaches, in Berlin's winter: 08:00 UTC.
const LATER: &str = "2037-11-23 09:00";
const LATER_SECONDS: i64 = 2_142_576_000;

/// Runs a command in a time zone.
#[track_caller]
fn in_zone(fleet: &Fleet, zone: &str, args: &[&str]) -> Output {
    let mut command = fleet.command(args);
    Output::of(command.env("TZ", zone))
}

#[test]
fn a_local_time_is_the_callers_whatever_zone_the_daemon_has() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        let task = fleet.create("x", "true", &["--initial-status", "blocked"]);
        for args in [
            ["create", "later", "--not-before", LATER, "--json"].as_slice(),
            &["hold", &task, "--reason", "later", "--until", LATER, "--json"],
            &["schedule", &task, "--at", LATER, "--json"],
        ] {
            let reply: Value = in_zone(&fleet, "Europe/Berlin", args).ok().json();
            let at = [&reply["not_before"], &reply[0]["until"], &reply["starts_at"]];
            assert!(at.iter().any(|at| **at == LATER_SECONDS), "{args:?}: {reply}");
        }
    }
}

#[test]
fn times_are_shown_in_the_zone_of_the_reader_with_the_offset() {
    let fleet = Fleet::offline();
    let created = in_zone(&fleet, "Europe/Berlin", &["create", "later", "--not-before", LATER]).ok();
    assert!(created.stdout.contains("starts at 2037-11-23 09:00:00 +01:00"), "{}", created.stdout);
    let task = fleet.json(["list"])[0]["id"].as_str().unwrap().to_owned();
    for (zone, shown) in [
        ("UTC", "2037-11-23 08:00:00 +00:00"),
        ("America/New_York", "2037-11-23 03:00:00 -05:00"),
        ("Asia/Kolkata", "2037-11-23 13:30:00 +05:30"),
    ] {
        let text = in_zone(&fleet, zone, &["show", &task]).ok().stdout;
        assert!(text.contains(&format!("(at {shown})")), "{zone}: {text}");
        let again = in_zone(&fleet, "Pacific/Auckland", &["schedule", &task, "--at", shown, "--json"]).ok();
        assert_eq!(again.json()["starts_at"], LATER_SECONDS, "{shown} reads back as it was");
    }
}

#[test]
fn a_time_zone_that_nobody_knows_is_said_where_it_matters() {
    let fleet = Fleet::offline();
    let zone = "Mars/Olympus";
    in_zone(&fleet, zone, &["create", "x", "--not-before", LATER]).refused(2, "time zone");
    in_zone(&fleet, zone, &["create", "x", "--not-before", "2h"]).ok();
    in_zone(&fleet, zone, &["create", "x", "--not-before", "2037-11-23T09:00:00+01:00"]).ok();
}

/// Reorders text, hides in it, or drives a terminal of the C1 kind.
const TRICKS: [char; 6] = ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{9b}', '\u{e0041}'];

#[test]
fn no_text_of_others_drives_or_misleads_the_terminal() {
    let fleet = Fleet::boot();
    let all: String = TRICKS.iter().collect();
    // Of these only the controls are refused in a title.
    let title = format!("pay{}", all.replace('\u{9b}', ""));
    let script =
        format!("echo 'said {all}'; supervisor comment 'noted {all}'; supervisor block 'asks {all}'");
    let task = fleet.create(&title, &script, &[]);
    fleet.wait_for(&task, "blocked");
    for args in [
        ["show", &task].as_slice(),
        &["list", "--why"],
        &["status"],
        &["events"],
        &["context", &task],
        &["log", &task],
        &["runs", &task],
        &["comment", &task, &format!("again {all}")],
        &["create", &title],
        &["create", "x", "--workspace", &format!("dir:/{all}")],
        &["show", &title],
        &["list", "--tenant", &all],
        &["restore", &format!("/{all}")],
    ] {
        for json in [[].as_slice(), &["--json"]] {
            let output = fleet.cli([args, json].concat());
            let text = output.stdout + &output.stderr;
            assert!(!text.contains(TRICKS), "{args:?}: {text:?}");
        }
    }
    assert_eq!(fleet.show(&task)["task"]["title"], title, "JSON reads back what was written");
    assert!(!fleet.log().contains(TRICKS), "{}", fleet.log());
}

#[test]
fn an_empty_environment_variable_is_one_that_is_not_set() {
    let fleet = Fleet::offline();
    let mut command = std::process::Command::new(fleet.binary());
    fleet.dress(&mut command);
    for name in ["ROOT", "BOARD", "TENANT", "TOKEN", "TASK", "SOCKET"] {
        command.env(format!("SUPERVISOR_{name}"), "");
    }
    command.env("RUST_LOG", "").env("TZ", "").args(["--user", "create", "x", "--json"]);
    let created = Output::of(&mut command).ok().json();
    assert_eq!(created["tenant"], Value::Null);
    assert!(fleet.home().join(".local/state/supervisor/boards/default").is_dir());
}

#[test]
fn a_refused_command_line_gives_advice_that_works() {
    let fleet = Fleet::offline();
    fleet.cli(["init"]).ok();
    fleet.cli(["events", "--limit", "0"]).refused(2, "limit 0 is out of range");
    fleet.cli(["events", "--limit", "10001"]).refused(2, "limit 10001 is out of range");
    let negative =
        fleet.cli(["create", "x", "--max-retries", "-5"]).refused(2, "invalid value '-5' for '--max-retries");
    assert!(!negative.stderr.contains("tip:"), "{}", negative.stderr);
    let task = fleet.create("x", "true", &[]);
    fleet.cli(["comment", &task, "-5"]).ok();
    let missing = fleet.cli(["create"]).refused(2, "<TITLE>");
    assert!(missing.stderr.contains("Usage: supervisor create [OPTIONS] <TITLE>"), "{}", missing.stderr);
    let text = fleet.home().join("text");
    std::fs::write(&text, "no board at all\n".repeat(100)).unwrap();
    fleet.give(&text);
    let refused = fleet.cli(["restore", text.to_str().unwrap()]);
    assert!(
        refused.stderr.contains("hint: name a file written by `supervisor backup`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn system_and_user_choose_whose_service_is_meant() {
    let fleet = Fleet::offline();
    let host = fleet.home().join("host");
    std::fs::create_dir(&host).unwrap();
    fleet.give(&host);
    for (choice, board) in [("--system", "host/boards"), ("--user", ".local/state/supervisor/boards")] {
        let mut command = std::process::Command::new(fleet.binary());
        fleet.dress(&mut command);
        // The names that a unit of systemd gets its directories by.
        command
            .env("STATE_DIRECTORY", &host)
            .env("RUNTIME_DIRECTORY", &host)
            .env("CONFIGURATION_DIRECTORY", &host);
        let made = fleet.home().join(board);
        assert!(!made.exists());
        Output::of(command.args([choice, "create", "x"])).ok();
        assert!(made.is_dir(), "{choice}");
    }
}

#[test]
fn a_time_that_is_over_is_refused_or_warned_of_and_nothing_is_taken_that_means_nothing() {
    let fleet = Fleet::offline();
    let create =
        |more: &[&str]| fleet.cli([&["create", "x", "--assignee", "shell", "--body", "true"], more].concat());
    for past in ["2020-01-01", "2020-01-01T00:00:00Z", "1000000000"] {
        let created = create(&["--not-before", past, "--json"]).ok().json();
        assert_eq!(created["status"], "ready");
        assert!(created["warnings"].to_string().contains("has already passed"), "{created:#}");
    }
    let created = create(&["--not-before", "2h", "--json"]).ok().json();
    assert_eq!(created["status"], "scheduled");
    assert!(!created["warnings"].to_string().contains("is over"), "{created:#}");
    let task = created["id"].as_str().unwrap();
    for at in ["2020-01-01", "0"] {
        fleet.cli(["schedule", task, "--at", at]).refused(2, "at: that time has passed");
        fleet.cli(["hold", task, "--reason", "r", "--until", at]).refused(2, "until: that time has passed");
    }
    assert_eq!(fleet.status_of(task), "scheduled");
    create(&["--triage", "--initial-status", "blocked"]).refused(2, "in triage or blocked, not both");
    create(&["--triage", "--initial-status", "running"]).ok();
    // An empty text is in every task.
    fleet.cli(["cancel", "--search", "", "--yes"]).refused(2, "--search");
    fleet.cli(["list", "--search", ""]).refused(2, "--search");
    assert_eq!(fleet.status_of(task), "scheduled");
}
