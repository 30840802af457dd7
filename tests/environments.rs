//! A broken resource of many tasks costs none of them an attempt: one task at a time tries it, and all continue once it
//! works.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Fleet, User, skip};
use crate::invariants::invariants_hold;
use crate::journal::outcomes;

/// The environments that `status` says are broken.
fn broken(fleet: &Fleet) -> Vec<String> {
    let status = fleet.cli(["status", "--json"]).json();
    let named = status["broken"].as_array().cloned().unwrap_or_default();
    named.iter().map(|one| one["what"].as_str().unwrap().to_owned()).collect()
}

/// Releases what was tried so often on a slow host that its breaker is open, as `status` says.
fn release(fleet: &Fleet) {
    let status = fleet.cli(["status", "--json"]).json();
    for command in status["broken"].as_array().into_iter().flatten().filter_map(|one| one["release"].as_str())
    {
        // It may have closed since.
        fleet.cli(command.split_whitespace().skip(1));
    }
}

/// Waits until a task says that it waits for its environment, and returns the words.
fn waits(fleet: &Fleet, task: &str) -> String {
    fleet.eventually("it waits for its environment", || {
        let shown = fleet.show(task);
        (shown["why"]["code"] == "environment" && shown["task"]["status"] == "ready")
            .then(|| shown["why"]["text"].as_str().unwrap().to_owned())
    })
}

/// Checks that no failed start of a task was counted.
fn nothing_counted(shown: &Value) {
    assert_eq!(shown["task"]["consecutive_failures"], 0, "{shown:#}");
    assert!(shown["runs"].as_array().unwrap().iter().all(|run| run["outcome"] != "gave_up"), "{shown:#}");
}

fn create(fleet: &Fleet, lane: &str, more: &[&str]) -> String {
    let mut words = vec!["create", "x", "--assignee", lane, "--body", "echo done"];
    words.extend(more);
    fleet.json(words)["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_lane_whose_program_is_missing_holds_up_its_own_tasks_alone_and_goes_on_when_it_is_there() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let program = fleet.home().join("agent");
        let lane = format!(
            "argv = [{:?}]\npolicy = \"unconfined\"\non_clean_exit = \"complete\"\n",
            program.to_str().unwrap()
        );
        fleet.lane("agent", &lane);
        fleet.configure("[worker]\nfailure_limit = 2\n");
        fleet.start();
        let tasks: Vec<String> = (0..6).map(|_| create(&fleet, "agent", &[])).collect();
        let other = fleet.create("other", "echo meanwhile", &[]);

        for task in &tasks {
            let why = waits(&fleet, task);
            assert!(why.contains("the program of the lane agent"), "{why}");
            assert!(why.contains(program.to_str().unwrap()), "{why}");
        }
        fleet.wait_for(&other, "done");
        assert_eq!(broken(&fleet), ["the program of the lane agent under the policy unconfined"]);
        // More than the limit of failures.
        fleet.eventually("it was tried three times", || {
            let tries = tasks.iter().filter_map(|task| fleet.show(task)["runs"][0]["tries"].as_u64());
            (tries.sum::<u64>() >= 3).then_some(())
        });
        for task in &tasks {
            let runs = fleet.show(task)["runs"].as_array().unwrap().len();
            assert!(runs <= 1, "one row for all tries of {task}: {runs}");
        }
        for task in &tasks {
            nothing_counted(&fleet.show(task));
        }

        fs::write(&program, "#!/bin/sh\necho here\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fleet.give(&program);
        fleet.eventually("all are done", || {
            release(&fleet);
            tasks.iter().all(|task| fleet.show(task)["task"]["status"] == "done").then_some(())
        });
        for task in &tasks {
            nothing_counted(&fleet.show(task));
        }
        assert_eq!(broken(&fleet), Vec::<String>::new());
        invariants_hold(&fleet);
    }
}

#[test]
fn workspaces_that_cannot_be_made_hold_up_scratch_tasks_alone() {
    let fleet = Fleet::boot();
    fleet.wait_for(&fleet.create("makes the directory", "true", &[]), "done");
    let dir = fleet.root().join("workspaces/default");
    let kept = fleet.root().join("workspaces/kept");
    fs::rename(&dir, &kept).unwrap();
    fs::write(&dir, "").unwrap();
    let place = fleet.home().join("place");
    fs::create_dir(&place).unwrap();
    if User::current() == User::Root {
        std::os::unix::fs::chown(&place, Some(4711), Some(4711)).unwrap();
    }
    let task = fleet.create("scratch", "echo made", &["--max-retries", "1"]);
    let other = fleet.create("elsewhere", "true", &["--workspace", &format!("dir:{}", place.display())]);

    let why = waits(&fleet, &task);
    assert!(why.contains("the workspaces of the board default"), "{why}");
    fleet.wait_for(&other, "done");
    nothing_counted(&fleet.show(&task));

    fs::remove_file(&dir).unwrap();
    fs::rename(&kept, &dir).unwrap();
    nothing_counted(&fleet.wait_for(&task, "done"));
}

#[test]
fn a_link_in_the_place_of_the_workspaces_is_named_and_nothing_is_made_behind_it() {
    let fleet = Fleet::boot();
    fleet.wait_for(&fleet.create("makes the directory", "true", &[]), "done");
    let (dir, kept) = (fleet.root().join("workspaces"), fleet.root().join("kept"));
    fs::rename(&dir, &kept).unwrap();
    let elsewhere = fleet.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &dir).unwrap();
    let task = fleet.create("scratch", "echo made", &["--max-retries", "1"]);

    let why = waits(&fleet, &task);
    assert!(why.contains("is a symbolic link"), "{why}");
    nothing_counted(&fleet.show(&task));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    fs::remove_file(&dir).unwrap();
    fs::rename(&kept, &dir).unwrap();
    nothing_counted(&fleet.wait_for(&task, "done"));
}

