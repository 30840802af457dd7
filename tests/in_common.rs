//! Verbs about all tasks that have something in common.

use crate::daily::{GATED, begun};
use crate::harness::Fleet;

#[test]
fn tasks_are_meant_by_what_they_have_in_common() {
    let fleet = Fleet::offline();
    let acme = fleet.create("an idea", "true", &["--tenant", "acme"]);
    let other = fleet.create("other", "true", &[]);
    let refused = fleet.cli(["cancel", "--status", "ready", "--tenant", "acme"]);
    refused.refused(2, "1 task would be changed, and there is no terminal to confirm it at");
    let looked = fleet.cli(["cancel", "--status", "ready", "--dry-run"]).ok().stdout;
    assert!(looked.contains(&acme) && looked.contains(&other), "{looked}");
    assert_eq!(fleet.status_of(&acme), "ready");

    fleet.cli(["cancel", "--tenant", "acme", "--yes"]).ok();

    assert_eq!((fleet.status_of(&acme), fleet.status_of(&other)), ("blocked".to_owned(), "ready".to_owned()));
    fleet.cli(["retry", "--assignee", "shell", "--status", "blocked", "-y"]).ok();
    assert_eq!(fleet.status_of(&acme), "ready");
    fleet.cli(["archive", "--search", "IDEA", "--since", "1h", "--yes"]).ok();
    assert_eq!(
        (fleet.status_of(&acme), fleet.status_of(&other)),
        ("archived".to_owned(), "ready".to_owned())
    );
    let none = fleet.cli(["unblock", "--status", "blocked", "--yes"]).ok();
    assert!(none.stderr.contains("No task matches"), "{none:?}");
    fleet.cli(["cancel", "--yes", &other]).refused(2, "selected by flags");
    fleet.cli(["cancel", &other, "--status", "ready"]).refused(2, "");
}

