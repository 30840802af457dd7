//! A verb about all tasks that have something in common: it shows them, asks, and then goes through them.

use std::io::{IsTerminal as _, Write as _};

use kernel::{Counted, Task, TaskId};

use super::pages;
use crate::api::blocking;
use crate::client::Client;
use crate::command::Command as _;
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal::complain;
use crate::verbs::{Bulk, List, Listed, OnTasks};

/// How many tasks one request is about: it is one transaction, and others wait for its end.
const PART: usize = 500;

pub(super) async fn run<V: OnTasks>(client: &Client, verb: V, output: Output) -> Result<u8, Failure> {
    let (dry_run, yes) = (verb.matching().dry_run, verb.matching().yes);
    let Some(list) = verb.matching().list() else {
        if dry_run || yes {
            return Err(Failure::usage("--dry-run and --yes are about tasks that have something in common")
                .hint("name that with --status, --assignee, --tenant, --search or --since"));
        }
        return super::call(client, verb, output).await;
    };
    let (tasks, _) = pages::all(client, &list).await?;
    if dry_run {
        return output.reply::<List>(&Listed::Rows(tasks));
    }
    if tasks.is_empty() {
        complain("No task matches; nothing was done.");
        return Ok(0);
    }
    if !yes {
        ask::<V>(&tasks, output).await?;
    }
    let ids: Vec<TaskId> = tasks.into_iter().map(|task| task.id).collect();
    let mut all = Bulk { results: Vec::new() };
    for part in ids.chunks(PART) {
        let mut verb = verb.about(part.to_vec());
        verb.localize(client.here())?;
        all.results.extend(client.call(&verb).await?.results);
    }
    output.reply::<V>(&all)
}

/// Shows the tasks and asks whether they are meant. Without a terminal nobody can say so.
async fn ask<V: OnTasks>(tasks: &[Task], output: Output) -> Result<(), Failure> {
    let count = Counted(tasks.len() as u64, "task");
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !output.json();
    if !terminal {
        return Err(Failure::usage(format!("{count} would be changed, and nobody is there to be asked"))
            .hint("see which with --dry-run, then say --yes"));
    }
    let mut screen = output.screen();
    List::show(&Listed::Rows(tasks.to_vec()), &mut screen);
    output.text(&screen.into_text())?;
    drop(write!(std::io::stderr().lock(), "{} {count}? [y/N] ", V::NAME));
    let answer = blocking("the terminal cannot be read", || {
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map(|_| answer)
    });
    let answer = answer.await?.unwrap_or_default();
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::usage("nothing was changed").hint("answer `y`, or say --yes"))
}
