//! The outbox: what becomes of messages when services and daemons fail.

use std::fs;

use serde_json::{Value, json};

use super::played::{OK, Played, PlayedAnswer};
use super::{done, outbox, secret};
use crate::harness::Fleet;
use crate::http::free_port;

const DOWN: PlayedAnswer = ("500 Internal Server Error", "", "");

/// A fleet that notifies over a webhook at a port.
pub(super) fn told_at(port: u16, more: &str) -> Fleet {
    let fleet = Fleet::offline();
    configure(&fleet, port, more);
    fleet
}

fn configure(fleet: &Fleet, port: u16, more: &str) {
    fleet.configure(&format!(
        "[notify]\ndefault = 'ops'\n[notify.channels.ops]\nkind = 'webhook'\nurl = 'http://127.0.0.1:{port}/hook'\n\
         retry_first = 0\nretry_longest = 0\n{more}"
    ));
}

pub(super) fn messages(played: &Played) -> Vec<Value> {
    let bodies = played.asked().into_iter().map(|asked| asked.json());
    bodies.flat_map(|body| body["messages"].as_array().unwrap().clone()).collect()
}

fn tasks(played: &Played) -> Vec<String> {
    messages(played).iter().map(|message| message["task_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_creator_of_a_task_is_told_how_it_ends_with_the_first_line_of_its_result() {
    let played = Played::start(|_, _| OK);
    let fleet = told_at(played.port, "");
    fleet.start();
    let id = fleet.create("say hello", "supervisor complete --result \"$(printf '42 passed\\nnoise')\"", &[]);
    fleet.wait_for(&id, "done");

    let told = fleet.eventually("the message has come", || messages(&played).first().cloned());

    let expected = json!({"kind": "completed", "task_id": id, "title": "say hello", "text": "42 passed"});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&told[key], value, "{told}");
    }
    fleet.eventually("the outbox is empty", || outbox(&fleet).is_empty().then_some(()));
    assert_eq!(fleet.json(["notify", "list"]), json!([]), "the subscription is over");
    assert_eq!(played.asked().len(), 1);
}

#[test]
fn a_question_of_a_worker_comes_with_numbered_choices_and_nobody_is_told_where_none_is_named() {
    let played = Played::start(|_, _| OK);
    let fleet = told_at(played.port, "");
    fleet.start();
    let ask = "supervisor ask 'which colour?' --choice red --choice blue";
    let id = fleet.create("paint", ask, &[]);
    fleet.cli(["run", "--detach", "--notify", "none", "exit 1"]).ok();
    let body = fleet.eventually("the question has come", || Some(played.asked().first()?.json()));
    assert_eq!(
        (&body["messages"][0]["kind"], &body["messages"][0]["task_id"]),
        (&json!("question"), &json!(id))
    );
    assert_eq!(body["messages"][0]["choices"], json!(["red", "blue"]));
    let text = body["text"].as_str().unwrap();
    assert!(text.contains("which colour?\n1. red\n2. blue\n"), "{text}");
    assert_eq!(played.asked().len(), 1);
}

#[test]
fn who_has_a_schedule_a_mission_a_fleet_or_a_swarm_make_tasks_hears_of_them() {
    let played = Played::start(|_, _| OK);
    let fleet = told_at(played.port, "[notify.channels.other]\nkind = 'telegram'\nsecret = 'bot'\n");
    fs::create_dir_all(fleet.home().join("insta/acct-1")).unwrap();
    crate::fleet::give(&fleet.home().join("insta/acct-1"));
    crate::fleet::give(&fleet.home().join("insta"));
    let insta = fleet.home().join("insta").display().to_string();
    fleet.start();
    let body = "supervisor complete --summary heard";
    fleet
        .cli([
            "schedules",
            "add",
            "s",
            "--every",
            "1d",
            "--title",
            "of the schedule",
            "--assignee",
            "shell",
            "--body",
            body,
        ])
        .ok();
    fleet.cli(["schedules", "run", "s"]).ok();
    fleet.cli(["schedules", "add", "q", "--every", "1d", "--title", "quiet", "--channel", "none"]).ok();
    fleet.cli(["schedules", "run", "q"]).ok();
    let mission = fleet.json(["mission", "create", "of the mission"])["id"].clone();
    fleet.cli(["dispatch-fleet", "shell", &insta, "--title", "of the fleet", "--body", body]).ok();
    let swarm = ["swarm", "goal", "--worker", "a", "--verifier", "b", "--synthesizer", "c", "--notify"];
    let members = fleet.json(swarm.iter().chain(&["ops"]).copied());

    let subscribed = fleet.json(["notify", "list"]);
    let to = |task: &Value| {
        subscribed.as_array().unwrap().iter().any(|one| one["task_id"] == *task && one["platform"] == "ops")
    };
    assert!(to(&mission) && to(&members["worker_ids"][0]) && to(&members["synthesizer_id"]), "{subscribed}");
    assert!(!to(&members["root_id"]), "what is done at once is no news: {subscribed}");
    let listed = fleet.json(["list"]);
    let of = |title: &str| listed.as_array().unwrap().iter().find(|task| task["title"] == title).unwrap();
    assert!(!to(&of("quiet")["id"]), "{subscribed}");
    assert_eq!(of("of the schedule")["channel"], "ops", "the default one");
    for task in ["of the schedule", "of the fleet"] {
        fleet.eventually("its end is heard of", || {
            messages(&played)
                .iter()
                .any(|message| message["title"] == task && message["text"] == "heard")
                .then_some(())
        });
    }
    let refused = ["mission", "create", "x", "--notify", "nowhere"];
    fleet.cli(refused).refused(3, "there is no channel `nowhere`");
    fleet.cli(swarm.iter().chain(&["none", "--idempotency-key", "k"]).copied()).ok();
}

