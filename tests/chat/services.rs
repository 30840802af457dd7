//! Slack, Discord, a webhook, the directory of a thread, and what is shown of a chat.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::played_socket::PlayedSocket;
use super::{SENDERS, listening, task_in};
use crate::harness::Fleet;
use crate::http::Http;
use crate::listeners::operator;
use crate::notify::played::{OK, Played, PlayedAnswer, ReceivedPost};
use crate::notify::secret;

/// Returns the posts to the service whose path has this end.
fn posted(played: &Played, end: &str) -> Vec<Value> {
    played.asked().into_iter().filter(|asked| asked.path.ends_with(end)).map(|asked| asked.json()).collect()
}

fn replied(fleet: &Fleet, played: &Played, end: &str, key: &str, text: &str) -> Value {
    fleet.eventually("the bot has replied", || {
        posted(played, end).into_iter().find(|said| said[key].as_str().unwrap_or_default().contains(text))
    })
}

#[test]
fn slack_is_heard_over_its_socket_which_it_may_ask_to_be_opened_anew() {
    let fleet = Fleet::offline();
    let socket = PlayedSocket::start(vec![json!({ "type": "hello" })]);
    let opened: &'static str =
        json!({ "ok": true, "url": format!("{}/link", socket.url()) }).to_string().leak();
    let slack = Played::start(move |asked: &ReceivedPost, _| -> PlayedAnswer {
        let token = asked.header("authorization").unwrap_or_default();
        match asked.path.as_str() {
            "/apps.connections.open" if token == "Bearer xapp-1" => ("200 OK", "", opened),
            "/auth.test" if token == "Bearer xoxb-1" => {
                ("200 OK", "", "{\"ok\":true,\"user\":\"fleet\",\"user_id\":\"UB\"}")
            }
            "/chat.postMessage" if token == "Bearer xoxb-1" => {
                ("200 OK", "", "{\"ok\":true,\"ts\":\"100.1\"}")
            }
            _ => ("200 OK", "", "{\"ok\":false,\"error\":\"invalid_auth\"}"),
        }
    });
    let (bot, app) = (secret(&fleet, "bot", "xoxb-1"), secret(&fleet, "app", "xapp-1"));
    let url = slack.url();
    fleet.configure(&format!(
        "[notify.channels.sl]\nkind = 'slack'\nurl = '{url}'\nsecret = {bot}\nretry_first = 0\n"
    ));
    fleet.write_config("chat.d/slack.toml", &format!("channel = 'sl'\nsecret = {app}\n{SENDERS}"));
    fleet.start();
    let say = |event: &str, text: &str, more: Value| {
        let mut message = json!({ "type": "message", "user": "1", "channel": "C1", "ts": "5.1", "text": text, "channel_type": "im" });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let payload = json!({ "event_id": event, "event": message });
        socket.send(
            &fleet,
            &json!({ "type": "events_api", "envelope_id": format!("e-{event}"), "payload": payload }),
        );
    };
    say(
        "Ev1",
        "/kanban create \"a &lt;b&gt;\" --assignee shell\nsupervisor ask 'which?' --choice red",
        json!({}),
    );
    let made = replied(&fleet, &slack, "/chat.postMessage", "text", "Created t_");
    assert!(made["text"].as_str().unwrap().contains("a &lt;b&gt;") && made["channel"] == "C1", "{made}");
    let id = task_in(made["text"].as_str().unwrap());
    fleet.eventually("it is acknowledged", || {
        socket.received().contains(&json!({ "envelope_id": "e-Ev1" })).then_some(())
    });
    replied(&fleet, &slack, "/chat.postMessage", "text", "which?");

    // The service closes connections every few hours.
    socket.send(&fleet, &json!({ "type": "disconnect" }));
    fleet.eventually("it is connected again", || (socket.connections() == 2).then_some(()));
    fleet.eventually("the message is kept", || {
        say(
            &format!("Ev{}", posted(&slack, "/chat.postMessage").len()),
            "1",
            json!({ "thread_ts": "100.1", "parent_user_id": "UB" }),
        );
        let answered = posted(&slack, "/chat.postMessage");
        answered
            .iter()
            .any(|said| said["text"].as_str().unwrap().contains(&format!("Answered {id}")))
            .then_some(())
    });
    let slash = json!({ "command": "/kanban", "text": "list", "user_id": "3", "channel_id": "D9", "trigger_id": "7.8", "channel_name": "directmessage" });
    socket.send(&fleet, &json!({ "type": "slash_commands", "envelope_id": "e-s", "payload": slash }));
    fleet.eventually("the slash command is answered", || {
        posted(&slack, "/chat.postMessage").into_iter().find(|said| said["channel"] == "D9")
    });
}

