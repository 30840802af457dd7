//! Each kind of channel, against a server that plays its service, with its limits of rate.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::played::{OK, Played, PlayedAnswer, ReceivedPost, mail_server};
use super::played_desktop::PlayedDesktop;
use super::{done, outbox, secret};
use crate::harness::{Fleet, Output, skip};
use crate::http::free_port;

/// A title that tries everything.
const TITLE: &str = "@everyone <!here> **b** <script>x</script> [a](http://e) \u{202e}gnp";

/// The part of an answer with which each service says that it has had too much.
fn play(asked: &ReceivedPost, _: usize, seen: &mut Vec<String>) -> PlayedAnswer {
    let service = asked.path.split('/').nth(1).unwrap_or_default().to_owned();
    let is_first = !seen.contains(&service);
    seen.push(service.clone());
    match (service.as_str(), is_first) {
        ("slack", true) => {
            ("429 Too Many Requests", "retry-after: 1\r\n", "{\"ok\":false,\"error\":\"ratelimited\"}")
        }
        ("discord", true) => {
            ("429 Too Many Requests", "", "{\"message\":\"slow\",\"retry_after\":0.5,\"global\":false}")
        }
        ("telegram", true) => (
            "429 Too Many Requests",
            "",
            "{\"ok\":false,\"error_code\":429,\"description\":\"Too Many Requests: retry after 1\",\"parameters\":{\"retry_after\":1}}",
        ),
        ("ntfy", true) => ("429 Too Many Requests", "", "{\"code\":42901,\"error\":\"limit reached\"}"),
        ("signal", true) => {
            ("200 OK", "", "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-5,\"message\":\"rate limit\"}}")
        }
        ("signal", false) => ("200 OK", "", "{\"jsonrpc\":\"2.0\",\"result\":{\"timestamp\":1}}"),
        _ => OK,
    }
}

fn channels(fleet: &Fleet, url: &str) -> String {
    let token = secret(fleet, "token", "123:TOKEN-x\n");
    let channel = |name: &str, more: &str| {
        format!("[notify.channels.{name}]\nkind = '{name}'\nurl = '{url}/{name}'\nretry_first = 0\n{more}\n")
    };
    [
        channel("slack", &format!("secret = {token}\nto = 'C1'")),
        channel("discord", &format!("secret = {token}\nto = '77'")),
        channel("telegram", &format!("secret = {token}\nto = '5'")),
        channel("ntfy", &format!("secret = {token}\nto = 'ops'")),
        channel("signal", "from = '+491'\nto = '+492'"),
    ]
    .concat()
}

#[test]
fn each_chat_service_gets_a_hostile_title_as_plain_text_after_it_has_had_too_much() {
    let seen = std::sync::Mutex::new(Vec::new());
    let played = Played::start(move |asked, before| play(asked, before, &mut seen.lock().unwrap()));
    let fleet = Fleet::offline();
    fleet.configure(&channels(&fleet, &played.url()));
    let names = ["slack", "discord", "telegram", "ntfy", "signal"];
    let id = fleet.json(["create", TITLE])["id"].as_str().unwrap().to_owned();
    for name in names {
        fleet.cli(["notify-subscribe", &id, "--platform", name]).ok();
    }
    let result = format!("\u{1b}[31m@here `rm` <b>\u{7} {}\nsecond line", "x".repeat(60_000));
    fleet.cli(["complete", &id, "--result", &result]).ok();
    fleet.start();
    fleet.eventually("all have come", || outbox(&fleet).is_empty().then_some(()));

    let last = |name: &str| {
        let all: Vec<ReceivedPost> =
            played.asked().into_iter().filter(|asked| asked.path.starts_with(&format!("/{name}"))).collect();
        assert_eq!(all.len(), 2, "{name}: refused once, then taken");
        assert_eq!(all[0].text, all[1].text, "{name}");
        let pauses = [("slack", 1000), ("discord", 500), ("telegram", 1000)];
        if let Some((_, pause)) = pauses.iter().find(|(one, _)| *one == name) {
            let waited = all[1].at.duration_since(all[0].at).unwrap();
            assert!(waited >= Duration::from_millis(*pause), "{name} asked for a pause: {waited:?}");
        }
        (all[1].clone(), all[1].json())
    };
    let (slack, body) = last("slack");
    assert_eq!(
        (slack.path.as_str(), slack.header("authorization")),
        ("/slack/chat.postMessage", Some("Bearer 123:TOKEN-x"))
    );
    let text = body["text"].as_str().unwrap();
    assert!(
        text.contains("&lt;!here&gt;") && !text.contains('<') && body["mrkdwn"] == json!(false),
        "{text}"
    );
    let (discord, body) = last("discord");
    assert_eq!(discord.path, "/discord/channels/77/messages");
    assert_eq!(body["allowed_mentions"], json!({"parse": []}));
    assert!(body["content"].as_str().unwrap().contains("\\@everyone \\<!here\\> \\*\\*b\\*\\*"), "{body}");
    let (telegram, body) = last("telegram");
    assert_eq!(
        (telegram.path.as_str(), &body["chat_id"]),
        ("/telegram/bot123:TOKEN-x/sendMessage", &json!("5"))
    );
    assert!(body.get("parse_mode").is_none() && body["text"].as_str().unwrap().contains("@everyone <!here>"));
    let (_, body) = last("ntfy");
    assert_eq!((&body["topic"], &body["priority"]), (&json!("ops"), &json!(3)));
    let (signal, body) = last("signal");
    assert_eq!(signal.path, "/signal/api/v1/rpc");
    assert_eq!((&body["method"], &body["params"]["recipient"]), (&json!("send"), &json!(["+492"])));
    for asked in played.asked() {
        let text = asked.text.replace("\\n", "");
        assert!(asked.text.len() < 8000 && !text.contains("second line"), "{} bytes", asked.text.len());
        assert!(
            !text.contains("\\u001b") && !text.contains("\\u0007") && !text.contains('\u{202e}'),
            "{text}"
        );
    }
    assert!(!fleet.log().contains("TOKEN-x"), "no log has a secret");
}

