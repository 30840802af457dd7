//! Applies a verb to all tasks that a filter selects, after it has shown them and asked for confirmation.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;

use kernel::{Counted, HoldScope, Status, Task, TaskId};

use super::pages;
use crate::client::Client;
use crate::output::Output;
use api::blocking;
use api::command::Command;
use base::failure::Failure;
use base::terminal::choose::confirm;
use base::terminal::complain;
use verbs::{Holds, List, Listed, Matching, OnTasks, Rows as _};

/// Limit on the tasks of a request, which is one transaction that delays others.
const PART: usize = 500;

/// Tasks that a command line selects.
pub(super) enum Selection {
    /// Tasks that the command line names by their ids.
    Ids,
    /// Selected by their properties, with nothing left to do: none matches, or they were only to be shown.
    Nothing,
    /// Selected by their properties.
    Tasks(Vec<TaskId>),
}

pub(super) async fn run<V: OnTasks>(client: &Client, verb: V, output: Output) -> Result<u8, Failure> {
    let ids = match selection(client, &verb.matching(), V::NAME, verb.default_statuses(), output).await? {
        Selection::Ids => return super::call(client, verb, output).await,
        Selection::Nothing => return Ok(0),
        Selection::Tasks(ids) => ids,
    };
    let mut all = V::Reply::none();
    for part in ids.chunks(PART) {
        let mut verb = verb.about(part.to_vec());
        verb.localize(client.here())?;
        all.add(client.call(&verb).await?);
    }
    output.reply::<V>(&all)
}

/// Returns the tasks that a filter selects, after a person has confirmed the verb for them. Without a status, the
/// filter selects tasks in one of `of`.
pub(super) async fn selection(
    client: &Client,
    matching: &Matching,
    verb: &str,
    of: &[Status],
    output: Output,
) -> Result<Selection, Failure> {
    let (dry_run, yes) = (matching.dry_run, matching.yes);
    let Some(list) = matching.list(of) else {
        if dry_run || yes {
            return Err(Failure::usage("--dry-run and --yes need tasks that are selected by flags")
                .hint("select them with --status, --assignee, --tenant, --search, --since or --failed"));
        }
        return Ok(Selection::Ids);
    };
    let (mut tasks, _) = pages::all(client, &list).await?;
    tasks.retain(|task| matching.takes(task));
    if matching.held {
        let held = held(client).await?;
        tasks.retain(|task| held.contains(task.id.as_str()));
    }
    if tasks.is_empty() && !(dry_run && output.json()) {
        complain(&no_match(matching, of));
        return Ok(Selection::Nothing);
    }
    if dry_run {
        output.reply::<List>(&Listed::Rows(tasks))?;
        return Ok(Selection::Nothing);
    }
    if !yes {
        ask(&tasks, verb, output).await?;
    }
    Ok(Selection::Tasks(tasks.into_iter().map(|task| task.id).collect()))
}

/// Returns the ids of tasks that have a hold of their own.
async fn held(client: &Client) -> Result<BTreeSet<String>, Failure> {
    let holds = client.call(&Holds {}).await?.into_iter();
    Ok(holds.filter(|hold| hold.scope == HoldScope::Task).map(|hold| hold.name).collect())
}

/// Returns the error if no task matches. It names the statuses searched if the command line has none.
fn no_match(matching: &Matching, of: &[Status]) -> String {
    if matching.names_status() || of.is_empty() {
        return "No task matches; nothing was done.".to_owned();
    }
    let of: Vec<&str> = of.iter().map(|status| status.as_str()).collect();
    format!("No task in {} matches; nothing was done. Use --status to select other statuses.", of.join(", "))
}

/// Shows the tasks and asks for confirmation. Fails without a terminal.
async fn ask(tasks: &[Task], verb: &str, output: Output) -> Result<(), Failure> {
    let count = Counted(tasks.len() as u64, "task");
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !output.json();
    if !terminal {
        return Err(Failure::usage(format!(
            "{count} would be changed, and there is no terminal to confirm it at"
        ))
        .hint("list them with --dry-run, then repeat with --yes"));
    }
    let mut screen = output.screen();
    <List as Command>::show(&Listed::Rows(tasks.to_vec()), &mut screen);
    output.text(&screen.into_text())?;
    let question = format!("{verb} {count}?");
    let agreed = blocking("the terminal cannot be read", move || confirm(&question));
    if agreed.await?.unwrap_or(false) {
        return Ok(());
    }
    Err(Failure::usage("nothing was changed").hint("answer `y`, or use --yes"))
}