#[test]
fn discord_is_heard_over_its_gateway_and_a_broken_connection_is_resumed() {
    let fleet = Fleet::offline();
    let gateway = PlayedSocket::start(vec![json!({ "op": 10, "d": { "heartbeat_interval": 60000 } })]);
    let discord = Played::start(|_, _| ("200 OK", "", "{\"id\":\"900\"}"));
    let (token, url) = (secret(&fleet, "bot", "TOKEN"), discord.url());
    fleet.configure(&format!(
        "[notify.channels.dc]\nkind = 'discord'\nurl = '{url}'\nsecret = {token}\nretry_first = 0\n"
    ));
    let text = format!("channel = 'dc'\ngateway = '{}'\n{SENDERS}", gateway.url());
    fleet.write_config("chat.d/discord.toml", &text);
    fleet.start();
    let op = |op: u64| gateway.received().into_iter().find(|message| message["op"] == op);
    let identify = fleet.eventually("it identifies itself", || op(2));
    assert_eq!(identify["d"]["token"], "TOKEN");
    let ready = json!({ "session_id": "S1", "user": { "id": "9", "username": "fleet" } });
    gateway.send(&fleet, &json!({ "op": 0, "s": 1, "t": "READY", "d": ready }));
    let say = |number: u64, id: &str, author: &Value, text: &str| {
        let data = json!({ "type": 0, "id": id, "channel_id": "77", "guild_id": "8", "author": author, "content": text });
        gateway.send(&fleet, &json!({ "op": 0, "s": number, "t": "MESSAGE_CREATE", "d": data }));
    };
    say(2, "500", &json!({ "id": "1", "bot": true }), "/kanban create 'by a bot'");
    say(3, "501", &json!({ "id": "2" }), "<@9> /kanban create 'by bob'");
    let made = replied(&fleet, &discord, "/channels/77/messages", "content", "Created");
    assert!(made["content"].as_str().unwrap().contains("by bob"), "{made}");
    gateway.send(&fleet, &json!({ "op": 1, "d": null }));
    fleet.eventually("it shows that it lives", || op(1));
    gateway.break_off();
    let resumed = fleet.eventually("the connection is resumed", || op(6));
    assert_eq!((&resumed["d"]["session_id"], &resumed["d"]["seq"]), (&json!("S1"), &json!(3)));
    say(3, "501", &json!({ "id": "2" }), "<@9> /kanban create 'by bob'");
    say(4, "502", &json!({ "id": "3" }), "/help");
    replied(&fleet, &discord, "/channels/77/messages", "content", "/help VERB");
    assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 1, "what comes again acts once");
}

#[test]
fn what_was_said_in_discord_while_no_session_could_be_resumed_is_read_once_and_in_order() {
    let fleet = Fleet::offline();
    let gateway = PlayedSocket::start(vec![json!({ "op": 10, "d": { "heartbeat_interval": 60000 } })]);
    let message = |id: u64, author: &str, text: &str| json!({ "type": 0, "id": id.to_string(), "channel_id": "77", "author": { "id": author }, "content": text });
    // The newest first, as the service has it. A first page is full of the talk of others.
    let first: Vec<Value> = (502..602).rev().map(|id| message(id, "50", "talk")).collect();
    let second = vec![
        message(604, "3", "/kanban create 'may not'"),
        message(603, "2", "/kanban create 'the second'"),
        message(602, "2", "<@9> /kanban create 'the first'"),
    ];
    let pages: [&'static str; 2] = [first, second].map(|page| &*json!(page).to_string().leak());
    let discord = Played::start(move |asked: &ReceivedPost, _| -> PlayedAnswer {
        match asked.path.as_str() {
            "/channels/77/messages?after=501&limit=100" => ("200 OK", "", pages[0]),
            "/channels/77/messages?after=601&limit=100" => ("200 OK", "", pages[1]),
            "/channels/78/messages?after=400&limit=100" => ("403 Forbidden", "", "{}"),
            path if path.contains("after") => ("200 OK", "", "[]"),
            _ => ("200 OK", "", "{\"id\":\"900\"}"),
        }
    });
    let (token, url) = (secret(&fleet, "bot", "TOKEN"), discord.url());
    fleet.configure(&format!(
        "[notify.channels.dc]\nkind = 'discord'\nurl = '{url}'\nsecret = {token}\nretry_first = 0\n"
    ));
    let text = format!("channel = 'dc'\ngateway = '{}'\n{SENDERS}", gateway.url());
    fleet.write_config("chat.d/discord.toml", &text);
    fleet.start();
    let begun =
        |times: usize| gateway.received().iter().filter(|message| message["op"] == 2).count() == times;
    let ready = |session: &str| {
        let ready = json!({ "session_id": session, "user": { "id": "9", "username": "fleet" } });
        gateway.send(&fleet, &json!({ "op": 0, "s": 1, "t": "READY", "d": ready }));
    };
    fleet.eventually("it begins a session", || begun(1).then_some(()));
    ready("S1");
    for (channel, id) in [("78", 400), ("77", 501)] {
        let mut said = message(id, "2", "/kanban list");
        (said["channel_id"], said["guild_id"]) = (json!(channel), json!("8"));
        gateway.send(&fleet, &json!({ "op": 0, "s": 2, "t": "MESSAGE_CREATE", "d": said }));
        replied(&fleet, &discord, &format!("/channels/{channel}/messages"), "content", "");
    }
    // The gateway has forgotten the session.
    gateway.send(&fleet, &json!({ "op": 9, "d": false }));
    fleet.eventually("it begins another session", || begun(2).then_some(()));
    ready("S2");

    replied(&fleet, &discord, "/channels/77/messages", "content", "carol may");
    let created = || {
        let replies = posted(&discord, "/channels/77/messages");
        let said = replies.into_iter().filter_map(|said| said["content"].as_str().map(str::to_owned));
        said.filter(|text| text.contains("Created")).collect::<Vec<_>>()
    };
    let replies = created();
    assert!(replies[0].contains("the first") && replies[1].contains("the second"), "{replies:?}");
    assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 2);
    // What the gateway sends as well was heard.
    let mut again = message(603, "2", "/kanban create 'the second'");
    again["guild_id"] = json!("8");
    gateway.send(&fleet, &json!({ "op": 0, "s": 2, "t": "MESSAGE_CREATE", "d": again }));
    let mut last = message(605, "2", "/help");
    last["guild_id"] = json!("8");
    gateway.send(&fleet, &json!({ "op": 0, "s": 3, "t": "MESSAGE_CREATE", "d": last }));
    replied(&fleet, &discord, "/channels/77/messages", "content", "/help VERB");
    assert_eq!(created().len(), 2, "{:?}", created());
}

