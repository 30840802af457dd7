//! Breakers: what fails again and again is tried a few times and then seldom, over a restart too, until it works or a person releases it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::harness::{Fleet, User};

/// A lane of a program that is not there.
fn missing(fleet: &Fleet) -> std::path::PathBuf {
    let program = fleet.home().join("agent");
    let argv = program.to_str().unwrap();
    fleet.lane(
        "agent",
        &format!("argv = [{argv:?}]\npolicy = \"unconfined\"\non_clean_exit = \"complete\"\n"),
    );
    program
}

/// Returns the number of starts of these tasks.
fn starts(fleet: &Fleet, tasks: &[String]) -> u64 {
    let of = |task: &String| {
        let shown = fleet.show(task);
        let runs = shown["runs"].as_array().unwrap().clone();
        runs.iter().map(|run| run["tries"].as_u64().unwrap_or(1)).sum::<u64>()
    };
    tasks.iter().map(of).sum()
}

/// The open breakers of the board.
fn open(fleet: &Fleet) -> Vec<String> {
    let holds = fleet.json(["holds"]);
    let breakers = holds.as_array().unwrap().iter().filter(|hold| hold["kind"] == "breaker");
    breakers.map(|hold| hold["name"].as_str().unwrap().to_owned()).collect()
}

fn kinds(found: &Value) -> Vec<String> {
    let findings = found.as_array().unwrap().iter();
    let diagnostics = findings.flat_map(|one| one["diagnostics"].as_array().unwrap().clone());
    diagnostics.map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
}

/// A task that a running daemon has done, so that it has decided what else may start.
fn settle(fleet: &Fleet) {
    fleet.wait_for(&fleet.create("works", "true", &[]), "done");
}

