//! Over standard input and output: each scope has its tools, a confined worker lives by them, and what is broken is survived.

use serde_json::{Value, json};

use super::agent::{Agent, text};
use crate::harness::Fleet;
use crate::listeners::idle_worker;
use crate::worker::Worker;

/// The tools of the worker of any run.
pub(super) const OF_A_WORKER: [&str; 12] = [
    "kanban_create",
    "kanban_show",
    "kanban_link",
    "kanban_comment",
    "kanban_attach",
    "kanban_attachments",
    "kanban_heartbeat",
    "kanban_complete",
    "kanban_block",
    "kanban_request_review",
    "kanban_ask",
    "kanban_consult",
];
/// The tool of `supervisor mcp` inside a run.
pub(super) const OF_A_RUN: [&str; 1] = ["execute_code"];
const OF_A_REVIEWER: [&str; 2] = ["kanban_approve", "kanban_request_changes"];
const OF_AN_ORCHESTRATOR: [&str; 4] = ["kanban_list", "kanban_unblock", "kanban_assign", "kanban_assignees"];
const OF_AN_OPERATOR: [&str; 5] = [
    "kanban_schedules",
    "kanban_save_schedule",
    "kanban_pause_schedule",
    "kanban_run_schedule",
    "kanban_remove_schedule",
];

/// The client side in shell: `ask` sends a request, and waits for the answer.
pub(crate) const CLIENT: &str = r#"set -e
mkfifo in out
supervisor mcp < in > out &
exec 3> in 4< out
ask() { printf '%s\n' "$1" >&3; read -r line <&4; printf '%s\n' "$line" >> said; }
tool() { ask "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"$1\",\"arguments\":$2}}"; }
ask '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}'
printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&3
"#;

#[test]
fn a_confined_worker_completes_its_task_by_tools_alone() {
    let fleet = Fleet::boot();
    let script = format!(
        "{CLIENT}
echo 14 > report.txt
tool kanban_show '{{}}'
tool kanban_heartbeat '{{\"note\": \"half way\"}}'
tool kanban_comment '{{\"body\": \"by a tool\"}}'
tool kanban_attach '{{\"path\": \"report.txt\"}}'
tool kanban_attach '{{\"filename\": \"b.txt\", \"content\": \"text\"}}'
tool kanban_create '{{\"title\": \"follow up\", \"assignee\": \"ghost\"}}'
tool kanban_complete '{{\"summary\": \"all good\", \"metadata\": {{\"tests\": 14}}, \"artifacts\": [\"report.txt\"]}}'
exec 3>&-
wait"
    );
    let task = fleet.create("works", &script, &[]);

    let shown = fleet.wait_for(&task, "done");

    let log = fleet.cli(["log", &task]).stdout;
    assert_eq!(shown["latest_summary"], "all good", "{log}");
    assert_eq!(shown["runs"][0]["metadata"]["tests"], json!(14), "{log}");
    assert_eq!(shown["comments"][0]["body"], "by a tool");
    assert_eq!(shown["comments"][0]["author_kind"], "worker");
    let files: Vec<&str> =
        shown["attachments"].as_array().unwrap().iter().map(|f| f["filename"].as_str().unwrap()).collect();
    assert_eq!(files, ["report.txt", "b.txt", "report.txt"]);
    let beats = fleet.json(["events", "--task", &task, "--kind", "heartbeat"]);
    assert_eq!(beats["events"][0]["payload"]["note"], "half way");
    assert_eq!(fleet.json(["list", "--assignee", "ghost"]).as_array().unwrap().len(), 1);
    let workspace = shown["runs"][0]["workspace_path"].as_str().unwrap();
    let said = std::fs::read_to_string(format!("{workspace}/said")).unwrap();
    assert_eq!(said.lines().count(), 8, "{said}");
    assert!(said.lines().all(|line| !line.contains("\"isError\":true")), "{said}");
    let read: Value = serde_json::from_str(said.lines().nth(1).unwrap()).unwrap();
    assert_eq!(read["result"]["structuredContent"]["task"]["id"], json!(task), "{read}");
}

