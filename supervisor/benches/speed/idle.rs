//! Cost of an idle daemon.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::figures::Table;
use crate::root::Root;

const SPAN: Duration = Duration::from_secs(5);

/// Measures.
pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let root = Root::start(4)?;
    let mut client = root.client()?;
    // Not a fresh daemon: one that has worked.
    Root::stamp(&mut client, "stamp")?;
    std::thread::sleep(Duration::from_secs(1));
    let mut wakeups = || -> Result<u64> {
        client.call("status", &json!({}))?["daemon"]["wakeups"].as_u64().context("no wake-ups in the status")
    };
    let before = wakeups()?;
    std::thread::sleep(Duration::from_millis(200));
    let switches = switches(root.daemon())?;
    std::thread::sleep(SPAN);
    let slept = crate::idle::switches(root.daemon())?.saturating_sub(switches);
    // The second look counts itself.
    let woken = wakeups()?.saturating_sub(before).saturating_sub(1);
    table.row("idle daemon: owner's wake-ups in 5 s", woken.to_string(), "0");
    table.row("idle daemon: context switches in 5 s", slept.to_string(), "");
    Ok(())
}

/// Returns the number of context switches of a process's threads.
fn switches(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        sum += status
            .lines()
            .filter_map(|line| line.split_once("ctxt_switches:"))
            .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
            .sum::<u64>();
    }
    Ok(sum)
}
