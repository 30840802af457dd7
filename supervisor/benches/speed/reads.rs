//! Every verb that reads, on boards of a thousand, a hundred thousand and a million tasks. The verbs come from the table of
//! verbs; the boards are asked in turns.

use std::time::Instant;

use anyhow::{Context as _, Result};
use api::Effect;
use serde_json::{Value, json};

use crate::figures::{Samples, Table, millis};
use crate::http::Client;
use crate::root::Root;

/// Number of requests of each kind to each board.
const TURNS: usize = 15;
/// Number of tasks on a page.
const PAGE: u32 = 50;

/// Verbs that are not measured, with the reason.
const LEFT_OUT: [(&str, &str); 14] = [
    ("attach-get", "reads a file"),
    ("backup", "copies the whole board"),
    ("check-chat", "asks a service"),
    ("check-lane", "starts a program"),
    ("check-plugin", "starts a program"),
    ("diff", "reads a repository"),
    ("dispatch", "waits for runs"),
    ("doctor", "checks the whole board"),
    ("export", "writes the whole board"),
    ("log", "reads a file"),
    ("mission-show", "the boards have no mission"),
    ("notify-test", "asks a service"),
    ("reload", "reads the configuration"),
    ("tenant-usage", "the boards have no tenant"),
];

/// Measures each verb on boards of different sizes, the smallest first.
pub(crate) fn measure(table: &mut Table, boards: &[&Root]) -> Result<()> {
    let mut clients = boards.iter().map(|root| root.client()).collect::<Result<Vec<_>>>()?;
    let tasks = clients.iter_mut().map(a_task).collect::<Result<Vec<_>>>()?;
    for entry in verbs::entries() {
        if entry.effect != Effect::Read || LEFT_OUT.iter().any(|(name, _)| *name == entry.name) {
            continue;
        }
        for (kind, request) in requests(entry.name) {
            let what = if kind.is_empty() { entry.name.to_owned() } else { format!("{} {kind}", entry.name) };
            match compared(entry.name, &request, &mut clients, &tasks) {
                Ok(figure) => table.row(&what, figure, "≤ 2 times"),
                Err(error) => table.row(&what, format!("not measured: {error:#}"), ""),
            }
        }
    }
    Ok(())
}

/// Returns the medians of each board, and the ratio of the last to the first.
fn compared(verb: &str, request: &Value, clients: &mut [Client], tasks: &[String]) -> Result<String> {
    let mut samples: Vec<Samples> = clients.iter().map(|_| Samples::default()).collect();
    for _ in 0..TURNS {
        for ((client, task), samples) in clients.iter_mut().zip(tasks).zip(&mut samples) {
            let request = named(request, task);
            let begun = Instant::now();
            client.call(verb, &request)?;
            samples.push(begun.elapsed());
        }
    }
    let medians: Vec<f64> = samples.iter().map(|one| one.median().as_secs_f64()).collect();
    let (first, last) = (medians.first().context("no board")?, medians.last().context("no board")?);
    let shown: Vec<String> = samples.iter().map(|one| millis(one.median())).collect();
    Ok(format!("{}: {:.2} times", shown.join(", "), last / first))
}

/// Returns a request with a task of the board in place of its mark.
fn named(request: &Value, task: &str) -> Value {
    match request {
        Value::String(text) if text == TASK => task.into(),
        Value::Array(items) => items.iter().map(|item| named(item, task)).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (key.clone(), named(value, task))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => request.clone(),
    }
}

/// Mark of a task of the board.
const TASK: &str = "{task}";

fn a_task(client: &mut Client) -> Result<String> {
    let done = client.call("list", &json!({ "status": "done", "limit": 1 }))?;
    Ok(done[0]["id"].as_str().context("no task is done")?.to_owned())
}

/// Returns the requests of a verb, each with its kind.
fn requests(verb: &str) -> Vec<(String, Value)> {
    let one = |request: Value| vec![(String::new(), request)];
    match verb {
        "list" => lists(),
        "show" | "runs" | "attachments" | "context" => one(json!({ "task_id": TASK })),
        "resolve" => one(json!({ "ids": [TASK] })),
        "names" => [("of tasks", "task"), ("of assignees", "assignee"), ("of tenants", "tenant")]
            .map(|(kind, of)| (kind.to_owned(), json!({ "of": of, "begins": "" })))
            .into(),
        "events" => vec![
            (String::new(), json!({ "limit": PAGE })),
            ("of a task".to_owned(), json!({ "limit": PAGE, "task": TASK })),
            ("of a kind".to_owned(), json!({ "limit": PAGE, "kinds": ["completed"] })),
        ],
        "diagnostics" => {
            vec![(String::new(), json!({})), ("of a task".to_owned(), json!({ "task": TASK }))]
        }
        "markdown" => one(json!({ "text": "*text*" })),
        _ => one(json!({})),
    }
}

/// Returns the lists: every order, every kind of filter, and both together.
fn lists() -> Vec<(String, Value)> {
    let sorts = ["priority", "created", "created-desc", "status", "assignee", "title", "updated"].map(Some);
    let filters = [
        ("", json!({})),
        (" --status ready", json!({ "status": "ready" })),
        (" --status done,archived", json!({ "status": ["done", "archived"] })),
        (" --archived", json!({ "archived": true })),
        (" --assignee", json!({ "assignee": "profile-3" })),
        (" --tenant", json!({ "tenant": "acme" })),
        (" --session", json!({ "session": "none" })),
        (" --since", json!({ "since": "1s" })),
    ];
    let mut lists = Vec::new();
    for sort in [None].into_iter().chain(sorts) {
        for (kind, filter) in &filters {
            let mut request = filter.clone();
            request["limit"] = PAGE.into();
            let order = sort.map_or_else(String::new, |sort| {
                request["sort"] = sort.into();
                format!(" --sort {sort}")
            });
            lists.push((format!("{}{kind}", order.trim_start()), request));
        }
    }
    for (kind, request) in [
        ("--why", json!({ "why": true, "limit": PAGE })),
        ("--search, found soon", json!({ "search": "task", "limit": PAGE })),
        ("--search, found nowhere", json!({ "search": "nowhere", "limit": PAGE })),
    ] {
        lists.push((kind.to_owned(), request));
    }
    lists
}
