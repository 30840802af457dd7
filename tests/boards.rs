//! Boards are made, named, chosen and removed.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Fleet, Output};

fn slugs(listed: &Value) -> Vec<(&str, bool)> {
    let lines = listed.as_array().unwrap().iter();
    lines.map(|line| (line["slug"].as_str().unwrap(), line["is_current"].as_bool().unwrap())).collect()
}

#[test]
fn a_board_is_made_and_chosen_and_its_tasks_run() {
    let fleet = Fleet::boot();
    let made = fleet.json([
        "boards",
        "create",
        "releases",
        "--name",
        "Our releases",
        "--description",
        "what ships",
        "--icon",
        "R",
        "--colour",
        "red",
        "--default-workdir",
        "/srv/r",
        "--switch",
    ]);
    let expected = json!({
        "slug": "releases", "name": "Our releases", "description": "what ships", "icon": "R", "color": "red",
        "default_workdir": "/srv/r", "archived": false, "counts": {}, "total": 0,
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&made[key], value, "{key}");
    }
    assert!(made["created_at"].as_i64().unwrap() > 1_700_000_000);

    let id = fleet.create("on the chosen board", "echo $SUPERVISOR_BOARD", &[]);

    assert_eq!(fleet.wait_for(&id, "done")["latest_summary"], "releases");
    let listed = fleet.json(["boards", "list"]);
    assert_eq!(slugs(&listed), [("default", false), ("releases", true)]);
    assert_eq!((&listed[1]["counts"], &listed[1]["total"]), (&json!({ "done": 1 }), &json!(1)));
    assert_eq!(fleet.json(["list", "--board", "default"]), json!([]));
    let by_name = |name: &str, value: &str| {
        let mut command = fleet.command(["boards", "show", "--json"]);
        Output::of(command.env(name, value)).ok().json()["slug"].clone()
    };
    assert_eq!(by_name("SUPERVISOR_BOARD", "default"), "default");
    assert_eq!(by_name("HERMES_KANBAN_BOARD", "default"), "default");
    assert_eq!(fleet.json(["boards", "show"])["slug"], "releases");
    fleet.cli(["boards", "rename", "releases", "Shipping"]).ok();
    fleet.cli(["boards", "set-default-workdir", "releases"]).ok();
    let shown = fleet.json(["boards", "current"]);
    assert_eq!((&shown["name"], &shown["default_workdir"]), (&json!("Shipping"), &Value::Null));
    assert_eq!(shown["description"], "what ships");
    fleet.cli(["boards", "use", "default"]).ok();
    assert_eq!(fleet.json(["list"]), json!([]));
}

#[test]
fn a_removed_board_is_kept_aside_and_a_deleted_one_is_gone() {
    let fleet = Fleet::boot();
    fleet.cli(["boards", "create", "old", "--switch"]).ok();
    let id = fleet.create("a", "true", &[]);
    fleet.wait_for(&id, "done");
    fleet.stop(&["--wait"]);

    let removed = fleet.json(["boards", "rm", "old"]);

    assert!(std::path::Path::new(removed["kept"].as_str().unwrap()).join("board.db").is_file());
    assert_eq!(slugs(&fleet.json(["boards", "list"])), [("default", true)]);
    let all = fleet.json(["boards", "list", "--all"]);
    assert_eq!((&all[1]["archived"], &all[1]["total"]), (&json!(true), &json!(1)));
    fleet.cli(["boards", "create", "gone"]).ok();
    assert_eq!(fleet.json(["boards", "delete", "gone", "--delete"])["kept"], Value::Null);
    assert_eq!(fleet.json(["boards", "list", "--all"]).as_array().unwrap().len(), 2);
    fleet.cli(["--board", "old", "list"]).refused(3, "no board `old`");
}

