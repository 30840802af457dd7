//! Three no-op tasks, each waiting for the one before.

use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::figures::{Samples, Table};
use crate::root::Root;

const CHAINS: usize = 20;

/// Measures.
pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let root = Root::start(4)?;
    let mut client = root.client()?;
    let mut samples = Samples::default();
    for _ in 0..CHAINS {
        let begun = Instant::now();
        let mut parents: Vec<String> = Vec::new();
        for _ in 0..3 {
            let request = json!({ "title": "link", "assignee": "shell", "body": ":", "parents": parents });
            let created = client.call("create", &request)?;
            parents = vec![created["id"].as_str().context("the reply has no id")?.to_owned()];
        }
        Root::wait_done(&mut client, &parents[0])?;
        samples.push(begun.elapsed());
    }
    table.row("chain of three no-op tasks, create to done", samples.brief(), "< 500 ms");
    Ok(())
}