/// A post as the specification has it.
fn signed(fleet: &Fleet, id: &str, seconds: u64, key: &str, body: &str) -> Http {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    let http = operator(fleet).with("webhook-id", id).with("webhook-timestamp", &seconds.to_string());
    http.with("webhook-signature", &signature)
}

#[test]
fn a_program_posts_what_was_said_signed_and_gets_the_reply() {
    let fleet = Fleet::offline();
    let hook = Played::start(|_, _| OK);
    let (key, url) = (secret(&fleet, "key", "the key"), hook.url());
    fleet.configure(&format!("[notify.channels.wh]\nkind = 'webhook'\nurl = '{url}/out'\nsecret = {key}\n"));
    fleet.write_config("chat.d/matrix.toml", &format!("channel = 'wh'\n{SENDERS}"));
    fleet.start();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let said = |id: &str, sender: &str, text: &str| {
        json!({ "id": id, "sender": sender, "chat_id": "!room", "text": text, "direct": true }).to_string()
    };
    let path = "/api/v1/chat/matrix";
    let post = |http: &Http, body: &str| http.send("POST", path, body.as_bytes());
    let create = said("m1", "2", "/kanban create 'from a program'");
    let made = fleet.eventually("the chat is served", || {
        let answer = post(&signed(&fleet, "m1", now, "the key", &create), &create);
        (answer.status == 200).then(|| answer.json(200))
    });
    let id = task_in(made["reply"].as_str().unwrap());
    let again = post(&signed(&fleet, "m1", now, "the key", &create), &create).json(200);
    assert_eq!(again["reply"], made["reply"], "what is posted again acts once");
    for (http, why) in [
        (signed(&fleet, "m1", now, "another", &create), "webhook-signature is not right"),
        (signed(&fleet, "m1", now - 3600, "the key", &create), "not of the last five minutes"),
        (operator(&fleet), "no webhook-timestamp"),
    ] {
        let refused = post(&http, &create);
        assert_eq!(refused.status, 403, "{why}");
        assert!(refused.body.contains(why), "{why}: {}", refused.body);
    }
    let (_, token) = crate::listeners::idle_worker(&fleet, &[]);
    let refused = crate::listeners::as_worker(&fleet, &token).send("POST", path, create.as_bytes());
    assert_eq!(refused.status, 403, "a worker directs no boards");
    assert_eq!(operator(&fleet).send("POST", "/api/v1/chat/nobody", b"{}").status, 404);

    // What becomes of it goes out over the channel, to the chat that made it.
    fleet.cli(["complete", &id, "--result", "made"]).ok();
    let out = fleet.eventually("the result has come", || posted(&hook, "/out").first().cloned());
    assert_eq!((&out["chat_id"], &out["messages"][0]["task_id"]), (&json!("!room"), &json!(id)));
}

