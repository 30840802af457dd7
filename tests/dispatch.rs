//! One pass over the board: the tasks that it starts, those that it leaves with their reasons, and its wait for the
//! runs that it started.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::harness::{Fleet, User, skip, tidy};

#[test]
fn a_pass_without_a_daemon_runs_everything_to_its_end_chains_included() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let first = fleet.create("first", "echo one", &[]);
        let second = fleet.create("second", "echo two", &["--parent", &first]);
        let failing = fleet.create("failing", "exit 3", &["--max-retries", "1"]);

        let said = fleet.cli(["dispatch", "--json"]);

        assert_eq!(said.code, 3, "that of the task which gave up");
        let pass = said.json();
        let outcome = |task: &str| {
            let of_task = |one: &&Value| one["task_id"] == task;
            pass["spawned"].as_array().unwrap().iter().find(of_task).unwrap()["outcome"].clone()
        };
        assert_eq!((outcome(&first), outcome(&second)), (json!("completed"), json!("completed")));
        assert_eq!(outcome(&failing), "crashed");
        assert_eq!(fleet.status_of(&second), "done");
        assert_eq!(fleet.status_of(&failing), "blocked", "one failure was all it had");
        assert!(fleet.processes().is_empty(), "{:#?}", fleet.processes());
        assert!(fleet.cli(["dispatch"]).ok().stdout.contains("Nothing to start."));
    }
}

#[test]
fn a_dry_run_says_what_would_start_and_starts_nothing() {
    let fleet = Fleet::offline();
    let _tidy = tidy();
    let first = fleet.create("first", "true", &["--priority", "2"]);
    let second = fleet.create("second", "true", &[]);
    let ghost = fleet.json(["create", "x", "--assignee", "ghost"])["id"].clone();
    let nobody = fleet.json(["create", "x"])["id"].clone();
    assert_snapshot!(fleet.cli(["dispatch", "--dry-run", "--max", "1"]).ok().stdout, @r"
    TASK        ASSIGNEE  OUTCOME      STATUS  WORKSPACE
    t_[id]  shell     would start  -       scratch
    t_[id]  waits for another pass: this one starts no more
    ");
    let plan = fleet.json(["dispatch", "--dry-run", "--max", "1"]);
    assert_eq!(
        (&plan["spawned"][0]["task_id"], &plan["spawned"][0]["run_id"]),
        (&json!(first), &Value::Null)
    );
    assert_eq!((plan["spawned"].as_array().unwrap().len(), &plan["waiting"][0]["task"]), (1, &json!(second)));
    assert_eq!(plan["skipped_nonspawnable"], json!([ghost]));
    assert_eq!(plan["skipped_unassigned"], json!([nobody]));
    assert_eq!(fleet.json(["runs", &first]), json!([]));
}

#[test]
fn a_pass_with_a_limit_starts_no_more() {
    let fleet = Fleet::offline();
    for title in ["a", "b", "c"] {
        fleet.create(title, "true", &[]);
    }
    assert_eq!(fleet.json(["dispatch", "--max", "2"])["spawned"].as_array().unwrap().len(), 2);
    assert_eq!(fleet.json(["stats"])["by_status"], json!({"done": 2, "ready": 1}));
}

#[test]
fn a_pass_beside_a_daemon_waits_for_what_runs() {
    let fleet = Fleet::boot();
    let task = fleet.create("runs", "while [ ! -e go ]; do sleep 0.02; done; echo over", &[]);
    let path = fleet
        .eventually("it runs", || fleet.show(&task)["runs"][0]["workspace_path"].as_str().map(str::to_owned));
    let pass = fleet.command(["dispatch", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();

    std::fs::write(format!("{path}/go"), "").unwrap();

    let output = pass.wait_with_output().unwrap();
    let pass: Value = serde_json::from_slice(&output.stdout).unwrap();
    for one in pass["spawned"].as_array().unwrap() {
        assert_eq!((&one["task_id"], &one["outcome"]), (&json!(task), &json!("completed")));
    }
    fleet.wait_for(&task, "done");
}

#[test]
fn no_more_run_at_once_than_the_limits_allow() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nmax_running = 3\nper_tenant = 1\n");
    fleet.start();
    let tasks: Vec<String> = (0..8)
        .map(|n| {
            let tenant = format!("tenant-{}", n % 4);
            fleet.create("short", "sleep 0.1", &["--tenant", &tenant])
        })
        .collect();
    for task in &tasks {
        fleet.wait_for(task, "done");
    }
    let events = fleet.json(["events", "--kind", "claimed", "--kind", "completed", "--limit", "1000"]);
    let (mut running, mut most) = (std::collections::BTreeSet::new(), 0);
    for event in events["events"].as_array().unwrap() {
        let tenant = event["tenant"].as_str().unwrap();
        if event["kind"] == "claimed" {
            assert!(running.insert(tenant), "{tenant} had two at once");
        } else {
            assert!(running.remove(tenant));
        }
        most = most.max(running.len());
    }
    assert_eq!(most, 3);
}

/// Counts how often a pass over tasks opens its board, by a trace of system calls; none if tracing is not permitted.
fn opened(tasks: usize) -> Option<usize> {
    let fleet = Fleet::offline();
    for n in 0..tasks {
        fleet.create(&format!("task {n}"), "true", &[]);
    }
    let calls = fleet.home().join("calls");
    let mut pass = std::process::Command::new("strace");
    pass.args(["-f", "-qq", "-e", "trace=openat,open", "-o"]).arg(&calls);
    pass.arg(fleet.binary()).arg("--root").arg(fleet.root()).args(["dispatch", "--json"]);
    fleet.dress(&mut pass);
    let Ok(output) = pass.output() else { return None };
    let told: Value = serde_json::from_slice(&output.stdout).ok()?;
    assert_eq!(told["spawned"].as_array().unwrap().len(), tasks, "{told:#}");
    let calls = std::fs::read_to_string(calls).unwrap();
    Some(calls.lines().filter(|line| line.contains("/board.db\"")).count())
}

#[test]
fn a_pass_opens_its_board_no_more_often_for_more_tasks() {
    let (Some(few), Some(many)) = (opened(2), opened(20)) else {
        return skip("how often a pass opens its board: needs strace, and to be allowed to trace");
    };
    assert!(few > 0 && many < few + 6, "{few} for 2 tasks, {many} for 20");
}