fn sorted(tools: &[&[&'static str]]) -> Vec<&'static str> {
    let mut tools = tools.concat();
    tools.sort_unstable();
    tools
}

#[test]
fn each_caller_has_the_tools_of_its_scope() {
    let fleet = Fleet::offline();
    fleet.lane("critic", "argv = [\"/bin/sh\", \"-c\", \"env > env; touch up; exec sleep 600\"]");
    fleet.start();
    let (task, token) = idle_worker(&fleet, &[]);
    let asks = fleet.create("asks", "supervisor request-review --reviewer critic", &[]);
    let review = fleet.eventually("the reviewer is up", || {
        let runs = fleet.show(&asks)["runs"].as_array().unwrap().clone();
        let run = runs.into_iter().find(|run| run["purpose"] == "review")?;
        let workspace = std::path::PathBuf::from(run["workspace_path"].as_str()?);
        workspace.join("up").exists().then_some(workspace)
    });
    let env = std::fs::read_to_string(review.join("env")).unwrap();
    let reviewers = env.lines().find_map(|line| line.strip_prefix("SUPERVISOR_TOKEN=")).unwrap();

    let listed = |mut agent: Agent| {
        agent.open("2025-11-25");
        let mut tools = agent.tools();
        tools.sort();
        tools
    };

    assert_eq!(listed(Agent::of_a_worker(&fleet, &task, &token)), sorted(&[&OF_A_WORKER, &OF_A_RUN]));
    let reviewer = listed(Agent::of_a_worker(&fleet, &asks, reviewers));
    assert_eq!(reviewer, sorted(&[&OF_A_WORKER, &OF_A_REVIEWER, &OF_A_RUN]));
    let operator = listed(Agent::of_the_operator(&fleet));
    assert_eq!(operator, sorted(&[&OF_A_WORKER, &OF_A_REVIEWER, &OF_AN_ORCHESTRATOR, &OF_AN_OPERATOR]));
}

#[test]
fn a_reviewer_approves_by_a_tool() {
    let fleet = Fleet::offline();
    let script =
        format!("{CLIENT}\ntool kanban_approve '{{\"comment\": \"read every line\"}}'\nexec 3>&-\nwait");
    fleet.lane("critic", &format!("argv = [\"/bin/sh\", \"-c\", '''{script}''']"));
    fleet.start();
    let id = fleet.create("asks", "supervisor request-review --summary 'did it' --reviewer critic", &[]);

    let shown = fleet.wait_for(&id, "done");

    assert_eq!(shown["comments"][0]["body"], "read every line", "{shown:#}");
}

#[test]
fn an_operators_agent_keeps_schedules_by_tools() {
    let fleet = Fleet::boot();
    let mut agent = Agent::of_the_operator(&fleet);
    agent.open("2025-11-25");
    let task = json!({"title": "AI news of {date}", "assignee": "shell", "body": "true"});
    let news = json!({"name": "news", "schedule": {"cron": "0 7 * * *", "time_zone": "UTC", "task": task}});

    let saved = agent.call("kanban_save_schedule", &news);

    assert_eq!(saved["structuredContent"]["paused"], false, "{saved}");
    let file = std::fs::read_to_string(fleet.root().join("schedules.d/news.toml")).unwrap();
    assert!(file.contains("cron = \"0 7 * * *\""), "{file}");
    let other = json!({"name": "news", "schedule": {"every": "1h", "task": {"title": "x"}}});
    assert!(text(&agent.call("kanban_save_schedule", &other)).contains("exists already"));
    let wrong = json!({"name": "bad", "schedule": {"every": "soon", "task": {"title": "x"}}});
    assert_eq!(agent.call("kanban_save_schedule", &wrong)["isError"], true);
    let paused = agent.call("kanban_pause_schedule", &json!({"name": "news", "paused": true}));
    assert_eq!(paused["structuredContent"]["paused"], true, "{paused}");
    let ran = agent.call("kanban_run_schedule", &json!({"name": "news"}));
    let id = ran["structuredContent"]["tasks"][0].as_str().unwrap().to_owned();
    fleet.wait_for(&id, "done");
    let listed = agent.call("kanban_schedules", &json!({}));
    assert_eq!(listed["structuredContent"]["items"][0]["name"], "news", "{listed}");
    agent.call("kanban_remove_schedule", &json!({"name": "news"}));
    assert_eq!(fleet.json(["schedules", "list"]), json!([]));
}

#[test]
fn an_operator_without_a_daemon_has_the_tools_too() {
    let fleet = Fleet::offline();
    let mut agent = Agent::of_the_operator(&fleet);
    agent.open("2025-11-25");

    let made = agent.call("kanban_create", &json!({"title": "by an agent", "triage": true}));

    let id = made["structuredContent"]["id"].as_str().unwrap().to_owned();
    let listed = agent.call("kanban_list", &json!({}));
    assert_eq!(listed["structuredContent"]["tasks"][0]["id"], json!(id), "{listed}");
    assert!(listed["structuredContent"]["next"].is_null(), "a page: {listed}");
    let files = agent.call("kanban_attachments", &json!({"task_id": id}));
    assert_eq!(files["structuredContent"], json!({"items": []}), "a list is an object");
    let (status, said) = agent.close();
    assert!(status.success() && said.is_empty(), "{status} {said}");
}

#[test]
fn what_a_tool_refuses_says_what_to_do_and_that_nothing_was_changed() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &[]);
    let foreign = fleet.create("not its own", "true", &["--triage"]);
    let mut agent = Agent::of_a_worker(&fleet, &task, &token);
    agent.open("2025-06-18");

    let wrong = agent.call("kanban_comment", &json!({"boddy": "x"}));
    assert_eq!(wrong["isError"], json!(true));
    assert!(text(&wrong).contains("boddy") && text(&wrong).contains("`body`"), "{wrong}");
    assert!(text(&wrong).ends_with("\nNothing was changed."), "{wrong}");
    let wrong = agent.call("kanban_complete", &json!({"task_ids": 7}));
    assert!(text(&wrong).contains("task_ids"), "{wrong}");
    let other = agent.call("kanban_complete", &json!({"task_ids": [foreign]}));
    assert_eq!(other["isError"], json!(true), "{other}");
    assert!(text(&other).contains("\nhint: ") && text(&other).ends_with("Nothing was changed."), "{other}");
    let denied = agent.call("kanban_list", &json!({}));
    assert_eq!(denied["structuredContent"]["error"]["code"], json!("not_permitted"), "{denied}");

    let unknown = agent.ask("tools/call", &json!({"name": "kanban_destroy", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], json!(-32602), "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("kanban_destroy"), "{unknown}");
    let unknown = agent.ask("tools/dance", &json!({}));
    assert_eq!(unknown["error"]["code"], json!(-32601), "{unknown}");
    assert_eq!(fleet.status_of(&task), "running");
    assert_eq!(fleet.show(&task)["comments"], json!([]));
}

#[test]
fn messages_that_are_broken_too_deep_or_too_long_are_survived() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &[]);
    let mut agent = Agent::of_a_worker(&fleet, &task, &token);
    agent.write(b"{");
    agent.write(br#"{"jsonrpc": "2.0", "method": "notifications/too_early"}"#);
    agent.write(b"\xff\xfe not text");
    agent.open("2025-11-25");

    agent.write(b"[1, 2, 3]");
    agent.write(b"{\"jsonrpc\": \"2.0\", \"id\": 77, \"method\": 5}");
    agent.write(&[b"{\"a\":".repeat(10_000), b"1".to_vec(), b"}".repeat(10_000)].concat());
    let long = "x".repeat(17 << 20);
    agent.send("tools/call", &json!({"name": "kanban_comment", "arguments": {"body": long}}));
    let large = "x".repeat(5 << 20);
    let refused = agent.call("kanban_comment", &json!({"body": large}));
    assert_eq!(refused["isError"], json!(true), "{}", text(&refused));
    assert!(text(&refused).contains("4 MiB"), "{}", text(&refused));

    let said = agent.call("kanban_comment", &json!({"body": "still here"}));
    assert_eq!(said["structuredContent"]["body"], json!("still here"), "{said}");
    let (status, told) = agent.close();
    assert!(status.success(), "{status}");
    assert!(told.contains("maximum line length"), "{told}");
    assert!(!told.contains("xxxx"), "the log has none of it");
    assert_eq!(fleet.show(&task)["comments"].as_array().unwrap().len(), 1);
}

#[test]
fn more_calls_than_may_be_under_way_are_all_answered() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &[]);
    let mut agent = Agent::of_a_worker(&fleet, &task, &token);
    agent.open("2025-11-25");

    let asked: Vec<u64> = (0..100)
        .map(|_| agent.send("tools/call", &json!({"name": "kanban_attachments", "arguments": {}})))
        .collect();

    let mut answered: Vec<u64> = asked.iter().map(|_| agent.next()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, asked);
}

