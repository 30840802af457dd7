//! First lines and exit code of `status`, and the state of a run on request.

use std::path::Path;

use serde_json::json;

use crate::harness::{Fleet, User};

const GATED: &str = "echo begun; sleep 1000 & while [ ! -e go ]; do sleep 0.02; done; kill $!";

fn begun(fleet: &Fleet, task: &str) -> String {
    fleet.eventually("the run has begun", || {
        let path = fleet.show(task)["runs"][0]["workspace_path"].as_str()?.to_owned();
        fleet.cli(["logs", task]).stdout.contains("begun").then_some(path)
    })
}

#[test]
fn status_exits_with_0_if_all_is_well_1_if_something_is_not_and_3_without_a_daemon() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let none = fleet.cli(["status", "--json"]);
        assert_eq!((none.code, &none.json()["health"]), (3, &json!("not_running")));
        fleet.start();
        let well = fleet.cli(["status", "--json"]);
        assert_eq!(
            (well.code, &well.json()["health"], &well.json()["troubles"]),
            (0, &json!("healthy"), &json!([]))
        );
        assert!(!fleet.cli(["status"]).ok().stdout.contains("degraded"));

        fleet.lane("broken", "argv = 7\n");
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(fleet.daemon_pid()),
            nix::sys::signal::Signal::SIGHUP,
        )
        .unwrap();

        let sick = fleet
            .eventually("the file is read", || Some(fleet.cli(["status"])).filter(|said| said.code == 1));
        let second = sick.stdout.lines().nth(1).unwrap();
        assert!(second.contains("degraded: the lane broken: "), "{}", sick.stdout);
        assert_eq!(fleet.cli(["status", "--json"]).json()["health"], "degraded");
    }
}

#[test]
fn a_lane_whose_program_is_gone_makes_the_service_degraded_and_is_named() {
    let fleet = Fleet::offline();
    fleet.lane(
        "ghost",
        "argv = [\"/nonexistent/program\"]\nprompt = \"stdin\"\non_clean_exit = \"complete\"\n",
    );
    fleet.start();
    fleet.json(["create", "x", "--assignee", "ghost"]);
    let said =
        fleet.eventually("the lane is broken", || Some(fleet.cli(["status"])).filter(|said| said.code == 1));
    let second = said.stdout.lines().nth(1).unwrap();
    assert!(second.contains("degraded") && second.contains("ghost"), "{}", said.stdout);
}

#[test]
fn status_shows_the_processes_of_a_worker_and_its_title() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let task = fleet.create("a title to be seen", GATED, &[]);
        let workspace = begun(&fleet, &task);

        let plain = fleet.cli(["status"]).stdout;
        let line = plain.lines().find(|line| line.contains(&task)).unwrap();
        assert!(line.contains("a title to be seen"), "{plain}");
        assert!(!plain.contains("sleep 1000"), "{plain}");
        fleet.eventually("the tree shows what it has started", || {
            fleet.cli(["status", "--tree"]).stdout.contains("sleep 1000").then_some(())
        });
        let narrow = fleet.command(["status"]).env("COLUMNS", "80").output().unwrap();
        let narrow = String::from_utf8(narrow.stdout).unwrap();
        assert!(narrow.lines().any(|line| line.contains(&task) && line.contains("a title")), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");

        std::fs::write(Path::new(&workspace).join("go"), "").unwrap();
        fleet.wait_for(&task, "done");
    }
}

