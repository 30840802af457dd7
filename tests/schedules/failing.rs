//! Schedules that can make nothing: refused where that is known, else named until they are mended.

use std::fs;

use serde_json::json;

use crate::harness::Fleet;

fn file(fleet: &Fleet, text: &str) -> String {
    let path = fleet.home().join("s.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_task_that_no_board_takes_is_refused_with_its_key_before_a_tick_needs_it() {
    let fleet = Fleet::offline();
    for (key, said) in [
        ("max_runtime = \"0s\"", "(max_runtime): it is zero"),
        ("goal = true\ngoal_max_turns = 0", "goal_max_turns"),
        ("approver = \"ann\"", "no approval is required"),
        ("max_checks = 2", "(max_checks): the task has no check"),
    ] {
        let path = file(&fleet, &format!("every = \"1h\"\n[task]\ntitle = \"x\"\n{key}\n"));
        fleet.cli(["schedules", "add", "bad", "--file", &path]).refused(2, said);
        let checked = fleet.cli(["schedules", "check", &path]);
        assert!(checked.code != 0 && checked.stdout.contains(said), "{key}: {checked:?}");
    }
    let zero = ["schedules", "add", "bad", "--every", "1h", "--title", "x", "--max-runtime", "0s"];
    fleet.cli(zero).refused(2, "it is zero");
    assert_eq!(fleet.json(["schedules", "list"]), json!([]));
}

#[test]
fn what_cannot_be_known_to_work_is_saved_with_a_warning() {
    let fleet = Fleet::boot();
    let path = file(&fleet, "every = \"1h\"\n[task]\ntitle = \"x\"\napproval_class = \"nocl\"\n");
    let said = fleet.cli(["schedules", "add", "a", "--file", &path]).ok().stderr;
    assert!(said.contains("each tick will fail") && said.contains("no class `nocl`"), "{said}");
    let command = "dispatch-fleet nosuchprof /nosuch";
    let said = fleet.cli(["schedules", "add", "b", "--every", "1h", "--command", command]).ok().stderr;
    assert!(said.contains("nosuchprof") && said.contains("there is no directory /nosuch"), "{said}");
}

#[test]
fn an_argument_that_a_file_or_a_command_would_leave_unheard_is_refused() {
    let fleet = Fleet::offline();
    let path = file(&fleet, "every = \"1h\"\n[task]\ntitle = \"x\"\n");
    for more in [&["--paused"][..], &["--overlap", "queue"], &["--assignee", "x"], &["--priority", "9"]] {
        let words = [&["schedules", "add", "s", "--file", &path], more].concat();
        fleet.cli(words).refused(2, "cannot be used with");
    }
    let command = ["schedules", "add", "s", "--every", "1h", "--command", "dispatch-fleet shell /x"];
    for more in [["--body", "echo"], ["--tenant", "t"], ["--max-runtime", "5m"]] {
        fleet.cli([&command[..], &more].concat()).refused(2, "cannot be used with");
    }
    assert_eq!(fleet.json(["schedules", "list"]), json!([]));
}

#[test]
fn a_schedule_whose_latest_tick_failed_is_named_until_it_is_mended_or_paused() {
    let fleet = Fleet::boot();
    let class = |class: &str| {
        file(&fleet, &format!("every = \"1s\"\n[task]\ntitle = \"x\"\napproval_class = \"{class}\"\n"))
    };
    fleet.cli(["schedules", "add", "fails", "--file", &class("nocl")]).ok();

    let status = fleet.eventually("status names it", || {
        let status = fleet.cli(["status"]);
        status.stdout.contains("schedule fails: its latest tick failed").then_some(status)
    });

    assert_eq!(status.code, 1, "{status:?}");
    assert!(status.stdout.contains("there is no class `nocl`"), "{}", status.stdout);
    let found = fleet.json(["diagnostics"]);
    let named = |found: &serde_json::Value| {
        let all = found.as_array().unwrap().iter().flat_map(|one| one["diagnostics"].as_array().unwrap());
        all.filter(|one| one["kind"] == "schedule_fails").count()
    };
    assert_eq!(named(&found), 1, "{found:#}");
    fleet.cli(["schedules", "pause", "fails"]).ok();
    assert_eq!(fleet.cli(["status"]).code, 0);
    fleet.cli(["schedules", "add", "fails", "--force", "--file", &class("spend")]).ok();
    fleet.eventually("a tick is made", || {
        let made = fleet.json(["schedules", "show", "fails"])["ticks"][0]["outcome"] == "made";
        made.then_some(())
    });
    assert_eq!(named(&fleet.json(["diagnostics"])), 0);
}

#[test]
fn a_schedule_that_makes_nothing_for_a_blocked_task_is_named_until_the_task_is_over() {
    let fleet = Fleet::boot();
    let text =
        "every = \"1s\"\n[task]\ntitle = \"x\"\nassignee = \"shell\"\nbody = \"false\"\nmax_retries = 1\n";
    let path = file(&fleet, text);
    fleet.cli(["schedules", "add", "stuck", "--file", &path]).ok();

    let status = fleet.eventually("status names it", || {
        let status = fleet.cli(["status"]);
        status.stdout.contains("schedule stuck: its ticks make nothing").then_some(status)
    });

    assert_eq!(status.code, 1, "{status:?}");
    let task = fleet.problems("schedule_stuck")[0]["data"]["task"].as_str().unwrap().to_owned();
    let found = fleet.json(["diagnostics"]).to_string();
    assert!(found.contains("schedule_stuck") && found.contains(&task), "{found}");
    assert!(found.contains(&format!("supervisor unblock {task}")), "{found}");
    fleet.cli(["schedules", "pause", "stuck"]).ok();
    assert_eq!(fleet.cli(["status"]).code, 0, "its ticks are left out by a person");
}

#[test]
fn a_command_that_the_board_has_kept_from_another_release_reads_no_file_at_its_tick() {
    let fleet = Fleet::offline();
    let dir = fleet.home().join("fleet");
    fs::create_dir_all(dir.join("acct")).unwrap();
    let key = fleet.home().join("key");
    fs::write(&key, "a secret of the daemon's user").unwrap();
    for path in [&dir, &dir.join("acct"), &key] {
        fleet.give(path);
    }
    let command = format!("dispatch-fleet shell {}", dir.display());
    fleet.cli(["schedules", "add", "kept", "--every", "1s", "--command", &command]).ok();
    // The file is edited by hand; a board of an earlier release has its command, and keeps it.
    let reading = format!("{command} --body-file {}", key.display());
    let text = format!("every = \"1s\"\ncommand = \"{reading}\"\n");
    fs::write(fleet.root().join("schedules.d/kept.toml"), text).unwrap();
    let words = ["dispatch-fleet", "--tick", "{tick}", "shell", dir.to_str().unwrap(), "--body-file"];
    let words = json!([&words[..], &[key.to_str().unwrap()]].concat()).to_string();
    let board = rusqlite::Connection::open(fleet.root().join("boards/default/board.db")).unwrap();
    let change = "UPDATE schedules SET spec = json_set(spec, '$.command', json(?1))";
    assert_eq!(board.execute(change, [words]).unwrap(), 1);
    board.close().unwrap();

    fleet.start();

    let failed = fleet.eventually("status names the failed tick", || {
        let status = fleet.cli(["status"]).stdout;
        status.contains("schedule kept: its latest tick failed").then_some(status)
    });
    assert!(failed.contains("a tick reads no file"), "{failed}");
    assert_eq!(fleet.json(["list"]), json!([]), "it makes no task");
}
