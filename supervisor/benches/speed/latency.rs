//! From the commit of a ready task to its worker's first instruction, and what confinement adds.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;

use crate::figures::{Samples, Table, millis};
use crate::root::Root;
use crate::worker::clock;

/// Tasks of each kind.
const TASKS: usize = 200;

/// Measures.
pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let root = Root::start(4)?;
    let mut client = root.client()?;
    let [mut asked, mut answered, mut open, mut bare]: [Samples; 4] = Default::default();
    for _ in 0..5 {
        Root::stamp(&mut client, "stamp")?;
    }
    // The kinds take turns, so that what else the host does meets all of them.
    for _ in 0..TASKS {
        let [from_request, from_reply] = Root::stamp(&mut client, "stamp")?;
        asked.push(from_request);
        answered.push(from_reply);
        open.push(Root::stamp(&mut client, "stamp-open")?[1]);
        bare.push(bare_spawn()?);
    }
    table.row("ready → first instruction, from the reply", answered.brief(), "p50 < 10 ms, p99 < 50 ms");
    table.row("the same, from the request", asked.brief(), "");
    table.row("the same, policy `unconfined`", open.brief(), "");
    table.row("bare spawn → first instruction", bare.brief(), "");
    let cost = answered.median().saturating_sub(open.median());
    table.row("sandbox cost per spawn", millis(cost), "< 3 ms");
    Ok(())
}

fn bare_spawn() -> Result<Duration> {
    let before = clock();
    let output =
        Command::new(std::env::current_exe()?).arg("__stamp").env_clear().stdin(Stdio::null()).output()?;
    let stamp = Duration::from_nanos(String::from_utf8(output.stdout)?.trim().parse()?);
    Ok(stamp.saturating_sub(before))
}