#[test]
fn a_running_daemon_gives_a_board_away_and_takes_a_new_one_of_its_name() {
    let fleet = Fleet::boot();
    fleet.cli(["boards", "create", "old", "--switch"]).ok();
    let id = fleet.create("a", "true", &[]);
    fleet.wait_for(&id, "done");
    let mut watch = fleet.command(["watch", "--since", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("completed")).unwrap().unwrap();

    // The slot of a worker is free a moment after its task is done.
    let removed = fleet.eventually("the worker's slot is free", || {
        let said = fleet.cli(["boards", "rm", "old", "--json"]);
        (said.code == 0).then(|| said.json())
    });

    let kept = std::path::Path::new(removed["kept"].as_str().unwrap());
    assert!(kept.join("board.db").is_file());
    let open = std::fs::read_dir(format!("/proc/{}/fd", fleet.daemon_pid())).unwrap();
    let open = open.filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
    let open: Vec<_> = open.filter(|file| file.to_string_lossy().contains("old")).collect();
    assert!(open.is_empty(), "closed before it was moved: {open:?}");
    assert!(!watch.wait().unwrap().success(), "there is nothing to watch any more");
    fleet.cli(["--board", "old", "list"]).refused(3, "no board `old`");
    fleet.cli(["boards", "create", "old"]).ok();
    let again = fleet.create("b", "echo new", &["--board", "old"]);
    fleet.eventually("the new board is served", || {
        let shown = fleet.json(["--board", "old", "show", &again]);
        (shown["latest_summary"] == "new").then_some(())
    });
    assert_eq!(fleet.json(["--board", "old", "list"]).as_array().unwrap().len(), 1);
    let log = fleet.log();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

#[test]
fn a_running_daemon_keeps_a_board_with_a_worker_or_a_claim() {
    let fleet = Fleet::boot();
    fleet.cli(["boards", "create", "busy", "--switch"]).ok();
    let id = fleet.create("a", "sleep 600", &[]);
    fleet.wait_for(&id, "running");

    fleet.cli(["boards", "rm", "busy"]).refused(4, "has a worker");

    let after = fleet.create("b", "true", &[]);
    fleet.wait_for(&after, "done");
    fleet.cli(["archive", &id]).ok();
    fleet.wait_for(&id, "archived");
    let pull = fleet.json(["create", "elsewhere", "--assignee", "nobody-here"])["id"].clone();
    let pull = pull.as_str().unwrap();
    fleet.cli(["claim", pull]).ok();
    // The slot of the archived task's worker is free a moment after its status has changed.
    fleet.eventually("the worker's slot is free", || {
        let refused = fleet.cli(["boards", "rm", "busy"]);
        assert_eq!(refused.code, 4, "{}", refused.stderr);
        refused.stderr.contains("is open").then_some(())
    });
    fleet.cli(["complete", pull]).ok();
    let last = fleet.create("c", "true", &[]);
    fleet.wait_for(&last, "done");
    fleet
        .eventually("its slot is free too", || (fleet.cli(["boards", "rm", "busy"]).code == 0).then_some(()));
}

#[test]
fn a_board_with_a_worker_is_not_removed() {
    let fleet = Fleet::boot();
    fleet.cli(["boards", "create", "busy", "--switch"]).ok();
    let id = fleet.create("a", "sleep 600", &[]);
    fleet.wait_for(&id, "running");
    fleet.eventually("its command runs", || (!fleet.processes_with("sleep").is_empty()).then_some(()));
    fleet.stop(&["--leave", "--wait"]);

    fleet.cli(["boards", "rm", "busy"]).refused(4, "has not ended");

    fleet.start();
    fleet.cli(["archive", &id]).ok();
    fleet.wait_for(&id, "archived");
}

#[test]
fn names_that_mean_nothing_are_refused() {
    let fleet = Fleet::offline();
    fleet.cli(["boards", "create", "Not A Slug"]).refused(2, "board name");
    fleet.cli(["boards", "create", "a", "--default-workdir", "relative"]).refused(2, "absolute");
    fleet.cli(["boards", "create", "a"]).ok();
    fleet.cli(["boards", "create", "a"]).refused(4, "already");
    for args in [
        &["boards", "switch", "b"][..],
        &["boards", "rm", "b"],
        &["boards", "rename", "b", "B"],
        &["boards", "set-default-workdir", "b", "/x"],
    ] {
        fleet.cli(args).refused(3, "no board `b`");
    }
    fleet.cli(["boards", "rename", "a", " "]).refused(2, "title");
    fleet.cli(["boards", "rm", "default"]).refused(3, "no board `default`");
    fleet.cli(["init", "--board", "default"]).ok();
    fleet.cli(["boards", "rm", "default"]).refused(4, "cannot be removed");
}

#[test]
fn a_default_workdir_that_no_task_can_use_is_kept_with_a_warning() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        fleet.cli(["init"]).ok();
        let set = |path: &str| fleet.cli(["boards", "set-default-workdir", "default", path]).ok().stderr;
        let missing = set("/nonexistent/at/all");
        assert!(
            missing.contains("warning: ") && missing.contains("/nonexistent/at/all does not exist"),
            "{missing}"
        );
        let inside = set(fleet.root().to_str().unwrap());
        assert!(inside.contains("warning: no task can use the default workdir"), "{inside}");
        assert!(fleet.json(["boards", "show"])["default_workdir"].as_str().is_some(), "it is kept");
        assert_eq!(fleet.cli(["boards", "set-default-workdir", "default"]).ok().stderr, "");
        let place = fleet.home().join("place");
        std::fs::create_dir(&place).unwrap();
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(&place, Some(65534), Some(65534)).unwrap();
        }
        assert_eq!(set(place.to_str().unwrap()), "");
        let later = set(place.join("later").to_str().unwrap());
        assert!(later.contains("later does not exist yet: `--workspace dir` creates it"), "{later}");
        let made = fleet.cli(["boards", "create", "b", "--default-workdir", "/nonexistent"]).ok().stderr;
        assert!(made.contains("/nonexistent"), "{made}");
    }
}

#[test]
fn a_board_with_a_row_that_cannot_be_read_stops_no_other_board() {
    let fleet = Fleet::offline();
    fleet.cli(["--board", "bad", "init"]).ok();
    let file = fleet.root().join("boards/bad/board.db");
    let row = "INSERT INTO holds (kind, scope, name, within, reason, placed_by, created_at) \
               VALUES ('manual', 'profile', 'x', 'no tenant', 'r', 'p', 1)";
    rusqlite::Connection::open(&file).unwrap().execute_batch(row).unwrap();
    fleet.give(&file);
    fleet.start();

    let refused = fleet.eventually("the board is not served", || {
        let refused = fleet.cli(["--board", "bad", "list"]);
        refused.stderr.contains("is not served").then_some(refused)
    });

    assert!(refused.stderr.contains("is not a valid tenant"), "{}", refused.stderr);
    let good = fleet.create("b", "true", &[]);
    fleet.wait_for(&good, "done");
}
