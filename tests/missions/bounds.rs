//! Limits on a mission beside its tasks and its cost: depth, run time, cycles, nested questions, and requests without a
//! decision.

use crate::harness::{Fleet, User};

use super::id_of;

#[test]
fn a_worker_goes_no_deeper_than_its_mission_may_and_a_person_is_asked() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        // Each worker hands on what it has to do itself.
        fleet.lane(
            "deeper",
            "argv = [\"/bin/sh\", \"-c\", 'if supervisor create deeper --assignee deeper; then supervisor complete; else supervisor block deeper; fi']\n",
        );
        fleet.start();
        let first = ["mission", "create", "dig", "--assignee", "deeper", "--max-depth", "2"];
        let mission = id_of(&fleet, &first);

        let asked = fleet.eventually("a person is asked", || {
            let shown = fleet.json(["mission", "show", &mission]);
            shown["question"]["text"].as_str().map(|_| shown.clone())
        });

        assert!(asked["question"]["text"].as_str().unwrap().contains("missions.depth"), "{asked:#}");
        assert_eq!(asked["tree"].as_array().unwrap().len(), 3, "{asked:#}");
        let part = fleet.create("part", "true", &["--mission", &mission]);
        assert!(fleet.show(&part)["why"]["text"].to_string().contains("missions.depth"));
        fleet.cli(["answer", &mission, "1"]).ok();
        fleet.wait_for(&part, "done");
        assert_eq!(fleet.json(["mission", "show", &mission])["use"]["max_depth"], 4, "as much again");
    }
}

#[test]
fn a_person_who_adds_more_tasks_than_a_mission_may_have_is_asked_as_well() {
    let fleet = Fleet::offline();
    fleet.write_config("profiles.d/greeter.md", "---\nlane: shell\n---\n");
    let mission = id_of(&fleet, &["mission", "create", "small", "--max-tasks", "2"]);
    let part = id_of(&fleet, &["create", "part", "--mission", &mission]);

    let refused = fleet.cli(["create", "one more", "--mission", &part]);

    assert!(refused.code == 77 && refused.stderr.contains("the limit is 2"), "{refused:?}");
    let answer = format!("supervisor answer {mission} 1");
    assert!(refused.stderr.contains(&answer), "{refused:?}");
    assert_eq!(fleet.json(["mission", "show", &mission])["state"], "paused");
    fleet.cli(["answer", &mission, "1"]).ok();
    fleet.cli(["create", "one more", "--mission", &part]).ok();
    fleet.cli(["create", "the fourth", "--mission", &part]).ok();
    // A mention of a person is a task of the same mission.
    let mentioned = fleet.json(["comment", &part, "@greeter and this"]);
    assert!(mentioned["mentioned"][0]["refused"].as_str().unwrap().contains("the limit is 4"), "{mentioned}");
    assert_eq!(fleet.json(["mission", "show", &mission])["state"], "paused");
}

#[test]
fn a_mission_that_has_used_its_run_time_starts_nothing_and_asks() {
    let fleet = Fleet::boot();
    let first =
        ["mission", "create", "long", "--assignee", "shell", "--body", "sleep 3", "--max-runtime", "2s"];
    let mission = id_of(&fleet, &first);
    let part = fleet.create("part", "true", &["--mission", &mission, "--parent", &mission]);

    let question = fleet.eventually("a person is asked", || {
        fleet.json(["mission", "show", &mission])["question"]["text"].as_str().map(str::to_owned)
    });

    assert!(question.contains("missions.runtime"), "{question}");
    fleet.wait_for(&mission, "done");
    let other = fleet.create("other", "true", &[]);
    fleet.wait_for(&other, "done");
    assert_eq!(fleet.status_of(&part), "ready", "what runs goes on, and nothing else starts");
    fleet.cli(["answer", &mission, "1"]).ok();
    fleet.wait_for(&part, "done");
}

