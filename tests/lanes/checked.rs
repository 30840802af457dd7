//! `lane check` judges the files as they are now, and says what a daemon that runs does not use yet of them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;

use crate::harness::Fleet;

const LANE: &str = "argv = [\"wren\"]\npolicy = \"default\"\n";

/// `lane check`: its code, and each check as `verdict subject: detail`.
fn check(fleet: &Fleet, lane: &str) -> (i32, String) {
    let said = fleet.cli(["lane", "check", lane, "--json"]);
    let word = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let told = |check: &Value| {
        format!(
            "{} {}: {} {}\n",
            word(check, "severity"),
            word(check, "subject"),
            word(check, "title"),
            word(&check["actions"][0], "label")
        )
    };
    (said.code, said.json()["checks"].as_array().unwrap().iter().map(told).collect())
}

/// Writes a script beneath the home.
fn script(fleet: &Fleet, path: &str) -> std::path::PathBuf {
    let path = fleet.home().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_lane_is_judged_by_its_file_as_it_is_and_what_a_daemon_has_not_read_is_said() {
    let fleet = Fleet::offline();
    let program = script(&fleet, "tools/wren");
    fleet.lane("wren", LANE);
    fleet.start();
    let (code, told) = check(&fleet, "wren");
    assert!(code == 1 && told.contains("error program: `wren` is in none of"), "{told}");

    let granted = format!("install = [{:?}]\n{LANE}", program.parent().unwrap());
    fleet.lane("wren", &granted);
    let (code, told) = check(&fleet, "wren");
    let unread = "lanes.d/wren.toml is not in use yet as it is now: supervisor service reload";
    assert!(code == 0 && told.contains(&format!("ok program: {}", program.display())), "{told}");
    assert!(told.contains(unread), "{told}");
    let shown = fleet.cli(["lane", "show", "wren"]).ok().stdout;
    assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(unread), "{shown}");

    fleet.cli(["service", "reload"]).ok();
    let (code, told) = check(&fleet, "wren");
    assert!(code == 0 && !told.contains("reload"), "{told}");
    assert!(!fleet.cli(["lane", "show", "wren"]).ok().stdout.contains("reload"));

    fleet.lane("wren", &format!("foo = 1\n{granted}"));
    let (code, told) = check(&fleet, "wren");
    assert!(code == 1 && told.contains("wren.toml:1 (foo): unknown field"), "{told}");

    fs::remove_file(fleet.root().join("lanes.d/wren.toml")).unwrap();
    let gone = fleet.cli(["lane", "check", "wren"]);
    assert!(gone.code == 3 && gone.stderr.contains("supervisor service reload"), "{}", gone.stderr);
    fleet.lane("robin", &granted);
    let (code, told) = check(&fleet, "robin");
    assert!(code == 0 && told.contains("robin.toml is not in use yet"), "{told}");
}

#[test]
fn a_program_whose_link_leads_out_of_what_is_granted_is_named_with_the_line_that_helps() {
    let fleet = Fleet::offline();
    let real = script(&fleet, "node_modules/pkg/cli.sh");
    let bin = fleet.home().join("node_modules/.bin");
    fs::create_dir(&bin).unwrap();
    symlink("../pkg/cli.sh", bin.join("wren")).unwrap();
    fleet.lane("wren", &format!("install = [{bin:?}]\n{LANE}"));
    let (code, told) = check(&fleet, "wren");
    let detail =
        format!("wren leads to {}, which a run may not execute", real.canonicalize().unwrap().display());
    assert!(code == 1 && told.contains(&detail), "{told}");
    let tested = fleet.cli(["lane", "test", "wren"]);
    assert!(tested.code == 1 && tested.stdout.contains("not tried"), "{}", tested.stdout);
    let packages = fleet.home().join("node_modules");
    let line = format!("write install = [{bin:?}, {packages:?}] into ");
    assert!(told.contains(&line), "{told}");
    fleet.lane("wren", &format!("install = [{bin:?}, {packages:?}]\n{LANE}"));
    assert_eq!(check(&fleet, "wren").0, 0);
}

#[test]
fn the_places_of_a_trial_are_named_after_it() {
    let fleet = Fleet::offline();
    fleet.lane("lost", "argv = [\"/bin/sh\", \"-c\", \"pwd; exit 1\"]\npolicy = \"default\"\n");
    let tested = fleet.cli(["lane", "test", "lost"]);
    assert!(tested.code == 1 && tested.stdout.contains("/supervisor-lane-"), "{}", tested.stdout);
}
