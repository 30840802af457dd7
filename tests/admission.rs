//! Limits on concurrent runs: lanes, pools, the memory of the host, and the switch. A waiting task names its limit and
//! the current use.

use serde_json::json;

use crate::harness::Fleet;

/// A lane like the one of the shell, with more in its file.
fn lane(more: &str) -> String {
    format!(
        "argv = [\"/bin/sh\", \"{{prompt_file}}\"]\nprompt = \"body-file\"\non_clean_exit = \"complete\"\n{more}\n"
    )
}

/// A task that runs until it is ended.
fn endless(fleet: &Fleet, assignee: &str) -> String {
    let task = fleet.json(["create", "x", "--assignee", assignee, "--body", "exec sleep 600"]);
    task["id"].as_str().unwrap().to_owned()
}

/// Waits until a task says that it waits, and for what.
fn waits(fleet: &Fleet, task: &str, text: &str) {
    fleet.eventually(&format!("{task} says: {text}"), || {
        (fleet.show(task)["why"]["text"] == text).then_some(())
    });
}

fn reload(fleet: &Fleet, text: &str) {
    fleet.configure(text);
    fleet.cli(["service", "reload"]).ok();
}

#[test]
fn a_pool_has_as_many_runs_as_places_over_lanes_profiles_restarts_and_reloads() {
    let fleet = Fleet::offline();
    fleet.configure("[pools]\ngpu = 1\n");
    fleet.lane("big", &lane("pools = [\"gpu\"]"));
    fleet.lane("plain", &lane(""));
    fleet.write_config("profiles.d/painter.md", "---\nlane: plain\npools: [gpu]\n---\n");
    fleet.start();
    let first = endless(&fleet, "big");
    fleet.wait_for(&first, "running");
    let second = endless(&fleet, "painter");
    let free = fleet.json(["create", "x", "--assignee", "plain", "--body", "true"]);
    fleet.wait_for(free["id"].as_str().unwrap(), "done");
    waits(&fleet, &second, "waits for pool gpu: 1 of 1 in use");
    assert_eq!(fleet.show(&second)["why"]["code"], "pool");
    let listed = fleet.cli(["list", "--why", "--status", "ready"]).ok().stdout;
    assert!(listed.contains("waits for pool gpu: 1 of 1 in use"), "{listed}");
    let plan = fleet.json(["dispatch", "--dry-run"]);
    assert_eq!((&plan["spawned"], &plan["waiting"][0]["why"]["code"]), (&json!([]), &json!("pool")));
    let status = fleet.json(["status"]);
    assert_eq!(status["daemon"]["pools"], json!([{"name": "gpu", "taken": 1, "places": 1}]));
    let shown = fleet.cli(["status"]).ok().stdout;
    assert!(shown.contains("pools: gpu 1 of 1"), "{shown}");

    // The lane says by now that its runs take no place. The one that is taken over has the place that it took.
    fleet.lane("big", &lane(""));
    fleet.restart();
    waits(&fleet, &second, "waits for pool gpu: 1 of 1 in use");

    reload(&fleet, "[pools]\ngpu = 2\n");
    fleet.wait_for(&second, "running");
    reload(&fleet, "[pools]\ngpu = 1\n");
    let third = endless(&fleet, "painter");
    waits(&fleet, &third, "waits for pool gpu: 2 of 1 in use");
    assert_eq!((fleet.status_of(&first), fleet.status_of(&second)), ("running".into(), "running".into()));
    fleet.cli(["cancel", &first]).ok();
    waits(&fleet, &third, "waits for pool gpu: 1 of 1 in use");
    fleet.cli(["cancel", &second]).ok();
    fleet.wait_for(&third, "running");
    fleet.stop(&["--kill"]);
}

#[test]
fn a_pool_that_is_not_configured_starts_nothing_and_says_what_to_write() {
    let fleet = Fleet::offline();
    fleet.lane("big", &lane("pools = [\"gpu\"]"));
    fleet.start();
    let task = fleet.json(["create", "x", "--assignee", "big", "--body", "true"]);
    let task = task["id"].as_str().unwrap();
    waits(&fleet, task, "waits for pool gpu: the configuration has no such pool; write gpu = 1 into [pools]");
    reload(&fleet, "[pools]\ngpu = 1\n");
    fleet.wait_for(task, "done");
}

#[test]
fn a_lane_has_a_cap_for_all_its_profiles_from_its_file_or_the_configuration() {
    let fleet = Fleet::offline();
    fleet.lane("narrow", &lane("max_running = 1"));
    fleet.write_config("profiles.d/one.md", "---\nlane: narrow\n---\n");
    fleet.start();
    let first = endless(&fleet, "one");
    fleet.wait_for(&first, "running");
    let second = endless(&fleet, "narrow");
    waits(&fleet, &second, "waits for a slot of lane narrow: 1 of 1 is taken");
    reload(&fleet, "[limits]\nlanes = { narrow = 2 }\n");
    fleet.wait_for(&second, "running");
    fleet.stop(&["--kill"]);
}

