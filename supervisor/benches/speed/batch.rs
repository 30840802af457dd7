//! Many no-op tasks, a few at a time.

use std::time::Instant;

use anyhow::Result;
use serde_json::json;

use crate::figures::{Table, rate};
use crate::root::Root;

const TASKS: usize = 200;
const AT_ONCE: usize = 8;

/// Measures.
pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let root = Root::start(AT_ONCE)?;
    let mut client = root.client()?;
    let begun = Instant::now();
    for _ in 0..TASKS {
        client.call("create", &json!({ "title": "no-op", "assignee": "shell", "body": ":" }))?;
    }
    let created = begun.elapsed();
    let mut cursor = json!(0);
    let mut done = 0;
    while done < TASKS {
        let wait = json!({ "since": cursor, "kinds": ["completed"], "wait": 30, "limit": 1000 });
        let page = client.call("events", &wait)?;
        done += page["events"].as_array().map_or(0, Vec::len);
        cursor = page["cursor"].clone();
    }
    let took = begun.elapsed();
    table.row(
        "200 no-op tasks, 8 at a time, create to done",
        format!("{:.2} s, {:.0} a second", took.as_secs_f64(), rate(TASKS, took)),
        "≤ 1.24 s",
    );
    table.row("of which their creation, one after another", format!("{:.2} s", created.as_secs_f64()), "");
    Ok(())
}
