//! Changes of tasks: assigned, linked, claimed, blocked, scheduled, resumed, finished.

use serde_json::{Value, json};

use super::{TypedRoot, assert_has};

pub(super) fn walk(desk: &TypedRoot) {
    hands(desk);
    links(desk);
    claims(desk);
    comments(desk);
    waits(desk);
    promotions(desk);
    endings(desk);
    chats(desk);
}

fn hands(desk: &TypedRoot) {
    let task = desk.task("");
    desk.ok(&format!("assign {task} ann"));
    assert_eq!(desk.now(&task)["assignee"], "ann");
    for nobody in ["none", "-", "null"] {
        desk.ok(&format!("assign {task} ann"));
        desk.ok(&format!("assign {task} {nobody}"));
        assert_eq!(desk.now(&task)["assignee"], Value::Null, "{nobody}");
        desk.ok(&format!("reassign {task} bob"));
        desk.ok(&format!("reassign {task} {nobody}"));
        assert_eq!(desk.now(&task)["assignee"], Value::Null, "{nobody}");
    }
    desk.ok(&format!("assign {task} ann"));
    desk.ok(&format!("claim {task}"));
    desk.run(&format!("reassign {task} bob")).refused(4, "is running");
    desk.ok(&format!("reassign {task} bob --reclaim --reason 'wrong one'"));
    assert_has(&desk.now(&task), &json!({"assignee": "bob", "status": "ready"}));
}

fn links(desk: &TypedRoot) {
    let [parent, child] = [desk.task(""), desk.task("")];
    desk.ok(&format!("link {parent} {child}"));
    assert_eq!(desk.status(&child), "todo");
    desk.ok(&format!("unlink {parent} {child}"));
    assert_eq!(desk.status(&child), "ready");
}

fn claims(desk: &TypedRoot) {
    let task = desk.task("--assignee ann");
    let said = desk.ok(&format!("claim {task} --ttl 600"));
    assert!(said.starts_with(&format!("Claimed {task}")) && said.contains("\nWorkspace: "), "{said}");
    let lease = |task: &Value| task["claim_expires"].as_i64().unwrap() - task["started_at"].as_i64().unwrap();
    assert!((599..=601).contains(&lease(&desk.now(&task))), "{}", desk.now(&task));
    let beat = desk.ok(&format!("heartbeat {task} --note 'half way'"));
    assert_eq!(beat.trim_end(), format!("Heartbeat recorded for {task}"));
    desk.ok(&format!("reclaim {task} --reason 'took too long'"));
    assert_eq!(desk.status(&task), "ready");
    let runs = |words: &str| desk.json(&format!("runs {task} {words}")).as_array().unwrap().len();
    assert_eq!((runs(""), runs("--state-type outcome --state-name reclaimed")), (1, 1));
    assert_eq!(runs("--state-type status --state-name done"), 0);
    assert_eq!(runs("--state-type outcome --state-name stale"), 0, "a word of the other board's");
    let shown = desk.json(&format!("show {task} --state-type status --state-name done"));
    assert_eq!(shown["runs"], json!([]));
    desk.run(&format!("runs {task} --state-type outcome --state-name finished"))
        .refused(2, "unknown outcome");
    desk.ok(&format!("claim {task}"));
    let lease = lease(&desk.now(&task));
    assert!((899..=901).contains(&lease), "{lease}");
}

fn comments(desk: &TypedRoot) {
    let task = desk.task("");
    desk.ok(&format!("comment {task} several words --author zoe"));
    desk.ok(&format!("comment {task} '{}' --max-len 50", "long ".repeat(40)));
    let shown = desk.json(&format!("show {task}"));
    assert_has(&shown["comments"][0], &json!({"author": "zoe", "body": "several words"}));
    let cut = shown["comments"][1]["body"].as_str().unwrap();
    assert!(cut.chars().count() <= 50 && cut.ends_with("[cut to 50 characters by --max-len]"), "{cut}");
}

