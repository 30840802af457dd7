//! Telegram: commands, rights, answers, mentions, and what is sent again.

use serde_json::json;

use super::played_telegram::{Telegram, text_of};
use super::{configure, listening, task_in};
use crate::harness::Fleet;
use crate::http::free_port;

#[test]
fn a_board_is_seen_and_changed_from_a_chat_by_the_lines_of_the_command_line() {
    let (fleet, telegram) = listening();
    let help = telegram.says(&fleet, 1, "/help");
    assert!(help.contains("/kanban VERB") && help.contains("approve, deny"), "{help}");

    let line = "/kanban create “water the plants” --assignee somebody\nnot the cactus";
    let created = telegram.says(&fleet, 1, line);
    let id = task_in(&created);
    assert!(created.starts_with(&format!("Created {id}  water the plants (ready)")), "{created}");
    let task = fleet.show(&id);
    assert_eq!(task["task"]["body"], "not the cactus");
    assert_eq!(task["task"]["created_by"], "ann");
    assert!(telegram.says(&fleet, 3, "/kanban list").contains("water the plants"));
    assert!(
        telegram.says(&fleet, 3, &format!("/kanban@fleet_bot show {}", &id[..6])).contains("not the cactus")
    );
    assert!(telegram.says(&fleet, 1, &format!("/task comment {id} 'use rain water'")).contains("added to"));
    assert_eq!(fleet.show(&id)["comments"][0]["author"], "ann");
    assert!(telegram.says(&fleet, 1, "/schedules").starts_with("No schedules."));
    assert!(telegram.says(&fleet, 1, "/kanban frobnicate").starts_with("Not done: `frobnicate` is not open"));
    let usage = telegram.says(&fleet, 1, "/kanban create");
    assert!(usage.starts_with("Not done: the following required arguments were not provided"), "{usage}");

    let listed = fleet.json(["notify", "list"]);
    let of_chat = json!({ "platform": "tg", "chat_id": "1", "thread_id": "", "task_id": id });
    for (key, value) in of_chat.as_object().unwrap() {
        assert_eq!(&listed[0][key], value, "who makes a task from a chat hears of it there");
    }
    fleet.cli(["complete", &id, "--result", "they drink"]).ok();
    let (_, said) = telegram.first_message(&fleet, "they drink");
    assert_eq!(said["chat_id"], "1");
}

#[test]
fn a_sender_does_what_it_may_and_nothing_of_the_host_is_named() {
    let (fleet, telegram) = listening();
    let made = fleet.json(["create", "pay", "--assignee", "x", "--require-approval"]);
    let id = made["id"].as_str().unwrap().to_owned();

    let refused = telegram.says(&fleet, 3, "/kanban create 'a task'");
    assert_eq!(refused, "Not done: `create` needs `mutate`, and carol may `read`");
    let refused = telegram.says(&fleet, 2, &format!("/task approve {id}"));
    assert_eq!(refused, "Not done: `approve` needs `approve`, and bob may `mutate`");
    for (sender, verb) in [(3, "unblock"), (2, "unblock"), (2, "retry"), (2, "promote")] {
        telegram.says(&fleet, sender, &format!("/kanban {verb} {id}"));
        assert_eq!(fleet.status_of(&id), "blocked", "{verb} is not to approve");
    }
    for line in
        ["--body-file /etc/passwd", "--workspace dir:/etc", "--policy none", "--check id", "--notify x"]
    {
        let refused = telegram.says(&fleet, 1, &format!("/kanban create x {line}"));
        assert!(refused.ends_with("is not open to chats"), "{line}: {refused}");
    }
    for verb in ["attach", "export", "backup", "import", "run", "stop", "log"] {
        assert!(
            telegram.says(&fleet, 1, &format!("/kanban {verb} x")).contains("is not open to chats"),
            "{verb}"
        );
    }
    let approved = telegram.says(&fleet, 1, &format!("/task approve {id} 'go ahead'"));
    assert!(approved.starts_with(&format!("Approved {id}")), "{approved}");
    assert_eq!(fleet.show(&id)["comments"][0]["author"], "ann");

    // Everybody who is known may unblock.
    fleet.cli(["block", &id, "stuck"]).ok();
    let unblocked = telegram.says(&fleet, 3, &format!("/kanban unblock {id}"));
    assert!(unblocked.starts_with(&format!("Unblocked {id}")), "{unblocked}");

    // To the sender of a tenant there is nothing but the tenant.
    let hidden = telegram.says(&fleet, 4, &format!("/kanban show {id}"));
    assert!(hidden.starts_with("Not done: no such task"), "{hidden}");
    assert!(!telegram.says(&fleet, 4, "/kanban list").contains("pay"));
    assert!(telegram.says(&fleet, 4, "/schedules").contains("is for operators"));
    let own = task_in(&telegram.says(&fleet, 4, "/kanban create mine"));
    assert_eq!(fleet.show(&own)["task"]["tenant"], "acme");
    assert!(
        telegram.says(&fleet, 1, "/kanban --board secret list").contains("does not reach the board secret")
    );
}

