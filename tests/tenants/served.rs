//! The users of a tenant, who may not read the root, are told whether a daemon serves it, and how one that is stopped is.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::{ANN, ZOE, by, json_by, two_tenants};

#[test]
fn the_users_of_a_tenant_run_commands_and_follow_them() {
    let Some(fleet) = two_tenants() else { return };

    let ran = by(&fleet, ANN, &["run", "--", "echo", "hi"]).ok();

    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("hi\n", ""));
    let made = json_by(&fleet, ANN, &["create", "says", "--assignee", "shell", "--body", "echo said"]);
    let followed = by(&fleet, ANN, &["logs", "-f", made["id"].as_str().unwrap()]).ok();
    assert!(followed.stdout.contains("said") && !followed.stderr.contains("no daemon"), "{followed:?}");
    by(&fleet, ANN, &["dispatch"]).refused(77, "only the user that owns ");
    by(&fleet, ZOE, &["run", "--", "true"]).refused(77, "");
}

#[test]
fn the_users_of_a_tenant_are_told_of_a_daemon_that_is_stopped_and_of_none() {
    let Some(fleet) = two_tenants() else { return };
    let pid = fleet.daemon_pid();
    fleet.signal(Signal::SIGSTOP);
    let start = Instant::now();
    for args in [&["list"][..], &["status"], &["run", "true"]] {
        let way = format!("ask its operator to continue it with: kill -CONT {pid}");
        by(&fleet, ANN, args).refused(75, &way);
    }
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
    fleet.signal(Signal::SIGCONT);
    by(&fleet, ANN, &["list"]).ok();

    fleet.stop(&[]);

    for args in [&["list"][..], &["run", "true"], &["create", "x"], &["dispatch"]] {
        let refused = by(&fleet, ANN, args).refused(69, "no daemon serves ");
        assert!(refused.stderr.contains("ask its operator"), "{refused:?}");
    }
}
