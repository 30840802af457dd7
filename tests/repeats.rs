//! A request that comes again gets the reply that it had, and nobody else's.

use serde_json::{Value, json};

use crate::harness::Fleet;
use crate::worker::Worker;

/// Calls a verb under a request id.
fn under(worker: &Worker<'_>, id: &str, verb: &str, body: &Value) -> (u16, Value) {
    let answer = worker.door().with("x-request-id", id).post(&format!("/api/v1/verbs/{verb}"), body);
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}

#[test]
fn workers_of_two_tenants_that_use_one_request_id_both_have_their_verdict_kept() {
    let fleet = Fleet::boot();
    let workers = ["acme", "rival"].map(|tenant| Worker::hold(&fleet, &["--tenant", tenant]));

    let replies = workers.each_ref().map(|worker| {
        under(worker, "one", "complete", &json!({"summary": worker.task, "task_ids": [worker.task]}))
    });

    for (worker, (status, reply)) in workers.iter().zip(replies) {
        assert_eq!((status, &reply["results"][0]["id"]), (200, &json!(worker.task)), "{reply}");
        worker.go();
        assert_eq!(fleet.wait_for(&worker.task, "done")["latest_summary"], json!(worker.task));
    }
}

#[test]
fn the_repeat_of_the_verdict_that_ended_a_run_is_answered_and_nothing_else_is() {
    let fleet = Fleet::boot();
    let worker = Worker::hold(&fleet, &[]);
    let verdict = json!({"task_ids": [worker.task], "summary": "all good"});
    let (status, first) = under(&worker, "the-verdict", "complete", &verdict);
    assert_eq!(status, 200, "{first}");
    worker.go();
    fleet.wait_for(&worker.task, "done");

    assert_eq!(under(&worker, "the-verdict", "complete", &verdict), (200, first));

    let other = json!({"task_ids": [worker.task], "summary": "better"});
    let (status, problem) = under(&worker, "the-verdict", "complete", &other);
    assert_eq!((status, &problem["code"]), (422, &json!("usage")), "{problem}");
    assert!(problem["hint"].is_string());
    for (id, verb, body) in [
        ("another", "complete", &verdict),
        ("the-verdict", "comment", &json!({"task_id": worker.task, "body": "late"})),
        ("the-verdict", "show", &json!({"task_id": worker.task})),
    ] {
        let (status, problem) = under(&worker, id, verb, body);
        assert_eq!((status, &problem["code"]), (403, &json!("not_permitted")), "{verb}: {problem}");
    }
    let shown = fleet.show(&worker.task);
    assert_eq!((&shown["latest_summary"], &shown["comments"]), (&json!("all good"), &json!([])));
}

#[test]
fn a_request_id_that_comes_with_another_body_is_refused() {
    let fleet = Fleet::boot();
    let worker = Worker::hold(&fleet, &[]);
    let note =
        |text: &str| under(&worker, "a-note", "comment", &json!({"task_id": worker.task, "body": text}));
    let first = note("one");
    assert_eq!(first.0, 200, "{}", first.1);

    assert_eq!(note("one"), first);

    let (status, problem) = note("two");
    assert_eq!((status, &problem["code"]), (422, &json!("usage")), "{problem}");
    assert_eq!(fleet.show(&worker.task)["comments"].as_array().unwrap().len(), 1);
    worker.go();
    fleet.wait_for(&worker.task, "done");
}
