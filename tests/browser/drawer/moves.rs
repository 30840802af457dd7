//! The status row: what a task is offered in each status, and what each of these moves does.

use serde_json::Value;

use super::open_by_address;
use crate::browser::driver::{Browser, ENTER, ESCAPE};
use crate::browser::{fleet, visit};
use crate::harness::{Fleet, User};

/// A move: its name, what is typed into its form, and what the task is like after it.
type Move = (&'static str, &'static str, fn(&Value) -> bool);

fn is(shown: &Value, status: &str) -> bool {
    shown["task"]["status"] == status
}

fn is_blocked_because(shown: &Value, why: &str) -> bool {
    is(shown, "blocked") && shown["task"]["block_reason"].as_str().is_some_and(|reason| reason.contains(why))
}

fn outcome(shown: &Value) -> &str {
    shown["runs"][0]["outcome"].as_str().unwrap_or_default()
}

const SCHEDULE: Move = ("schedule", "30h", |shown| {
    let later = shown["task"]["not_before"].as_i64().zip(shown["task"]["created_at"].as_i64());
    // What waits for its parents goes on to do so.
    later.is_some_and(|(at, created)| at - created > 100_000)
});
const HOLD: Move = ("hold", "not today", |shown| shown["events"].to_string().contains("not today"));
const BLOCK: Move = ("block", "no money", |shown| is_blocked_because(shown, "no money"));
const TRIAGE: Move = ("triage", "", |shown| is(shown, "triage"));
const REVIEW: Move = ("review", "the walls", |shown| is(shown, "review"));
const COMPLETE: Move =
    ("complete", "it is built", |shown| is(shown, "done") && shown["latest_summary"] == "it is built");
const STOP: Move = ("stop", "too late", |shown| is_blocked_because(shown, "too late"));
const ARCHIVE: Move = ("archive", "", |shown| is(shown, "archived"));

/// Makes a move: presses its button, fills its form where it has one, and sends it.
fn make(page: &Browser, name: &str, text: &str) {
    let button = format!("#drawer [data-move={name}]");
    page.wait(&button);
    let asks = page.count(&format!("{button}[data-asks]")) == 1;
    page.click(&button);
    if !asks {
        return;
    }
    if !text.is_empty() {
        page.fill("#drawer .drawer-move .drawer-input", text);
    }
    page.click("#drawer .drawer-move button[type=submit]");
}

/// Makes each move of a status with a task of its own.
#[track_caller]
fn each(fleet: &Fleet, page: &Browser, status: &str, create: &dyn Fn(&str) -> String, moves: &[Move]) {
    let names: Vec<_> = moves.iter().map(|(name, ..)| *name).collect();
    for (name, text, becomes) in moves {
        let id = create(name);
        fleet.wait_for(&id, status);
        open_by_address(page, &id);
        page.eventually(&format!("a task that is {status} is offered {names:?}"), |page| {
            let offered = page.script(
                "return [...document.querySelectorAll('#drawer [data-move]')].map(one => one.dataset.move)",
                &[],
            );
            (offered == serde_json::json!(names)).then_some(())
        });
        make(page, name, text);
        let shown = fleet.eventually(&format!("{name} has changed {id}, which was {status}"), || {
            Some(fleet.show(&id)).filter(becomes)
        });
        let now = shown["task"]["status"].as_str().unwrap();
        page.eventually(&format!("the drawer says that it is {now}"), |page| {
            // A run that was ended may begin again meanwhile.
            let shown = page.text("#drawer .drawer-status")?;
            (shown == now || status == "running").then_some(())
        });
        page.wait_gone("#drawer .drawer-refusal.is-shown");
    }
    page.is_content();
}

fn id(made: &Value) -> String {
    made["id"].as_str().unwrap().to_owned()
}

#[test]
fn each_move_of_a_task_that_has_not_begun() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = visit(&fleet);
    let parent = fleet.create("the parent", "true", &["--initial-status", "blocked"]);

    let asked =
        |who: &str| fleet.json(["list"]).as_array().unwrap().iter().any(|task| task["assignee"] == who);
    for (name, who) in [("specify", "specifier"), ("decompose", "decomposer")] {
        let idea = id(&fleet.json(["create", "an idea", "--triage"]));
        open_by_address(&page, &idea);
        make(&page, name, "");
        fleet.eventually(&format!("{who} is asked"), || asked(who).then_some(()));
    }
    let triage = |_: &str| id(&fleet.json(["create", "an idea", "--triage"]));
    let ready: Move = ("ready", "", |shown| is(shown, "ready"));
    let ask = |name| (name, "", (|shown| is(shown, "triage")) as fn(&Value) -> bool);
    each(
        &fleet,
        &page,
        "triage",
        &triage,
        &[ready, ask("specify"), ask("decompose"), BLOCK, COMPLETE, ARCHIVE],
    );

    let todo = |_: &str| id(&fleet.json(["create", "waits", "--parent", &parent]));
    let force: Move = ("force", "", |shown| is(shown, "ready") && shown["parents"] == serde_json::json!([]));
    each(&fleet, &page, "todo", &todo, &[force, SCHEDULE, HOLD, BLOCK, TRIAGE, COMPLETE, STOP, ARCHIVE]);

    let scheduled = |_: &str| id(&fleet.json(["create", "later", "--not-before", "1h"]));
    let start: Move = ("start", "", |shown| is(shown, "ready"));
    each(
        &fleet,
        &page,
        "scheduled",
        &scheduled,
        &[start, SCHEDULE, HOLD, BLOCK, TRIAGE, COMPLETE, STOP, ARCHIVE],
    );

    let ready = |_: &str| id(&fleet.json(["create", "nobody's"]));
    each(&fleet, &page, "ready", &ready, &[SCHEDULE, HOLD, BLOCK, TRIAGE, REVIEW, COMPLETE, STOP, ARCHIVE]);

    // A hold is released where it was begun.
    let held = ready("release");
    fleet.cli(["hold", &held, "--reason", "not today"]).ok();
    open_by_address(&page, &held);
    page.wait_text("#drawer .drawer-why", "not today");
    make(&page, "release", "");
    page.wait_gone("#drawer [data-move=release]");
    let holds = fleet.json(["holds"]).to_string();
    assert!(!holds.contains(&held), "{holds}");
}

