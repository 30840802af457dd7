//! A run whose records are damaged: nothing says how it ended, so it is shown, and a verb ends it.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Fleet, User};
use crate::invariants::invariants_hold;
use crate::journal::{Journal, of_task, outcomes, records};

#[test]
fn a_run_whose_shim_has_left_a_damaged_record_is_shown_until_a_person_ends_it() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let journal = Journal::of(&fleet, 2, "");
        // What leaves the session outlives the shim, unless something ties it to the run.
        let script = "[ -e again ] || { touch again; setsid sleep 600 & exec sleep 600; }";
        let task = fleet.create("strays", &Journal::script(script), &[]);
        fleet.start();
        let (dir, record) = fleet.eventually("the run has begun", || {
            let begun = journal.begun() > 0 && !records(&fleet, "started").is_empty();
            begun.then(|| records(&fleet, "pid").pop()).flatten()
        });
        fleet.eventually("the stray has left", || {
            let own = fleet.processes_with(&of_task(&task));
            (own.iter().filter(|process| process.command == "sleep 600").count() == 2).then_some(())
        });

        fs::write(dir.join("pid"), "{\"version\":").unwrap();
        let shim = record["pid"].as_i64().unwrap().try_into().unwrap();
        kill(Pid::from_raw(shim), Signal::SIGKILL).unwrap();

        let shown = || {
            let found = fleet.json(["diagnostics", "--severity", "critical"]);
            let first = &found.get(0)?["diagnostics"][0];
            let told = first.to_string();
            (first["kind"] == "survivors_unknown" && told.contains(&format!("supervisor reclaim {task}")))
                .then_some(told)
        };
        let told = fleet.eventually("diagnostics shows the run and the verb that ends it", shown);
        assert!(told.contains("damaged"), "{told}");
        // The next daemon cannot read it either, and starts no second copy.
        fleet.restart();
        fleet.eventually("diagnostics still shows it", shown);
        assert!(journal.begun() == 1 && fleet.status_of(&task) == "running");

        fleet.cli(["reclaim", &task]).ok();

        let done = fleet.wait_for(&task, "done");
        assert_eq!(outcomes(&done), ["reclaimed", "completed"], "{done:#}");
        let told: Vec<String> = journal.lines().into_iter().map(|line| line.what).collect();
        assert_eq!(told, ["start", "start", "end"]);
        invariants_hold(&fleet);
    }
}
