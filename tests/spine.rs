//! From `create` to a finished run: the main path, as root and as an ordinary user.

use serde_json::json;

use crate::harness::{Fleet, User};

#[test]
fn a_shell_task_runs_confined_and_its_output_is_its_summary() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let id = fleet.create("say hello", "echo hello from $SUPERVISOR_TASK; id -u", &[]);

        let shown = fleet.wait_for(&id, "done");

        let run = &shown["runs"][0];
        assert_eq!((&run["outcome"], &run["exit_code"]), (&json!("completed"), &json!(0)), "{shown:#}");
        let summary = shown["latest_summary"].as_str().unwrap();
        assert!(summary.starts_with(&format!("hello from {id}\n")), "{summary}");
        assert_ne!(summary.lines().last(), Some("0"), "no worker is root");
        assert!(fleet.cli(["log", &id]).ok().stdout.contains("hello from"));
    }
}

#[test]
fn a_chain_runs_in_order_and_each_task_sees_what_its_parent_found() {
    let fleet = Fleet::boot();
    let first = fleet.create("first", "echo forty-two", &[]);
    let second = fleet.create(
        "second",
        "supervisor context | grep -v echo | grep -o forty-two",
        &["--parent", &first],
    );
    let third = fleet.create("third", "echo end", &["--parent", &second]);

    fleet.wait_for(&third, "done");

    assert_eq!(fleet.show(&second)["latest_summary"], "forty-two");
    assert_eq!(fleet.status_of(&first), "done");
}
