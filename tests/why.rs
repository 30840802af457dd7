//! Whatever is not running says why, in a line, and never what was true a moment ago.

use serde_json::Value;

use crate::harness::Fleet;

fn id(task: &Value) -> String {
    task["id"].as_str().unwrap().to_owned()
}

/// Asserts that each task that is neither running nor over says why, and that `show` says the same.
fn all_say_why(fleet: &Fleet) -> Vec<Value> {
    let tasks = fleet.json(["list", "--why"]).as_array().unwrap().clone();
    for task in &tasks {
        let over = ["running", "done", "archived"].contains(&task["status"].as_str().unwrap());
        let text = task["why"]["text"].as_str().unwrap_or_default();
        assert!(over || (!text.is_empty() && !text.contains('\n')), "{task:#}");
    }
    tasks
}

fn code(tasks: &[Value], task: &str) -> String {
    let found = tasks.iter().find(|one| one["id"] == task).unwrap();
    found["why"]["code"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn every_status_and_every_reason_is_told_by_list_and_show_alike() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nmax_running = 1\n");
    fleet.start();
    let first = fleet.create("first", "while [ ! -e go ]; do sleep 0.02; done", &[]);
    let path = fleet.eventually("the first runs", || {
        fleet.show(&first)["runs"][0]["workspace_path"].as_str().map(str::to_owned)
    });
    let second = fleet.create("second", "true", &[]);
    let expected = [
        (second.clone(), "slot"),
        (fleet.create("child", "true", &["--parent", &second]), "parents"),
        (fleet.create("later", "true", &["--not-before", "2h"]), "time"),
        (fleet.create("idea", "true", &["--triage"]), "triage"),
        (fleet.create("held", "true", &["--initial-status", "blocked"]), "blocked"),
        (fleet.create("buy", "true", &["--require-approval", "--approver", "ann"]), "approval"),
        (id(&fleet.json(["create", "x", "--assignee", "ghost"])), "nonspawnable"),
        (id(&fleet.json(["create", "nobody's"])), "unassigned"),
    ];
    let asked = id(&fleet.json(["create", "asks"]));
    fleet.cli(["block", &asked, "--kind", "needs_input", "--question", "which?", "--choice", "a"]).ok();
    let reviewed = id(&fleet.json(["create", "reviewed"]));
    fleet.cli(["request-review", &reviewed]).ok();
    let by_profile = id(&fleet.json(["create", "reviewed by a profile"]));
    fleet.cli(["request-review", &by_profile, "--reviewer", "shell"]).ok();

    let tasks = all_say_why(&fleet);
    for (task, expected) in &expected {
        assert_eq!(code(&tasks, task), *expected, "{tasks:#?}");
        assert_eq!(fleet.show(task)["why"]["code"], *expected);
    }
    assert_eq!(code(&tasks, &asked), "question");
    assert_eq!(code(&tasks, &reviewed), "review");
    assert_eq!(code(&tasks, &by_profile), "slot", "a reviewer waits for a slot like anybody");
    assert_eq!(code(&tasks, &first), "none", "it runs");
    let child = fleet.show(&expected[1].0)["why"]["text"].as_str().unwrap().to_owned();
    assert_eq!(child, format!("waits for {second} (ready: second)"));
    assert!(tasks.iter().find(|task| task["id"] == expected[2].0).unwrap()["why"]["until"].is_i64());
    assert!(fleet.json(["list"])[0]["why"].is_null(), "nobody asked");

    std::fs::write(format!("{path}/go"), "").unwrap();
    fleet.wait_for(&expected[1].0, "done");
    assert_eq!(code(&all_say_why(&fleet), &expected[1].0), "none");
}

#[test]
fn without_a_daemon_a_ready_task_says_so_and_how_to_get_one() {
    let fleet = Fleet::offline();
    let task = fleet.create("work", "true", &[]);

    let told = fleet.show(&task)["why"].clone();
    assert_eq!(told["code"], "no_daemon");
    assert!(told["text"].as_str().unwrap().ends_with("supervisor daemon"), "{told}");
    let table = fleet.cli(["list", "--why"]).ok().stdout;
    assert!(table.contains("no daemon serves this root"), "{table}");

    fleet.start();
    fleet.wait_for(&task, "done");
    assert!(fleet.show(&task)["why"].is_null());
}

#[test]
fn without_a_daemon_a_task_whose_start_failed_says_why() {
    let fleet = Fleet::offline();
    let place = fleet.home().join("gone");
    std::fs::create_dir(&place).unwrap();
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&place, Some(65534), Some(65534)).unwrap();
    }
    let workspace = format!("dir:{}", place.display());
    let task = fleet.create("work", "true", &["--workspace", &workspace]);
    std::fs::remove_dir(&place).unwrap();
    fleet.cli(["dispatch"]);

    let told = fleet.show(&task)["why"].clone();

    let text = told["text"].as_str().unwrap();
    assert!(text.starts_with("its last run failed: ") && text.ends_with("supervisor daemon"), "{told}");
    let table = fleet.cli(["list", "--why"]).ok().stdout;
    assert!(table.contains("its last run failed"), "{table}");
}

#[test]
fn the_table_with_reasons_fits_a_terminal_of_eighty_columns() {
    let fleet = Fleet::offline();
    let parent = fleet.create("a parent with a title that is rather long for any terminal", "true", &[]);
    fleet.create(
        "a child with a long title that would push what follows out",
        "true",
        &["--parent", &parent],
    );
    let mut list = fleet.command(["list", "--why"]);
    let table = String::from_utf8(list.env("COLUMNS", "80").output().unwrap().stdout).unwrap();
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
    assert!(table.contains(&format!("waits for {parent}")), "{table}");
}