#[test]
fn what_is_missing_is_tried_five_times_over_a_restart() {
    let fleet = Fleet::offline();
    let program = missing(&fleet);
    let place = fleet.home().join("place");
    fs::create_dir(&place).unwrap();
    if User::current() == User::Root {
        std::os::unix::fs::chown(&place, Some(4711), Some(4711)).unwrap();
    }
    let of_lane: Vec<String> = (0..3)
        .map(|_| fleet.json(["create", "x", "--assignee", "agent"])["id"].as_str().unwrap().to_owned())
        .collect();
    let workspace = format!("dir:{}", place.display());
    let of_place: Vec<String> =
        (0..2).map(|_| fleet.create("there", "true", &["--workspace", &workspace])).collect();
    fs::remove_dir(&place).unwrap();
    fleet.start();

    let names = ["program:agent/unconfined".to_owned(), workspace.clone()];
    fleet.eventually("both breakers are open", || {
        let open = open(&fleet);
        names.iter().all(|name| open.contains(name)).then_some(())
    });
    assert_eq!((starts(&fleet, &of_lane), starts(&fleet, &of_place)), (5, 5));
    settle(&fleet);
    let told = |task: &str| {
        fleet.eventually("its task says what it waits for", || {
            let why = fleet.show(task)["why"].clone();
            let text = why["text"].as_str().unwrap_or_default().to_owned();
            (why["code"] == "environment" && text.contains("release --environment")).then_some(text)
        })
    };
    assert!(told(&of_lane[2]).contains("`supervisor release --environment program:agent/unconfined`"));
    let status = fleet.cli(["status"]);
    assert!(status.code == 1 && status.stdout.contains("does not work"), "{}", status.stdout);
    assert!(kinds(&fleet.json(["diagnostics"])).contains(&"breaker_open".to_owned()));
    let metrics = fleet.cli(["metrics"]).ok().stdout;
    assert!(metrics.contains("supervisor_breakers_open 2"), "{metrics}");
    let events = fleet.json(["events", "--kind", "held", "--limit", "100"]).to_string();
    assert!(events.contains("program:agent/unconfined"), "{events}");

    fleet.restart();
    settle(&fleet);
    told(&of_lane[0]);
    told(&of_place[0]);
    assert_eq!((starts(&fleet, &of_lane), starts(&fleet, &of_place)), (5, 5), "sticky");

    fs::write(&program, "#!/bin/sh\necho here\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fleet.give(&program);
    fleet.cli(["release", "--environment", "program:agent/unconfined"]).ok();
    for task in &of_lane {
        fleet.wait_for(task, "done");
    }
    assert_eq!(open(&fleet), [workspace.as_str()], "the other one blocks its own tasks alone");
    fs::create_dir(&place).unwrap();
    if User::current() == User::Root {
        std::os::unix::fs::chown(&place, Some(4711), Some(4711)).unwrap();
    }
    // A reload has what is open tried once.
    fleet.cli(["service", "reload"]).ok();
    for task in &of_place {
        fleet.wait_for(task, "done");
    }
    fleet.eventually("nothing is open", || open(&fleet).is_empty().then_some(()));
    fleet.cli(["release", "--environment", "program:agent/unconfined"]).refused(4, "is not held");
}

#[test]
fn a_worker_that_dies_says_nothing_or_meets_a_limit_is_started_no_more_often_than_it_may() {
    let fleet = Fleet::offline();
    fleet.lane("mute", "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\n");
    fleet.start();
    let create = |assignee: &str, script: &str| {
        let words = ["create", "x", "--assignee", assignee, "--body", script, "--max-retries", "2"];
        fleet.json(words)["id"].as_str().unwrap().to_owned()
    };
    let dies = create("shell", "exit 3");
    let mute = create("mute", "exit 0");
    let limited = create("shell", "exit 75");
    for task in [&dies, &mute] {
        fleet.wait_for(task, "blocked");
    }
    fleet.wait_for(&limited, "scheduled");

    fleet.restart();
    settle(&fleet);
    for (task, runs) in [(&dies, 2), (&mute, 2), (&limited, 1)] {
        assert_eq!(starts(&fleet, std::slice::from_ref(task)), runs, "{:#}", fleet.show(task));
    }
}

#[test]
fn a_tenant_whose_every_start_dies_starts_nothing_and_no_other_waits_for_it() {
    let fleet = Fleet::offline();
    let strict = "[limits]\nmax_running = 1\n[dispatch]\nmax_deaths = 3\n";
    fleet.configure(strict);
    let dies = ["--tenant", "acme", "--max-retries", "1"];
    let tasks: Vec<String> = (0..11).map(|_| fleet.create("dies", "exit 1", &dies)).collect();
    fleet.start();

    let stopped = |of: u64| {
        fleet.eventually("the breaker of the tenant is open", || {
            let why = fleet.show(&tasks[10])["why"].clone();
            let text = why["text"].as_str().unwrap_or_default();
            (why["code"] == "host" && text.contains("3 runs in a row failed within 2 s")).then_some(())
        });
        fleet.eventually("it is kept", || (open(&fleet) == ["host/acme"]).then_some(()));
        assert_eq!(starts(&fleet, &tasks), of);
    };
    stopped(3);
    let status = fleet.cli(["status"]);
    assert_eq!(status.code, 1, "{}", status.stdout);
    assert!(status.stdout.contains("dispatch for tenant acme: it does not work"), "{}", status.stdout);
    assert!(status.stdout.contains("3 runs in a row failed within 2 s"), "{}", status.stdout);
    assert_eq!(fleet.json(["dispatch", "--dry-run"])["spawned"], serde_json::json!([]));
    for tenant in [&["--tenant", "other"][..], &[]] {
        let other = fleet.create("lives", "true", tenant);
        fleet.wait_for(&other, "done");
    }

    fleet.restart();
    stopped(3);
    fleet.cli(["release", "--host-of", "other"]).refused(4, "dispatch for tenant other is not held");
    let held = fleet.cli(["holds"]);
    assert!(held.stdout.contains("dispatch for tenant acme"), "{}", held.stdout);
    fleet.cli(["release", "--host-of", "acme"]).ok();
    stopped(6);
    let released = fleet.cli(["release", "--host"]).ok();
    assert_eq!(released.stdout, "Released dispatch for tenant acme\n");
    stopped(9);
    fleet.configure("[dispatch]\nmax_deaths = 0\n");
    // A reload has one tried, and it may die now.
    fleet.cli(["service", "reload"]).ok();
    fleet.wait_for(&tasks[10], "blocked");
    fleet.eventually("nothing is open", || open(&fleet).is_empty().then_some(()));
    fleet.cli(["release", "--host"]).refused(4, "is not held");
}
