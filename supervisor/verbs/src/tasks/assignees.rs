//! `assignees`: lists the possible assignees.

use std::collections::{BTreeMap, BTreeSet};

use kernel::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::obstacles;
use crate::views::cursor;
use crate::views::pages::{self, Listed, PageRequest, PagedRow, pages};
use api::command::{Command, ToolProcess};
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Screen, printable};

/// List the possible assignees and their tasks
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor assignees
  supervisor assignees --json
  supervisor assignees --limit 100 --page --json

JSON is an array of names. With --page or --cursor it is an object with one page:
{\"assignees\": […], \"next\": \"…\"}, where `next` is the cursor of the next page, or null.")]
pub struct Assignees {
    /// At most this many [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Print the cursor of the next page
    #[arg(long)]
    pub page: bool,
    /// Start where a page ended: its `next`
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct AssigneeLine {
    pub name: String,
    /// True if a lane or profile of this name exists here.
    pub on_disk: bool,
    /// Reason why its tasks do not run at present. Workers do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot_run: Option<String>,
    pub counts: BTreeMap<Status, i64>,
}

impl PagedRow for AssigneeLine {
    const ROWS: &'static str = "assignees";
}

pages!(Assignees, AssigneeLine);

impl Verb for Assignees {
    verb! {
        "assignees": Worker, Read,
        tool(Orchestrator, "It returns a page of 50 names unless `limit` says otherwise.")
        => Listed<AssigneeLine>
    }

    async fn run(self, call: Call) -> Result<Listed<AssigneeLine>, Failure> {
        let wanted = PageRequest::by(&self);
        let after = self.cursor.as_deref().map(cursor::opened).transpose()?.unwrap_or_default();
        let limit = usize::try_from(pages::limit(self.limit)?).unwrap_or(usize::MAX);
        let roster = call.service.roster();
        let line = |name: &str, on_disk| AssigneeLine {
            name: name.to_owned(),
            on_disk,
            cannot_run: None,
            counts: BTreeMap::new(),
        };
        let here = roster.names().into_iter().map(|name| (name.clone(), line(&name, true)));
        let mut named: BTreeMap<String, AssigneeLine> = here.collect();
        // A worker sees the names only: the numbers of tasks are totals over all tenants.
        if call.actor.kind != kernel::ActorKind::Worker {
            let from = after.clone();
            for known in call.read(move |view| view.assignees(&from, limit.saturating_add(1))).await? {
                let line = named.entry(known.name.clone()).or_insert_with(|| line(&known.name, false));
                line.counts = known.counts;
            }
        }
        let mut rest = named.split_off(&after).into_values().skip_while(|line| line.name == after);
        let mut rows: Vec<AssigneeLine> = rest.by_ref().take(limit).collect();
        if call.actor.kind != kernel::ActorKind::Worker {
            for line in rows.iter_mut().filter(|line| line.on_disk) {
                let Ok(assignee) = line.name.parse() else { continue };
                line.cannot_run = obstacles::unrunnable(&assignee, None, None, &call).await?;
            }
        }
        let last = rows.last().map(|line| line.name.as_str()).unwrap_or_default();
        let next = rest.next().map(|_| cursor::sealed(last));
        Ok(wanted.reply(rows, next))
    }
}

impl Command for Assignees {
    fn as_tool(&mut self, _side: ToolProcess) -> Result<(), Failure> {
        pages::of_an_agent(&mut self.page, &mut self.limit);
        Ok(())
    }

    fn show(reply: &Listed<AssigneeLine>, screen: &mut Screen) {
        let (lines, next) = reply.parts();
        let rows: Vec<[String; 3]> = lines
            .iter()
            .map(|line| {
                let counts: Vec<String> =
                    line.counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
                let here = if line.on_disk && line.cannot_run.is_none() { "yes" } else { "no" };
                [line.name.clone(), here.to_owned(), counts.join(", ")]
            })
            .collect();
        screen.table(["NAME", "RUNS HERE", "TASKS"], rows);
        let reasons: BTreeSet<&str> = lines.iter().filter_map(|line| line.cannot_run.as_deref()).collect();
        for reason in reasons {
            screen.hanging("  ", &printable(reason));
        }
        pages::show_next(next, screen);
    }
}