#[test]
fn a_session_names_its_channel_by_a_variable_and_a_channel_that_is_none_is_refused_and_nothing_is_created() {
    let fleet = told_at(free_port(), "[notify.channels.mine]\nkind = 'telegram'\nsecret = 'bot'\n");
    let created =
        fleet.command(["create", "x", "--json"]).env("SUPERVISOR_CHANNEL", "mine:-100:7").output().unwrap();
    assert!(created.status.success());
    let listed = fleet.json(["notify", "list"]);
    assert_eq!(
        [&listed[0]["platform"], &listed[0]["chat_id"], &listed[0]["thread_id"]],
        [&json!("mine"), &json!("-100"), &json!("7")]
    );
    fleet
        .cli(["create", "y", "--notify", "nope"])
        .refused(3, "there is no channel `nope`; the channels are: mine, ops");
    assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_service_that_was_down_gets_each_message_once_and_in_order() {
    let port = free_port();
    let fleet = told_at(port, "");
    fleet.start();
    let ids: Vec<String> = (0..5).map(|n| done(&fleet, &format!("task {n}"), "ok", &[])).collect();
    fleet.eventually("it was tried", || outbox(&fleet)[0]["attempts"].as_u64().filter(|tries| *tries > 0));
    assert_eq!(outbox(&fleet).len(), 5);

    // The first two answers fail: what is behind them waits.
    let played = Played::at(port, |_, before| if before < 2 { DOWN } else { OK });

    fleet.eventually("all have come", || outbox(&fleet).is_empty().then_some(()));
    assert_eq!(tasks(&played)[2..], ids);
    assert!(
        tasks(&played)[..2].iter().all(|task| *task == ids[0]),
        "the first is tried again, and nothing overtakes it"
    );
}

#[test]
fn a_daemon_that_is_killed_before_it_delivers_loses_nothing() {
    let port = free_port();
    let fleet = told_at(port, "");
    fleet.start();
    let ids: Vec<String> = (0..3).map(|n| done(&fleet, &format!("task {n}"), "ok", &[])).collect();
    fleet.kill_daemon();
    let played = Played::at(port, |_, _| OK);
    fleet.start();
    fleet.eventually("all have come", || outbox(&fleet).is_empty().then_some(()));
    assert_eq!(tasks(&played), ids);
}

#[test]
fn a_daemon_that_is_killed_after_it_has_delivered_doubles_that_message_alone_under_the_same_id() {
    let played = Played::start(|_, _| OK);
    let fleet = told_at(played.port, "");
    for n in 0..3 {
        done(&fleet, &format!("task {n}"), "ok", &[]);
    }
    let mut command = fleet.command(["daemon"]);
    fleet.adopt(command.env("SUPERVISOR_FAIL_POINT", "after-notify:2").spawn().unwrap());
    fleet.reap_daemon();
    assert_eq!(played.asked().len(), 2);
    fleet.start();
    fleet.eventually("all have come", || outbox(&fleet).is_empty().then_some(()));
    let ids: Vec<String> =
        played.asked().iter().map(|asked| asked.header("webhook-id").unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 4);
    assert!(ids[1] == ids[2] && ids[0] != ids[1] && ids[3] != ids[2], "{ids:?}");
}

#[test]
fn a_message_that_nobody_takes_is_dead_and_shown_and_can_be_retried_and_dropped() {
    let port = free_port();
    let fleet = told_at(port, "give_up_after = 1\n");
    fleet.start();
    done(&fleet, "first", "ok", &[]);
    done(&fleet, "second", "ok", &[]);
    let dead = fleet.eventually("both are given up", || {
        let dead = fleet.json(["notify", "outbox", "--dead"]).as_array().unwrap().clone();
        (dead.len() == 2).then_some(dead)
    });
    assert_eq!(fleet.json(["notify", "outbox", "--channel", "another"]), json!([]));
    for verb in ["drop", "retry"] {
        fleet.cli(["notify", verb, "--channel", "another"]).refused(3, "there is no channel `another`");
    }
    let found = fleet.json(["diagnostics"]);
    let found = found.as_array().unwrap().iter().find(|one| one["title"] == "channel ops").unwrap().clone();
    assert_eq!(found["diagnostics"][0]["kind"], "messages_undelivered");
    let status = fleet.cli(["status"]);
    assert!(
        status.code == 1 && status.stdout.contains("channel ops: it does not take its messages"),
        "{status:?}"
    );

    fleet.cli(["notify", "drop", &dead[0]["id"].to_string()]).ok();
    fleet.cli(["notify", "drop", &dead[0]["id"].to_string()]).refused(3, "no such message");
    let played = Played::at(port, |_, _| OK);
    assert_eq!(fleet.json(["notify", "retry", "--channel", "ops"]), json!({"messages": 1}));
    fleet.eventually("it has come", || outbox(&fleet).is_empty().then_some(()));
    assert_eq!(tasks(&played), [dead[1]["task_id"].as_str().unwrap()]);
    fleet.cli(["status"]).ok();
}

#[test]
fn many_messages_that_have_waited_are_one_digest_for_people() {
    let played = Played::start(|_, _| OK);
    let fleet = Fleet::offline();
    let token = secret(&fleet, "token", "1:abc\n");
    fleet.configure(&format!(
        "[notify]\ndefault = 'tg'\n[notify.channels.tg]\nkind = 'telegram'\nurl = '{}'\nsecret = {token}\nto = '5'\n",
        played.url()
    ));
    for n in 0..30 {
        done(&fleet, &format!("task {n}"), "ok", &[]);
    }
    assert_eq!(outbox(&fleet).len(), 30);
    fleet.start();
    fleet.eventually("all have come", || outbox(&fleet).is_empty().then_some(()));
    assert_eq!(played.asked().len(), 1);
    let text = played.asked()[0].json()["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("30 messages have waited:\n- done t_"), "{text}");
    assert!(text.ends_with("and 10 more: supervisor list"), "{text}");
}

#[test]
fn a_service_that_was_down_for_a_day_gets_each_message_once_and_is_not_flooded() {
    let port = free_port();
    let fleet = Fleet::offline();
    let token = secret(&fleet, "token", "1:abc\n");
    fleet.configure(&format!(
        "[notify]\ndefault = 'tg'\n[notify.channels.tg]\nkind = 'telegram'\nurl = 'http://127.0.0.1:{port}'\nsecret = {token}\nto = '5'\n"
    ));
    fleet.start();
    let ids: Vec<String> = (0..20).map(|n| done(&fleet, &format!("task {n}"), "ok", &[])).collect();
    fleet.eventually("it was tried", || outbox(&fleet)[0]["attempts"].as_u64().filter(|tries| *tries > 0));
    fleet.kill_daemon();
    // A day of tries goes by, as the board has it.
    let board = rusqlite::Connection::open(fleet.root().join("boards/default/board.db")).unwrap();
    let back = "UPDATE notify_outbox SET created_at = created_at - ?1, due_at = due_at - ?1, failing_since = failing_since - ?1, \
                attempts = attempts + 30";
    assert_eq!(board.execute(back, [24 * 3600 * 1_000_000_i64]).unwrap(), 20);
    drop(board);
    let played = Played::at(port, |_, _| OK);

    fleet.start();

    fleet.eventually("all have come, and none is dead", || outbox(&fleet).is_empty().then_some(()));
    let asked = played.asked();
    let texts: Vec<String> =
        asked.iter().map(|asked| asked.json()["text"].as_str().unwrap().to_owned()).collect();
    // Most are one digest; what was tried before there were enough for one may come by itself.
    assert!(texts.len() <= 6, "nobody is flooded: {texts:?}");
    let times = |id: &String| texts.iter().filter(|text| text.contains(id.as_str())).count();
    assert!(ids.iter().all(|id| times(id) == 1), "each comes once: {texts:?}");
}

#[test]
fn a_channel_that_is_configured_later_gets_what_has_waited_after_a_reload() {
    let played = Played::start(|_, _| OK);
    let fleet = Fleet::boot();
    let id = fleet.json(["create", "x"])["id"].as_str().unwrap().to_owned();
    let said = fleet.cli(["notify-subscribe", &id, "--platform", "ops"]).ok().stderr;
    assert!(said.contains("there is no channel `ops`"), "{said}");
    fleet.cli(["complete", &id]).ok();
    fleet.eventually("it was tried", || outbox(&fleet)[0]["last_error"].as_str().map(str::to_owned));
    configure(&fleet, played.port, "");
    fleet.signal(nix::sys::signal::Signal::SIGHUP);
    fleet.eventually("the configuration is read", || fleet.log().contains("reloaded").then_some(()));
    fleet.cli(["notify", "retry"]).ok();
    fleet.eventually("it has come", || outbox(&fleet).is_empty().then_some(()));
    assert_eq!(tasks(&played), [id]);
}
