//! Durable writes through the socket: by one client, then by many clients that share commits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};

use crate::figures::{Table, rate};
use crate::http::Client;
use crate::root::Root;

/// Number of concurrent clients, and of the writes of each.
const ROUNDS: [(usize, usize); 3] = [(1, 500), (8, 500), (64, 250)];

/// Measures.
pub(crate) fn measure(table: &mut Table) -> Result<()> {
    rounds(table, &Root::start(4)?, "")
}

/// Measures on the caller's root; `on` is appended to the names of the rows.
pub(crate) fn rounds(table: &mut Table, root: &Root, on: &str) -> Result<()> {
    for (clients, each) in ROUNDS {
        let target = if clients == 64 { "> 5000 a second" } else { "" };
        let created: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&created);
        let took = writes(root, clients, each, move |client, _| {
            // Nobody is assigned, so that writes are all there is to do.
            let reply = client.call("create", &json!({ "title": "a durable write" }))?;
            let id = reply["id"].as_str().context("the reply has no id")?.to_owned();
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(id);
            Ok(())
        })?;
        table.row(&format!("creates, {clients} clients{on}"), took.brief(clients * each), target);
        let ids = std::mem::take(&mut *created.lock().unwrap_or_else(PoisonError::into_inner));
        let took = writes(root, clients, each, move |client, turn| {
            client.call("claim", &json!({ "task_id": ids[turn] })).map(drop)
        })?;
        table.row(&format!("claims, {clients} clients{on}"), took.brief(clients * each), target);
    }
    Ok(())
}

struct Took {
    time: Duration,
    commits: u64,
}

impl Took {
    fn brief(&self, writes: usize) -> String {
        let commits = usize::try_from(self.commits).unwrap_or(usize::MAX).max(1);
        let shared = rate(writes, Duration::from_secs(1)) / rate(commits, Duration::from_secs(1));
        format!("{:.0} a second, {shared:.1} to a commit", rate(writes, self.time))
    }
}

fn writes(
    root: &Root,
    clients: usize,
    each: usize,
    write: impl Fn(&mut Client, usize) -> Result<()> + Clone + Send + 'static,
) -> Result<Took> {
    let mut own = root.client()?;
    let connections: Vec<Client> = (0..clients).map(|_| root.client()).collect::<Result<_>>()?;
    let before = commits(&mut own)?;
    let begun = Instant::now();
    let threads: Vec<_> = connections
        .into_iter()
        .enumerate()
        .map(|(number, mut client)| {
            let write = write.clone();
            std::thread::spawn(move || {
                (0..each).try_for_each(|turn| write(&mut client, number * each + turn))
            })
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| anyhow!("a client panicked"))??;
    }
    let time = begun.elapsed();
    Ok(Took { time, commits: commits(&mut own)?.saturating_sub(before) })
}

/// Returns the number of commits of the board's writer. Each is one fsync of the log.
fn commits(client: &mut Client) -> Result<u64> {
    let status: Value = client.call("status", &json!({}))?;
    status["daemon"]["commits"].as_u64().context("no commits in the status")
}
