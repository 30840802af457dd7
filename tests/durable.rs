//! Boards are copied while in use, put back, damaged, refused and mended.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::Fleet;
use crate::invariants::invariants_hold;

fn titles(fleet: &Fleet) -> Vec<String> {
    let listed = fleet.json(["list", "--sort", "created"]);
    let titles = listed.as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap().to_owned());
    titles.collect()
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["subject"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
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
    assert_eq!((&report["ok"], &check(&report, "replay default")["severity"]), (&json!(true), &json!("ok")));
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
    let refused = fleet.cli(["--board", "other", "restore", "/"]);
    assert!(refused.stderr.contains("not a regular file"), "{}", refused.stderr);
    assert!(refused.stderr.contains("supervisor --board other backup"), "{}", refused.stderr);
    let boards = fleet.cli(["boards", "list"]).ok().stdout;
    assert!(!boards.contains("other"), "{boards}");

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
    invariants_hold(&fleet);
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
        assert_ne!(check(&report, name)["title"], "", "{name}");
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
    assert_eq!(check(&report, "board default")["severity"], "ok", "{report}");
    let detail = check(&report, "repair default")["title"].as_str().unwrap().to_owned();
    let evidence = detail.rsplit(' ').next().unwrap();
    assert!(fs::metadata(evidence).is_ok(), "{detail}");
    fleet.start();
    let task = fleet.create("goes on", "true", &[]);
    fleet.wait_for(&task, "done");
    invariants_hold(&fleet);
}

#[test]
fn a_board_that_cannot_be_repaired_is_told_what_can_help() {
    let fleet = Fleet::offline();
    fleet.json(["create", "a"]);
    let path = fleet.root().join("boards/default/board.db");
    // It still says that it is a database, and nothing else of it can be read.
    let file = fs::File::options().write(true).open(&path).unwrap();
    let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
    file.write_all_at(&vec![0xa5; length - 16], 16).unwrap();
    for end in ["-wal", "-shm"] {
        drop(fs::remove_file(path.with_file_name(format!("board.db{end}"))));
    }

    let output = fleet.cli(["doctor", "--repair"]);

    assert_eq!(output.code, 1, "{}", output.stdout);
    assert!(output.stdout.contains("error   repair default: "), "{}", output.stdout);
    for text in ["supervisor restore <file>", "supervisor export", ".recover"] {
        assert!(output.stdout.contains(text), "{text}: {}", output.stdout);
    }
    assert!(!output.stdout.contains("doctor --repair"), "it does not name itself: {}", output.stdout);
}

/// Attaches a file of a few bytes to a task, and returns where its bytes are.
fn attach(fleet: &Fleet, task: &str, name: &str) -> PathBuf {
    let path = fleet.home().join(name);
    fs::write(&path, format!("bytes of {name}")).unwrap();
    fleet.give(&path);
    PathBuf::from(fleet.json(["attach", task, name])["stored_path"].as_str().unwrap())
}

/// Returns the readable contents of a task's files, or the errors.
fn read(fleet: &Fleet, task: &str) -> Vec<String> {
    let files = fleet.json(["attachments", task]);
    let read = |file: &Value| fs::read_to_string(file["stored_path"].as_str().unwrap());
    files.as_array().unwrap().iter().map(|file| read(file).unwrap_or_else(|e| e.to_string())).collect()
}

#[test]
fn a_backup_brings_back_attached_files_and_what_people_say_of_the_board() {
    let fleet = Fleet::boot();
    let task = fleet.create("a", "true", &["--triage"]);
    attach(&fleet, &task, "one");
    attach(&fleet, &task, "two");
    fleet.cli(["boards", "rename", "default", "Ours"]).ok();
    let said = fleet.json(["backup", "copy.db"]);
    assert_eq!((&said["files"], &said["missing"]), (&json!(2), &json!([])));
    fleet.cli(["boards", "rename", "default", "Wrecked"]).ok();
    fleet.cli(["attach-rm", "1"]).ok();
    fleet.stop(&["--wait"]);
    fs::remove_dir_all(fleet.root().join("boards/default/attachments")).unwrap();
    let board = fleet.root().join("boards/default/board.db");
    let size = fs::metadata(&board).unwrap().len();

    let restored = fleet.json(["restore", "copy.db"]);

    assert_eq!(restored["missing"], json!([]));
    assert_eq!(read(&fleet, &task), ["bytes of one", "bytes of two"]);
    let details = fs::read_to_string(fleet.root().join("boards/default/details.json")).unwrap();
    assert!(details.contains("Ours"), "{details}");
    assert!(fs::metadata(&board).unwrap().len() <= size, "the board is no larger than it was");
    assert_eq!(fleet.cli(["doctor", "--replay"]).code, 0);
}

