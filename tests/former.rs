//! Runs of an earlier release are taken over by this one. `tests/run --former` builds that release and names it in
//! `SUPERVISOR_TEST_FORMER`.

use std::process::Command;

use crate::harness::{Fleet, User, skip};
use crate::invariants::invariants_hold;
use crate::journal::{Attempts, Journal, PATIENT, records};

/// Starts a daemon of the earlier release. False where none was built.
fn start_former(fleet: &Fleet) -> bool {
    let Some(former) = std::env::var_os("SUPERVISOR_TEST_FORMER") else {
        skip("shims of an earlier release: tests/run --former builds one");
        return false;
    };
    // Where the fleet's user can execute it.
    let program = fleet.home().join("former");
    std::fs::copy(former, &program).unwrap();
    let mut command = Command::new(program);
    fleet.start_by(command.arg("--root").arg(fleet.root()).arg("daemon"));
    true
}

#[test]
fn shims_of_an_earlier_release_are_taken_over_and_their_ends_are_read() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let journal = Journal::of(&fleet, 4, "grace = 1\n");
        if !start_former(&fleet) {
            return;
        }
        let former = |args: &[&str]| {
            let mut command = Command::new(fleet.home().join("former"));
            command.arg("--root").arg(fleet.root()).args(args);
            fleet.dress(&mut command);
            crate::harness::Output::of(&mut command).ok().json()
        };
        let create = |body: &str| {
            let args = ["create", "x", "--assignee", "shell", "--body", body, "--json"];
            former(&args)["id"].as_str().unwrap().to_owned()
        };
        let tasks = [
            // It ends under this release, while no daemon runs, and with strays.
            create(&Journal::script(PATIENT)),
            create(&Journal::script("while [ ! -e \"${JOURNAL%/*}/early\" ]; do sleep 0.05; done")),
            create(&Journal::script(&format!("(setsid sleep 600 &)\n{PATIENT}"))),
        ];
        fleet.eventually("all have begun", || {
            (journal.begun() == 3 && records(&fleet, "started").len() == 3).then_some(())
        });
        let told = fleet.cli(["upgrade", "--check", "--json"]).json();
        assert!(told["runs"].as_array().unwrap().iter().all(|run| run["adopted"] == true), "{told:#}");
        fleet.kill_daemon();
        std::fs::write(journal.dir().join("early"), "").unwrap();
        fleet.eventually("one ends while no daemon runs", || (journal.ended() == 1).then_some(()));

        fleet.start();

        fleet.eventually("the others are taken over", || {
            let workers = fleet.json(["status"])["workers"].as_array()?.clone();
            (workers.len() == 2 && workers.iter().all(|worker| worker["phase"] == "running")).then_some(())
        });
        journal.let_go();
        for task in &tasks {
            fleet.wait_for(task, "done");
        }
        journal.audit(&fleet, &tasks, Attempts::One);
        invariants_hold(&fleet);
    }
}