#[test]
fn a_repository_that_is_gone_holds_up_its_tasks_until_it_is_back() {
    if Command::new("git").arg("--version").output().is_err() {
        return skip("a repository that is gone: needs git");
    }
    let fleet = Fleet::offline();
    let repository = fleet.home().join("repository");
    fs::create_dir(&repository).unwrap();
    let script = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first";
    assert!(Command::new("sh").args(["-c", script]).current_dir(&repository).status().unwrap().success());
    if User::current() == User::Root {
        let given = Command::new("chown").args(["-R", "4711:4711"]).arg(&repository).status();
        assert!(given.unwrap().success());
    }
    let workspace = format!("worktree:{}", repository.display());
    let tasks: Vec<String> = (0..3)
        .map(|_| fleet.create("works", "true", &["--workspace", &workspace, "--max-retries", "1"]))
        .collect();
    let away = fleet.home().join("away");
    fs::rename(&repository, &away).unwrap();
    fleet.start();

    for task in &tasks {
        let why = waits(&fleet, task);
        assert!(why.contains(&format!("the repository {}", repository.display())), "{why}");
    }
    assert!(broken(&fleet)[0].contains("the repository"), "{:?}", broken(&fleet));

    fs::rename(&away, &repository).unwrap();
    for task in &tasks {
        nothing_counted(&fleet.wait_for(task, "done"));
    }
}

#[test]
fn what_fails_for_one_task_and_works_for_the_others_is_that_tasks() {
    let fleet = Fleet::offline();
    // Only root can make a directory that is another user's, whose program he cannot run.
    if User::current() != User::Root {
        return skip("a program that one user cannot run: needs root");
    }
    let program = fleet.home().join("agent");
    fs::write(&program, "#!/bin/sh\necho here\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::chown(&program, Some(4711), Some(4711)).unwrap();
    let lane = format!(
        "argv = [{:?}]\npolicy = \"unconfined\"\non_clean_exit = \"complete\"\n",
        program.to_str().unwrap()
    );
    fleet.lane("agent", &lane);
    fleet.start();
    let place = fleet.home().join("place");
    fs::create_dir(&place).unwrap();
    std::os::unix::fs::chown(&place, Some(4711), Some(4711)).unwrap();
    let own = create(&fleet, "agent", &["--workspace", &format!("dir:{}", place.display())]);
    let stranger = create(&fleet, "agent", &[]);

    fleet.wait_for(&own, "done");
    waits(&fleet, &stranger);
    let again = create(&fleet, "agent", &["--workspace", &format!("dir:{}", place.display())]);
    fleet.wait_for(&again, "done");
}

#[test]
fn a_program_that_lies_in_the_tasks_own_workspace_is_the_tasks_fault() {
    let fleet = Fleet::offline();
    fleet.lane("own", "argv = [\"{workspace}/run.sh\"]\n");
    fleet.start();
    let task = create(&fleet, "own", &["--max-retries", "2"]);

    let shown = fleet.wait_for(&task, "blocked");

    assert_eq!(outcomes(&shown), ["spawn_failed", "spawn_failed"], "{shown:#}");
    assert_eq!(shown["task"]["block_kind"], "gave_up");
}

#[test]
fn a_pass_without_a_daemon_tells_the_broken_environment_as_what_its_tasks_wait_for() {
    let fleet = Fleet::offline();
    let program = fleet.home().join("agent");
    let lane = format!("argv = [{:?}]\npolicy = \"unconfined\"\n", program.to_str().unwrap());
    fleet.lane("agent", &lane);
    let tasks: Vec<String> = (0..4).map(|_| create(&fleet, "agent", &[])).collect();

    let pass = fleet.cli(["dispatch", "--json"]);

    assert_eq!(pass.code, 1, "its tasks are not done: {}", pass.stdout);
    let pass: Value = serde_json::from_str(&pass.stdout).unwrap();
    let waiting = pass["waiting"].as_array().unwrap();
    assert_eq!(waiting.len(), tasks.len(), "{pass:#}");
    for one in waiting {
        assert_eq!(one["why"]["code"], "environment", "{pass:#}");
        let text = one["why"]["text"].as_str().unwrap();
        assert!(text.contains("the program of the lane agent") && text.contains("agent"), "{text}");
    }
}
