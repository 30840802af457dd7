//! A shim that somebody stops: it is woken when its run is to end, and ended itself where that does not help.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Fleet, User};
use crate::invariants::invariants_hold;
use crate::journal::{of_task, records};

/// A worker that ignores TERM, with a child of its own, and its shim.
fn begun(fleet: &Fleet, flags: &[&str]) -> (String, Pid) {
    let task = fleet.create("goes on", "trap '' TERM; sleep 600 & touch up; sleep 600", flags);
    let shim = fleet.eventually("the worker has begun", || {
        let workers = fleet.processes_with(&of_task(&task));
        let is_up = workers.iter().filter(|process| process.command == "sleep 600").count() == 2;
        let (_, record) = is_up.then(|| records(fleet, "pid").pop()).flatten()?;
        Some(Pid::from_raw(record["pid"].as_i64()?.try_into().ok()?))
    });
    (task, shim)
}

/// Stops a process again and again while `act` goes on, as long as it is there.
fn stopped_all_the_while<R>(pid: Pid, act: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && kill(pid, Signal::SIGSTOP).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let result = act();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn a_shim_that_is_stopped_is_woken_when_its_run_is_to_end() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.configure("[worker]\ngrace = \"1s\"\n");
        fleet.start();
        let (task, shim) = begun(&fleet, &[]);
        kill(shim, Signal::SIGSTOP).unwrap();

        fleet.cli(["archive", &task]).ok();

        let shown = fleet.wait_for(&task, "archived");
        assert_eq!(shown["runs"][0]["outcome"], "cancelled", "{shown:#}");
        invariants_hold(&fleet);
    }
}

#[test]
fn a_shim_that_somebody_keeps_stopped_is_ended_and_its_run_ends_as_it_was_to_end() {
    let fleet = Fleet::offline();
    fleet.configure("[worker]\ngrace = \"1s\"\n");
    fleet.start();
    for (flags, end, status, outcome) in [
        (&["--max-runtime", "10s", "--max-retries", "1"][..], None, "blocked", "timed_out"),
        (&[][..], Some("archive"), "archived", "cancelled"),
    ] {
        let (task, shim) = begun(&fleet, flags);

        let shown = stopped_all_the_while(shim, || {
            if let Some(verb) = end {
                fleet.cli([verb, &task]).ok();
            }
            fleet.wait_for(&task, status)
        });

        assert_eq!(shown["runs"][0]["outcome"], outcome, "{shown:#}");
        invariants_hold(&fleet);
    }
}
