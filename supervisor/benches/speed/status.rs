//! A full house: what a look at it takes, and what daemon and shims weigh.

use std::fs;
use std::time::Instant;

use anyhow::{Result, bail};
use serde_json::json;

use crate::figures::{Samples, Table};
use crate::http::Client;
use crate::root::Root;

const LOOKS: usize = 20;

/// Measures.
pub(crate) fn measure(table: &mut Table) -> Result<()> {
    for workers in [200, 1000] {
        house(table, workers)?;
    }
    Ok(())
}

fn house(table: &mut Table, workers: usize) -> Result<()> {
    let root = Root::start(workers)?;
    let mut client = root.client()?;
    let begun = Instant::now();
    for _ in 0..workers {
        client.call("create", &json!({ "title": "sleeper", "assignee": "sleep" }))?;
    }
    wait_spawned(&mut client, workers)?;
    let up = begun.elapsed();
    let mut samples = Samples::default();
    for _ in 0..LOOKS {
        let begun = Instant::now();
        let status = client.call("status", &json!({}))?;
        samples.push(begun.elapsed());
        if status["workers"].as_array().map_or(0, Vec::len) != workers {
            bail!("not every worker is shown");
        }
    }
    let mut command = Samples::default();
    for _ in 0..LOOKS {
        let begun = Instant::now();
        root.command().arg("status").status()?;
        command.push(begun.elapsed());
    }
    let shims = shims(root.daemon());
    let private: u64 =
        shims.iter().map(|pid| kib(*pid, "smaps_rollup", &["Private_Clean", "Private_Dirty"])).sum();
    let each = private / u64::try_from(shims.len().max(1))?;
    let resident = kib(root.daemon(), "status", &["VmRSS"]);
    let target = |text: &'static str| if workers == 1000 { text } else { "" };
    table.row(&format!("status, {workers} live workers"), samples.brief(), target("< 50 ms"));
    table.row(&format!("`supervisor status`, {workers} live workers"), command.brief(), "");
    table.row(
        &format!("daemon's memory, {workers} live workers"),
        format!("{}.{} MB", resident / 1024, resident % 1024 * 10 / 1024),
        target("< 40 MB"),
    );
    table.row(
        &format!("each shim's private memory, of {}", shims.len()),
        format!("{each} KiB"),
        target("< 300 KiB"),
    );
    table.row(&format!("{workers} workers up after"), format!("{:.1} s", up.as_secs_f64()), "");
    Ok(())
}

fn wait_spawned(client: &mut Client, workers: usize) -> Result<()> {
    let mut cursor = json!(0);
    let mut spawned = 0;
    while spawned < workers {
        let wait = json!({ "since": cursor, "kinds": ["spawned"], "wait": 30, "limit": 1000 });
        let page = client.call("events", &wait)?;
        let events = page["events"].as_array().map_or(0, Vec::len);
        if events == 0 {
            bail!("only {spawned} workers came up");
        }
        spawned += events;
        cursor = page["cursor"].clone();
    }
    Ok(())
}

/// The pids of a daemon's children.
fn shims(daemon: u32) -> Vec<u32> {
    let mut pids = Vec::new();
    for task in fs::read_dir(format!("/proc/{daemon}/task")).into_iter().flatten().flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        pids.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    pids
}

/// The sum of some lines of a file of `/proc/<pid>`, in KiB.
fn kib(pid: u32, file: &str, names: &[&str]) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| names.contains(name))
        .filter_map(|(_, value)| value.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .sum()
}