#[test]
fn files_that_a_backup_has_not_are_named_when_it_is_made_and_when_it_is_restored() {
    let fleet = Fleet::offline();
    let task = fleet.create("a", "true", &["--triage"]);
    let [gone, spoiled, whole] = ["gone", "spoiled", "whole"].map(|name| attach(&fleet, &task, name));
    fs::remove_file(gone).unwrap();
    fs::write(spoiled, "others").unwrap();

    let said = fleet.cli(["backup", "copy.db"]).ok().stdout;

    for text in ["1 attached file,", "(gone)", "are missing", "(spoiled)", "not those that were attached"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    let missing = fleet.json(["backup", "--force", "copy.db"])["missing"].as_array().unwrap().len();
    assert_eq!(missing, 2);
    fs::remove_file(whole).unwrap();
    let restored = fleet.json(["restore", "copy.db"]);
    assert_eq!(restored["missing"].as_array().unwrap().len(), 2, "{restored}");
    assert_eq!(read(&fleet, &task)[2], "bytes of whole");
}

#[test]
fn a_restore_that_dies_anywhere_leaves_one_board_or_the_other_whole_with_its_files() {
    for (point, expected) in [
        ("restore-copied", "later"),
        ("restore-files", "later"),
        ("restore-kept", "later"),
        ("restore-placed", "kept"),
    ] {
        for foreign in [false, true] {
            let fleet = Fleet::offline();
            let source = if foreign { "other" } else { "default" };
            fleet.cli(["--board", source, "init"]).ok();
            let kept = fleet.json(["--board", source, "create", "kept", "--triage"])["id"].clone();
            let kept = kept.as_str().unwrap();
            fs::write(fleet.home().join("one"), "bytes of one").unwrap();
            fleet.give(&fleet.home().join("one"));
            fleet.cli(["--board", source, "attach", kept, "one"]).ok();
            fleet.json(["--board", source, "backup", "copy.db"]);
            if !foreign {
                fs::remove_dir_all(fleet.root().join("boards/default/attachments")).unwrap();
            }
            let later = fleet.create("later", "true", &["--triage"]);
            attach(&fleet, &later, "two");
            let mut restore = fleet.command(["restore", "copy.db"]);

            let died = restore.env("SUPERVISOR_FAIL_POINT", point).output().unwrap();

            assert!(died.status.code().is_none(), "{point}: {died:?}");
            let titles = titles(&fleet);
            assert_eq!(titles.last().map(String::as_str), Some(expected), "{point} {foreign}");
            let files = if expected == "later" { read(&fleet, &later) } else { read(&fleet, kept) };
            let expected = if expected == "later" { ["bytes of two"] } else { ["bytes of one"] };
            assert_eq!(files, expected, "{point} {foreign}");
            fleet.cli(["restore", "copy.db"]).ok();
            assert_eq!(read(&fleet, kept), ["bytes of one"], "{point} {foreign}");
            assert_eq!(fleet.cli(["doctor", "--replay"]).code, 0, "{point} {foreign}");
        }
    }
}

#[test]
fn the_name_of_a_backup_does_not_drive_the_terminal() {
    let fleet = Fleet::offline();
    fleet.json(["create", "x"]);
    for args in [["backup", "a\u{1b}[31mb"], ["restore", "a\u{1b}[31mb"]] {
        let said = fleet.cli(args).ok().stdout;
        assert!(said.contains("a\\u{1b}[31mb") && !said.contains('\u{1b}'), "{said:?}");
    }
}

/// Returns the number of successful checks of a board that was served meanwhile.
fn checked_beside(fleet: &Fleet) -> usize {
    fleet.log().matches(" board_whole ").count()
}

#[test]
fn after_a_clean_stop_a_board_is_served_at_once_and_checked_beside_that() {
    let fleet = Fleet::boot();
    let task = fleet.create("one", "true", &[]);
    fleet.wait_for(&task, "done");
    fleet.stop(&["--wait"]);
    let log = fleet.root().join("boards/default/board.db-wal");
    assert_eq!(fs::metadata(&log).map_or(0, |meta| meta.len()), 0, "the log was not given back");

    fleet.start();

    fleet.eventually("the check has found it whole", || (checked_beside(&fleet) == 1).then_some(()));
    fleet.kill_daemon();
    fleet.start();
    fleet.json(["status"]);
    assert_eq!(checked_beside(&fleet), 1, "a small board that was left open is checked before it is served");
}

#[test]
fn a_fault_that_is_found_beside_the_service_ends_the_service_of_that_board_alone() {
    let fleet = Fleet::boot();
    fleet.cli(["boards", "create", "other"]).ok();
    for n in 0..40 {
        fleet.create(&format!("task {n} {}", "x".repeat(300)), "true", &["--triage"]);
    }
    fleet.stop(&["--wait"]);
    let path = fleet.root().join("boards/default/board.db");
    let file = fs::File::options().write(true).open(&path).unwrap();
    let before = file.metadata().unwrap();
    // Its last pages, and nobody sees that it was touched.
    let pages = before.len() / 4096;
    for page in pages - 6..pages {
        file.write_all_at(&[0xa5; 64], page * 4096).unwrap();
    }
    let times = fs::FileTimes::new().set_modified(before.modified().unwrap());
    file.set_times(times).unwrap();
    drop(file);

    fleet.start();

    let refused = fleet.eventually("the board is not served", || {
        let refused = fleet.cli(["create", "x"]);
        refused.stderr.contains("is not served").then_some(refused)
    });
    assert!(refused.stderr.contains("doctor --repair"), "{}", refused.stderr);
    fleet.cli(["--board", "other", "create", "y"]).ok();
    fleet.eventually("the check names the damage", || fleet.log().contains("board_damaged").then_some(()));
}
