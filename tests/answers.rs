//! Decisions of a person: answers, approvals, promotions and manual moves.

use serde_json::{Value, json};

use crate::harness::{Fleet, Terminal, User};
use crate::http::Http;

fn id(created: &Value) -> String {
    created["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_worker_asks_with_choices_and_goes_on_with_the_answer() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "if supervisor context | grep '^> Answer: SQLite'; then exit 0; fi
            supervisor block --kind needs_input --question 'which database?' --choice PostgreSQL --choice SQLite";
        let task = fleet.create("store it", script, &[]);
        let shown = fleet.wait_for(&task, "blocked");
        let question =
            json!({"text": "which database?", "choices": ["PostgreSQL", "SQLite"], "free_text": false});
        assert_eq!(shown["task"]["question"], question);
        let told = fleet.cli(["show", &task]).ok().stdout;
        assert!(told.contains("Question\nwhich database?\n  1. PostgreSQL\n  2. SQLite\n"), "{told}");

        fleet.cli(["answer", &task, "3"]).refused(2, "none of the choices");
        fleet.cli(["answer", &task]).refused(2, "no answer is given");
        let answered = fleet.json(["answer", &task, "2"]);

        assert_eq!(answered["answer"], "SQLite");
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["comments"][0]["body"], "which database?\nAnswer: SQLite");
        fleet.cli(["answer", &task, "2"]).refused(4, "has no open question");
    }
}

#[test]
fn a_person_answers_with_the_arrows_a_number_or_words_and_can_leave() {
    let fleet = Fleet::offline();
    let question =
        ["--question", "which database?", "--choice", "PostgreSQL", "--choice", "SQLite", "--free-text"];
    let ask = || {
        let task = id(&fleet.json(["create", "store it"]));
        fleet.cli([&["block", &task], &question[..]].concat()).ok();
        let mut terminal = Terminal::run(&mut fleet.command(["answer", &task]));
        terminal.until("which database?");
        terminal.until("> 1. PostgreSQL");
        terminal.until("3. something else");
        (task, terminal)
    };
    let answered = |task: &str| fleet.show(task)["comments"][0]["body"].clone();

    let (task, mut terminal) = ask();
    terminal.press("\x1b[B");
    terminal.until("> 2. SQLite");
    terminal.press("\r");
    assert!(terminal.end().success());
    assert_eq!(answered(&task), "which database?\nAnswer: SQLite");

    let (task, mut terminal) = ask();
    terminal.press("1");
    assert!(terminal.end().success());
    assert_eq!(answered(&task), "which database?\nAnswer: PostgreSQL");

    let (task, mut terminal) = ask();
    terminal.press("3");
    terminal.until("answer: ");
    terminal.press("a file\r");
    assert!(terminal.end().success());
    assert_eq!(answered(&task), "which database?\nAnswer: a file");

    let (task, mut terminal) = ask();
    terminal.press("q");
    terminal.until("the task still waits");
    assert_eq!(terminal.end().code(), Some(2));
    assert_eq!(fleet.status_of(&task), "blocked");
}

#[test]
fn a_question_is_refused_that_nobody_could_answer() {
    let fleet = Fleet::offline();
    let task = id(&fleet.json(["create", "x"]));
    let ask = |args: &[&str]| fleet.cli([&["block", &task], args].concat()).code;
    assert_eq!(ask(&["--choice", "a"]), 2, "no question");
    assert_eq!(ask(&["--question", "q", "--choice", "a", "--choice", "A"]), 2);
    assert_eq!(ask(&["--question", "q", "--kind", "transient"]), 2);
    let seven = ["--choice", "1", "--choice", "2", "--choice", "3", "--choice", "4"];
    let more = ["--choice", "5", "--choice", "6", "--choice", "7"];
    assert_eq!(ask(&[&["--question", "q"], &seven[..], &more[..]].concat()), 2);
    assert_eq!(ask(&["--question", "q", "--choice", "a", "--free-text"]), 0);
    let answered = fleet.json(["answer", &task, "in", "my", "words"]);
    assert_eq!((&answered["answer"], &answered["status"]), (&json!("in my words"), &json!("ready")));
    fleet.cli(["block", &task, "just a reason"]).ok();
    assert_eq!(fleet.json(["answer", &task, "fine"])["status"], "ready");
}

#[test]
fn a_task_that_needs_an_approval_parks_after_its_parents_and_only_its_approver_lets_it_go() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.lane("ann", "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"");
        fleet.start();
        let parent = fleet.create("find the price", "echo it costs 5", &[]);
        let more = ["--parent", &parent, "--require-approval", "--approval-class", "spend"];
        let task = fleet.create("buy it", "echo bought", &more);
        let named = fleet.create("buy two", "echo bought", &[&more[..], &["--approver", "ann"]].concat());

        let shown = fleet.wait_for(&task, "blocked");

        assert_eq!(shown["task"]["block_kind"], "approval");
        assert_eq!(shown["why"]["text"], "waits for the approval of a person (spend)");
        assert_eq!(shown["task"]["question"]["results"][0]["summary"], "it costs 5");
        assert!(fleet.cli(["show", &task]).ok().stdout.contains("it costs 5"));
        fleet.cli(["answer", &task, "yes"]).refused(4, "has no open question");
        fleet.wait_for(&named, "blocked");
        for verb in [&["approve", &named][..], &["deny", &named, "--reason", "no"]] {
            fleet.cli(verb).refused(77, "may not decide");
        }
        fleet.cli(["unblock", &named]).refused(4, "it waits for an approval");
        fleet.cli(["complete", &named]).refused(4, "blocked");
        fleet.cli(["promote", &named, "--force"]).refused(4, "blocked");
        fleet.cli(["assign", &named, "ann"]).refused(4, "approver");
        assert_eq!(fleet.cli(["deny", &task]).code, 2, "no reason");

        fleet.cli(["approve", &task, "go on"]).ok();
        fleet.wait_for(&task, "done");

        let script = format!("supervisor approve {named}; echo $?");
        let other = fleet.create("not the approver", &script, &[]);
        fleet.wait_for(&other, "done");
        assert_eq!(fleet.show(&other)["latest_summary"], "77");
        assert_eq!(fleet.status_of(&named), "blocked");
        let script = format!("supervisor approve {named} 'within the budget' && supervisor complete");
        fleet.json(["create", "decide", "--assignee", "ann", "--body", &script]);
        assert_eq!(fleet.wait_for(&named, "done")["comments"][0]["author"], "ann");
    }
}