#[test]
fn a_hold_keeps_what_it_is_on_from_starting_across_a_restart_until_it_is_released() {
    let fleet = Fleet::boot();
    fleet.cli(["hold", "--profile", "shell", "--reason", "under repair", "--until", "2h"]).ok();
    let task = fleet.create("work", "true", &[]);
    fleet.restart();

    let told = fleet.show(&task)["why"].clone();
    assert_eq!(told["code"], "hold");
    assert!(told["until"].is_i64() && told["text"].as_str().unwrap().contains("under repair"), "{told}");
    fleet.cli(["claim", &task]).refused(4, "under repair");
    let table = fleet.cli(["holds"]).ok().stdout;
    assert!(table.contains("profile shell") && table.contains("under repair"), "{table}");

    fleet.cli(["release", "--profile", "shell"]).ok();
    fleet.wait_for(&task, "done");
    assert_eq!(fleet.json(["holds"]).as_array().unwrap().len(), 0);
    fleet.cli(["release", "--profile", "shell"]).refused(4, "not held");
    assert_eq!(fleet.cli(["hold", "--reason", "x"]).code, 2, "nothing is named");
    let kinds = fleet.json(["events"])["events"].as_array().unwrap().clone();
    let told = |kind: &str| kinds.iter().any(|event| event["kind"] == kind && event["task_id"].is_null());
    assert!(told("held") && told("released"), "{kinds:#?}");
}

#[test]
fn a_worker_that_exits_with_75_waits_and_so_do_the_others_of_its_account() {
    let fleet = Fleet::offline();
    let lane = "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\non_clean_exit = \"complete\"\n\
                account = \"main\"\nrate_limit_pause = \"1h\"\n";
    fleet.lane("first", lane);
    fleet.lane("second", lane);
    fleet.start();
    let create =
        |profile: &str, body: &str| id(&fleet.json(["create", "x", "--assignee", profile, "--body", body]));
    let refused = create("first", "exit 75");
    fleet.wait_for(&refused, "scheduled");
    let sibling = create("second", "true");
    let other = create("shell", "true");

    fleet.wait_for(&other, "done");
    let why = fleet.show(&sibling)["why"].clone();
    assert_eq!(why["code"], "rate_limit", "{why}");
    assert!(why["text"].as_str().unwrap().contains("account main"), "{why}");
    let shown = fleet.show(&refused);
    assert_eq!(
        (&shown["runs"][0]["outcome"], &shown["task"]["consecutive_failures"]),
        (&"rate_limited".into(), &0.into())
    );
    assert_eq!(shown["why"]["code"], "rate_limit");

    fleet.cli(["release", "--account", "main"]).ok();
    fleet.wait_for(&sibling, "done");
}

#[test]
fn a_worker_says_how_long_its_service_refuses_it() {
    let fleet = Fleet::offline();
    fleet.lane("limited", "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\n");
    fleet.start();
    let body = "supervisor hold --until 3h --reason 'quota of the day'; exit 75";
    let task = id(&fleet.json(["create", "x", "--assignee", "limited", "--body", body]));

    let shown = fleet.wait_for(&task, "scheduled");

    let held = fleet.json(["holds"])[0].clone();
    assert_eq!(
        (&held["scope"], &held["name"]),
        (&"task".into(), &task.as_str().into()),
        "the lane has no account"
    );
    assert_eq!((&held["reason"], &held["met_by_task"]), (&"quota of the day".into(), &task.as_str().into()));
    assert_eq!(held["until"], shown["task"]["not_before"]);
    let sibling = id(&fleet.json(["create", "x", "--assignee", "limited", "--body", "supervisor complete"]));
    fleet.wait_for(&sibling, "done");
}

#[test]
fn a_script_that_exits_with_75_holds_nobody_else() {
    let fleet = Fleet::boot();
    let refused = fleet.create("refused", "exit 75", &[]);
    fleet.wait_for(&refused, "scheduled");
    let other = fleet.create("other", "true", &[]);
    fleet.wait_for(&other, "done");
}

#[test]
fn diagnostics_tell_what_is_wrong_with_a_command_that_works_as_it_is_pasted() {
    let fleet = Fleet::boot();
    assert_eq!(fleet.cli(["diag"]).ok().stdout.trim(), "Nothing is wrong.");
    let task = fleet.create("fails", "exit 3", &["--max-retries", "2"]);
    fleet.wait_for(&task, "blocked");

    let found = fleet.json(["diagnostics"]);

    assert_eq!((&found[0]["task_id"], &found[0]["status"]), (&task.clone().into(), &"blocked".into()));
    let diagnostics = found[0]["diagnostics"].as_array().unwrap();
    let first = &diagnostics[0];
    assert_eq!((&first["kind"], &first["severity"]), (&"repeated_failures".into(), &"critical".into()));
    assert!(first["first_seen_at"].as_i64().unwrap() <= first["last_seen_at"].as_i64().unwrap());
    for action in diagnostics.iter().flat_map(|one| one["actions"].as_array().unwrap()) {
        let command: Vec<&str> = action["payload"]["command"].as_str().unwrap().split(' ').skip(1).collect();
        fleet.cli(command).ok();
    }
    assert!(fleet.json(["diagnostics", "--severity", "critical", "--task", &task]).is_array());
    fleet.cli(["diagnostics", "--task", "t_00000000"]).refused(3, "no such task");
}
