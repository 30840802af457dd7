//! Boards are copied while in use, put back, damaged, refused and mended.

use std::fs;
use std::os::unix::fs::FileExt;

use serde_json::{Value, json};

use crate::harness::Fleet;

fn titles(fleet: &Fleet) -> Vec<String> {
    let listed = fleet.json(["list", "--sort", "created"]);
    let titles = listed.as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap().to_owned());
    titles.collect()
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
}

/// Spoils the pages of a board in the middle.
fn spoil(fleet: &Fleet, board: &str) {
    let path = fleet.root().join("boards").join(board).join("board.db");
    let file = fs::File::options().write(true).open(&path).unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    for page in 2..pages {
        file.write_all_at(&[0xa5; 64], page * 4096).unwrap();
    }
}

#[test]
fn a_backup_of_a_served_board_comes_back_with_restore() {
    let fleet = Fleet::boot();
    let kept = fleet.create("kept", "echo kept", &[]);
    fleet.wait_for(&kept, "done");
    let file = fleet.home().join("copy.db");
    let said = fleet.json(["backup", "copy.db"]);
    assert_eq!(said["file"], json!(file));
    assert_eq!(said["bytes"], fs::metadata(&file).unwrap().len());
    let lost = fleet.create("made after the backup", "true", &[]);
    let before = fleet.wait_for(&lost, "done")["runs"][0]["id"].as_i64().unwrap();

    let refused = fleet.cli(["restore", "copy.db"]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("supervisor stop --wait"), "{}", refused.stderr);
    fleet.stop(&["--wait"]);
    let restored = fleet.json(["restore", "copy.db"]);

    assert!(fs::metadata(restored["replaced"].as_str().unwrap()).is_ok());
    assert_eq!(titles(&fleet), ["kept"]);
    fleet.start();
    let again = fleet.create("after the restore", "true", &[]);
    let after = fleet.wait_for(&again, "done")["runs"][0]["id"].as_i64().unwrap();
    assert!(after > before, "the number of a run is given once: {after}");
    let report = fleet.json(["doctor", "--replay"]);
    assert_eq!((&report["ok"], &check(&report, "replay default")["verdict"]), (&json!(true), &json!("ok")));
}

#[test]
fn a_backup_goes_only_where_it_harms_nothing() {
    let fleet = Fleet::offline();
    fleet.json(["create", "a"]);
    let mine = fleet.home().join("mine");
    fs::write(&mine, "mine").unwrap();

    let refused = fleet.cli(["backup", "mine"]);
    assert_eq!((refused.code, refused.stderr.contains("--force")), (4, true), "{}", refused.stderr);
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
    let board = fleet.root().join("boards/default/board.db");
    let board = board.to_str().unwrap();
    assert_eq!(fleet.cli(["backup", "--force", board]).code, 2);
    assert_eq!(fleet.cli(["backup", "nowhere/x"]).code, 3);
    assert_eq!(fleet.cli(["backup", "."]).code, 2);
    fleet.cli(["backup", "--force", "mine"]).ok();
    assert_eq!(titles(&fleet), ["a"]);
}

#[test]
fn what_is_no_backup_is_refused_and_the_board_stays() {
    let fleet = Fleet::offline();
    fleet.json(["create", "a"]);
    fs::write(fleet.home().join("bad"), vec![b'x'; 9000]).unwrap();

    assert_eq!(fleet.cli(["restore", "bad"]).code, 1);
    assert_eq!(fleet.cli(["restore", "none"]).code, 3);

    assert_eq!(titles(&fleet), ["a"]);
}

#[test]
fn a_damaged_board_is_not_served_and_the_others_are() {
    let fleet = Fleet::offline();
    let long = "x".repeat(3000);
    for at in 0..20 {
        fleet.json(["create", &format!("task {at}"), "--body", &long]);
    }
    fleet.json(["--board", "second", "init"]);
    fleet.json(["backup", "good.db"]);
    spoil(&fleet, "default");

    fleet.start();

    let refused = fleet.cli(["create", "b"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    for text in ["`default` is not served", "damaged", "doctor --repair", "restore"] {
        assert!(refused.stderr.contains(text), "{text}: {}", refused.stderr);
    }
    let other = fleet.create("on the other board", "echo fine", &["--board", "second"]);
    fleet.eventually("the other board is served", || {
        let shown = fleet.json(["--board", "second", "show", &other]);
        (shown["task"]["status"] == "done").then_some(())
    });
    assert_eq!(fleet.cli(["doctor", "--repair"]).code, 4, "not while it is served");
    fleet.stop(&["--wait"]);
    fleet.json(["restore", "good.db"]);
    assert_eq!(titles(&fleet).len(), 20);
}

#[test]
fn doctor_names_what_is_damaged_and_repair_keeps_the_evidence() {
    let fleet = Fleet::offline();
    let long = "x".repeat(3000);
    for at in 0..20 {
        fleet.json(["create", &format!("task {at}"), "--body", &long]);
    }
    let report = fleet.json(["doctor", "--replay"]);
    assert_eq!(report["ok"], true, "{report}");
    for name in [
        "root",
        "daemon",
        "board default",
        "replay default",
        "files",
        "system calls",
        "view",
        "cgroups",
        "users",
    ] {
        assert_ne!(check(&report, name)["detail"], "", "{name}");
    }
    let path = fleet.root().join("boards/default/board.db");
    // One file without a log beside it, whose last page with tasks is what is read.
    fleet.json(["backup", "whole.db"]);
    fleet.json(["restore", "whole.db"]);
    let pages = fs::read(&path).unwrap();
    let last = pages.chunks(4096).rposition(|page| page.windows(64).any(|text| text == [b'x'; 64])).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0xa5; 64], last as u64 * 4096).unwrap();
    drop(file);
    let damaged = fleet.cli(["doctor"]);
    assert_eq!(damaged.code, 1, "{}", damaged.stdout);
    assert!(damaged.stdout.contains("doctor --repair"), "{}", damaged.stdout);

    let repaired = fleet.cli(["doctor", "--repair", "--json"]);

    let report = repaired.json();
    assert_eq!(check(&report, "board default")["verdict"], "ok", "{report}");
    let detail = check(&report, "repair default")["detail"].as_str().unwrap().to_owned();
    let evidence = detail.rsplit(' ').next().unwrap();
    assert!(fs::metadata(evidence).is_ok(), "{detail}");
    fleet.start();
    fleet.json(["create", "goes on"]);
}
