//! Order of starts: a task that can start does, whatever waits before it. The rules that start tasks also explain
//! waits.

use serde_json::{Value, json};

use crate::harness::Fleet;

const WAITS: &str = "while [ ! -e \"$0.go\" ] && [ ! -e go ]; do sleep 0.02; done";

/// A second lane, like the one of the shell.
const LANE: &str =
    "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\non_clean_exit = \"complete\"\n";

/// The workspace of a directory that a worker may work in.
fn directory(fleet: &Fleet, name: &str) -> String {
    let place = fleet.home().join(name);
    std::fs::create_dir(&place).unwrap();
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&place, Some(65534), Some(65534)).unwrap();
    }
    format!("dir:{}", place.display())
}

fn why(fleet: &Fleet, task: &str) -> String {
    fleet.show(task)["why"]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_can_start_does_behind_any_number_of_tasks_that_cannot() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nmax_running = 3\nprofiles.slow = 1\n");
    fleet.lane("slow", LANE);
    let dir = directory(&fleet, "busy");
    let first = ["--priority", "9"];
    let mut behind = Vec::new();
    for n in 0..100 {
        let args = ["--workspace", dir.as_str(), first[0], first[1]];
        behind.push(fleet.create(&format!("there {n}"), WAITS, &args));
        let assignee = ["slow", "ghost", "spectre"][n % 3];
        fleet.json(["create", "x", "--assignee", assignee, "--priority", "8", "--body", WAITS]);
    }
    let free = fleet.create("free", "true", &[]);

    fleet.start();

    fleet.wait_for(&free, "done");
    fleet.eventually("both that hold things up run", || {
        (fleet.json(["stats"])["by_status"]["running"] == 2).then_some(())
    });
    assert!(why(&fleet, &behind[99]).contains("works there"), "{}", why(&fleet, &behind[99]));
    let plan = fleet.json(["dispatch", "--dry-run"]);
    assert_eq!(plan["spawned"], json!([]));
    assert_eq!(plan["skipped_per_profile_capped"].as_array().unwrap().len(), 33);
    assert_eq!(plan["skipped_per_profile_capped"][0]["current"], 1);
    let told = |one: &Value| one["why"]["text"].as_str().unwrap().contains("works there");
    assert_eq!(plan["waiting"].as_array().unwrap().iter().filter(|one| told(one)).count(), 99);
    fleet.eventually("each task that nothing can run has an event about it", || {
        let events = fleet.json(["events", "--kind", "skipped_nonspawnable", "--limit", "1000"]);
        (events["events"].as_array().unwrap().len() == 66).then_some(())
    });
    fleet.stop(&["--kill"]);
}

#[test]
fn a_dry_run_starts_what_the_pass_would_and_no_more() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nmax_running = 5\nper_tenant = 1\n");
    let dir = directory(&fleet, "shared");
    let acme = fleet.create("a", "true", &["--workspace", &dir, "--tenant", "acme", "--priority", "2"]);
    let same_place = fleet.create("b", "true", &["--workspace", &dir, "--priority", "1"]);
    let same_tenant = fleet.create("c", "true", &["--tenant", "acme"]);

    let plan = fleet.json(["dispatch", "--dry-run"]);

    let started: Vec<&Value> =
        plan["spawned"].as_array().unwrap().iter().map(|one| &one["task_id"]).collect();
    assert_eq!(started, [&json!(acme)]);
    let why = |task: &str| {
        let one = plan["waiting"].as_array().unwrap().iter().find(|one| one["task"] == task).unwrap();
        one["why"]["code"].as_str().unwrap().to_owned()
    };
    assert_eq!((why(&same_place).as_str(), why(&same_tenant).as_str()), ("workspace", "slot"));
}

#[test]
fn a_dry_run_beside_a_daemon_counts_what_runs() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nmax_running = 5\nper_tenant = 1\n");
    fleet.start();
    let holds = fleet.create("holds", "exec sleep 600", &["--tenant", "acme"]);
    fleet.wait_for(&holds, "running");
    let waits = fleet.create("waits", "true", &["--tenant", "acme"]);

    let plan = fleet.json(["dispatch", "--dry-run"]);

    assert_eq!(plan["spawned"], json!([]), "{plan:#}");
    assert_eq!(
        (&plan["waiting"][0]["task"], &plan["waiting"][0]["why"]["code"]),
        (&json!(waits), &json!("slot"))
    );
}

