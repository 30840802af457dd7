//! `create` as a whole process, from its start to its end.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::figures::{Samples, Table};
use crate::root::Root;

const TIMES: usize = 200;

/// Measures.
pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let root = Root::start(4)?;
    on(table, &root, "")?;
    let mut start = Samples::default();
    for _ in 0..TIMES {
        start.push(time(root.command().arg("--version"))?);
    }
    table.row("`supervisor --version` as a process", start.brief(), "");
    Ok(())
}

/// Measures on a root of the caller's; `on` ends the name of the row.
pub(crate) fn on(table: &mut Table, root: &Root, on: &str) -> Result<()> {
    let mut samples = Samples::default();
    for _ in 0..TIMES {
        samples.push(time(root.command().args(["create", "a task"]))?);
    }
    table.row(&format!("`supervisor create` as a process{on}"), samples.brief(), "p50 ≤ 12 ms");
    Ok(())
}

fn time(command: &mut Command) -> Result<Duration> {
    // It warns that nobody is assigned.
    command.stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status()?;
    let took = begun.elapsed();
    if !status.success() {
        bail!("it ended with {status}");
    }
    Ok(took)
}