#[test]
fn a_closed_input_ends_the_server_and_calls_that_are_under_way_are_answered() {
    let fleet = Fleet::boot();
    let mut agent = Agent::of_the_operator(&fleet);
    agent.open("2025-11-25");
    let id = agent.send("tools/call", &json!({"name": "kanban_create", "arguments": {"title": "x"}}));
    agent.say_no_more();

    assert_eq!(agent.next()["id"], json!(id));

    let (status, _) = agent.close();
    assert!(status.success(), "{status}");
    let (status, said) = Agent::of_the_operator(&fleet).close();
    assert!(status.success() && said.is_empty(), "before a word: {status} {said}");
}

#[test]
fn the_token_of_a_run_that_has_ended_says_so() {
    let fleet = Fleet::boot();
    let worker = Worker::hold(&fleet, &[]);
    let mut agent = Agent::of_a_worker(&fleet, &worker.task, worker.token());
    agent.open("2025-11-25");
    let heard = agent.call("kanban_heartbeat", &json!({}));
    assert_eq!(heard["isError"], json!(false), "{heard}");
    worker.go();
    fleet.wait_for(&worker.task, "done");

    // The door of the run has gone with it; the operator's still says what became of the token.
    drop(agent);
    let mut agent = Agent::of_a_worker(&fleet, &worker.task, worker.token());
    agent.open("2025-11-25");
    let late = agent.call("kanban_comment", &json!({"body": "late"}));

    assert_eq!(late["isError"], json!(true));
    assert!(text(&late).contains("the run has ended"), "{late}");
    assert!(text(&late).contains("stop working"), "{late}");
    let listed = agent.ask("tools/list", &json!({}));
    assert!(listed["error"]["message"].as_str().unwrap().contains("the run has ended"), "{listed}");
    assert_eq!(fleet.show(&worker.task)["comments"], json!([]));
}

#[test]
fn a_call_during_a_restart_of_the_daemon_is_done_once() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &[]);
    let mut agent = Agent::of_a_worker(&fleet, &task, &token);
    agent.open("2025-11-25");
    agent.call("kanban_comment", &json!({"body": "before"}));
    fleet.kill_daemon();
    let id = agent.send("tools/call", &json!({"name": "kanban_comment", "arguments": {"body": "between"}}));
    fleet.start();

    let answer = agent.next();

    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(id), &json!(false)), "{answer}");
    let shown = fleet.show(&task);
    let said: Vec<&str> =
        shown["comments"].as_array().unwrap().iter().map(|c| c["body"].as_str().unwrap()).collect();
    assert_eq!(said, ["before", "between"]);
}
