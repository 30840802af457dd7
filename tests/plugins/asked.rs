//! The verbs and tools of plugins: found, called, refused, repeated, and kept to the tenant of who calls.

use serde_json::{Value, json};

use super::{installed, kept};
use crate::harness::{Fleet, User};
use crate::http::Http;
use crate::listeners::{as_worker, idle_worker, operator};

const VERB: &str = "[[verbs]]\nname = 'greet'\nabout = 'Greets'\n";

/// A plugin that keeps each call and answers with a text.
const ECHOES: &str = r#"cat >> "$PLUGIN_STATE/calls"; echo >> "$PLUGIN_STATE/calls"
echo '{"text":"hello","data":{"n":1}}'"#;

fn calls(fleet: &Fleet, name: &str) -> Vec<Value> {
    let kept = kept(fleet, name, "calls");
    kept.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_first_word_that_is_none_of_ours_is_a_plugin() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        installed(&fleet, "greeter", VERB, ECHOES);

        let said = fleet.cli(["greeter", "greet", "--loud", "two words", "--json"]).ok();

        assert_eq!(said.stdout, "hello\n");
        let call = calls(&fleet, "greeter").remove(0);
        assert_eq!((&call["call"], &call["verb"]), (&json!("verb"), &json!("greet")));
        assert_eq!(call["arguments"], json!(["--loud", "two words", "--json"]), "its words are its own");
        assert!(call["caller"].as_str().unwrap().starts_with("person:"), "{call}");
        assert_eq!(fleet.json(["--json", "greeter", "greet"])["data"], json!({"n": 1}));
        let help = fleet.cli(["greeter"]).ok().stdout;
        assert!(help.contains("supervisor greeter greet") && help.contains("Greets"), "{help}");
        assert_eq!(fleet.cli(["greeter", "--help"]).ok().stdout, help);
        fleet.cli(["greeter", "shout"]).refused(3, "the plugin greeter has no verb `shout`");
        fleet.cli(["greeting", "greet"]).refused(2, "there is no command `greeting`");
    }
}

#[test]
fn a_verb_that_fails_says_why_and_needs_a_daemon() {
    let fleet = Fleet::boot();
    installed(&fleet, "greeter", VERB, "echo '{\"error\":\"not today\"}'");
    fleet.cli(["greeter", "greet"]).refused(1, "the plugin greeter: not today");
    installed(&fleet, "greeter", &format!("timeout = '1s'\n{VERB}"), "sleep 4242");
    fleet.cli(["greeter", "greet"]).refused(1, "took longer than 1 s");
    assert!(fleet.processes_with("4242").is_empty());
    installed(&fleet, "greeter", VERB, "printf '{\"text\":\"\\\\u001b[31mred\"}'");
    assert!(!fleet.cli(["greeter", "greet"]).ok().stdout.contains('\u{1b}'), "no terminal gets a command");
    fleet.stop(&[]);
    fleet.cli(["greeter", "greet"]).refused(69, "daemon");
}

#[test]
fn a_repeated_request_gets_the_first_answer_and_is_carried_out_once() {
    let fleet = Fleet::boot();
    let script = format!(
        "{}\n{}",
        ECHOES.lines().next().unwrap(),
        r#"echo '{"text":"made","requests":[{"verb":"create","body":{"title":"by a verb","triage":true}}]}'"#
    );
    installed(&fleet, "maker", &format!("requests = ['create']\n{VERB}"), &script);
    let api = operator(&fleet).with("x-request-id", "one");
    let body = json!({"plugin": "maker", "verb": "greet"});
    for _ in 0..2 {
        let answer = api.post("/api/v1/verbs/call-plugin", &body).json(200);
        assert_eq!(answer["text"], "made");
    }
    assert_eq!(calls(&fleet, "maker").len(), 1);
    let made = fleet.json(["list"]);
    assert_eq!(made.as_array().unwrap().len(), 1, "{made}");
    assert_eq!(fleet.show(made[0]["id"].as_str().unwrap())["task"]["created_by"], "plugin:maker");
}

#[test]
fn a_plugin_gives_no_policy_but_its_own_that_does_not_confine() {
    let fleet = Fleet::offline();
    let lane = "argv = [\"/bin/sh\", \"-c\", \"true\"]\npolicy = \"unconfined\"\n";
    fleet.lane("open", lane);
    fleet.write_config("profiles.d/opener.md", "---\nlane: shell\npolicy: unconfined\n---\nOpens.\n");
    let script = format!(
        "{}\n{}",
        ECHOES.lines().next().unwrap(),
        r#"body=$(grep . "$PLUGIN_STATE/calls" | tail -n 1 | sed -n 's/.*"arguments":\["\(.*\)"\].*/\1/p' | sed 's/\\"/"/g')
echo "{\"text\":\"made\",\"requests\":[{\"verb\":\"create\",\"body\":$body}]}""#
    );
    fleet.start();
    for (name, more) in [("strict", ""), ("open", "policy = 'unconfined'\n")] {
        installed(&fleet, name, &format!("requests = ['create']\n{more}{VERB}"), &script);
    }
    let api = operator(&fleet);
    let asked = |plugin: &str, body: &Value| {
        let call = json!({"plugin": plugin, "verb": "greet", "arguments": [body.to_string()]});
        api.post("/api/v1/verbs/call-plugin", &call)
    };
    let open = [
        json!({"title": "x", "policy": "unconfined"}),
        json!({"title": "x", "assignee": "open"}),
        json!({"title": "x", "assignee": "opener"}),
    ];
    for body in &open {
        let refused = asked("strict", body);
        assert_eq!(refused.status, 403, "{body}: {refused:?}");
        asked("open", body).json(200);
    }
    assert_eq!(asked("strict", &json!({"title": "x", "policy": "agent"})).status, 403);
    asked("strict", &json!({"title": "x", "policy": "strict", "triage": true})).json(200);
    assert_eq!(fleet.json(["list", "--archived"]).as_array().unwrap().len(), 4);
    if User::current() == User::Root {
        // Root alone may see them, and the answer is the same for both.
        for place in ["dir:/root/.ssh", "dir:/root/absent/too", "worktree:/root/absent"] {
            let refused = asked("strict", &json!({"title": "x", "workspace": place}));
            assert_eq!(refused.status, 403, "{place}: {refused:?}");
            assert!(refused.body.contains("no known user of this host"), "{refused:?}");
        }
    }
}

