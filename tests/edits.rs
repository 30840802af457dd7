//! An edit of a task applies all its fields or is refused.

use serde_json::{Value, json};

use crate::harness::{Fleet, Terminal};
use crate::http::{Http, HttpAnswer};

fn operator(fleet: &Fleet) -> Http {
    let api = Http::at(fleet.root().join("run/supervisor.sock"));
    match std::fs::read_to_string(fleet.root().join("operator.key")) {
        Ok(key) => api.with("x-supervisor-key", &key),
        Err(_) => api,
    }
}

fn patch(api: &Http, task: &str, body: &Value) -> HttpAnswer {
    api.send("PATCH", &format!("/api/v1/tasks/{task}"), body.to_string().as_bytes())
}

fn created(fleet: &Fleet, args: &[&str]) -> String {
    let args = ["create", "x", "--assignee", "ghost"].iter().chain(args).copied();
    fleet.json(args)["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_change_over_the_api_keeps_each_field_or_refuses_it() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let task = created(&fleet, &[]);
    let fields = json!({
        "title": "another", "body": "a body", "priority": 7, "max_retries": 2, "max_runtime": "5m",
        "policy": "strict", "tenant": "acme", "skills": ["git"], "assignee": "shade", "check": "make", "max_checks": 2,
    });
    let changed = patch(&api, &task, &fields).json(200);
    for (key, value) in fields.as_object().unwrap() {
        if key != "max_runtime" {
            assert_eq!(&changed[key], value, "{key}");
        }
    }
    assert_eq!(changed["max_runtime_seconds"], 300);
    let refused = patch(&api, &task, &json!({"commit": "auto"})).json(422);
    assert!(refused["detail"].as_str().unwrap().contains("not a worktree"), "{refused}");

    for refused in [
        json!({}),
        json!({"reason": "why"}),
        json!({"status": "archived", "reason": "why"}),
        json!({"status": "triage", "reason": "why"}),
        json!({"policy": "no-such-policy"}),
        json!({"max_runtime": 0}),
        json!({"title": ""}),
        json!({"workspace": "dir:relative"}),
    ] {
        let problem = patch(&api, &task, &refused).json(422);
        assert!(problem["detail"].is_string(), "{refused}: {problem}");
    }
    for (key, value) in [
        ("title", json!(null)),
        ("tenant", json!(null)),
        ("policy", json!(null)),
        ("skills", json!(null)),
        ("priority", json!("high")),
        ("max_runtime", json!(-1)),
        ("max_runtime", json!([])),
    ] {
        let mut fields = json!({"body": "not kept"});
        fields[key] = value;
        let problem = patch(&api, &task, &fields).json(422);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("invalid body: {key}: invalid ")), "{fields}: {detail}");
    }
    assert_eq!(fleet.show(&task)["task"]["body"], "a body");
    assert!(changed["warnings"].to_string().contains("there is no skill"), "{changed}");
    let freed = patch(&api, &task, &json!({"assignee": null, "priority": 8})).json(200);
    assert_eq!((&freed["assignee"], &freed["priority"]), (&json!(null), &json!(8)));

    let summary = json!({"summary": "nothing was done yet"});
    assert_eq!(patch(&api, &task, &summary).status, 409, "it has no run whose summary that could be");
    assert_eq!(fleet.show(&task)["task"]["title"], "another");

    let early = json!({"result": "42", "title": "done already"});
    assert_eq!(patch(&api, &task, &early).status, 409, "only a task that is done has a result");
    fleet.cli(["edit", &task, "--result", "42"]).refused(4, "only a task that is done has a result");
    assert_eq!(
        (&fleet.show(&task)["task"]["title"], &fleet.show(&task)["task"]["result"]),
        (&json!("another"), &json!(null))
    );

    let handoff = json!({"status": "done", "result": "42", "summary": "did it", "metadata": {"tests": 14}});
    patch(&api, &task, &handoff).json(200);
    let later = json!({"result": "43", "summary": "did it well", "metadata": {"tests": 15}});
    assert_eq!(patch(&api, &task, &later).json(200)["result"], "43");
    let shown = fleet.show(&task);
    assert_eq!(
        (&shown["latest_summary"], &shown["runs"][0]["metadata"]),
        (&json!("did it well"), &json!({"tests": 15}))
    );
}

#[test]
fn an_edit_changes_what_runs_are_given_and_an_edit_of_nothing_is_refused() {
    let fleet = Fleet::boot();
    let task = created(&fleet, &[]);
    fleet
        .cli([
            "edit",
            &task,
            "--tenant",
            "acme",
            "--max-runtime",
            "90",
            "--policy",
            "strict",
            "--skill",
            "git",
        ])
        .ok();
    let edited = fleet.show(&task)["task"].clone();
    let told = ["tenant", "max_runtime_seconds", "policy", "skills"].map(|key| edited[key].clone());
    assert_eq!(told, [json!("acme"), json!(90), json!("strict"), json!(["git"])]);
    let said = fleet.cli(["edit", &task, "--skill", "git"]).ok().stderr;
    assert!(said.contains("warning: there is no skill"), "{said}");
    let said = fleet.cli(["edit", &task, "--priority", "1"]).ok().stderr;
    assert!(!said.contains("warning"), "{said}");
    let said = fleet.cli(["create", "x", "--branch", "main"]).ok().stderr;
    assert!(said.contains("the branch is stored but has no effect"), "{said}");
    fleet.cli(["edit", &task]).refused(2, "nothing to change is given");
    fleet.cli(["edit", &task, "--policy", "no-such-policy"]).refused(2, "no-such-policy");
    fleet.cli(["edit", &task, "--workspace", "dir:relative"]).refused(2, "relative");
}

