//! Uncommitted changes at the end of a run in a worktree: committed by the supervisor, or named.

use serde_json::json;

use crate::harness::{Fleet, Repository, User};

/// A script that changes a file, makes another, and leaves a secret and a log.
const WORK: &str = "echo 2 > file; echo new > made; echo TOKEN=1 > .env; echo noise > build.log";

#[test]
fn what_a_run_leaves_uncommitted_is_committed_before_its_check() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        repository.write(".gitignore", "*.log\n");
        repository.git(&["add", ".gitignore"]);
        repository.git(&["commit", "-q", "-m", "ignore"]);
        repository.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
        let workspace = repository.workspace();
        // The check finds the commit, and nothing else that git knows.
        let check = "git show HEAD:made && test -z \"$(git status --porcelain | grep -v .env)\"";
        let more = ["--workspace", &workspace, "--commit", "auto", "--check", check];
        let id = fleet.create("improve the file", WORK, &more);

        fleet.wait_for(&id, "done");

        let branch = format!("task/{id}");
        assert_eq!(
            repository.git(&["show", "--name-status", "--format=%an|%s", &branch]),
            "shell|improve the file\n\nM\tfile\nA\tmade"
        );
        let body = repository.git(&["log", "-1", "--format=%b", &branch]);
        assert!(body.starts_with("The supervisor committed the changes that run "), "{body}");
        let shown = fleet.show(&id);
        let told = &shown["runs"][0]["evidence"]["uncommitted"];
        assert_eq!(told["commit"], repository.git(&["rev-parse", &branch]), "{told}");
        assert_eq!(told["left"], json!([{ "path": ".env", "why": "secret" }]));
        assert_eq!(shown["task"]["commit"], "auto");
        let merge = format!(
            "1 commit on {branch}, the last by the supervisor: git -C {} merge {branch}; 1 uncommitted change: .env",
            repository.path().display()
        );
        for verb in ["show", "wait"] {
            // Wrapped lines of a terminal.
            let told = fleet.cli([verb, &id]).ok().stdout;
            let words: Vec<&str> = told.split_whitespace().collect();
            assert!(words.join(" ").contains(&merge), "{verb}: {told}");
        }
        repository.git(&["merge", "-q", &branch]);
        assert_eq!(repository.git(&["show", "HEAD:file"]), "2");
    }
}

#[test]
fn a_task_that_requires_commits_is_blocked_by_what_its_run_leaves() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let workspace = repository.workspace();
        let id = fleet.create("improve", WORK, &["--workspace", &workspace, "--commit", "require"]);

        fleet.wait_for(&id, "blocked");

        let reason = fleet.show(&id)["task"]["block_reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("4 uncommitted changes in"), "{reason}");
        assert!(reason.ends_with(": .env, build.log, file, made"), "{reason}");
        let branch = format!("task/{id}");
        assert_eq!(repository.git(&["log", "--format=%s", &branch]), "start");
        fleet.cli(["edit", &id, "--commit", "auto"]).ok();
        fleet.cli(["unblock", &id]).ok();
        fleet.wait_for(&id, "done");
        assert_eq!(repository.git(&["log", "--format=%s", &branch]), "improve\nstart");
    }
}

#[test]
fn a_reviewer_of_work_in_a_worktree_reads_how_to_merge_it() {
    let fleet = Fleet::boot();
    let repository = Repository::new(&fleet, "repository");
    let workspace = repository.workspace();
    let script = "echo 2 > file; supervisor request-review --summary look";
    let id = fleet.create("improve", script, &["--workspace", &workspace, "--commit", "auto"]);
    fleet.wait_for(&id, "review");
    let merge = format!("git -C {} merge task/{id}", repository.path().display());
    let waited = fleet.cli(["wait", &id]);
    assert!(waited.stdout.contains(&merge), "{waited:?}");
    let approved = fleet.cli(["approve", &id]).ok().stdout;
    assert!(approved.contains(&merge), "{approved}");
}

#[test]
fn a_task_that_names_no_handling_has_the_one_of_its_lane() {
    let fleet = Fleet::boot();
    let repository = Repository::new(&fleet, "repository");
    let workspace = repository.workspace();
    let lane = "argv = [\"/bin/sh\", \"-c\", \"echo tidy > made\"]\nprompt = \"stdin\"\non_clean_exit = \"complete\"\n";
    fleet.lane("tidy", &format!("{lane}commit = \"require\"\n"));
    fleet.cli(["service", "reload"]).ok();
    let made = |assignee: &str, more: &[&str]| {
        let args = ["create", "x", "--assignee", assignee, "--body", "echo shell > made"];
        let place = ["--workspace", &workspace];
        let args = args.iter().chain(&place).chain(more).copied();
        fleet.json(args)["id"].as_str().unwrap().to_owned()
    };
    let shell = made("shell", &[]);
    let tidy = made("tidy", &[]);
    fleet.wait_for(&shell, "done");
    fleet.wait_for(&tidy, "blocked");
    assert_eq!(repository.git(&["log", "--format=%s", &format!("task/{shell}")]), "start");
    let left = &fleet.show(&shell)["runs"][0]["evidence"]["uncommitted"];
    assert_eq!(left["left"], json!([{ "path": "made", "why": "unasked" }]));
    let default_of = |lane: &str| fleet.json(["lane", "show", lane])["lane"]["commit"].clone();
    assert_eq!((default_of("claude"), default_of("shell")), (json!("auto"), json!("no")));
}

#[test]
fn the_handling_of_uncommitted_changes_is_kept_wherever_a_task_is_described() {
    let fleet = Fleet::offline();
    let repository = Repository::new(&fleet, "repository");
    let workspace = repository.workspace();
    let refused = fleet.cli(["create", "x", "--commit", "auto"]);
    refused.refused(2, "its workspace is not a worktree");
    let run = ["run", "--detach", "--workspace", &workspace, "--commit", "require", "true"];
    let id = fleet.cli(run).ok().stdout.trim().to_owned();
    assert_eq!(fleet.show(&id)["task"]["commit"], "require");
    fleet.cli(["edit", &id, "--commit", "no"]).ok();
    assert_eq!(fleet.show(&id)["task"]["commit"], "no");
    let add = ["schedules", "add", "nightly", "--every", "1h", "--title", "t", "--workspace", &workspace];
    fleet.cli(add.iter().chain(&["--commit", "auto"]).copied()).ok();
    let tick = fleet.json(["schedules", "run", "nightly"]);
    assert_eq!(fleet.show(tick["tasks"][0].as_str().unwrap())["task"]["commit"], "auto");
}