#[test]
fn finished_work_is_retried_by_what_it_has_in_common_only_where_its_status_is_named() {
    let fleet = Fleet::boot();
    let of_acme = |title: &str, body: &str, more: &[&str]| {
        fleet.create(title, body, &[&["--tenant", "acme", "--max-retries", "1"], more].concat())
    };
    let done = of_acme("finished", "true", &[]);
    let later = of_acme("later", "true", &["--not-before", "1000d"]);
    let failed = of_acme("failed", "exit 3", &[]);
    let asks = of_acme("asks", "supervisor block 'which one?'; sleep 100", &[]);
    fleet.wait_for(&done, "done");
    fleet.wait_for(&failed, "blocked");
    fleet.wait_for(&asks, "blocked");
    let ids = |args: &[&str]| {
        let listed = fleet.json(args);
        let mut ids: Vec<String> =
            listed.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    let mut blocked = [failed.clone(), asks.clone()];
    blocked.sort();
    assert_eq!(ids(&["retry", "--tenant", "acme", "--dry-run"]), blocked);
    assert_eq!(ids(&["retry", "--failed", "--dry-run"]), std::slice::from_ref(&failed));
    assert_eq!(ids(&["retry", "--tenant", "acme", "--status", "done,scheduled", "--dry-run"]).len(), 2);

    fleet.cli(["retry", "--failed", "-y"]).ok();

    fleet
        .eventually("it failed again", || (fleet.show(&failed)["runs"].as_array()?.len() == 2).then_some(()));
    assert_eq!(fleet.show(&done)["runs"].as_array().unwrap().len(), 1);
    assert_eq!(fleet.status_of(&later), "scheduled");
    let none = fleet.cli(["retry", "--assignee", "nobody", "--dry-run"]).ok();
    assert!(none.stderr.contains("No task in blocked matches"), "{none:?}");
}

#[test]
fn tasks_are_assigned_killed_reopened_and_brought_back_by_what_they_have_in_common() {
    let fleet = Fleet::boot();
    let (one, two) = (fleet.create("one", "true", &[]), fleet.create("two", "true", &[]));
    let waits = fleet.create("waits", "true", &["--not-before", "1000d", "--tenant", "acme"]);
    let slow = fleet.create("slow", GATED, &["--tenant", "acme"]);
    begun(&fleet, &slow);
    for id in [&one, &two] {
        fleet.wait_for(id, "done");
    }
    let shown = fleet.cli(["kill", "--tenant", "acme", "--dry-run"]).ok().stdout;
    assert!(shown.contains(&slow) && !shown.contains(&waits), "{shown}");
    fleet.cli(["kill", "--tenant", "acme"]).refused(2, "1 task would be changed");
    fleet.cli(["kill", "--tenant", "acme", "-y"]).ok();
    fleet.wait_for(&slow, "blocked");
    let assigned = fleet.cli(["assign", "--tenant", "acme", "--to", "bob", "--yes"]).ok();
    assert_eq!(
        assigned.stdout.lines().filter(|line| line.starts_with("Assigned t_")).count(),
        2,
        "{assigned:?}"
    );
    assert_eq!(assigned.stderr.matches("bob").count(), 1, "{assigned:?}");
    assert_eq!(fleet.show(&waits)["task"]["assignee"], "bob");
    fleet.cli(["archive", &one, &two]).ok();
    fleet.cli(["unarchive", "--assignee", "shell", "-y"]).ok();
    assert_eq!((fleet.status_of(&one), fleet.status_of(&two)), ("done".to_owned(), "done".to_owned()));
    fleet.cli(["reopen", "--search", "one", "--yes", "--reason", "again"]).ok();
    fleet.eventually("it ran again", || (fleet.show(&one)["runs"].as_array()?.len() == 2).then_some(()));
    assert_eq!(fleet.show(&two)["runs"].as_array().unwrap().len(), 1);
    fleet.cli(["kill", "--dry-run"]).refused(2, "select them with --status");
}

#[test]
fn tasks_are_held_released_and_promoted_by_what_they_have_in_common() {
    let fleet = Fleet::offline();
    let idea = fleet.create("an idea", "true", &["--triage", "--tenant", "acme"]);
    let acme = fleet.create("deploys", "true", &["--tenant", "acme"]);
    let other = fleet.create("deploys elsewhere", "true", &[]);
    let held = || {
        let holds = fleet.json(["holds"]);
        let names = holds.as_array().unwrap().iter().map(|hold| hold["name"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let asked = ["hold", "--search", "deploys", "--tenant", "acme", "--reason", "not today"];
    fleet.cli(asked).refused(2, "1 task would be changed, and there is no terminal to confirm it at");
    let shown = fleet.cli([&asked[..], &["--dry-run"]].concat()).ok().stdout;
    assert!(shown.contains(&acme) && !shown.contains(&other), "{shown}");
    assert_eq!(held(), Vec::<String>::new());
    fleet.cli([&asked[..], &["--yes"]].concat()).ok();
    assert_eq!(held(), std::slice::from_ref(&acme), "the task and not its tenant");
    fleet.cli(["hold", "--status", "ready", "--profile", "shell", "--reason", "r"]).refused(2, "");
    fleet.cli(["hold", "--tenant", "acme", "--reason", "r", "--dry-run"]).refused(2, "selected by flags");

    // Of all that match, only what is held is released.
    let shown = fleet.cli(["release", "--assignee", "shell", "--dry-run"]).ok().stdout;
    assert!(shown.contains(&acme) && !shown.contains(&other), "{shown}");
    fleet.cli(["release", "--assignee", "shell", "-y"]).ok();
    assert_eq!(held(), Vec::<String>::new());
    let none = fleet.cli(["release", "--assignee", "shell", "-y"]).ok();
    assert!(none.stderr.contains("No task matches"), "{none:?}");

    let shown = fleet.cli(["promote", "--tenant", "acme", "--dry-run"]).ok().stdout;
    assert!(shown.contains(&idea) && !shown.contains(&acme), "{shown}");
    assert_eq!(fleet.status_of(&idea), "triage");
    let promoted = fleet.cli(["promote", "--tenant", "acme", "-y"]).ok().stdout;
    assert!(promoted.contains(&format!("Promoted {idea}")), "{promoted}");
    assert_eq!(fleet.status_of(&idea), "ready");
}