#[test]
fn work_that_would_come_back_to_its_profile_is_refused_when_it_is_created() {
    let fleet = Fleet::offline();
    for name in ["ann", "bob"] {
        fleet.write_config(&format!("profiles.d/{name}.md"), "---\nlane: shell\n---\n");
    }
    fleet.start();
    let back = "supervisor create back --assignee ann --body true 2> refused; supervisor complete --summary \"$(cat refused)\"";
    let script = format!("supervisor create on --assignee bob --body '{}'", back.replace('\'', "'\\''"));
    let made = fleet.json(["create", "begin", "--assignee", "ann", "--body", &script]);
    let first = made["id"].as_str().unwrap();
    fleet.wait_for(first, "done");

    let refused = fleet.eventually("the second has been refused", || {
        let listed = fleet.json(["list", "--assignee", "bob", "--status", "done"]);
        let id = listed[0]["id"].as_str()?.to_owned();
        fleet.show(&id)["latest_summary"].as_str().map(str::to_owned)
    });

    assert!(refused.contains("ann → bob → ann"), "{refused}");
    assert_eq!(fleet.json(["list", "--assignee", "ann"]).as_array().unwrap().len(), 1, "nothing was created");
}

#[test]
fn questions_go_two_deep() {
    let fleet = Fleet::offline();
    // Each one asks another one before it answers.
    for (name, next) in [("one", "two"), ("two", "three"), ("three", "three")] {
        fleet.lane(
            name,
            &format!(
                "argv = [\"/bin/sh\", \"-c\", 'said=$(supervisor consult {next} why 2>&1); supervisor complete --summary \"{name} $said\"']\n"
            ),
        );
    }
    fleet.start();

    let first = fleet.json(["create", "begin", "--assignee", "one"])["id"].as_str().unwrap().to_owned();

    let done = fleet.wait_for(&first, "done");
    let summary = done["latest_summary"].as_str().unwrap();
    assert!(summary.starts_with("one two three ") && summary.contains('2'), "{summary}");
    assert_eq!(fleet.json(["list", "--limit", "100"]).as_array().unwrap().len(), 3, "{summary}");
}

#[test]
fn a_request_of_a_class_is_for_its_approvers_in_its_form_and_is_denied_when_its_time_is_over() {
    let fleet = Fleet::offline();
    fleet.configure(
        "[approvals.destructive]\napprovers = [\"nobody-else\"]\nmessage = '{title}: {text}?'\nexpires = \"6s\"\n\
         [approvals.book]\ngate = \"deny\"\n",
    );
    fleet.start();
    let script = "if supervisor context | grep -q 'DENIED (destructiv[e])'; then supervisor complete --summary kept; \
                  else supervisor ask 'drop all tables' --class destructive; fi";
    let asks = fleet.create("clean up", script, &[]);
    let shown = fleet.eventually("it asks", || {
        let shown = fleet.show(&asks);
        shown["task"]["question"]["text"].as_str().map(str::to_owned)
    });
    assert_eq!(shown, "clean up: drop all tables?");
    assert_eq!(fleet.wait_for(&asks, "done")["latest_summary"], "kept", "nobody has decided in its time");

    let refused = fleet.cli(["create", "a flight", "--approval-class", "book"]);
    assert!(refused.code != 0 && refused.stderr.contains("book"), "{refused:?}");
    let own = fleet.create("send it", "true", &["--approval-class", "send_as_me"]);
    assert_eq!(fleet.wait_for(&own, "blocked")["task"]["block_kind"], "approval");
    fleet.cli(["approve", &own]).ok();
    fleet.wait_for(&own, "done");
}

#[test]
fn a_comment_makes_one_task_for_each_profile_that_it_mentions_however_often_it_is_sent() {
    let fleet = Fleet::boot();
    for name in ["ann", "bob"] {
        fleet.write_config(&format!("profiles.d/{name}.md"), "---\nlane: shell\n---\n");
    }
    fleet.cli(["service", "reload"]).ok();
    let site = id_of(&fleet, &["create", "site"]);
    let api = crate::http::Http::at(fleet.root().join("run/supervisor.sock"))
        .with("x-supervisor-key", &std::fs::read_to_string(fleet.root().join("operator.key")).unwrap())
        .with("x-request-id", "the-comment");
    let text = "@ann and @bob, and @ann again: supervisor complete --summary hello";
    let body = serde_json::json!({"task_id": site, "body": text});
    let say = || api.post("/api/v1/verbs/comment", &body).json(200);

    let first = say();
    fleet.kill_daemon();
    fleet.start();
    let again = say();

    assert_eq!(first, again, "the reply that it had");
    let made = |name: &str| fleet.json(["list", "--assignee", name, "--archived"]).as_array().unwrap().len();
    assert_eq!((made("ann"), made("bob")), (1, 1), "{first}");
    fleet.json(["comment", &site, text]);
    assert_eq!((made("ann"), made("bob")), (2, 2), "another comment asks anew");
}