#[test]
fn a_webhook_is_signed_as_the_standard_says_and_waits_as_long_as_it_is_asked_to() {
    let played = Played::start(|_, before| match before {
        0 => ("503 Service Unavailable", "retry-after: 1\r\n", ""),
        _ => OK,
    });
    let fleet = Fleet::offline();
    let key = secret(&fleet, "key", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
    fleet.configure(&format!(
        "[notify]\ndefault = 'ops'\n[notify.channels.ops]\nkind = 'webhook'\nurl = '{}/x?y=1'\nsecret = {key}\nretry_first = 0\n",
        played.url()
    ));
    done(&fleet, "t", "ok", &[]);
    fleet.start();
    fleet.eventually("it has come", || outbox(&fleet).is_empty().then_some(()));
    let asked = played.asked();
    let times: Vec<i64> =
        asked.iter().map(|asked| asked.header("webhook-timestamp").unwrap().parse().unwrap()).collect();
    assert!(times.len() == 2 && times[1] > times[0], "{times:?}");
    let asked = &asked[1];
    assert_eq!(asked.path, "/x?y=1");
    let mut mac =
        Hmac::<Sha256>::new_from_slice(&STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap())
            .unwrap();
    let id = asked.header("webhook-id").unwrap();
    mac.update(format!("{id}.{}.{}", times[1], asked.text).as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(asked.header("webhook-signature"), Some(expected.as_str()));
    assert_eq!(asked.json()["id"], json!(id));
}

#[test]
fn mail_is_sent_again_after_a_server_has_put_it_off_and_no_line_of_a_title_is_a_header() {
    let (port, taken) = mail_server();
    let fleet = Fleet::offline();
    fleet.configure(&format!(
        "[notify]\ndefault = 'mail'\n[notify.channels.mail]\nkind = 'email'\nurl = 'smtp://127.0.0.1:{port}'\n\
         from = 'Fleet <fleet@example.org>'\nto = 'ann@example.org'\nretry_first = 0\n"
    ));
    done(&fleet, "größer @everyone", "a\n.\nBcc: eve@example.org", &[]);
    fleet.start();
    fleet.eventually("it has come", || outbox(&fleet).is_empty().then_some(()));
    let taken = taken.lock().unwrap().clone();
    assert_eq!(taken.len(), 1);
    let (head, body) = taken[0].split_once("\r\n\r\n").unwrap();
    for expected in ["To: ann@example.org", "Subject: ", "Message-ID: <", "From: "] {
        assert!(head.contains(expected), "{expected} is not in {head}");
    }
    assert!(!taken[0].contains("eve@example.org"), "the first line of the result alone: {}", taken[0]);
    assert!(body.contains("@everyone"), "{body}");
}

/// Returns the result and the steps of a channel's test.
fn tested(fleet: &Fleet, name: &str) -> (bool, Vec<Value>) {
    let said = fleet.cli(["notify", "test", name, "--json"]);
    let said: Value = serde_json::from_str(&said.stdout).unwrap();
    (said["ok"].as_bool().unwrap(), said["steps"].as_array().unwrap().clone())
}

#[test]
fn a_program_gets_the_message_in_its_sandbox_for_a_time_and_says_by_its_exit_whether_it_has_taken_it() {
    let fleet = Fleet::offline();
    let hidden = fleet.root().join("supervisor.toml");
    let channel = |name: &str, script: &str| {
        format!(
            "[notify.channels.{name}]\nkind = 'command'\npolicy = 'default'\ntimeout = 20\nrun = ['/bin/sh', '-c', '''{script}''']\n"
        )
    };
    fleet.configure(
        &[
            channel("reads", "grep -q '\"channel\":\"reads\"'"),
            channel("fails", "cat >/dev/null; echo no such chat; exit 3"),
            channel("looks", &format!("cat '{}' && exit 0; echo closed; exit 4", hidden.display())),
            channel("floods", "yes | head -c 9000000; echo; exit 5"),
            channel("hangs", "sleep 600").replace("timeout = 20", "timeout = 1"),
        ]
        .concat(),
    );
    let (ok, steps) = tested(&fleet, "reads");
    assert!(ok, "{steps:?}");
    for (name, expected) in [
        ("fails", "the program ended with code 3: no such chat"),
        ("looks", "the program ended with code 4"),
        ("floods", "the program ended with code 5"),
        ("hangs", "the program took longer than 1 s and was ended"),
    ] {
        let (ok, steps) = tested(&fleet, name);
        let last = steps.last().unwrap();
        assert!(!ok && last["name"] == "run" && last["ok"] == json!(false), "{steps:?}");
        assert!(last["detail"].as_str().unwrap().contains(expected), "{name}: {last}");
    }
    assert!(fleet.processes_with("sleep").is_empty(), "nothing of it is left");
}

#[test]
fn the_desktop_gets_a_message_through_the_program_of_its_session() {
    let fleet = Fleet::offline();
    let (program, said) = (fleet.home().join("send"), fleet.home().join("said"));
    std::fs::write(&program, format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\n", said.display())).unwrap();
    super::executable(&fleet, &program);
    fleet.configure(&format!("[notify.channels.desk]\nkind = 'desktop'\nrun = ['{}']\n", program.display()));
    let test = |bus: &str| {
        fleet.command(["notify", "test", "desk"]).env("DBUS_SESSION_BUS_ADDRESS", bus).output().unwrap()
    };
    assert!(test("unix:path=/nowhere").status.success());
    let said = std::fs::read_to_string(said).unwrap();
    assert!(
        said.starts_with("--app-name=supervisor\n--urgency=normal\n--\ntest message of supervisor\n"),
        "{said}"
    );
}

#[test]
fn the_desktop_shows_a_message_that_comes_over_the_bus_of_its_session() {
    let fleet = Fleet::offline();
    let Some(desktop) = PlayedDesktop::start(&fleet.home()) else {
        skip("notifications of a desktop: needs dbus-daemon");
        return;
    };
    // Another client of the bus stands in for `notify-send` where the host has none.
    let run = if Path::new("/usr/bin/notify-send").exists() {
        String::new()
    } else if Path::new("/usr/bin/gdbus").exists() {
        let program = fleet.home().join("send");
        std::fs::write(&program, "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n\
            exec gdbus call --session --dest org.freedesktop.Notifications --object-path /org/freedesktop/Notifications \
            --method org.freedesktop.Notifications.Notify supervisor 0 '' \"$2\" \"$3\" '[]' '{}' 5000\n").unwrap();
        super::executable(&fleet, &program);
        format!("run = ['{}']\n", program.display())
    } else {
        skip("notifications of a desktop: needs notify-send or gdbus");
        return;
    };
    fleet.configure(&format!("[notify.channels.desk]\nkind = 'desktop'\n{run}"));
    let test = |bus: &str| {
        Output::of(fleet.command(["notify", "test", "desk"]).env("DBUS_SESSION_BUS_ADDRESS", bus))
    };

    test(&desktop.address).ok();

    let shown = desktop.shown();
    assert!(shown.len() == 1 && shown[0].contains("test message of supervisor"), "{shown:?}");
    let nowhere = test("unix:path=/nowhere");
    assert!(nowhere.code == 1 && nowhere.stdout.contains("failed  show"), "{nowhere:?}");
}

#[test]
fn a_test_says_step_by_step_what_failed_and_shows_no_secret() {
    let played = Played::start(|_, _| ("302 Found", "location: http://169.254.169.254/\r\n", ""));
    let fleet = Fleet::offline();
    let token = secret(&fleet, "token", "123:TOKEN-x");
    let port = free_port();
    fleet.configure(&format!(
        "[notify.channels.down]\nkind = 'telegram'\nurl = 'http://127.0.0.1:{port}'\nsecret = {token}\nto = '1'\n\
         [notify.channels.moved]\nkind = 'telegram'\nurl = '{}'\nsecret = {token}\nto = '1'\n\
         [notify.channels.bare]\nkind = 'telegram'\nsecret = 'nothing-there'\nto = '1'\n",
        played.url()
    ));
    for (name, step, expected) in [
        ("down", "connect", "Connection refused"),
        ("moved", "answer", "redirects are not followed"),
        ("bare", "secret", "No such file"),
    ] {
        let (ok, steps) = tested(&fleet, name);
        let last = steps.last().unwrap();
        assert!(!ok && last["name"] == step, "{name}: {steps:?}");
        assert!(last["detail"].as_str().unwrap().contains(expected), "{name}: {last}");
        assert!(!format!("{steps:?}").contains("TOKEN-x"));
    }
    assert_eq!(played.asked().len(), 1, "the other address was not asked");
    let shown = fleet.cli(["notify", "test", "down"]);
    assert_eq!(shown.code, 1);
    assert!(shown.stdout.contains("failed  connect"), "{}", shown.stdout);
    fleet.cli(["notify", "test", "nope"]).refused(3, "there is no channel `nope`");
    let doctor = fleet.cli(["doctor"]).stdout;
    assert!(doctor.contains("channel bare") && doctor.contains("nothing-there"), "{doctor}");
}