#[test]
fn nothing_is_started_while_dispatch_is_disabled_and_what_runs_goes_on() {
    let fleet = Fleet::boot();
    let first = endless(&fleet, "shell");
    fleet.wait_for_worker(&first);
    reload(&fleet, "[dispatch]\nenabled = false\n");
    let second = fleet.create("waits", "true", &[]);
    fleet.eventually("it says that nothing is started", || {
        (fleet.show(&second)["why"]["code"] == "disabled").then_some(())
    });
    let status = fleet.cli(["status"]);
    assert_eq!(status.code, 1, "{}", status.stdout);
    let head: String = status.stdout.lines().take(4).collect();
    assert!(head.contains("nothing is started") && head.contains("dispatch.enabled is false"), "{head}");
    let found = fleet.json(["diagnostics"]);
    let kinds = found.as_array().unwrap().iter().flat_map(|one| one["diagnostics"].as_array().unwrap());
    assert!(kinds.map(|one| &one["kind"]).any(|kind| kind == "dispatch_disabled"), "{found:#}");
    // A daemon that begins so starts nothing either, and sees to the end what runs.
    fleet.restart();
    assert_eq!(fleet.status_of(&first), "running");
    fleet.cli(["cancel", &first]).ok();
    fleet.eventually("its run has ended", || (fleet.status_of(&first) != "running").then_some(()));
    assert_eq!(fleet.status_of(&second), "ready");

    reload(&fleet, "");
    fleet.wait_for(&second, "done");
    assert_eq!(fleet.cli(["status"]).code, 0);
}

#[test]
fn a_task_waits_for_memory_and_says_so() {
    let fleet = Fleet::offline();
    fleet.configure("[dispatch]\nmin_free_memory = \"1000TiB\"\n");
    fleet.start();
    let task = fleet.create("waits", "true", &[]);
    fleet.eventually("it waits for memory", || {
        let why = &fleet.show(&task)["why"];
        let text = why["text"].as_str().unwrap_or_default();
        (why["code"] == "headroom" && text.ends_with("dispatch.min_free_memory is 1000 TiB")).then_some(())
    });
    reload(&fleet, "[dispatch]\nmin_free_memory = 1\nmax_load = 100000.0\n");
    fleet.wait_for(&task, "done");
}

#[test]
fn a_task_waits_for_less_pressure_or_for_a_host_that_accounts_it_and_says_so() {
    let fleet = Fleet::offline();
    // Some task of a host waits for a processor in more than a billionth of ten seconds, unless nothing is accounted.
    fleet.configure("[dispatch]\nmax_pressure = { cpu = 0.0000001, memory = 100, io = 100.0 }\n");
    fleet.start();
    let accounts = std::fs::read_to_string("/proc/pressure/memory").is_ok();
    let task = fleet.create("waits", "true", &[]);
    if accounts {
        fleet.eventually("it has started in a quiet moment, or says what it waits for", || {
            let shown = fleet.show(&task);
            let text = shown["why"]["text"].as_str().unwrap_or_default();
            let waits = text.starts_with("waits for less cpu pressure: ")
                && text.ends_with("dispatch.max_pressure.cpu is 0.0 %");
            (waits || shown["task"]["status"] == "done").then_some(())
        });
    } else {
        waits(
            &fleet,
            &task,
            "waits for less memory pressure: this host has no /proc/pressure/memory (a kernel with CONFIG_PSI, booted with \
             psi=1, has it); take dispatch.max_pressure.memory out to start without it",
        );
        let status = fleet.cli(["status"]).stdout;
        assert!(status.contains("this host has no /proc/pressure/memory"), "{status}");
    }
    reload(&fleet, "[dispatch]\nmax_pressure = {}\n");
    fleet.wait_for(&task, "done");
    fleet.configure("[dispatch]\nmax_pressure = { cpu = 400 }\n");
    fleet.cli(["service", "reload"]).refused(2, "dispatch.max_pressure.cpu = 400 is not a percentage");
}

#[test]
fn a_task_names_a_pool_itself_and_what_needs_none_starts_past_it() {
    let fleet = Fleet::offline();
    fleet.configure("[pools]\ngpu = 1\n");
    fleet.start();
    let first = fleet.create("first", "exec sleep 600", &["--pool", "gpu"]);
    fleet.wait_for(&first, "running");
    let second = fleet.create("second", "true", &["--pool", "gpu", "--priority", "9"]);
    assert_eq!(fleet.show(&second)["task"]["pools"], json!(["gpu"]));
    fleet.wait_for(&fleet.create("free", "true", &[]), "done");
    waits(&fleet, &second, "waits for pool gpu: 1 of 1 in use");
    fleet.restart();
    waits(&fleet, &second, "waits for pool gpu: 1 of 1 in use");
    fleet.cli(["cancel", &first]).ok();
    fleet.wait_for(&second, "done");
    fleet.cli(["create", "x", "--pool", "a b"]).refused(2, "is not a valid pool");
}
