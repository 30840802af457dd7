//! Files that a run has, and files out of its reach.

use std::fs;

use crate::harness::{Fleet, User};

#[test]
fn each_run_has_a_log_of_its_own() {
    let fleet = Fleet::boot();
    let script = "[ -e again ] && exec echo the second; touch again; echo the first; exit 1";
    let task = fleet.create("twice", script, &[]);
    let shown = fleet.wait_for(&task, "done");
    let logs: Vec<String> = shown["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| fs::read_to_string(run["log_path"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(logs.len(), 2);
    assert!(logs[0].contains("the first") && !logs[0].contains("the second"), "{logs:?}");
    assert!(logs[1].contains("the second") && !logs[1].contains("the first"), "{logs:?}");
}

#[test]
fn no_id_leads_out_of_the_directory_of_the_logs() {
    let fleet = Fleet::boot();
    fs::write(fleet.root().join("secret.log"), "hunter2\n").unwrap();
    fs::write(fleet.home().join("secret.log"), "hunter2\n").unwrap();
    for id in ["../../../secret", "../secret", "/etc/passwd", "t_0123abcd/../../secret", "..", "t_.0123abc"] {
        for verb in ["log", "show", "runs", "context", "attachments"] {
            let output = fleet.cli([verb, id]);
            assert_eq!(output.code, 2, "{verb} {id}: {}{}", output.stdout, output.stderr);
            assert!(!(output.stdout + &output.stderr).contains("hunter2"), "{verb} {id}");
        }
    }
}

#[test]
fn a_worker_neither_reads_nor_writes_the_board_and_its_run_directory() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let root = fleet.root().display().to_string();
        let places = [
            "boards",
            "boards/default/board.db",
            "boards/default/board.db-wal",
            "runs/default",
            "operator.key",
        ];
        let probes: Vec<String> = places
            .iter()
            .map(|place| {
                let path = format!("{root}/{place}");
                format!(
                    "(ls {path} || cat {path}) > /dev/null 2>&1 && echo reads {place}\n\
                     (: >> {path} || : > {path}/x) 2> /dev/null && echo writes {place}\n"
                )
            })
            .collect();
        fleet.start();
        let task = fleet.create("curious", &format!("{}echo tried", probes.concat()), &[]);

        let shown = fleet.wait_for(&task, "done");

        assert_eq!(shown["latest_summary"], "tried", "{shown:#}");
        for place in places {
            assert!(fleet.root().join(place).exists(), "{place} is not there to be found");
        }
    }
}