#[test]
fn status_shows_what_workers_said_last_and_those_that_are_asked_for_in_their_order() {
    let fleet = Fleet::offline();
    fleet.lane("other", "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"");
    fleet.start();
    let script = format!(
        "supervisor heartbeat --note 'one of three'; supervisor heartbeat --note 'two of three'; {GATED}"
    );
    let first = fleet.create("zebras", &script, &[]);
    let workspace = begun(&fleet, &first);
    let second = fleet.json(["create", "ants", "--assignee", "other", "--body", GATED]);
    let second = second["id"].as_str().unwrap().to_owned();
    let other = begun(&fleet, &second);
    let listed = |args: &[&str]| {
        let said = fleet.cli([&["status"], args].concat()).stdout;
        let of = |id: &String| said.find(id.as_str());
        (of(&first), of(&second), said)
    };

    let (a, b, said) = listed(&[]);
    assert!(a < b && said.contains("“two of three”") && !said.contains("one of three"), "{said}");
    let (a, b, said) = listed(&["--sort", "title"]);
    assert!(b < a, "{said}");
    let (a, b, said) = listed(&["--assignee", "other"]);
    assert!(a.is_none() && b.is_some() && said.contains("1 of "), "{said}");
    assert!(said.contains("assignee other: 1 running"), "{said}");

    fleet.kill_daemon();
    let (a, b, said) = listed(&[]);
    assert!(
        a < b && said.contains("zebras") && said.contains("ants") && said.contains("two of three"),
        "{said}"
    );
    fleet.start();
    for (workspace, task) in [(workspace, first), (other, second)] {
        std::fs::write(Path::new(&workspace).join("go"), "").unwrap();
        fleet.eventually("it has ended", || {
            let ended = fleet.show(&task)["runs"][0]["ended_at"].is_number();
            ended.then_some(())
        });
    }
}

#[test]
fn the_layers_of_a_sandbox_are_shown_where_they_are_asked_for() {
    let fleet = Fleet::boot();
    let task = fleet.create("x", "echo 7", &[]);
    fleet.wait_for(&task, "done");
    let brief = fleet.cli(["show", &task]).ok().stdout;
    assert!(!brief.contains("Sandbox of run"), "{brief}");
    let (result, runs) = (brief.find("Result").unwrap(), brief.find("Runs").unwrap());
    assert!(result < runs, "{brief}");
    let whole = fleet.cli(["show", &task, "--verbose"]).ok().stdout;
    assert!(whole.contains("Sandbox of run") && whole.contains("enforced"), "{whole}");
}

#[test]
fn a_list_is_filtered_and_written_as_it_is_asked() {
    let fleet = Fleet::boot();
    let done = fleet.create("the figures", "true", &[]);
    fleet.wait_for(&done, "done");
    let waits = fleet.create("wait for may", "figures", &["--not-before", "1000d"]);
    let triage = fleet.create("an idea", "", &["--triage"]);
    let lines = |args: &[&str]| {
        let said = fleet.cli([&["list", "--format", "tsv", "--columns", "id"], args].concat()).ok().stdout;
        let mut ids: Vec<String> = said.lines().map(str::to_owned).collect();
        ids.sort();
        ids
    };
    let sorted = |ids: &[&String]| {
        let mut ids: Vec<String> = ids.iter().map(|id| (*id).clone()).collect();
        ids.sort();
        ids
    };
    assert_eq!(lines(&["--status", "triage,scheduled"]), sorted(&[&waits, &triage]));
    assert_eq!(lines(&["--status", "done", "--status", "triage"]), sorted(&[&done, &triage]));
    assert_eq!(lines(&["--status", "Done, TRIAGE"]), sorted(&[&done, &triage]));
    assert_eq!(lines(&["--status=DONE"]), [done.as_str()]);
    assert_eq!(lines(&["--search", "FIGURES"]), sorted(&[&done, &waits]));
    assert_eq!(lines(&["--since", "1h"]).len(), 3);
    let table =
        fleet.cli(["list", "--columns", "id,attempts,runtime,age,title", "--status", "done"]).ok().stdout;
    assert!(table.starts_with("ID"), "{table}");
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((row[0], row[1], row[4]), (done.as_str(), "1", "the"), "{table}");
    let by_api = fleet.json(["list", "--status", "done"]);
    assert_eq!(by_api[0]["id"], json!(done));
}

#[test]
fn status_of_one_assignee_counts_and_lists_what_of_theirs_waits_and_nothing_else() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nprofiles = { alice = 3 }\n");
    let created = |assignee: &str, tenant: &str| {
        let task = fleet.json([
            "create",
            "x",
            "--assignee",
            assignee,
            "--tenant",
            tenant,
            "--initial-status",
            "blocked",
        ]);
        task["id"].as_str().unwrap().to_owned()
    };
    let (alice, other, bob) = (created("alice", "acme"), created("alice", "zeta"), created("bob", "acme"));
    let said = |args: &[&str]| {
        let report = fleet.json([&["status"], args].concat());
        let waiting: Vec<_> =
            report["waiting"].as_array().unwrap().iter().map(|one| one["task"].clone()).collect();
        (waiting, report["counts"].clone())
    };
    let ids = |ids: &[&String]| ids.iter().map(|id| serde_json::json!(id)).collect::<Vec<_>>();
    assert_eq!(said(&["--assignee", "alice"]), (ids(&[&alice, &other]), serde_json::json!({"blocked": 2})));
    assert_eq!(
        said(&["--assignee", "alice", "--tenant", "acme"]),
        (ids(&[&alice]), serde_json::json!({"blocked": 1}))
    );
    assert_eq!(said(&["--tenant", "acme"]).1, serde_json::json!({"blocked": 2}));
    assert_eq!(said(&["--assignee", "bob"]).0, ids(&[&bob]));
    assert_eq!(said(&["--assignee", "nobody"]), (Vec::new(), serde_json::json!({})));
    let shown = fleet.cli(["status", "--assignee", "alice"]).stdout;
    assert!(shown.contains("assignee alice: 2 blocked") && !shown.contains(&bob), "{shown}");
    fleet.start();
    assert_eq!(fleet.json(["status", "--assignee", "alice"])["daemon"]["slots"], 3);
}

#[test]
fn a_hold_whose_time_has_come_is_listed_no_more() {
    let fleet = Fleet::offline();
    fleet.cli(["hold", "--profile", "alice", "--reason", "for long", "--until", "1d"]).ok();
    fleet.cli(["hold", "--profile", "bob", "--reason", "for now", "--until", "1s"]).ok();
    // No daemon ends it, so its row stays.
    fleet.eventually("only the other one is listed", || {
        let listed = fleet.cli(["holds"]).ok().stdout;
        (listed.contains("for long") && !listed.contains("for now")).then_some(())
    });
    assert_eq!(fleet.json(["holds"]).as_array().unwrap().len(), 1);
}
