//! A board of any size: a small board with some of everything is exported, multiplied under new ids, and imported.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use crate::root::{Root, SUPERVISOR};

/// Number of tasks of the small board.
const MODEL: u32 = 1000;
/// Number of comments on each of its tasks. In total a task has about five events.
const COMMENTS: usize = 2;

/// Fills the board of a root with `thousands` times a thousand tasks. Returns the number of rows of each table.
pub(crate) fn grow(root: &Path, thousands: u32) -> Result<BTreeMap<String, u64>> {
    let model = Model::new()?;
    let mut import = Command::new(SUPERVISOR)
        .arg("--root")
        .arg(root)
        .args(["import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("start the import")?;
    let pipe = import.stdin.take().context("the import has no input")?;
    let counts = model.multiply(thousands, &mut BufWriter::new(pipe))?;
    if !import.wait()?.success() {
        bail!("the board could not be imported");
    }
    Ok(counts)
}

/// Rows of a small board by table, in the order of its export.
struct Model {
    header: String,
    tables: Vec<(String, Vec<Map<String, Value>>)>,
    /// Number of each task.
    numbers: BTreeMap<String, u32>,
    /// By table, the greatest numeric id plus one.
    spans: BTreeMap<String, i64>,
}

impl Model {
    fn new() -> Result<Self> {
        let root = Root::start(1)?;
        let mut client = root.client()?;
        for turn in 0..MODEL {
            let assignee = format!("profile-{}", turn % 20);
            let mut task =
                json!({ "title": format!("task {turn}"), "body": "What is to be done. ".repeat(10) });
            // What is ready has no assignee, so that the dispatcher has nothing to do.
            if turn % 10 < 7 {
                task["assignee"] = json!(assignee);
                task["triage"] = json!(true);
            }
            let task = client.call("create", &task)?["id"].as_str().context("no id")?.to_owned();
            for _ in 0..COMMENTS {
                client.call("comment", &json!({ "task_id": task, "body": "A word on it." }))?;
            }
            match turn % 10 {
                0..=5 => {
                    client.call("promote", &json!({ "task_id": task }))?;
                    client
                        .call("complete", &json!({ "task_ids": [task], "summary": "All of it is done." }))?;
                    if turn % 10 < 3 {
                        client.call("archive", &json!({ "task_ids": [task] }))?;
                    }
                }
                7 => {
                    client.call("block", &json!({ "task_id": task, "reason": "which one?" }))?;
                }
                _ => {}
            }
        }
        let export = root.command().arg("export").stdout(Stdio::piped()).output()?;
        drop(client);
        Self::read(&String::from_utf8(export.stdout)?)
    }

    fn read(export: &str) -> Result<Self> {
        let mut lines = export.lines();
        let header = lines.next().context("an empty export")?.to_owned();
        let mut model = Self { header, tables: Vec::new(), numbers: BTreeMap::new(), spans: BTreeMap::new() };
        for line in lines {
            let Value::Object(mut line) = serde_json::from_str(line)? else { bail!("a line is no object") };
            let (Some(Value::String(table)), Some(Value::Object(row))) =
                (line.remove("table"), line.remove("row"))
            else {
                continue;
            };
            if table == "requests" {
                continue;
            }
            if table == "tasks" {
                let id = row.get("id").and_then(Value::as_str).context("a task without an id")?;
                model.numbers.insert(id.to_owned(), u32::try_from(model.numbers.len())?);
            }
            if let Some(id) = row.get("id").and_then(Value::as_i64) {
                let span = model.spans.entry(table.clone()).or_default();
                *span = (*span).max(id + 1);
            }
            match model.tables.last_mut() {
                Some((name, rows)) if *name == table => rows.push(row),
                _ => model.tables.push((table, vec![row])),
            }
        }
        Ok(model)
    }

    fn multiply(&self, times: u32, out: &mut impl Write) -> Result<BTreeMap<String, u64>> {
        writeln!(out, "{}", self.header)?;
        let mut counts: BTreeMap<String, u64> =
            [("notify_subs", 0), ("requests", 0), ("task_attachments", 0), ("task_links", 0)]
                .map(|(table, rows)| (table.to_owned(), rows))
                .into();
        for (table, rows) in &self.tables {
            for copy in 0..times {
                for row in rows {
                    let row: Map<String, Value> = row
                        .iter()
                        .map(|(key, value)| (key.clone(), self.copy(table, key, value, copy)))
                        .collect();
                    serde_json::to_writer(&mut *out, &json!({ "table": table, "row": row }))?;
                    out.write_all(b"\n")?;
                }
            }
            counts.insert(table.clone(), u64::try_from(rows.len())? * u64::from(times));
        }
        writeln!(out, "{}", json!({ "end": counts }))?;
        out.flush()?;
        Ok(counts)
    }

    /// Returns a value of a copied row: ids are those of the copy, and times are one second earlier per copy.
    fn copy(&self, table: &str, key: &str, value: &Value, copy: u32) -> Value {
        let shifted = |table: &str, number: i64| {
            Value::from(number + self.spans.get(table).copied().unwrap_or_default() * i64::from(copy))
        };
        match (key, value) {
            ("id", Value::Number(number)) => shifted(table, number.as_i64().unwrap_or_default()),
            ("run_id" | "current_run_id" | "creator_run", Value::Number(number)) => {
                shifted("task_runs", number.as_i64().unwrap_or_default())
            }
            ("created_at" | "updated_at" | "started_at" | "completed_at" | "ended_at", Value::Number(at)) => {
                Value::from(at.as_i64().unwrap_or_default() - 1_000_000 * i64::from(copy))
            }
            (_, Value::String(text)) => match self.numbers.get(text) {
                // An odd factor gives each number another id, spread as random ones are.
                Some(number) => {
                    let id = (copy * MODEL + number).wrapping_mul(0x9e37_79b1).rotate_left(13);
                    Value::from(format!("t_{id:08x}"))
                }
                None => value.clone(),
            },
            _ => value.clone(),
        }
    }
}