#[test]
fn an_edit_at_a_terminal_opens_the_editor() {
    let fleet = Fleet::offline();
    let task = created(&fleet, &["--body", "as it was"]);
    let edit = |editor: &str| {
        let mut command = fleet.command(["edit", &task]);
        Terminal::run(command.env("EDITOR", editor)).end()
    };
    assert!(edit("sed -i -e '1s/.*/another title/' -e '$s/$/, and more/'").success());
    let shown = fleet.show(&task)["task"].clone();
    assert_eq!((&shown["title"], &shown["body"]), (&json!("another title"), &json!("as it was, and more")));

    assert!(!edit("true").success() && !edit("false").success(), "nothing was changed");
    assert_eq!(fleet.show(&task)["task"]["title"], "another title");
}

#[test]
fn an_approver_that_nobody_can_be_is_refused_and_an_operator_overrides_that() {
    let fleet = Fleet::boot();
    let args = [
        "create",
        "buy",
        "--assignee",
        "shell",
        "--body",
        "true",
        "--require-approval",
        "--approver",
        "nobody-here",
    ];
    let made = fleet.json(args);
    let task = made["id"].as_str().unwrap().to_owned();
    let warnings = made["warnings"].to_string();
    assert!(warnings.contains("`nobody-here` cannot reach this board"), "{made}");
    let known = fleet.json(["create", "x", "--require-approval", "--approver", "root"]);
    assert!(!known["warnings"].to_string().contains("cannot reach"), "{known}");

    fleet.cli(["approve", &task]).refused(77, "may not decide");
    fleet.cli(["approve", &task, "nobody else is there", "--override"]).ok();

    fleet.wait_for(&task, "done");
    let told = fleet.json(["events", "--task", &task, "--kind", "approval_granted"]);
    assert_eq!(told["events"][0]["payload"]["overridden"], "nobody-here", "{told}");
}

#[test]
fn pools_of_a_task_come_and_go_and_one_that_is_not_configured_is_a_warning() {
    let fleet = Fleet::offline();
    fleet.configure("[pools]\ngpu = 1\n[limits]\nprofiles = { ghots = 1 }\nlanes = { shel = 2 }\n");
    let task = created(&fleet, &["--pool", "gpu"]);
    // A task without any has no such key.
    let named = |task: &Value| task["pools"].as_array().cloned().unwrap_or_default();
    let pools = || json!(named(&fleet.show(&task)["task"]));
    let said = fleet.cli(["edit", &task, "--pool", "licence", "--pool", "gpu"]).ok();
    assert_eq!(pools(), json!(["gpu", "licence"]));
    let warning = "takes places of the pool licence, which the configuration does not have: nothing starts";
    assert!(said.stderr.contains(warning), "{}", said.stderr);
    assert!(said.stderr.contains("write licence = 1 into [pools]"), "{}", said.stderr);
    assert!(!said.stderr.contains("pool gpu"), "{}", said.stderr);
    let shown = fleet.cli(["show", &task]).ok().stdout;
    let has_pools = |line: &str| line.split_whitespace().eq(["pools", "gpu,", "licence"]);
    assert!(shown.lines().any(has_pools), "{shown}");
    fleet.cli(["edit", &task, "--remove-pool", "licence"]).ok();
    fleet.cli(["edit", &task, "--remove-pool", "licence"]).refused(2, "it names gpu");
    assert_eq!(pools(), json!(["gpu"]));
    fleet.cli(["edit", &task, "--clear-pools"]).ok();
    assert_eq!(pools(), json!([]));
    let said = fleet.cli(["create", "x", "--assignee", "ghost", "--pool", "disk"]).ok().stderr;
    assert!(said.contains("write disk = 1 into [pools]"), "{said}");

    // Caps on nobody, and pools of profiles, are named where a person looks for what is wrong.
    fleet.write_config("profiles.d/painter.md", "---\nlane: shell\npools: [easel]\n---\n");
    let said = fleet.cli(["create", "x", "--assignee", "painter"]).ok().stderr;
    assert!(said.contains("painter takes places of the pool easel"), "{said}");
    let doctor = fleet.cli(["doctor"]).stdout;
    let found = fleet.cli(["diagnostics"]).ok().stdout;
    for text in [
        "limits.profiles caps ghots",
        "limits.lanes caps shel",
        "the profile painter takes places of the pool easel",
    ] {
        let at_once = |said: &str| said.split_whitespace().collect::<Vec<_>>().join(" ").contains(text);
        assert!(at_once(&doctor) && at_once(&found), "{text}\n{doctor}\n{found}");
    }
    fleet.start();
    let said = fleet.cli(["service", "reload"]).ok().stderr;
    assert!(said.contains("limits.lanes caps shel, and no lane has that name"), "{said}");
    let api = operator(&fleet);
    let changed = patch(&api, &task, &json!({"pools": ["disk", "gpu"]})).json(200);
    assert_eq!(changed["pools"], json!(["disk", "gpu"]));
    assert!(changed["warnings"].to_string().contains("disk = 1"), "{changed}");
    assert!(named(&patch(&api, &task, &json!({"pools": []})).json(200)).is_empty());
}
