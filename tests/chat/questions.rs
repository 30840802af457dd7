//! A question over a webhook is answered by a number, by a reply, and for a whole mission; a long list says how many
//! entries it leaves out.

use std::cell::Cell;

use serde_json::{Value, json};

use super::{SENDERS, task_in};
use crate::harness::Fleet;
use crate::listeners::operator;
use crate::notify::played::{OK, Played};

/// A daemon with the chat `room` of a webhook, and what the program behind it does.
struct TestChat {
    fleet: Fleet,
    hook: Played,
    posts: Cell<u32>,
}

impl TestChat {
    fn open() -> TestChat {
        let fleet = Fleet::offline();
        let hook = Played::start(|_, _| OK);
        fleet.configure(&format!("[notify.channels.wh]\nkind = 'webhook'\nurl = '{}/out'\n", hook.url()));
        fleet.write_config("chat.d/room.toml", &format!("channel = 'wh'\n{SENDERS}"));
        fleet.start();
        let room = TestChat { fleet, hook, posts: Cell::new(0) };
        room.fleet
            .eventually("the chat is served", || room.says("/help", None).contains("/kanban").then_some(()));
        room
    }

    /// Posts what Bob says, and returns the reply.
    fn says(&self, text: &str, reply_to: Option<&str>) -> String {
        self.posts.set(self.posts.get() + 1);
        let id = format!("m{}", self.posts.get());
        let mut said = json!({ "id": id, "sender": "2", "chat_id": "!room", "text": text, "direct": true });
        if let Some(message) = reply_to {
            said["reply_to"] = message.into();
        }
        let posted = operator(&self.fleet).send("POST", "/api/v1/chat/room", said.to_string().as_bytes());
        if posted.status == 404 {
            return String::new();
        }
        posted.json(200)["reply"].as_str().unwrap_or_default().to_owned()
    }

    /// The first message of a kind about a task that went out.
    fn sent(&self, task: &str, kind: &str) -> Value {
        self.fleet.eventually("the message has gone out", || {
            let sent = self.hook.asked().into_iter().map(|asked| asked.json());
            sent.into_iter().find(|sent| {
                let first = &sent["messages"][0];
                first["task_id"] == task && first["kind"] == kind
            })
        })
    }

    fn asks(&self, title: &str) -> String {
        let task = task_in(&self.says(&format!("/kanban create '{title}'"), None));
        let question = ["--question", "which colour?", "--choice", "red", "--choice", "blue"];
        self.fleet.cli(["block", &task].iter().chain(&question)).ok();
        task
    }

    /// Says something until the board knows the message that it is about.
    fn answers(&self, text: &str, reply_to: Option<&str>) -> String {
        self.fleet.eventually("the question is known", || {
            let reply = self.says(text, reply_to);
            (!reply.contains("no question is open") && !reply.contains("not the latest")).then_some(reply)
        })
    }
}

#[test]
fn a_question_over_a_webhook_is_answered_by_its_number_and_by_a_reply() {
    let room = TestChat::open();
    let first = room.asks("paint the door");
    let sent = room.sent(&first, "question");
    assert_eq!(sent["chat_id"], "!room");
    let text = sent["text"].as_str().unwrap();
    assert!(text.ends_with(&format!("reply with the answer, or send: /task answer {first} 1")), "{text}");
    assert!(room.answers("2", None).contains("blue"));
    assert_eq!(room.fleet.show(&first)["comments"][0]["body"], "which colour?\nAnswer: blue");

    let (second, third) = (room.asks("paint the wall"), room.asks("paint the floor"));
    let sent = room.sent(&third, "question");
    room.sent(&second, "question");
    let id = sent["id"].as_str().unwrap();
    assert!(room.answers("red", Some(id)).contains("red"));
    assert_eq!(room.fleet.show(&third)["task"]["status"], "ready");
    assert_eq!(room.fleet.show(&second)["task"]["status"], "blocked", "another question stays open");
}

#[test]
fn a_mission_at_a_limit_asks_its_chat_and_goes_on_by_a_number() {
    let room = TestChat::open();
    let first = task_in(&room.says("/kanban create 'the website'", None));
    let part = ["create", "part", "--mission", &first, "--quiet"];
    for _ in 0..19 {
        room.fleet.cli(part).ok();
    }
    room.fleet.cli(part).refused(77, "missions.tasks");
    let asked = room.sent(&first, "question");
    let text = asked["messages"][0]["text"].as_str().unwrap();
    assert!(text.contains("20 tasks of 20 (missions.tasks). Continue?"), "{text}");
    let status = room.fleet.cli(["status"]).stdout;
    assert!(
        status.contains("Missions at a limit") && status.contains(&format!("supervisor answer {first} 1")),
        "{status}"
    );

    assert!(room.answers("1", None).contains("as much again"));
    room.fleet.cli(part).ok();
    assert!(!room.fleet.cli(["status"]).stdout.contains("Missions at a limit"));
}

#[test]
fn a_long_list_begins_with_what_changed_last_and_says_how_many_more_there_are() {
    let room = TestChat::open();
    let ids: Vec<String> =
        (0..25).map(|n| room.fleet.create(&format!("task {n}"), "true", &["--triage"])).collect();
    let reply = room.says("/kanban list", None);
    assert!(reply.lines().nth(1).unwrap().contains(&ids[24]), "{reply}");
    assert!(!reply.contains(&ids[0]), "{reply}");
    let foot = reply.lines().last().unwrap();
    let cursor = foot.strip_prefix("and 5 more: send the same line with --cursor ").expect(foot);
    let rest = room.says(&format!("/kanban list --cursor {cursor}"), None);
    assert!(rest.contains(&ids[0]) && !rest.contains("more:"), "{rest}");
    let few = room.says("/kanban list --limit 2", None);
    assert!(few.ends_with(|c: char| c.is_ascii_hexdigit()) && few.contains("and 23 more:"), "{few}");
}
