//! Questions from a worker to another lane, whose answer it waits for.

use crate::harness::{Fleet, User};

#[test]
fn a_worker_asks_another_lane_and_gets_its_answer_where_every_slot_is_taken() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.configure("[limits]\nmax_running = 1\n");
        fleet.lane("oracle", ORACLE);
        fleet.start();
        let asks = "answer=$(supervisor consult oracle 'which one?'); supervisor complete --summary \"it says: $answer\"";
        let task = fleet.create("asks", asks, &["--tenant", "acme"]);

        let shown = fleet.wait_for(&task, "done");

        assert_eq!(shown["latest_summary"], "it says: the second, which one?");
        let told = fleet.json(["list", "--assignee", "oracle"]);
        let question = &told[0];
        assert_eq!(
            (&question["creator_task"], &question["mission"]),
            (&task.as_str().into(), &task.as_str().into())
        );
        assert_eq!((&question["status"], &question["tenant"]), (&"done".into(), &"acme".into()));
        let answer = fleet.json(["consult", "oracle", "and now?", "--tenant", "acme"]);
        assert_eq!(answer["answer"], "the second, and now?");
        fleet.cli(["consult", "nobody-here", "hello?"]).refused(4, "no profile or lane `nobody-here`");
    }
}

#[test]
fn a_question_without_an_answer_is_given_up_in_time() {
    let fleet = Fleet::offline();
    fleet.lane("outside", "pull = true\n");
    fleet.start();
    let asks = "supervisor consult outside 'anybody?' --timeout 1s 2> said; echo $? >> said; supervisor complete --summary \"$(cat said)\"";
    let task = fleet.create("asks", asks, &[]);

    let shown = fleet.wait_for(&task, "done");

    let summary = shown["latest_summary"].as_str().unwrap();
    assert!(summary.contains("has no answer after 1 s") && summary.ends_with("75"), "{summary}");
    let told = fleet.json(["list", "--assignee", "outside", "--archived"]);
    assert_eq!(told[0]["status"], "archived", "{told:#}");
}

#[test]
fn a_run_whose_question_failed_may_ask_another_one() {
    let fleet = Fleet::offline();
    fleet.lane("oracle", ORACLE);
    fleet.start();
    let asks = "supervisor consult shell 'exit 3' 2> said; echo $? >> said
        supervisor complete --summary \"$(cat said) $(supervisor consult oracle 'and now?')\"";
    let task = fleet.create("asks", asks, &[]);

    let shown = fleet.wait_for(&task, "done");

    let summary = shown["latest_summary"].as_str().unwrap();
    assert!(summary.contains("was not answered") && summary.ends_with("4 the second, and now?"), "{summary}");
}

/// A lane that answers with the question.
const ORACLE: &str = r#"
argv = ["/bin/sh", "-c", "supervisor complete --summary \"the second, $(cat \"$0\")\"", "{prompt_file}"]
prompt = "body-file"
"#;
