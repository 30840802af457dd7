//! Checks: what a worker says is done is done when a command has proved it, and not before.

use serde_json::Value;

use crate::harness::{Fleet, User};

/// Returns purpose and outcome of each run of a task.
fn runs(shown: &Value) -> Vec<(String, String)> {
    let word = |run: &Value, key: &str| run[key].as_str().unwrap_or("-").to_owned();
    let runs = shown["runs"].as_array().unwrap();
    runs.iter().map(|run| (word(run, "purpose"), word(run, "outcome"))).collect()
}

fn expected_runs(runs: &[(&str, &str)]) -> Vec<(String, String)> {
    runs.iter().map(|(purpose, outcome)| ((*purpose).to_owned(), (*outcome).to_owned())).collect()
}

#[test]
fn a_worker_that_lies_reads_what_was_wrong_and_is_done_when_its_work_is() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "supervisor context | grep -q '^> there is no proof' && touch proof; \
                      supervisor complete --summary 'all tests pass'";
        let check = "echo looking; test -f proof || { echo 'there is no proof' >&2; exit 3; }";
        let id = fleet.create("work", script, &["--check", check]);
        let child = fleet.create("after it", "supervisor context", &["--parent", &id]);

        let shown = fleet.wait_for(&id, "done");

        let expected = [
            ("work", "completed"),
            ("check", "check_failed"),
            ("work", "completed"),
            ("check", "check_passed"),
        ];
        assert_eq!(runs(&shown), expected_runs(&expected), "{shown:#}");
        assert_eq!(shown["runs"][1]["error"], "the check failed: exit code 3; there is no proof");
        assert_eq!(shown["task"]["result"], "all tests pass");
        let failed = shown["runs"][1]["id"].to_string();
        let log = fleet.cli(["log", &id, "--run", &failed]).ok();
        assert_eq!(log.stdout, "looking\nthere is no proof\n");
        let after = fleet.wait_for(&child, "done");
        assert!(after["runs"][0]["started_at"].as_i64() >= shown["runs"][3]["started_at"].as_i64());
    }
}

#[test]
fn a_check_that_fails_too_often_blocks_the_task_until_a_person_lets_it_go_on() {
    let fleet = Fleet::boot();
    let work = "supervisor complete --summary 'all tests pass'";
    let id = fleet.create("work", work, &["--check", "exit 75", "--max-checks", "2"]);
    let shown = fleet.wait_for(&id, "blocked");
    assert_eq!(shown["task"]["block_kind"], "gave_up");
    assert_eq!(shown["why"]["text"], "gave up after 2 failed checks: the check failed: exit code 75");
    assert_eq!(shown["runs"].as_array().unwrap().len(), 4, "{shown:#}");
    let human = fleet.cli(["show", &id]).ok();
    assert!(human.stdout.contains("exit 75  (failed 2 of 2)"), "{}", human.stdout);
    let claimed = "Claimed (its check failed)\nall tests pass\n";
    assert!(human.stdout.contains(claimed) && !human.stdout.contains("Result"), "{}", human.stdout);
    fleet.cli(["edit", &id, "--check", "exit 0"]).ok();
    fleet.cli(["unblock", &id]).ok();
    fleet.wait_for(&id, "done");
    assert!(fleet.cli(["show", &id]).ok().stdout.contains("\nResult\nall tests pass\n"));
}

/// The workspace is that of the work as it is, and nothing else of the work is there.
#[test]
fn a_check_finds_the_work_without_its_worker_and_has_no_way_to_the_board() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "touch mine; (while :; do date >> beat; done) & \
                      until test -s beat; do :; done; supervisor complete --summary 'still writing'";
        let check = "test -f mine && cp beat first && supervisor --version && cmp beat first && \
                     test \"$SUPERVISOR_PURPOSE\" = check && \
                     test -z \"$SUPERVISOR_TOKEN$SUPERVISOR_SOCKET\" && touch theirs && \
                     ! supervisor complete --summary 'me too'";
        let id = fleet.create("work", script, &["--check", check]);
        let shown = fleet.wait_for(&id, "done");
        assert_eq!(
            runs(&shown),
            expected_runs(&[("work", "completed"), ("check", "check_passed")]),
            "{shown:#}"
        );
        assert_eq!(shown["runs"][0]["workspace_path"], shown["runs"][1]["workspace_path"]);
        assert_eq!(shown["runs"][0]["worker_uid"], shown["runs"][1]["worker_uid"]);
        assert_eq!(shown["runs"][0]["policy"], shown["runs"][1]["policy"]);
    }
}

#[test]
fn a_check_ends_at_the_limit_of_its_task_and_counts_as_failed() {
    let fleet = Fleet::boot();
    let more = ["--check", "sleep 600", "--max-checks", "1", "--max-runtime", "5"];
    let id = fleet.create("work", "true", &more);
    let shown = fleet.wait_for(&id, "blocked");
    assert_eq!(runs(&shown), expected_runs(&[("work", "completed"), ("check", "check_failed")]), "{shown:#}");
    assert_eq!(shown["runs"][1]["error"], "the check failed: it ran longer than its limit");
}

