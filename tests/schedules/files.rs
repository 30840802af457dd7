//! The files of schedules: those of the established program, and commands that no tick could carry out.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::Fleet;

const YAML: &str = "schedule: \"0 */4 * * *\"\ncommand: hermes kanban dispatch-fleet insta-manager ~/insta\n";

#[test]
fn a_file_of_the_established_program_in_the_directory_of_the_schedules_is_one_of_them() {
    let fleet = Fleet::boot();
    fleet.write_config("schedules.d/insta-fleet.yaml", YAML);
    fleet.write_config("schedules.d/bad.yml", "schedule: \"0 * * * *\"\ncommand: rm -rf /\n");

    fleet.signal(Signal::SIGHUP);

    let listed = fleet.eventually("the file is read", || {
        let listed = fleet.json(["schedules", "list"]);
        listed[1]["next"].is_i64().then_some(listed)
    });
    assert_eq!(
        (&listed[1]["name"], &listed[1]["schedule"]["cron"]),
        (&"insta-fleet".into(), &"0 */4 * * *".into())
    );
    assert!(listed[1]["path"].as_str().unwrap().ends_with("insta-fleet.yaml"), "{listed}");
    let defects = serde_json::to_string(&fleet.problems("configuration_defect")).unwrap();
    assert!(defects.contains("bad.yml") && defects.contains("not a command of a schedule"), "{defects}");
    let checked = fleet.cli(["schedules", "check"]);
    assert!(checked.code == 1 && checked.stdout.contains("bad.yml"), "{checked:?}");
    fleet.cli(["schedules", "rm", "bad"]).ok();

    // What changes it writes the form of this program.
    fleet
        .cli(["schedules", "add", "insta-fleet", "--every", "1h", "--title", "x"])
        .refused(4, "insta-fleet.yaml exists");
    fleet.cli(["schedules", "pause", "insta-fleet"]).ok();
    let dir = fleet.root().join("schedules.d");
    let text = fs::read_to_string(dir.join("insta-fleet.toml")).unwrap();
    assert!(
        text.starts_with("paused = true\n") && text.contains("dispatch-fleet insta-manager ~/insta"),
        "{text}"
    );
    assert!(!dir.join("insta-fleet.yaml").exists());
    assert_eq!(fleet.json(["schedules", "show", "insta-fleet"])["paused"], true);
    fleet.write_config("schedules.d/insta-fleet.yaml", YAML);
    assert_eq!(fleet.problems("configuration_defect"), Vec::<serde_json::Value>::new(), "it is not read yet");
    fleet.cli(["service", "reload"]);
    let defects = serde_json::to_string(&fleet.problems("configuration_defect")).unwrap();
    assert!(defects.contains("another file defines the schedule insta-fleet as well"), "{defects}");
    fleet.cli(["schedules", "rm", "insta-fleet"]).ok();
    assert_eq!(fleet.json(["schedules", "list"]), json!([]), "both files are gone");
}

#[test]
fn a_command_that_no_tick_could_carry_out_is_refused_and_a_jitter_beyond_the_next_tick_is_told() {
    let fleet = Fleet::offline();
    let add = |command: &str| fleet.cli(["schedules", "add", "c", "--every", "1h", "--command", command]);
    add("dispatch-fleet insta-manager insta").refused(2, "insta is a relative path");
    add("dispatch-fleet insta-manager /srv/insta --jiter 5m").refused(2, "--jiter");
    add("dispatch-fleet insta-manager /srv/insta --jitter soon").refused(2, "--jitter");
    add("dispatch-fleet insta-manager").refused(2, "dispatch-fleet PROFILE DIRECTORY");
    assert_eq!(fleet.json(["schedules", "list"]), json!([]), "nothing was written");
    add("dispatch-fleet insta-manager ~/insta --jitter 5m --match 'acct-*' --body 'echo {tenant}'").ok();

    let late = ["schedules", "add", "late", "--every", "1h", "--title", "x", "--jitter"];
    let said = fleet.cli(late.iter().chain(&["2h"])).ok().stderr;
    assert!(said.contains("a jitter of 2h is longer than the 1h between two ticks"), "{said}");
    let said = fleet.cli(late.iter().chain(&["1h", "--force"])).ok().stderr;
    assert!(!said.contains("jitter"), "{said}");
}