#[test]
fn a_worker_without_a_tenant_reaches_with_a_tool_no_task_of_one() {
    let fleet = Fleet::boot();
    let ids = [&["--tenant", "acme"][..], &[]].map(|more| {
        let made = fleet.json([&["create", "x", "--triage"], more].concat());
        made["id"].as_str().unwrap().to_owned()
    });
    let script = r#"id=$(sed -n 's/.*"what":"\([^"]*\)".*/\1/p')
echo "{\"requests\":[{\"verb\":\"comment\",\"body\":{\"task_id\":\"$id\",\"body\":\"reached\"}}]}""#;
    installed(&fleet, "finder", TOOLS, script);
    let (_, token) = idle_worker(&fleet, &[]);
    let ask = |api: &Http, id: &str| {
        let call = json!({"tool": "plugin_finder_look", "arguments": {"what": id}});
        api.post("/api/v1/verbs/call-plugin-tool", &call).status
    };
    let worker = as_worker(&fleet, &token);
    assert_eq!(ids.each_ref().map(|id| ask(&worker, id)), [404, 200]);
    assert_eq!(ids.each_ref().map(|id| ask(&operator(&fleet), id)), [200, 200]);
    assert_eq!(fleet.show(&ids[0])["comments"].as_array().unwrap().len(), 1);
}

const TOOLS: &str = "requests = ['comment', 'complete']
[[tools]]
name = 'look'
about = 'Looks something up.'
workers = true
input = { properties = { what = { type = 'string' } }, required = ['what'] }
[[tools]]
name = 'secret'
about = 'Only for operators.'
";

#[test]
fn a_worker_has_the_tools_that_are_for_workers_and_reaches_with_them_its_tenant_alone() {
    let fleet = Fleet::boot();
    let made = fleet.json(["create", "of another tenant", "--tenant", "other", "--triage"]);
    let other = made["id"].as_str().unwrap();
    let script = format!(
        r#"call=$(cat); echo "$call" >> "$PLUGIN_STATE/calls"
case $call in
*reach*) echo '{{"requests":[{{"verb":"comment","body":{{"task_id":"{other}","body":"reached"}}}}]}}';;
*) echo '{{"text":"found"}}';;
esac"#
    );
    installed(&fleet, "finder", TOOLS, &script);
    let (task, token) = idle_worker(&fleet, &["--tenant", "acme"]);
    let worker = as_worker(&fleet, &token);
    let listed = |api: &Http| {
        let offered = api.post("/api/v1/verbs/tools", &json!({})).json(200)["plugins"].clone();
        let names = offered.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    assert_eq!(listed(&worker), ["plugin_finder_look"]);
    assert_eq!(listed(&operator(&fleet)), ["plugin_finder_look", "plugin_finder_secret"]);
    let ask = |api: &Http, tool: &str, what: &str| {
        api.post("/api/v1/verbs/call-plugin-tool", &json!({"tool": tool, "arguments": {"what": what}}))
    };

    assert_eq!(ask(&worker, "plugin_finder_look", "it").json(200)["text"], "found");

    let call = calls(&fleet, "finder").remove(0);
    assert_eq!((&call["task_id"], &call["tenant"]), (&json!(task), &json!("acme")), "{call}");
    assert_eq!((&call["tool"], &call["arguments"]), (&json!("look"), &json!({"what": "it"})));
    ask(&worker, "plugin_finder_secret", "it").json(404);
    ask(&worker, "plugin_other_look", "it").json(404);
    assert_eq!(ask(&operator(&fleet), "plugin_finder_secret", "it").json(200)["text"], "found");
    let refused = ask(&worker, "plugin_finder_look", "reach");
    assert_eq!(refused.status, 404, "{}", refused.body);
    assert!(
        fleet.show(other)["comments"].as_array().unwrap().is_empty(),
        "another tenant's task is not there"
    );
    ask(&operator(&fleet), "plugin_finder_look", "reach").json(200);
    assert_eq!(fleet.show(other)["comments"][0]["body"], "reached");
    worker.post("/api/v1/verbs/call-plugin", &json!({"plugin": "finder", "verb": "x"})).json(403);
}
