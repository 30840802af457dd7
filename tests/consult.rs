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
        fleet.cli(["consult", "nobody-here", "hello?"]).refused(3, "no profile or lane `nobody-here`");
        fleet.cli(["consult", "oracle", " "]).refused(2, "the question is empty");
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
    let refused = fleet.cli(["consult", "shell", "exit 3", "--json"]).json()["error"].clone();
    assert_eq!((&refused["code"], &refused["changed"]), (&"conflict".into(), &true.into()), "{refused:#}");
    let refused = fleet.cli(["consult", "nobody-here", "hello?", "--json"]).json()["error"].clone();
    assert!(refused["code"] == "not_found" && refused.get("changed").is_none(), "{refused:#}");
}

#[test]
fn who_asks_the_same_again_waits_on_for_the_answer_of_the_first_time() {
    let fleet = Fleet::offline();
    fleet.lane("outside", "pull = true\n");
    fleet.start();
    let asks = "ask() { supervisor consult outside 'which one?' --timeout $1; }
        ask 1s > first 2>&1; code=$?; supervisor comment $SUPERVISOR_TASK asked
        supervisor complete --summary \"$code $(cat first) $(ask 1m)\"";
    let task = fleet.create("asks", asks, &[]);
    fleet.eventually("it has asked once", || {
        fleet.show(&task)["comments"].as_array().unwrap().first().map(|_| ())
    });

    let claimed = fleet.json(["claim", "--assignee", "outside"]);
    fleet.cli(["complete", claimed["task"]["id"].as_str().unwrap(), "--summary", "the third"]).ok();

    let shown = fleet.wait_for(&task, "done");
    let summary = shown["latest_summary"].as_str().unwrap();
    assert!(summary.starts_with("75 ") && summary.contains("ask the same question again"), "{summary}");
    assert!(summary.ends_with("the third"), "{summary}");
    let questions = fleet.json(["list", "--assignee", "outside", "--archived"]);
    assert_eq!(questions.as_array().unwrap().len(), 1, "{questions:#}");
}

#[test]
fn the_question_of_a_person_who_goes_away_is_archived() {
    let fleet = Fleet::offline();
    fleet.lane("outside", "pull = true\n");
    fleet.start();
    let mut asker = fleet.command(["consult", "outside", "anybody?", "--timeout", "10m"]).spawn().unwrap();
    let question = || fleet.json(["list", "--assignee", "outside", "--archived"])[0].clone();
    fleet.eventually("it is asked", || (question()["status"] == "ready").then_some(()));

    asker.kill().unwrap();
    asker.wait().unwrap();

    fleet.eventually("it is archived", || (question()["status"] == "archived").then_some(()));
}

#[test]
fn a_wait_beyond_the_limit_is_refused_with_the_limit() {
    let fleet = Fleet::offline();
    fleet.lane("oracle", ORACLE);
    fleet.start();
    fleet.cli(["consult", "oracle", "when?", "--timeout", "2h"]).refused(2, "longer than 1h");
}

/// A lane that answers with the question.
const ORACLE: &str = r#"
argv = ["/bin/sh", "-c", "supervisor complete --summary \"the second, $(cat \"$0\")\"", "{prompt_file}"]
prompt = "body-file"
"#;