#[test]
fn a_reply_to_a_question_answers_it_and_a_number_alone_where_one_is_open() {
    let (fleet, telegram) = listening();
    let ask = |title: &str| {
        let line = format!(
            "/kanban create {title} --assignee shell\ntest -e asked && exit 0\ntouch asked\n\
             supervisor ask 'colour of {title}?' --choice red --choice blue"
        );
        task_in(&telegram.says(&fleet, 2, &line))
    };
    let door = ask("door");
    let (first, question) = telegram.first_message(&fleet, "colour of door?");
    assert!(text_of(&question).contains("1. red\n2. blue"));
    let replied = |id: i64| json!({ "reply_to_message": { "message_id": id, "from": { "id": 9 } } });

    let refused = telegram.says_with(&fleet, 3, "2", &replied(first));
    assert_eq!(refused, "Not done: `answer` needs `mutate`, and carol may `read`");
    let wall = ask("wall");
    let (second, _) = telegram.first_message(&fleet, "colour of wall?");
    // The board knows the message when the outbox is done with it.
    fleet.eventually("it is noted", || (fleet.json(["notify", "outbox"]) == json!([])).then_some(()));
    let which = telegram.says(&fleet, 2, "2");
    assert!(which.contains("several tasks ask") && which.contains(&door) && which.contains(&wall), "{which}");
    let stale = telegram.says_with(&fleet, 2, "2", &replied(1));
    assert!(stale.contains("not the latest message about a task"), "{stale}");

    let answered = telegram.says_with(&fleet, 2, "2", &replied(second));
    assert!(answered.starts_with(&format!("Answered {wall}")) && answered.ends_with("blue"), "{answered}");
    let answered = telegram.says(&fleet, 2, "1");
    assert!(answered.starts_with(&format!("Answered {door}")) && answered.ends_with("red"), "{answered}");
}

#[test]
fn a_reply_to_a_request_approves_or_denies_it_and_other_words_are_a_comment() {
    let (fleet, telegram) = listening();
    let request = |sender: i64, title: &str| {
        let line = format!(
            "/kanban create {title} --assignee shell\ntest -e asked && exit 0\ntouch asked\n\
             supervisor ask --class spend 'pay for {title}?'"
        );
        let task = task_in(&telegram.says(&fleet, sender, &line));
        let (message, request) = telegram.first_message(&fleet, &format!("pay for {title}?"));
        assert!(text_of(&request).contains("1. approve\n2. deny"), "{request}");
        fleet.eventually("it is noted", || (fleet.json(["notify", "outbox"]) == json!([])).then_some(()));
        (task, json!({ "reply_to_message": { "message_id": message, "from": { "id": 9 } } }))
    };
    let (_, reply) = request(2, "car");
    let refused = telegram.says_with(&fleet, 2, "1", &reply);
    assert_eq!(refused, "Not done: `approve` needs `approve`, and bob may `mutate`");

    let (hotel, reply) = request(1, "hotel");
    let commented = telegram.says_with(&fleet, 1, "how many nights?", &reply);
    assert!(commented.ends_with("The task still waits: reply 1 to approve it, 2 to deny it."), "{commented}");
    for doubtful in ["1 night or two?", "ok, who asked for it?"] {
        assert!(telegram.says_with(&fleet, 1, doubtful, &reply).contains("The task still waits"));
    }
    assert_eq!(fleet.status_of(&hotel), "blocked");
    let approved = telegram.says_with(&fleet, 1, "Approve: two nights", &reply);
    assert!(approved.starts_with(&format!("Approved {hotel}")), "{approved}");
    fleet.wait_for(&hotel, "done");

    // A number alone means the one that is open.
    let (flight, _) = request(1, "flight");
    let denied = telegram.says(&fleet, 1, "2");
    assert!(denied.starts_with(&format!("Denied {flight}")), "{denied}");
    // Its next run reads that it may not.
    fleet.wait_for(&flight, "done");
}