#[test]
fn each_move_of_a_task_that_has_begun_or_is_over() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = visit(&fleet);

    let running = |_: &str| fleet.create("works", "sleep 600", &[]);
    let reclaim: Move = ("reclaim", "start again", |shown| outcome(shown) == "reclaimed");
    let cancel: Move =
        ("cancel", "not needed", |shown| is(shown, "blocked") && outcome(shown) == "cancelled");
    let kill: Move = ("kill", "it hangs", |shown| !outcome(shown).is_empty());
    each(&fleet, &page, "running", &running, &[reclaim, cancel, kill, ARCHIVE]);
    for task in fleet.json(["list", "--status", "running"]).as_array().unwrap() {
        fleet.cli(["cancel", task["id"].as_str().unwrap()]).ok();
    }

    let review = |name: &str| {
        // Nobody completes what is to be reviewed as their own.
        if name == "complete" {
            return fleet.create("look at it", "supervisor request-review", &[]);
        }
        let made = id(&fleet.json(["create", "look at it"]));
        fleet.cli(["request-review", &made]).ok();
        made
    };
    let withdraw: Move = ("withdraw", "", |shown| is(shown, "ready"));
    each(&fleet, &page, "review", &review, &[withdraw, BLOCK, TRIAGE, COMPLETE, ARCHIVE]);

    let blocked = |_: &str| id(&fleet.json(["create", "stuck", "--initial-status", "blocked"]));
    let unblock: Move =
        ("unblock", "it is paid", |shown| is(shown, "ready") && shown.to_string().contains("it is paid"));
    let retry: Move = ("retry", "try it", |shown| is(shown, "ready") && shown.to_string().contains("try it"));
    each(&fleet, &page, "blocked", &blocked, &[unblock, retry, SCHEDULE, REVIEW, TRIAGE, COMPLETE, ARCHIVE]);

    let done = |_: &str| {
        let made = id(&fleet.json(["create", "over", "--triage"]));
        fleet.cli(["complete", &made]).ok();
        made
    };
    let reopen: Move =
        ("reopen", "once more", |shown| is(shown, "ready") && shown.to_string().contains("once more"));
    each(&fleet, &page, "done", &done, &[reopen, TRIAGE, ARCHIVE]);

    let archived = || {
        let made = id(&fleet.json(["create", "put away", "--triage"]));
        fleet.cli(["archive", &made]).ok();
        made
    };
    open_by_address(&page, &archived());
    make(&page, "unarchive", "");
    page.wait_text("#drawer .drawer-status", "triage");
    let gone = archived();
    open_by_address(&page, &gone);
    make(&page, "remove", "");
    page.wait_gone("#drawer");
    fleet.cli(["show", &gone]).refused(3, &gone);
}

#[test]
fn a_form_is_left_with_escape_and_a_refusal_stands_in_it() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = id(&fleet.json(["create", "an idea", "--triage"]));
    let later = id(&fleet.json(["create", "later", "--not-before", "1h"]));
    let page = visit(&fleet);

    open_by_address(&page, &task);
    page.click("#drawer [data-move=archive]");
    page.wait("#drawer .drawer-move form");
    page.press(ESCAPE);
    page.wait_gone("#drawer .drawer-move form");
    assert!(page.sees("#drawer"), "the drawer stays");
    assert_eq!(fleet.status_of(&task), "triage");

    open_by_address(&page, &later);
    make(&page, "schedule", "some day");
    page.wait_text("#drawer .drawer-move .drawer-refusal.is-shown", "some day");
    assert_eq!(page.value("#drawer .drawer-move .drawer-input").as_deref(), Some("some day"));
    page.fill("#drawer .drawer-move .drawer-input", "30h");
    page.press(ENTER);
    fleet.eventually("it starts later", || SCHEDULE.2(&fleet.show(&later)).then_some(()));
    page.wait_gone("#drawer .drawer-move form");
}
