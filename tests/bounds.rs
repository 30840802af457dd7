//! The output of a worker is bounded, and impairs nobody else.

use serde_json::json;

use crate::harness::Fleet;
use crate::worker::Worker;

#[test]
fn a_worker_that_writes_without_end_is_refused_with_the_bound_and_may_still_end_its_run() {
    let fleet = Fleet::offline();
    fleet.configure("[quotas]\ncomments = 2\ntext_bytes = 1000\n");
    fleet.start();
    let worker = Worker::hold(&fleet, &["--tenant", "acme"]);
    let neighbour = Worker::hold(&fleet, &["--tenant", "rival"]);
    let note = |worker: &Worker<'_>, text: &str| {
        worker.call("comment", &json!({"task_id": worker.task, "body": text}))
    };
    for _ in 0..2 {
        assert_eq!(note(&worker, "one more").0, 200);
    }

    let (status, problem) = note(&worker, "one more");

    assert_eq!((status, &problem["code"]), (429, &json!("exhausted")), "{problem}");
    assert_eq!(problem["detail"], "comments: this would be 3 comments of this run, the limit is 2");
    assert!(problem["hint"].as_str().unwrap().contains("supervisor.toml"), "{problem}");
    let (status, problem) = worker.call("create", &json!({"title": "x", "body": "y".repeat(1000)}));
    assert_eq!(status, 429, "{problem}");
    assert!(problem["detail"].as_str().unwrap().starts_with("text_bytes: "), "{problem}");
    assert_eq!(note(&neighbour, "a neighbour's").0, 200);
    fleet.cli(["comment", &worker.task, "an operator is not bound"]).ok();
    let (status, reply) = worker.call("complete", &json!({"task_ids": [worker.task], "summary": "all good"}));
    assert_eq!(status, 200, "{reply}");
    for worker in [worker, neighbour] {
        worker.go();
        fleet.wait_for(&worker.task, "done");
    }
}

#[test]
fn an_operator_sees_which_run_holds_an_account_and_ends_it_and_other_tenants_go_on() {
    let fleet = Fleet::offline();
    fleet.lane(
        "limited",
        "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\naccount = \"main\"\n",
    );
    fleet.start();
    let create = |tenant: &str, body: &str| {
        let args = ["create", "x", "--assignee", "limited", "--tenant", tenant, "--body", body];
        fleet.json(args)["id"].as_str().unwrap().to_owned()
    };
    let greedy = create("acme", "supervisor hold --until 90d --reason greed; exit 75");
    fleet.wait_for(&greedy, "scheduled");

    let stranger = create("rival", "supervisor complete");
    fleet.wait_for(&stranger, "done");

    let held = fleet.json(["holds"]);
    assert_eq!(held.as_array().unwrap().len(), 1, "{held}");
    let told = ["scope", "name", "met_by_task", "met_by_tenant", "run_id"].map(|key| held[0][key].clone());
    assert_eq!(told, [json!("account"), json!("main"), json!(greedy), json!("acme"), json!(1)]);
    let table = fleet.cli(["holds"]).ok().stdout;
    assert!(table.contains("account main (tenant acme)") && table.contains(&greedy), "{table}");
    let day = held[0]["until"].as_i64().unwrap() - held[0]["created_at"].as_i64().unwrap();
    assert_eq!(day, 24 * 3600);
    let sibling = create("acme", "supervisor complete");
    assert_eq!(fleet.show(&sibling)["why"]["code"], "rate_limit");
    fleet.cli(["release", "--account", "main"]).ok();
    fleet.wait_for(&sibling, "done");
}
