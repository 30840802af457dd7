//! Outward: cards, messages, tasks and streams, for senders that are known and within their bounds.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::wire::{OTHER, Offering, PARTNER, state};
use crate::harness::Fleet;

#[test]
fn cards_name_the_profiles_and_how_to_authenticate_and_nothing_of_the_host() {
    let offering = Offering::start("");

    let card = offering.exchange("GET", "/.well-known/agent-card.json", &[], "").json();
    let own = offering.exchange("GET", "/writer/.well-known/agent-card.json", &[], "").json();

    let base = format!("http://127.0.0.1:{}", offering.port);
    let interface =
        json!({"url": format!("{base}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    assert_eq!(card["supportedInterfaces"], json!([interface]), "{card}");
    let skills: Vec<&str> =
        card["skills"].as_array().unwrap().iter().map(|skill| skill["id"].as_str().unwrap()).collect();
    assert_eq!(skills, ["writer", "editor"]);
    assert_eq!(card["capabilities"]["streaming"], json!(true));
    assert!(
        card["securitySchemes"]["bearer"].is_object() && card["securityRequirements"].is_array(),
        "{card}"
    );
    assert_eq!(own["supportedInterfaces"][0]["url"], format!("{base}/writer"), "{own}");
    assert_eq!(own["name"], "writer");
    assert!(!card.to_string().contains("acme") && !card.to_string().contains("partner"), "no sender: {card}");
    assert_eq!(offering.exchange("GET", "/ghost/.well-known/agent-card.json", &[], "").status, 404);
}

#[test]
fn a_page_in_a_browser_and_another_name_get_nothing() {
    let offering = Offering::start("url = \"https://agents.example.org\"");
    let card = |headers: &[(&str, &str)]| {
        offering.exchange("GET", "/.well-known/agent-card.json", headers, "").status
    };

    for served in ["agents.example.org", "localhost:9000", "127.0.0.1"] {
        assert_eq!(card(&[("host", served)]), 200, "{served}");
    }
    assert_eq!(card(&[("sec-fetch-site", "none")]), 200, "a person looks at the card");
    assert_eq!(card(&[("host", "rebound.example.org")]), 421);
    assert_eq!(card(&[("host", "127.0.0.1"), ("host", "127.0.0.1")]), 400);
    let bearer = format!("Bearer {PARTNER}");
    for header in [
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-site", "cross-site"),
        ("origin", "https://agents.example.org"),
    ] {
        assert_eq!(card(&[header]), 403, "{header:?}");
        let said = offering.exchange("POST", "/", &[("authorization", &bearer), header], "{}");
        assert_eq!(said.status, 403, "{header:?}: {said:?}");
    }
}

#[test]
fn a_message_is_a_task_that_is_done_by_its_profile_once() {
    let offering = Offering::start("");
    let message = json!({"messageId": "m-1", "contextId": "c-1", "role": "ROLE_USER",
        "parts": [{"text": "# write a page\nabout trains"}, {"data": {"lines": 3}}]});

    let answer = offering.call(PARTNER, "SendMessage", &json!({"message": message}));

    let task = &answer["result"]["task"];
    assert_eq!(state(task), "TASK_STATE_COMPLETED", "it waits for the end: {answer}");
    assert_eq!(task["contextId"], "c-1");
    let parts = &task["artifacts"][0]["parts"];
    assert_eq!(
        (&parts[0]["text"], &parts[1]["data"]["pages"]),
        (&json!("the work is done"), &json!(3)),
        "{task}"
    );
    let id = task["id"].as_str().unwrap();
    let shown = offering.fleet.show(id);
    let about = ["title", "assignee", "tenant", "created_by"]
        .map(|key| shown["task"][key].as_str().unwrap().to_owned());
    assert_eq!(about, ["write a page", "writer", "acme", "a2a-partner"]);
    assert!(shown["task"]["body"].as_str().unwrap().contains("\"lines\": 3"), "{shown}");
    let again = offering.call(PARTNER, "message/send", &json!({"message": message}));
    assert_eq!(again["result"]["task"]["id"], json!(id), "the same message is the same task: {again}");
    let listed = offering.call(PARTNER, "ListTasks", &json!({"contextId": "c-1"}));
    assert_eq!(listed["result"]["tasks"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["result"]["nextPageToken"], "");
    assert_eq!(offering.task(id)["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn a_question_needs_input_and_a_message_to_its_task_answers_it() {
    let offering = Offering::start("");
    let task = offering.send("m-2", "ask first");
    let id = task["id"].as_str().unwrap();

    let asks = offering.wait_for(id, "TASK_STATE_INPUT_REQUIRED");

    let words = asks["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(words, "which database?\n1. SQLite\n2. PostgreSQL");
    let message = json!({"messageId": "m-3", "taskId": id, "role": "ROLE_USER", "parts": [{"text": "2"}]});
    let answer = offering.call(PARTNER, "SendMessage", &json!({"message": message}));
    let task = &answer["result"]["task"];
    assert_eq!(state(task), "TASK_STATE_COMPLETED", "{answer}");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "with PostgreSQL");
    let late = offering.call(PARTNER, "SendMessage", &json!({"message": message}));
    assert_eq!(late["error"]["code"], json!(-32004), "{late}");
}

#[test]
fn a_stream_has_the_task_its_states_and_its_result_and_ends_there() {
    let offering = Offering::start("");
    let message = json!({"messageId": "m-4", "role": "ROLE_USER", "parts": [{"text": "write"}]});

    let events = offering.stream("SendStreamingMessage", &json!({"message": message}), |_| {});

    let first = state(&events[0]["task"]);
    assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&first), "{events:#?}");
    let last = events.last().unwrap();
    assert_eq!(state(&last["statusUpdate"]), "TASK_STATE_COMPLETED", "{events:#?}");
    let artifact = events.iter().find(|event| event["artifactUpdate"].is_object()).unwrap();
    assert_eq!(artifact["artifactUpdate"]["artifact"]["parts"][0]["text"], "the work is done");
    let id = events[0]["task"]["id"].as_str().unwrap();
    let over = offering.call(PARTNER, "SubscribeToTask", &json!({"id": id}));
    assert_eq!(over["error"]["code"], json!(-32004), "{over}");
}

#[test]
fn a_task_is_cancelled_by_its_sender_and_its_worker_ends() {
    let offering = Offering::start("");
    let task = offering.send("m-5", "wait there");
    let id = task["id"].as_str().unwrap();
    offering.wait_for(id, "TASK_STATE_WORKING");

    let events = offering.stream("SubscribeToTask", &json!({"id": id}), |event| {
        if event["task"].is_object() {
            let cancelled = offering.call(PARTNER, "CancelTask", &json!({"id": id}));
            assert_eq!(state(&cancelled["result"]), "TASK_STATE_CANCELED", "{cancelled}");
        }
    });

    assert_eq!(state(&events.last().unwrap()["statusUpdate"]), "TASK_STATE_CANCELED", "{events:#?}");
    let again = offering.call(PARTNER, "tasks/cancel", &json!({"id": id}));
    assert_eq!(again["error"]["code"], json!(-32002), "{again}");
    let failed = offering.send("m-6", "give up");
    let failed = offering.wait_for(failed["id"].as_str().unwrap(), "TASK_STATE_FAILED");
    assert_eq!(
        failed["status"]["message"]["parts"][0]["text"], "its workers have failed, and it was given up",
        "no place of the host: {failed}"
    );
}

#[test]
fn who_is_not_known_has_nothing_and_a_sender_has_its_own_tasks_alone() {
    let offering = Offering::start("");
    let task = offering.send("m-7", "wait there");
    offering.wait_for(task["id"].as_str().unwrap(), "TASK_STATE_WORKING");
    let id = json!({"id": task["id"]});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": id}).to_string();

    for headers in [&[][..], &[("authorization", "Bearer wrong")], &[("authorization", PARTNER)]] {
        let said = offering.exchange("POST", "/", headers, &body);
        assert_eq!(said.status, 401, "{said:?}");
        assert!(said.head.contains("www-authenticate: bearer"), "{said:?}");
    }
    let bearer = format!("Bearer {PARTNER}");
    let said =
        offering.exchange("POST", "/", &[("authorization", &bearer), ("origin", "https://a.example")], &body);
    assert_eq!(said.status, 403, "a page of a browser: {said:?}");
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        let foreign = offering.call(OTHER, method, &id);
        assert_eq!(foreign["error"]["code"], json!(-32001), "{method}: {foreign}");
    }
    let listed = offering.call(OTHER, "ListTasks", &json!({}));
    assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");
    let own = offering.fleet.create("of a person", "true", &["--triage", "--tenant", "acme"]);
    let hidden = offering.call(PARTNER, "GetTask", &json!({"id": own}));
    assert_eq!(hidden["error"]["code"], json!(-32001), "{hidden}");
    assert_eq!(offering.fleet.status_of(task["id"].as_str().unwrap()), "running");
}

#[test]
fn what_is_wrong_or_too_much_is_refused_with_the_code_of_the_protocol() {
    let offering = Offering::start("per_minute = 20");
    let bearer = format!("Bearer {PARTNER}");
    let known = [("authorization", bearer.as_str())];
    let code = |params: &Value, method: &str| offering.call(PARTNER, method, params)["error"]["code"].clone();
    let message = |more: Value| {
        let mut message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "message": message })
    };

    assert_eq!(code(&json!({}), "Dance"), json!(-32601));
    assert_eq!(code(&json!({}), "SendMessage"), json!(-32602));
    assert_eq!(code(&message(json!({"parts": [{"raw": "AA=="}]})), "SendMessage"), json!(-32005));
    assert_eq!(
        code(&message(json!({"metadata": {"skill": "editor"}})), "SendMessage"),
        json!(-32602),
        "not offered to it"
    );
    assert_eq!(code(&message(json!({"messageId": ""})), "SendMessage"), json!(-32602));
    assert_eq!(code(&json!({"id": "t_00000000"}), "GetTask"), json!(-32001));
    assert_eq!(code(&json!({"id": "9f0c5a1e-of another agent"}), "GetTask"), json!(-32001));
    assert_eq!(code(&json!({}), "CreateTaskPushNotificationConfig"), json!(-32003));
    let said = offering.exchange("POST", "/", &known, "{");
    assert_eq!(said.json()["error"]["code"], json!(-32700), "{said:?}");
    let said = offering.exchange("POST", "/", &known, "[]");
    assert_eq!(said.json()["error"]["code"], json!(-32600), "{said:?}");
    let older = [known[0], ("a2a-version", "0.3")];
    let said = offering.exchange(
        "POST",
        "/",
        &older,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "x"}).to_string(),
    );
    assert_eq!(said.json()["error"]["code"], json!(-32009), "{said:?}");
    assert_eq!(offering.exchange("POST", "/", &known, &" ".repeat(3 << 20)).status, 413);
    let throttled =
        (0..20).map(|_| offering.exchange("POST", "/", &known, "{")).find(|said| said.status == 429);
    assert!(throttled.as_ref().is_some_and(|said| said.head.contains("retry-after: ")), "{throttled:?}");
    let other = offering.call(OTHER, "ListTasks", &json!({}));
    assert!(other["result"].is_object(), "another one is not slowed: {other}");
}