fn waits(desk: &TypedRoot) {
    let [a, b, c] = [desk.task(""), desk.task(""), desk.task("")];
    desk.ok(&format!("block {a} which one --ids {b} {c}"));
    for task in [&a, &b, &c] {
        assert_has(&desk.now(task), &json!({"status": "blocked", "block_reason": "which one"}));
        assert_eq!(desk.comments(task), ["BLOCKED: which one"]);
    }
    desk.ok(&format!("unblock --reason 'the left one' {a} {b} {c}"));
    assert_eq!(desk.status(&c), "ready");
    assert_eq!(desk.comments(&c)[1], "UNBLOCK: the left one");
    for kind in ["capability", "needs_input", "transient"] {
        let task = desk.task("");
        desk.ok(&format!("block {task} --kind {kind}"));
        assert_has(&desk.now(&task), &json!({"status": "blocked", "block_kind": kind}));
    }
    let waiting = desk.task(&format!("--parent {a}"));
    desk.ok(&format!("block {waiting} 'the other first' --kind dependency"));

    desk.ok(&format!("schedule {a} after the release --ids {b}"));

    for task in [&a, &b] {
        assert_eq!(desk.status(task), "scheduled");
        assert_eq!(desk.comments(task).last().unwrap(), "SCHEDULED: after the release");
        let why = desk.json(&format!("show {task}"))["why"]["text"].clone();
        assert_eq!(why, format!("waits until somebody unblocks it: `supervisor unblock {task}`"));
    }
    desk.ok(&format!("unblock {a}"));
    assert_has(&desk.now(&a), &json!({"status": "ready", "not_before": null}));
}

fn promotions(desk: &TypedRoot) {
    let parent = desk.task("");
    let child = desk.task(&format!("--parent {parent}"));
    let plan = desk.json(&format!("promote {child} --force --dry-run"));
    assert_has(&plan, &json!({"task_id": child, "promoted": true, "dry_run": true, "forced": true}));
    assert_eq!(desk.status(&child), "todo", "nothing was done");
    desk.run(&format!("promote {child}")).refused(4, "waits for");
    let done = desk.json(&format!("promote {child} cannot wait --force"));
    let said = json!({"task_id": child, "promoted": true, "dry_run": false, "forced": true,
        "reason": "cannot wait", "error": null});
    assert_has(&done, &said);
    assert_eq!(desk.status(&child), "ready");
    let [idea, other] = [desk.task("--triage"), desk.task("--triage")];
    let nowhere = "t_00000000";
    let output = desk.run(&format!("promote {idea} --ids {other} {nowhere} --json"));
    let each = output.json();
    assert_eq!(output.code, 3, "{each}");
    assert_has(&each[0], &json!({"task_id": idea, "promoted": true, "error": null}));
    assert_has(&each[1], &json!({"task_id": other, "promoted": true}));
    assert_has(&each[2], &json!({"task_id": nowhere, "promoted": false}));
    assert!(each[2]["error"].as_str().unwrap().contains(nowhere), "{each}");
}

fn endings(desk: &TypedRoot) {
    let task = desk.task("");
    desk.ok(&format!("complete {task} --result short --summary 'was easy' --metadata '{{\"n\":1}}'"));
    let shown = desk.json(&format!("show {task}"));
    assert_eq!((&shown["task"]["result"], &shown["latest_summary"]), (&json!("short"), &json!("was easy")));
    let [a, b] = [desk.task(""), desk.task("")];
    for words in ["--summary x", "--metadata '{}'"] {
        desk.run(&format!("complete {a} {b} {words}")).refused(2, "cannot describe several tasks");
    }
    let done = desk.json(&format!("complete {a} {b} --result 'batch wrap'"));
    assert_has(&done["results"][1], &json!({"id": b, "ok": true, "status": "done"}));
    assert_eq!(desk.now(&b)["result"], "batch wrap");
    desk.ok(&format!("archive {a} {b}"));
    assert_eq!(desk.status(&b), "archived");
    desk.ok(&format!("archive --rm {a} {b}"));
    desk.run(&format!("show {b}")).refused(3, "no such task");
}

fn chats(desk: &TypedRoot) {
    let task = desk.task("");
    // The ids of groups are negative numbers on some platforms.
    let chat = "--platform telegram --chat-id -100123";
    desk.ok(&format!("notify-subscribe {task} {chat} --thread-id 7 --user-id 5 --notifier-profile ann"));
    desk.ok(&format!("notify-subscribe {task} {chat} --thread-id 7"));
    let said = desk.run(&format!("notify-subscribe {task} --platform slack --chat-id C1")).ok().stderr;
    assert!(said.contains("there is no channel `slack`"), "{said}");
    let listed = desk.json(&format!("notify-list {task}"));
    let said = json!({"task_id": task, "platform": "telegram", "chat_id": "-100123", "thread_id": "7",
        "user_id": "5", "notifier_profile": "ann", "last_event_id": 0});
    assert_has(&listed[0], &said);
    assert_has(&listed[1], &json!({"platform": "slack", "thread_id": "", "user_id": null}));
    assert_eq!(desk.json("notify-list"), listed);
    desk.run(&format!("notify-unsubscribe {task} {chat}")).refused(3, "no such subscription");
    desk.ok(&format!("notify-unsubscribe {task} {chat} --thread-id 7"));
    assert_eq!(desk.json("notify-list").as_array().map(Vec::len), Some(1));
}
