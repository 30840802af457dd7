//! Limits on a host without the controllers that hold them: refused, named wherever an operator looks, and never taken for held.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Fleet, User, cgroup, skip};
use crate::invariants::invariants_hold;
use crate::journal::{of_task, outcomes, records};

/// Returns true if the daemon's runs get the memory controller.
fn has_memory(fleet: &Fleet) -> bool {
    let group = cgroup(&fleet.root()).map(|group| group.join("cgroup.controllers"));
    let controllers = group.and_then(|list| fs::read_to_string(list).ok()).unwrap_or_default();
    controllers.split_whitespace().any(|name| name == "memory")
}

#[test]
fn a_policy_whose_limit_nothing_holds_is_named_and_its_tasks_wait_with_their_attempts() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.policy("small", "version = 1\nextends = 'default'\n[limits]\nmemory = '64MiB'\n");
        let soft =
            "version = 1\nextends = 'default'\ncompatibility = 'best_effort'\n[limits]\nmemory = '64MiB'\n";
        fleet.policy("soft", soft);
        fleet.start();
        if has_memory(&fleet) {
            skip("a limit that nothing holds: this host holds it");
            continue;
        }
        let named = |text: &str| text.contains("small") && text.contains("memory");
        assert!(fleet.log().lines().any(|line| line.contains("policy_unenforceable") && named(line)));

        let waits = fleet.create("limited", "true", &["--policy", "small", "--max-retries", "1"]);
        let other = fleet.create("not limited", "true", &[]);
        let lax = fleet.create("as well as it goes", "true", &["--policy", "soft"]);

        fleet.wait_for(&other, "done");
        let why = fleet.eventually("it says what it waits for", || {
            let shown = fleet.show(&waits);
            (shown["why"]["code"] == "environment").then(|| shown["why"]["text"].to_string())
        });
        assert!(named(&why), "{why}");
        let status = fleet.json(["status"]);
        assert!(named(&status["problems"].to_string()), "{status:#}");
        assert!(named(&fleet.cli(["status"]).stdout));
        let doctor = fleet.cli(["doctor"]);
        assert_eq!(doctor.code, 1, "{}", doctor.stdout);
        assert!(
            doctor.stdout.lines().any(|line| line.starts_with("error") && named(line)),
            "{}",
            doctor.stdout
        );
        let done = fleet.wait_for(&lax, "done");
        let layers = done["runs"][0]["sandbox"]["layers"].as_array().unwrap();
        let layer = layers.iter().find(|layer| layer["layer"] == "cgroup").unwrap();
        assert_ne!(layer["state"], "enforced", "{layer}");
        let shown = fleet.show(&waits);
        assert_eq!((&shown["task"]["status"], &shown["runs"]), (&json!("ready"), &json!([])));
        assert_eq!(shown["task"]["consecutive_failures"], 0);
    }
}

#[test]
fn a_dry_run_without_a_daemon_says_of_a_policy_what_the_daemon_will() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.policy("small", "version = 1\nextends = 'default'\n[limits]\nmemory = '64MiB'\n");
        let limited = fleet.create("limited", "true", &["--policy", "small"]);
        let free = fleet.create("free", "true", &[]);

        let plan = fleet.json(["dispatch", "--dry-run"]);

        let starts =
            |task: &str| plan["spawned"].as_array().unwrap().iter().any(|one| one["task_id"] == task);
        assert!(starts(&free), "{plan:#}");
        fleet.start();
        fleet.wait_for(&free, "done");
        if starts(&limited) {
            fleet.wait_for(&limited, "done");
            continue;
        }
        let waiting = plan["waiting"].as_array().unwrap();
        let told = waiting.iter().find(|one| one["task"] == limited).map(|one| &one["why"]);
        assert_eq!(told, Some(&fleet.show(&limited)["why"]), "{plan:#}");
        assert!(told.unwrap()["text"].as_str().unwrap().contains("small"), "{plan:#}");
    }
}

#[test]
fn a_run_whose_limit_cannot_be_set_again_is_ended_and_its_task_keeps_its_attempts() {
    let fleet = Fleet::boot();
    let script = "[ -e again ] && exit 0; touch again; exec sleep 600";
    let [limited, free] = ["limited", "free"].map(|title| {
        let task = fleet.create(title, script, &["--max-retries", "1"]);
        fleet.eventually("its worker runs", || {
            fleet.processes_with(&of_task(&task)).iter().any(|one| one.command == "sleep 600").then_some(())
        });
        task
    });
    let (dir, mut spec) =
        records(&fleet, "spec.json").into_iter().find(|(_, spec)| spec["task"] == json!(limited)).unwrap();
    if spec["cgroup"].is_null() || has_memory(&fleet) {
        skip("a limit that cannot be set again: this host holds limits, or has no cgroups");
        return;
    }
    fleet.kill_daemon();
    // As when the controllers went back to the host between two daemons, and do not come again.
    spec["policy"]["limits"]["memory"] = json!(64 << 20);
    spec["policy"]["compatibility"] = json!("hard_requirement");
    fs::write(dir.join("spec.json"), spec.to_string()).unwrap();

    fleet.start();

    let done = fleet.wait_for(&limited, "done");
    assert_eq!(outcomes(&done), ["preempted", "completed"], "{done:#}");
    assert_eq!(done["task"]["consecutive_failures"], 0);
    let log = fleet.log();
    let told = log.lines().find(|line| line.contains("limits_not_held_again")).unwrap();
    assert!(told.contains("memory.max"), "{told}");
    // One that asks for no limit goes on.
    let shown: Value = fleet.show(&free);
    assert_eq!((&shown["task"]["status"], outcomes(&shown)), (&json!("running"), vec!["open"]));
    fleet.cli(["archive", &free]).ok();
    fleet.wait_for(&free, "archived");
    invariants_hold(&fleet);
}