#[test]
fn a_tenant_that_fills_every_slot_it_may_leaves_one_to_those_that_come_later() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nmax_running = 3\n");
    let running = |tasks: &[String]| tasks.iter().filter(|task| fleet.status_of(task) == "running").count();
    let bare: Vec<String> = (0..3).map(|n| fleet.create(&format!("bare {n}"), WAITS, &[])).collect();
    fleet.start();
    fleet.eventually("tasks without a tenant have all slots", || (running(&bare) == 3).then_some(()));
    let acme = ["--tenant", "acme", "--priority", "9"];
    let greedy: Vec<String> =
        (0..4).map(|n| fleet.create(&format!("greedy {n}"), "exec sleep 600", &acme)).collect();
    let more = fleet.create("bare again", WAITS, &[]);
    for task in &bare {
        fleet.cli(["kill", task]).ok();
    }
    fleet.eventually("each has its part", || {
        (running(&greedy) == 2 && fleet.status_of(&more) == "running").then_some(())
    });

    fleet.cli(["kill", &more]).ok();
    let waits = greedy.iter().find(|task| fleet.status_of(task) == "ready").unwrap();
    fleet.eventually("it waits for the reserve", || {
        why(&fleet, waits).contains("limits.reserve").then_some(())
    });
    assert_eq!(fleet.json(["status", "--tenant", "acme"])["daemon"]["slots"], 2);
    let other = fleet.create("of another tenant", "true", &["--tenant", "globex"]);

    fleet.wait_for(&other, "done");
    assert_eq!(running(&greedy), 2);
    fleet.stop(&["--kill"]);
}

#[test]
fn the_status_of_a_tenant_tells_of_nothing_else() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nmax_running = 4\ntenants.acme = 2\n");
    fleet.start();
    for tenant in ["acme", "other"] {
        for n in 0..27 {
            fleet.json(["create", &format!("{tenant} {n}"), "--tenant", tenant, "--triage"]);
        }
    }
    let runs = |tenant: &str| {
        let task = fleet.create("runs", "sleep 600", &["--tenant", tenant]);
        fleet.wait_for(&task, "running");
        task
    };
    let (own, _) = (runs("acme"), runs("other"));

    let status = fleet.json(["status", "--tenant", "acme"]);

    assert_eq!(status["counts"], json!({ "triage": 27, "running": 1 }));
    assert_eq!(status["daemon"]["slots"], 2);
    let workers: Vec<&Value> = status["workers"].as_array().unwrap().iter().map(|one| &one["task"]).collect();
    assert_eq!(workers, [&json!(own)]);
    assert_eq!((status["waiting"].as_array().unwrap().len(), &status["waiting_more"]), (20, &json!(7)));
    for one in status["waiting"].as_array().unwrap() {
        let task = fleet.show(one["task"].as_str().unwrap());
        assert_eq!(task["task"]["tenant"], "acme");
    }
    let shown = fleet.cli(["status", "--tenant", "acme"]).ok().stdout;
    assert!(shown.contains("1 of 2 slots taken") && shown.contains("and 7 more:"), "{shown}");
    assert_eq!(fleet.json(["status"])["waiting_more"], 34);
    fleet.stop(&["--kill"]);
}

#[test]
fn leases_of_two_boards_keep_tasks_apart_at_one_place_and_at_no_other() {
    let fleet = Fleet::boot();
    fleet.cli(["boards", "create", "other"]).ok();
    let (shared, own) = (directory(&fleet, "shared"), directory(&fleet, "own"));
    // A second worker at the place finds that it is taken.
    let script =
        "exec 9>>held; flock -n 9 || { echo twice; exit 1; }; until [ -e go ]; do sleep 0.02; done; rm go";
    let go = |place: &str| std::fs::write(fleet.home().join(place).join("go"), "").unwrap();
    let other = |task: &str| fleet.json(["--board", "other", "show", task]);
    let first = fleet.create("first", script, &["--workspace", &shared]);
    fleet.wait_for(&first, "running");

    let second = fleet.create("second", script, &["--workspace", &shared, "--board", "other"]);
    let third = fleet.create("third", script, &["--workspace", &own, "--board", "other"]);

    fleet.eventually("the place of its own is worked at", || {
        (other(&third)["task"]["status"] == "running").then_some(())
    });
    // Both boards count their runs from one: the end of one run frees its own place alone.
    assert_eq!(other(&third)["runs"][0]["id"], fleet.show(&first)["runs"][0]["id"]);
    go("own");
    fleet.eventually("it is done", || (other(&third)["task"]["status"] == "done").then_some(()));
    let waits = other(&second);
    assert_eq!(waits["task"]["status"], "ready");
    assert!(waits["why"]["text"].as_str().unwrap().contains("works there"), "{waits:#}");
    assert_eq!(fleet.status_of(&first), "running");
    go("shared");
    fleet.wait_for(&first, "done");
    fleet.eventually("the next one works there", || {
        (other(&second)["task"]["status"] == "running").then_some(())
    });
    go("shared");
    fleet.eventually("it is done", || (other(&second)["task"]["status"] == "done").then_some(()));
}