#[test]
fn the_tasks_of_a_thread_work_in_its_directory_beneath_those_of_the_file() {
    let (fleet, telegram) = (Fleet::offline(), super::Telegram::start(0));
    let work = fleet.home().join("work");
    for directory in ["work/site", "other"] {
        std::fs::create_dir_all(fleet.home().join(directory)).unwrap();
        fleet.give(&fleet.home().join(directory));
    }
    fleet.give(&work);
    if nix::unistd::geteuid().is_root() {
        // No worker runs as root: a directory has a user of its own.
        std::os::unix::fs::chown(work.join("site"), Some(4711), Some(4711)).unwrap();
    }
    super::configure(&fleet, &telegram, &format!("directories = ['{}']\n", work.display()));
    fleet.start();
    assert!(telegram.says(&fleet, 3, "/kanban here site").contains("needs `mutate`"));
    for outside in ["../other", "/etc", "site/../.."] {
        let refused = telegram.says(&fleet, 2, &format!("/kanban here {outside}"));
        assert!(refused.starts_with("Not done: the tasks of this chat work beneath"), "{outside}: {refused}");
    }
    assert!(telegram.says(&fleet, 2, "/kanban here gone").contains("is not a directory"));
    let site = work.join("site").display().to_string();
    assert_eq!(
        telegram.says(&fleet, 2, "/kanban here site"),
        format!("The tasks of this thread work in {site}")
    );
    let confirmed = 1_000_000 + i64::try_from(telegram.messages().len()).unwrap();
    fleet.eventually("it is confirmed", || (telegram.offsets().last() == Some(&confirmed)).then_some(()));
    fleet.restart();
    let id = task_in(&telegram.says(&fleet, 2, "/kanban create build --assignee shell\npwd; touch here"));
    assert_eq!(fleet.show(&id)["task"]["workspace"], format!("dir:{site}"));
    fleet.wait_for(&id, "done");
    assert!(work.join("site/here").exists());
    // Another chat has its own.
    let other = task_in(&telegram.says(&fleet, 1, "/kanban create elsewhere --assignee nobody"));
    assert_eq!(fleet.show(&other)["task"]["workspace"], "scratch");
    telegram.says(&fleet, 2, "/kanban here off");
    let scratch = task_in(&telegram.says(&fleet, 2, "/kanban create again --assignee nobody"));
    assert_eq!(fleet.show(&scratch)["task"]["workspace"], "scratch");
}

#[test]
fn what_is_configured_and_whether_it_is_connected_is_shown_and_a_file_is_read_again() {
    let (fleet, telegram) = listening();
    telegram.says(&fleet, 1, "/help");
    let listed = fleet.json(["chat", "list"]);
    let expected = json!({ "name": "team", "channel": "tg", "senders": 4, "connected": true, "account": "@fleet_bot", "messages": 1, "defect": null });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&listed[0][key], value, "{key}: {listed}");
    }
    let checked = fleet.cli(["chat", "check"]).ok().stdout;
    assert_eq!(checked.trim(), "ok  team  @fleet_bot");
    fleet.cli(["chat", "check", "nope"]).refused(3, "there is no chat `nope`; the chats are: team");

    let senders = SENDERS.replace("may = 'approve'", "may = 'read'");
    fleet.write_config("chat.d/team.toml", &format!("channel = 'tg'\n{senders}"));
    fleet.write_config("chat.d/lost.toml", "channel = 'nowhere'\n");
    fleet.write_config("chat.d/broken.toml", "channel = 'tg'\nper_minute = 0\n");
    fleet.signal(nix::sys::signal::Signal::SIGHUP);
    let refused = fleet.eventually("the file is read again", || {
        let reply = telegram.says(&fleet, 1, "/kanban create x");
        reply.starts_with("Not done").then_some(reply)
    });
    assert_eq!(refused, "Not done: `create` needs `mutate`, and ann may `read`");
    let found = fleet.cli(["diagnostics"]).ok().stdout;
    assert!(found.contains("broken.toml") && found.contains("per_minute is 0"), "{found}");
    assert!(
        found.contains("chat lost (chat_not_connected)") && found.contains("no channel `nowhere`"),
        "{found}"
    );
    assert_eq!(fleet.cli(["chat", "check"]).code, 1);
    let status = fleet.cli(["status"]);
    assert!(status.code == 1 && status.stdout.contains("chat lost: it receives no messages"), "{status:?}");
    let doctor = fleet.cli(["doctor"]);
    assert!(
        doctor.code == 1 && doctor.stdout.contains("chat lost: there is no channel `nowhere`"),
        "{doctor:?}"
    );
    assert!(
        doctor.stdout.contains("broken.toml") && doctor.stdout.contains("chat team: test it with"),
        "{doctor:?}"
    );
}