#[test]
fn a_schedule_is_added_run_and_removed_from_a_chat_which_reads_what_came_of_it() {
    let (fleet, telegram) = listening();
    let line = "/schedules add news --at 07:00 --title 'news of {date}' --assignee shell\necho no news";
    let refused = telegram.says(&fleet, 2, line);
    assert_eq!(refused, "Not done: `add` needs `approve`, and bob may `mutate`");
    let added = telegram.says(&fleet, 1, line);
    assert!(added.contains("news"), "{added}");
    assert!(telegram.says(&fleet, 1, &line.replace("07", "08")).contains("exists already"));
    let refused = telegram.says(&fleet, 1, "/schedules add x --title y --command 'dispatch-fleet a b'");
    assert!(refused.contains("--command"), "{refused}");
    fleet.lane("open", "argv = [\"/bin/sh\", \"-c\", \"true\"]\npolicy = \"unconfined\"\n");
    fleet.cli(["service", "reload"]).ok();
    let refused = telegram.says(&fleet, 1, "/schedules add x --at 07:00 --title y --assignee open");
    assert!(refused.contains("works under the policy unconfined"), "{refused}");
    assert!(telegram.says(&fleet, 1, "/help schedules").contains("add NAME --at TIME"));

    let ran = telegram.says(&fleet, 2, "/schedules run news");
    let task = task_in(&ran);
    fleet.wait_for(&task, "done");
    let (_, told) = telegram.first_message(&fleet, "done: news of ");
    assert!(text_of(&told).contains(&task), "{told}");

    let removed = telegram.says(&fleet, 1, "/schedules rm news");
    assert_eq!(removed, "Removed news");
    assert!(telegram.says(&fleet, 1, "/schedules").starts_with("No schedules."));
}

#[test]
fn a_sender_directs_the_schedules_of_the_boards_that_it_reaches() {
    let (fleet, telegram) = (Fleet::offline(), Telegram::start(0));
    configure(&fleet, &telegram, "boards = ['closed']\n");
    let file = fleet.root().join("chat.d/team.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let bob = "name = 'bob'\n";
    std::fs::write(&file, text.replace(bob, &format!("{bob}boards = ['default']\n"))).unwrap();
    fleet.cli(["boards", "create", "closed"]).ok();
    fleet.start();
    for (board, name) in [("closed", "secret"), ("default", "open")] {
        fleet.cli(["--board", board, "schedules", "add", name, "--every", "1d", "--title", name]).ok();
    }
    for line in ["show secret", "run secret", "pause secret", "resume secret", "--board closed run secret"] {
        let refused = telegram.says(&fleet, 2, &format!("/schedules {line}"));
        assert_eq!(refused, "Not done: bob does not reach the board closed from this chat", "{line}");
    }
    let listed = telegram.says(&fleet, 2, "/schedules");
    assert!(listed.contains("open") && !listed.contains("secret"), "{listed}");
    assert_eq!(telegram.says(&fleet, 2, "/schedules pause open"), "Paused open");
    assert_eq!(fleet.json(["schedules", "show", "open"])["paused"], true);
    assert_eq!(fleet.json(["schedules", "show", "secret"])["paused"], false);
    assert!(telegram.says(&fleet, 1, "/schedules").contains("secret"), "ann reaches both");
    assert_eq!(telegram.says(&fleet, 1, "/schedules pause secret"), "Paused secret");
    assert!(telegram.says(&fleet, 1, "/schedules --board closed run secret").starts_with("Ran secret  t_"));
}

#[test]
fn a_note_and_a_message_in_a_chat_name_lines_of_the_chat() {
    let (fleet, telegram) = listening();
    let made = telegram.says(&fleet, 2, "/kanban create 'nobody does it'");
    assert!(made.contains("/kanban assign t_") && !made.contains("supervisor assign"), "{made}");
    let line = "/kanban create asks --assignee shell\nsupervisor ask 'which?' --choice red --choice blue";
    let id = task_in(&telegram.says(&fleet, 2, line));
    let (_, told) = telegram.first_message(&fleet, "which?");
    assert!(
        text_of(&told).ends_with(&format!("reply with the answer, or send: /task answer {id} 1")),
        "{told}"
    );
    let done = telegram.says(&fleet, 2, &format!("/task answer {id} 1"));
    assert!(done.starts_with(&format!("Answered {id}")), "{done}");
    let gated = "/kanban create buys --approval-class spend --assignee shell\ntrue";
    let id = task_in(&telegram.says(&fleet, 2, gated));
    let (_, told) = telegram.first_message(&fleet, "approval needed: buys");
    assert!(text_of(&told).contains(&format!("or send: /task approve {id}")), "{told}");
    let done = telegram.says(&fleet, 1, &format!("/task approve {id}"));
    assert!(done.starts_with(&format!("Approved {id}")), "{done}");
}

#[test]
fn what_is_sent_again_acts_once_also_over_a_daemon_that_is_killed() {
    let fleet = Fleet::offline();
    let port = free_port();
    let telegram = Telegram::start(port);
    configure(&fleet, &telegram, "");
    fleet.start();
    telegram.says(&fleet, 1, "/kanban create once --assignee x");
    fleet.eventually("it is confirmed", || telegram.offsets().iter().any(|at| *at > 0).then_some(()));
    fleet.kill_daemon();
    // A service that has lost the confirmation.
    let said = telegram.messages().len();
    telegram.message(1_000_000, 1, "/kanban create once --assignee x", &json!({}));
    fleet.start();
    fleet.eventually("it is answered again", || (telegram.messages().len() > said).then_some(()));
    let replies: Vec<String> = telegram.messages().iter().map(text_of).collect();
    assert_eq!(task_in(&replies[0]), task_in(&replies[said]));
    assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 1);
}