#[test]
fn what_waits_for_a_person_of_this_root_needs_an_authorization_and_what_it_refuses_is_rejected() {
    let offering = Offering::start("");
    let task = offering.send("m-8", "need a key");
    let id = task["id"].as_str().unwrap();

    let waits = offering.wait_for(id, "TASK_STATE_AUTH_REQUIRED");

    assert_eq!(waits["status"]["message"]["parts"][0]["text"], "there is no key", "{waits}");
    let message = json!({"messageId": "m-9", "taskId": id, "role": "ROLE_USER", "parts": [{"text": "here"}]});
    let said = offering.call(PARTNER, "SendMessage", &json!({"message": message}));
    assert_eq!(state(&said["result"]["task"]), "TASK_STATE_AUTH_REQUIRED", "words release nothing: {said}");

    offering.fleet.write_config("tenants.d/acme.toml", "[quotas]\ntenant_entries = 1\n");
    offering.fleet.cli(["service", "reload"]).ok();
    let message = json!({"messageId": "m-10", "role": "ROLE_USER", "parts": [{"text": "one more"}]});
    let rejected = offering.fleet.eventually("the quota holds", || {
        let said = offering.call(PARTNER, "SendMessage", &json!({"message": message}));
        (state(&said["result"]["task"]) == "TASK_STATE_REJECTED").then(|| said["result"]["task"].clone())
    });
    let why = rejected["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(why.contains("tenant_entries"), "{rejected}");
    let unknown = offering.call(PARTNER, "GetTask", &json!({"id": rejected["id"]}));
    assert_eq!(unknown["error"]["code"], json!(-32001), "it is on no board: {unknown}");
}

#[test]
fn strangers_who_say_nothing_keep_no_sender_out() {
    let offering = Offering::start("");
    let task = offering.send("m-11", "wait there");
    let began = std::time::Instant::now();

    let silent: Vec<_> = (0..80).map(|_| offering.silent()).collect();
    let answer = offering.call(PARTNER, "GetTask", &json!({"id": task["id"]}));

    assert!(answer["result"].is_object(), "{answer}");
    // The head of a request has ten seconds.
    assert!(began.elapsed().as_secs() < 10, "it has waited for the strangers: {:?}", began.elapsed());
    drop(silent);
}

#[test]
fn an_address_that_is_taken_and_a_token_of_two_are_errors_of_status_and_doctor() {
    let offering = Offering::start("");
    let fleet = Fleet::offline();
    for name in ["one", "two"] {
        fleet.write_config(&format!("secrets/{name}"), "the-same-token\n");
        let file = fleet.root().join(format!("secrets/{name}"));
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    fleet.configure(&format!(
        "[a2a]\nlisten = \"127.0.0.1:{}\"\nprofiles = [\"shell\"]\n[a2a.senders.one]\nsecret = \"one\"\ntenant = \"acme\"\n\
         [a2a.senders.two]\nsecret = \"two\"\ntenant = \"globex\"\n",
        offering.port
    ));
    let before = fleet.cli(["doctor"]);
    assert!(before.code == 1 && before.stdout.contains("another program listens on 127.0.0.1"), "{before:?}");
    assert!(before.stdout.contains("a2a sender two: it has the token of the sender one"), "{before:?}");

    fleet.start();

    let status = fleet.eventually("the bridge has tried", || {
        let status = fleet.cli(["status"]);
        status.stdout.contains("the A2A bridge: no other agent reaches it").then_some(status)
    });
    assert!(status.code == 1 && status.stdout.contains("cannot listen on"), "{status:?}");
    assert!(fleet.cli(["doctor"]).stdout.contains("a2a: cannot listen on 127.0.0.1"));
    assert!(fleet.cli(["diagnostics"]).stdout.contains("a2a_not_served"));
    let served = offering.fleet.cli(["doctor"]).stdout;
    let at = format!("a2a: served at 127.0.0.1:{}", offering.port);
    assert!(served.contains(&at), "{served}");

    // The other program ends: the bridge has the address without a restart.
    offering.fleet.kill_daemon();
    fleet.eventually("the address is listened on", || {
        fleet.cli(["doctor"]).stdout.contains(&at).then_some(())
    });
    assert!(!fleet.cli(["status"]).stdout.contains("the A2A bridge: no other agent reaches it"));
}
