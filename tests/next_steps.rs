//! Commands that a hint advises act on the root and the board of the hint, and commands that only read create neither.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::harness::{Fleet, Output, User};

/// Runs a command whose root is named on its line.
fn named(fleet: &Fleet, root: &str, args: &[&str]) -> Output {
    let mut command = Command::new(fleet.binary());
    command.args(["--root", root]).args(args);
    fleet.dress(&mut command);
    Output::of(&mut command)
}

#[test]
fn a_next_step_names_the_root_and_the_board_that_were_named() {
    let fleet = Fleet::boot();
    fleet.cli(["boards", "create", "infra"]).ok();
    let root = fleet.root().display().to_string();

    let failed = named(&fleet, &root, &["--board", "infra", "run", "--", "false"]);

    assert_eq!(failed.code, 1, "{failed:?}");
    let with = format!("supervisor --root {root} --board infra");
    assert!(failed.stderr.contains(&format!("{with} show t_")), "{failed:?}");
    assert!(failed.stderr.contains(&format!("; {with} retry t_")), "{failed:?}");
    let line = failed.stderr.lines().last().unwrap();
    let words: Vec<&str> = line.split("; ").next().unwrap().split(' ').skip(3).collect();
    assert!(named(&fleet, &root, &words).ok().stdout.contains("exit code 1"), "{line}");
    let plain = fleet.cli(["run", "--", "false"]);
    assert!(plain.stderr.contains("supervisor show t_"), "what was not named is not repeated: {plain:?}");
}

#[test]
fn without_a_daemon_the_command_that_starts_one_has_the_root_that_was_named() {
    let fleet = Fleet::offline();
    let root = fleet.root().display().to_string();
    let way = format!("start one with: supervisor --root {root} daemon");
    assert!(named(&fleet, &root, &["status"]).stdout.contains(&way));
    let refused = named(&fleet, &root, &["run", "true"]).refused(69, "no daemon serves");
    assert!(refused.stderr.contains(&way), "{refused:?}");
    named(&fleet, &root, &["create", "x"]).ok();
    let json = named(&fleet, &root, &["run", "true", "--json"]);
    assert!(!json.stdout.contains("--root"), "{json:?}");
}

#[test]
fn a_title_is_shown_as_its_author_has_written_it() {
    let fleet = Fleet::offline();
    let root = fleet.root().display().to_string();
    let title = "see `supervisor list`; supervisor show";
    named(&fleet, &root, &["create", title, "--assignee", "shell"]).ok();
    for args in [&["list"][..], &["status"]] {
        let shown = named(&fleet, &root, args);
        assert!(shown.stdout.contains(title), "{shown:?}");
    }
}

#[test]
fn a_root_that_does_not_exist_is_not_made_by_reading() {
    let fleet = Fleet::offline();
    let missing = fleet.home().join("mistyped");
    let root = missing.display().to_string();
    for args in [&["list"][..], &["assignees"], &["boards", "list"], &["events"]] {
        let read = named(&fleet, &root, args).ok();
        assert!(read.stderr.contains(&format!("{root} does not exist")), "{read:?}");
    }
    let refused = named(&fleet, &root, &["show", "t_0123abcd"]);
    assert!(refused.code == 3 && refused.stderr.contains("no such task"), "{refused:?}");
    assert!(!missing.exists());
    named(&fleet, &root, &["create", "x"]).ok();
    assert!(missing.is_dir() && named(&fleet, &root, &["list"]).ok().stderr.is_empty());
}

#[test]
fn status_names_the_boards_of_workers_where_they_are_of_another_one() {
    let fleet = Fleet::boot();
    fleet.cli(["boards", "create", "infra"]).ok();
    let here = fleet.create("here", "exec sleep 600", &[]);
    fleet.wait_for(&here, "running");
    let alone = fleet.cli(["status"]).ok().stdout;
    assert!(alone.contains("TASK") && !alone.contains("BOARD"), "{alone}");
    let words = ["--board", "infra", "create", "there", "--assignee", "shell", "--body", "exec sleep 600"];
    let there = fleet.json(words)["id"].as_str().unwrap().to_owned();

    let shown = fleet.eventually("both run", || {
        let shown = fleet.cli(["status"]).ok().stdout;
        shown.lines().any(|line| line.contains(&there) && line.contains("running")).then_some(shown)
    });

    assert!(shown.contains("BOARD"), "{shown}");
    for (board, task) in [("default", &here), ("infra", &there)] {
        assert!(
            shown.lines().any(|line| line.contains(&format!("{board} ")) && line.contains(task)),
            "{shown}"
        );
    }
}

#[test]
fn status_says_that_a_worker_is_stopped() {
    let fleet = Fleet::boot();
    let task = fleet.create("stops", "exec sleep 600", &[]);
    let is = |state: &str| {
        fleet.eventually(&format!("it is {state}"), || {
            let shown = fleet.cli(["status"]).ok().stdout;
            shown.lines().any(|line| line.contains(&task) && line.contains(state)).then_some(())
        });
    };
    fleet.wait_for_worker(&task);
    fleet.cli(["kill", "--signal", "STOP", &task]).ok();
    is("stopped");
    fleet.cli(["kill", "--signal", "CONT", &task]).ok();
    is("running");
}

#[test]
fn a_place_that_cannot_be_written_to_is_refused_with_what_to_name_instead() {
    let fleet = Fleet::offline_as(User::ordinary());
    let task = fleet.create("has a file", "true", &[]);
    let file = fleet.home().join("report");
    std::fs::write(&file, "x").unwrap();
    fleet.give(&file);
    fleet.cli(["attach", &task, file.to_str().unwrap()]).ok();
    let refused =
        fleet.cli(["attachments", "get", "1", "--output", "/nonexistent/x"]).refused(3, "/nonexistent/x");
    assert!(refused.stderr.contains("a directory that exists"), "{refused:?}");
    let refused = fleet.cli(["man", "/proc/x"]).refused(3, "/proc/x");
    assert!(refused.stderr.contains("name a directory"), "{refused:?}");
    let closed = fleet.home().join("closed");
    std::fs::create_dir(&closed).unwrap();
    fleet.give(&closed);
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).unwrap();
    let place = closed.join("m").display().to_string();
    let refused = fleet.cli(["man", &place]).refused(77, &place);
    assert!(refused.stderr.contains("that the user of this process may use"), "{refused:?}");
    fleet.cli(["backup", &place]).refused(77, "");
    fleet.cli(["export", "--file", &place]).refused(77, "");
}