#[test]
fn strangers_and_floods_are_answered_once_and_groups_are_left_in_peace() {
    let (fleet, telegram) = listening();
    let known = telegram.says(&fleet, 77, "/kanban list");
    assert_eq!(known, "You are not a known sender. An operator can add you by your id: 77");
    let group = json!({ "chat": { "id": -5, "type": "supergroup" } });
    for (number, sender, text) in
        [(2_000_000, 77, "/kanban list"), (2_000_001, 1, "good morning"), (2_000_002, 1, "/weather")]
    {
        telegram.message(number, sender, text, &group);
    }
    let forwarded = json!({ "forward_origin": { "type": "user" } });
    telegram.message(2_000_003, 1, "/kanban create 'by another'", &forwarded);
    for number in 0..40 {
        telegram.message(3_000_000 + number, 3, "/kanban list", &json!({}));
    }
    telegram.first_message(&fleet, "Too many messages. Wait a minute.");
    telegram.message(4_000_000, 2, "/help", &json!({}));
    telegram.first_message(&fleet, "/help VERB");
    assert_eq!(telegram.messages().len(), 1 + 20 + 1 + 1, "{:?}", telegram.messages());
    assert!(fleet.json(["list"]).as_array().unwrap().is_empty());
}

#[test]
fn a_mention_in_a_message_makes_a_task_for_the_profile() {
    let (fleet, telegram) = (Fleet::offline(), Telegram::start(0));
    fleet.write_config("profiles.d/reviewer.md", "---\nlane: shell\n---\n");
    configure(&fleet, &telegram, "");
    fleet.start();
    let made = telegram.says(&fleet, 2, "@reviewer true\n> @reviewer quoted\n`@shell`");
    let id = task_in(&made);
    assert_eq!(made, format!("Created {id} for reviewer"));
    let task = fleet.show(&id)["task"].clone();
    assert_eq!(
        (task["assignee"].as_str(), task["title"].as_str()),
        (Some("reviewer"), Some("@reviewer true"))
    );
    assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 1);
    assert!(telegram.says(&fleet, 3, "@reviewer x").contains("`@mention` needs `mutate`"));
    assert_eq!(telegram.says(&fleet, 3, "good morning"), "/help lists what is understood.");
}

#[test]
fn a_service_that_is_down_hangs_or_lies_harms_nothing_and_is_heard_again() {
    let fleet = Fleet::offline();
    let port = free_port();
    let down = crate::notify::played::Played::at(port, |_, before| match before % 3 {
        0 => ("500 Internal Server Error", "", ""),
        1 => ("200 OK", "", "{\"ok\":true,\"result\":{\"id\":\"x\"}}"),
        _ => ("429 Too Many Requests", "", "{\"ok\":false,\"parameters\":{\"retry_after\":1}}"),
    });
    let token = crate::notify::secret(&fleet, "bot", "9:TOKEN\n");
    fleet.configure(&format!(
        "[notify.channels.tg]\nkind = 'telegram'\nurl = 'http://127.0.0.1:{port}'\nsecret = {token}\nretry_first = 0\n"
    ));
    fleet.write_config("chat.d/team.toml", &format!("channel = 'tg'\n{}", super::SENDERS));
    fleet.start();
    fleet.eventually("it was tried", || (down.asked().len() >= 3).then_some(()));
    let id = fleet.create("work goes on", "true", &[]);
    fleet.wait_for(&id, "done");
    drop(down);
    let telegram = fleet.eventually("the port is free", || {
        std::net::TcpListener::bind(("127.0.0.1", port)).ok().map(drop).map(|()| Telegram::start(port))
    });
    assert!(telegram.says(&fleet, 1, "/kanban list --archived").contains("work goes on"));
}
