//! Cost of verbs on a board of a million tasks, compared with a board of a thousand. The boards are asked alternately.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::clients;
use crate::command;
use crate::figures::{Samples, Table, millis};
use crate::grown;
use crate::http::Client;
use crate::reads;
use crate::root::Root;

/// Number of times that each verb is called on each board.
const TURNS: usize = 300;
/// Number of tasks on a page of `list`.
const PAGE: u32 = 50;
/// Verbs of a round, in order.
const VERBS: [&str; 6] = ["create", "claim", "complete", "list", "show", "stats"];

/// Measures.
pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let small = Root::start_with(4, |root| grown::grow(root, 1).map(drop))?;
    let middle = Root::start_with(4, |root| grown::grow(root, 100).map(drop))?;
    let mut rows = None;
    let large = Root::start_with(4, |root| {
        rows = Some(grown::grow(root, 1000)?);
        Ok(())
    })?;
    let rows = rows.context("no rows")?;
    let count = |name: &str| rows.get(name).copied().unwrap_or_default();
    table.row("the large board", format!("{} tasks, {} events", count("tasks"), count("task_events")), "");
    let mut boards = [Board::new(&small)?, Board::new(&large)?];
    for _ in 0..TURNS {
        for board in &mut boards {
            board.turn()?;
        }
    }
    let [few, many] = &boards;
    for ((verb, few), many) in VERBS.iter().zip(&few.samples).zip(&many.samples) {
        let ratio = many.median().as_secs_f64() / few.median().as_secs_f64();
        let figure = format!("{ratio:.2} times {} (p50)", millis(few.median()));
        table.row(&format!("{verb}, 1,000,000 tasks against 1,000"), figure, "≤ 2 times");
    }
    reads::measure(table, &[&small, &middle, &large])?;
    clients::rounds(table, &large, ", 1,000,000 tasks")?;
    command::on(table, &large, ", 1,000,000 tasks")
}

/// A board and the durations of its verbs.
struct Board {
    client: Client,
    samples: [Samples; 6],
}

impl Board {
    fn new(root: &Root) -> Result<Self> {
        Ok(Self { client: root.client()?, samples: Default::default() })
    }

    /// Calls every verb once.
    fn turn(&mut self) -> Result<()> {
        let (took, task) = self.ask("create", &json!({ "title": "one more" }))?;
        let task = task["id"].as_str().context("the reply has no id")?.to_owned();
        self.samples[0].push(took);
        for (place, request) in [
            json!({ "task_id": task }),
            json!({ "task_ids": [task], "summary": "done" }),
            json!({ "limit": PAGE }),
            json!({ "task_id": task }),
            json!({}),
        ]
        .into_iter()
        .enumerate()
        {
            let (took, _) = self.ask(VERBS[place + 1], &request)?;
            self.samples[place + 1].push(took);
        }
        Ok(())
    }

    fn ask(&mut self, verb: &str, request: &Value) -> Result<(Duration, Value)> {
        let begun = Instant::now();
        let reply = self.client.call(verb, request)?;
        Ok((begun.elapsed(), reply))
    }
}