#[test]
fn a_running_check_is_shown_as_one() {
    let fleet = Fleet::boot();
    let check = "until test -f go; do sleep 0.05; done";
    let id = fleet.create("work", "true", &["--check", check]);
    let place = fleet.eventually("the check runs", || {
        let status = fleet.json(["status"]);
        let worker = status["workers"].as_array()?.first()?.clone();
        let runs = worker["purpose"] == "check" && worker["phase"] == "running";
        runs.then(|| worker["workspace_path"].as_str().unwrap().to_owned())
    });
    assert!(fleet.cli(["status"]).ok().stdout.contains("checking"));
    fleet.cli(["edit", &id, "--check", "true"]).refused(4, "waits for its check");
    std::fs::write(std::path::Path::new(&place).join("go"), "").unwrap();
    fleet.wait_for(&id, "done");
}

#[test]
fn a_child_that_a_worker_makes_may_have_a_check_and_no_worker_changes_one() {
    let fleet = Fleet::boot();
    let script = "supervisor edit \"$SUPERVISOR_TASK\" --check true && exit 9; \
                  supervisor create 'child' --assignee shell --body 'touch made' --check 'test -f made' --quiet";
    let id = fleet.create("work", script, &["--check", "true"]);
    let shown = fleet.wait_for(&id, "done");
    let child = shown["latest_summary"].as_str().unwrap().trim().to_owned();
    let shown = fleet.wait_for(&child, "done");
    assert_eq!(runs(&shown), expected_runs(&[("work", "completed"), ("check", "check_passed")]), "{shown:#}");
}

/// Whatever step the daemon dies at, no work is lost and no check runs twice at once: a second one would find the first's mark.
#[test]
fn a_daemon_that_dies_between_any_two_steps_of_a_check_loses_nothing_and_repeats_nothing() {
    let points = [
        "after-claim:4",
        "after-run-dir:4",
        "after-spawn:4",
        "after-exit:4",
        "before-finish:4",
        "after-finish:4",
        "committed:11",
    ];
    for point in points {
        let fleet = Fleet::offline();
        if point.starts_with("committed") {
            // Runs that start or end together share a commit, so only runs in turn make a known number: at least two each.
            fleet.configure("[limits]\nmax_running = 1\n");
        }
        let check = "mkdir busy || exit 9; sleep 0.02; rmdir busy";
        let ids: Vec<String> =
            (0..4).map(|n| fleet.create(&format!("task {n}"), "true", &["--check", check])).collect();
        let mut command = fleet.command(["daemon"]);
        command.env("SUPERVISOR_FAIL_POINT", point);
        let log = std::fs::File::options().create(true).append(true).open(fleet.log_file()).unwrap();
        fleet.adopt(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
        assert!(!fleet.reap_daemon().success(), "{point} was never passed");
        fleet.start();
        for id in ids {
            let shown = fleet.wait_for(&id, "done");
            let failed = runs(&shown).iter().filter(|(_, outcome)| outcome == "check_failed").count();
            assert_eq!(failed, 0, "{point}: {shown:#}");
            let passed = runs(&shown).iter().filter(|(_, outcome)| outcome == "check_passed").count();
            assert_eq!(passed, 1, "{point}: {shown:#}");
        }
    }
}

#[test]
fn a_check_has_the_time_and_the_output_that_the_configuration_gives_to_checks() {
    let fleet = Fleet::offline();
    fleet.configure("[check]\nmax_runtime = \"1s\"\nlog_cap = 2000\n");
    fleet.start();
    let check = ["--check", "seq 1 5000; exec sleep 1000", "--max-checks", "1", "--max-runtime", "1h"];
    let id = fleet.create("work", "true", &check);

    let shown = fleet.wait_for(&id, "blocked");

    let (work, check) = (&shown["runs"][0], &shown["runs"][1]);
    assert_eq!((&work["max_runtime_seconds"], &check["max_runtime_seconds"]), (&3600.into(), &1.into()));
    let error = check["error"].as_str().unwrap();
    assert!(error.starts_with("the check failed: it ran longer than its limit"), "{error}");
    let log = fleet.cli(["log", &id, "--run", &check["id"].to_string()]).ok().stdout;
    assert!(log.len() < 4000, "{} bytes", log.len());
}

#[test]
fn the_log_of_a_task_is_that_of_its_work_and_an_empty_log_is_named() {
    let fleet = Fleet::boot();
    let id = fleet.create("work", "echo built it", &["--check", "true"]);
    let shown = fleet.wait_for(&id, "done");
    let (work, check) = (&shown["runs"][0]["id"], &shown["runs"][1]["id"]);
    for line in [vec!["logs", &id], vec!["logs", "-f", &id]] {
        let log = fleet.cli(&line).ok();
        assert_eq!(log.stdout, "built it\n");
        assert_eq!(log.stderr, format!("Run {check} is its check: supervisor logs {id} --run {check}\n"));
    }
    let log = fleet.cli(["logs", &id, "--run", &check.to_string()]).ok();
    assert_eq!((&*log.stdout, &*log.stderr), ("", &*format!("Run {check} of {id} has written nothing.\n")));

    let attached = fleet.cli(["attach", &id]).ok().stdout;
    let (built, of_check) = (attached.find("built it"), attached.find(&format!("[run {check}]")));
    assert!(built.is_some() && of_check > built, "{attached}");
    assert!(attached.starts_with(&format!("[run {work}]\n")), "{attached}");
    assert!(attached.contains("[it has written nothing]"), "{attached}");
}
