//! Each end of a run, and each wait for a person, is one message to the creator of the task; other events send none.

use std::collections::BTreeMap;

use super::outbox::{messages, told_at};
use super::played::{OK, Played};

/// A task: its title, the script of its worker, further arguments, and what its creator gets, in this order.
type Case = (&'static str, &'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const CASES: &[Case] = &[
    (
        "completes",
        "supervisor complete --result \"$(printf 'all is well\\nnoise')\"",
        &[],
        &[("completed", "all is well")],
    ),
    ("asks", "supervisor ask 'which one?' --choice this --choice that", &[], &[("question", "which one?")]),
    (
        "is blocked",
        "supervisor block --kind capability 'there is no key'",
        &[],
        &[("blocked", "there is no key")],
    ),
    (
        "has its work reviewed",
        "supervisor request-review --summary 'look at it'",
        &[],
        &[("review", "look at it")],
    ),
    (
        "waits for an approval",
        "true",
        &["--require-approval"],
        &[("approval", "Approve this task: waits for an approval")],
    ),
    (
        "crashes",
        "kill -9 $$",
        &["--max-retries", "2"],
        &[("crashed", ""), ("gave_up", "gave up after 2 failures")],
    ),
    (
        "takes too long",
        "sleep 600",
        &["--max-runtime", "1s", "--max-retries", "2"],
        &[("timed_out", ""), ("gave_up", "gave up after 2 failures")],
    ),
    (
        "says nothing",
        "exit 0",
        &["--assignee", "mute", "--max-retries", "2"],
        &[("unreported", ""), ("gave_up", "gave up after 2 failures")],
    ),
];

#[test]
fn each_ending_of_a_run_and_each_thing_that_waits_for_a_person_is_one_message() {
    let played = Played::start(|_, _| OK);
    let fleet = told_at(played.port, "");
    fleet.lane("mute", "argv = [\"/bin/sh\", \"-c\", \"exit 0\"]\n");
    fleet.start();
    let mut titles = BTreeMap::new();
    for (title, script, more, _) in CASES {
        let assignee: &[&str] = if more.contains(&"--assignee") { &[] } else { &["--assignee", "shell"] };
        let made = fleet.json([&["create", title, "--body", script], assignee, more].concat());
        titles.insert(made["id"].as_str().unwrap().to_owned(), *title);
    }
    let wanted: usize = CASES.iter().map(|(.., told)| told.len()).sum();

    fleet.eventually("each message has come", || (messages(&played).len() >= wanted).then_some(()));
    // A message of a last task comes behind all that could come twice.
    let last = fleet.create("the last one", "true", &[]);
    fleet.eventually("the last message has come", || {
        messages(&played).iter().any(|message| message["task_id"] == last.as_str()).then_some(())
    });

    for (title, _, _, told) in CASES {
        let came: Vec<(String, String)> = messages(&played)
            .iter()
            .filter(|message| titles.get(message["task_id"].as_str().unwrap()) == Some(title))
            .map(|message| {
                let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
                (text("kind"), text("text"))
            })
            .collect();
        assert_eq!(came.len(), told.len(), "{title}: {came:#?}");
        for ((kind, text), (expected, part)) in came.iter().zip(*told) {
            assert_eq!(kind, expected, "{title}: {came:#?}");
            assert!(text.contains(part), "{title}: {part} is not in {text}");
            assert!(!text.contains("noise"), "the first line alone: {text}");
        }
    }
}

#[test]
fn a_mission_whose_first_task_is_done_asks_the_creator_of_that_task() {
    let played = Played::start(|_, _| OK);
    let fleet = told_at(played.port, "");
    fleet.start();
    let pays = "supervisor ask 'pay 420?' --choice yes --choice no";
    let first = fleet.create(
        "the mission",
        &format!("supervisor create pays --assignee shell --body \"{pays}\" && supervisor complete"),
        &[],
    );
    fleet.wait_for(&first, "done");

    fleet.eventually("the question has come", || {
        messages(&played).iter().any(|message| message["text"] == "pay 420?").then_some(())
    });
    let listed = fleet.json(["notify", "list"]);
    assert!(listed.as_array().unwrap().iter().any(|one| one["task_id"] == first.as_str()), "{listed}");
}

#[test]
fn a_task_that_is_archived_is_no_news_until_it_is_brought_back() {
    let played = Played::start(|_, _| OK);
    let fleet = told_at(played.port, "");
    fleet.start();
    let of = |id: &str| {
        let listed = fleet.json(["notify", "list"]);
        listed.as_array().unwrap().iter().filter(|one| one["task_id"] == id).count()
    };
    let waits = fleet.create("waits", "true", &["--not-before", "1d"]);
    let runs = fleet.create("runs", "sleep 600", &[]);
    fleet.wait_for(&runs, "running");
    assert_eq!((of(&waits), of(&runs)), (1, 1));

    fleet.cli(["archive", &waits, &runs]).ok();

    fleet.wait_for(&runs, "archived");
    assert_eq!((of(&waits), of(&runs)), (0, 0));
    fleet.cli(["unarchive", &waits]).ok();
    assert_eq!(of(&waits), 1, "it is brought back");
    // A message of a last task comes behind all others.
    let last = fleet.create("the last one", "true", &[]);
    fleet.eventually("the last message has come", || {
        messages(&played).iter().any(|message| message["task_id"] == last.as_str()).then_some(())
    });
    let told: Vec<_> = messages(&played).iter().map(|message| message["task_id"].clone()).collect();
    assert_eq!(told, [last.as_str()]);
}