#[test]
fn an_approval_that_is_denied_goes_to_triage_and_is_asked_for_again() {
    let fleet = Fleet::offline();
    let task = id(&fleet.json(["create", "send it", "--require-approval", "--approval-class", "send_as_me"]));
    assert_eq!(fleet.status_of(&task), "blocked");
    fleet.cli(["deny", &task, "--reason", "not in my name"]).ok();
    let shown = fleet.show(&task);
    assert_eq!(
        (&shown["task"]["status"], &shown["comments"][0]["body"]),
        (&json!("triage"), &json!("not in my name"))
    );
    fleet.cli(["deny", &task, "--reason", "again"]).refused(4, "does not wait for an approval");
    fleet.cli(["promote", &task]).ok();
    assert_eq!(fleet.status_of(&task), "blocked");
    fleet.cli(["unblock", &task]).refused(4, "cannot unblock");
    assert_eq!(fleet.status_of(&task), "blocked", "to unblock is not to approve");
    fleet.cli(["approve", &task]).ok();
    assert_eq!(fleet.status_of(&task), "ready");
    fleet.cli(["edit", &task, "--title", "send something else"]).refused(4, "approved as it is");
    for wrong in [&["--approver", "ann"][..], &["--require-approval", "--approval-class", "fun"]] {
        assert_eq!(fleet.cli([&["create", "x"], wrong].concat()).code, 2);
    }
    let own = ["create", "x", "--assignee", "ann", "--require-approval", "--approver", "ann"];
    fleet.cli(own).refused(2, "ann is to do it");
}

#[test]
fn promote_goes_on_at_once_says_what_it_would_do_and_forces_by_unlinking() {
    let fleet = Fleet::offline();
    let parent = id(&fleet.json(["create", "parent"]));
    let task = id(&fleet.json(["create", "child", "--parent", &parent]));
    fleet.cli(["promote", &task]).refused(4, "waits for");
    let plan = fleet.json(["promote", &task, "--force", "--dry-run"]);
    assert_eq!((&plan["status"], fleet.status_of(&task).as_str()), (&json!("ready"), "todo"));
    fleet.cli(["promote", &task, "urgent", "--force"]).ok();
    assert_eq!((fleet.status_of(&task).as_str(), &fleet.show(&task)["parents"]), ("ready", &json!([])));
    let later = id(&fleet.json(["create", "later", "--not-before", "2h"]));
    fleet.cli(["promote", &later]).ok();
    assert_eq!(fleet.status_of(&later), "ready");
    fleet.cli(["block", &later, "why"]).ok();
    fleet.cli(["promote", &later]).ok();
    assert_eq!(fleet.status_of(&later), "ready");
    fleet.cli(["promote", &later]).refused(4, "cannot promote");
}

#[test]
fn a_person_moves_a_task_by_hand() {
    let fleet = Fleet::boot();
    let key = std::fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    let api = Http::at(fleet.root().join("run/supervisor.sock")).with("x-supervisor-key", &key);
    let task = id(&fleet.json(["create", "x"]));
    let path = format!("/api/v1/tasks/{task}");
    let moved = |status: &str| api.send("PATCH", &path, json!({"status": status}).to_string().as_bytes());
    assert_eq!(moved("triage").json(200)["status"], "triage");
    moved("todo").json(409);
    assert_eq!(fleet.status_of(&task), "triage", "a move that is refused changes nothing");
    assert_eq!(moved("ready").json(200)["status"], "ready");
    assert_eq!(moved("done").json(200)["status"], "done");
    assert_eq!(moved("ready").json(200)["status"], "ready");
    let parent = id(&fleet.json(["create", "parent"]));
    moved("triage").json(200);
    fleet.cli(["link", &parent, &task]).ok();
    moved("ready").json(409);
    assert_eq!(moved("todo").json(200)["status"], "todo");
    let kinds: Vec<String> = fleet.show(&task)["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["kind"].as_str().unwrap().to_owned())
        .collect();
    assert!(kinds.contains(&"status".to_owned()), "{kinds:?}");
}

#[test]
fn a_task_that_is_blocked_over_and_over_goes_to_triage() {
    let fleet = Fleet::offline();
    let task = id(&fleet.json(["create", "x"]));
    for _ in 0..2 {
        fleet.cli(["block", &task, "why"]).ok();
        fleet.cli(["unblock", &task]).ok();
    }
    fleet.cli(["block", &task, "why"]).ok();
    assert_eq!(fleet.status_of(&task), "triage");
    let shown = fleet.show(&task);
    assert_eq!(shown["events"].as_array().unwrap().last().unwrap()["kind"], "block_loop_detected");
}
