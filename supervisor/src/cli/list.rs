//! `list` at the command line: in the columns that the user selects, as a table or as tab-separated fields.

use std::time::Duration;

use kernel::{Clock as _, Status, SystemClock, Task, Timestamp};

use super::pages;
use crate::client::Client;
use crate::output::Output;
use api::command::Command as _;
use base::failure::Failure;
use base::terminal::{Cell, printable};
use base::time::duration::in_column;
use base::time::timestamp;
use verbs::{Column, Format, List, Listed, show_next, status_ink};

/// The columns if only a format was selected.
const DEFAULT: [Column; 6] =
    [Column::Id, Column::Status, Column::Assignee, Column::Age, Column::Attempts, Column::Title];

pub(super) async fn run(client: &Client, mut list: List, output: Output) -> Result<u8, Failure> {
    if output.json() && list.quiet {
        return Err(Failure::usage("--quiet prints ids, and --json whole tasks")
            .hint("leave one of them out; supervisor list --json | jq -r '.[].id' prints ids as well"));
    }
    if output.json() {
        return pages::run(client, list, output).await;
    }
    list.localize(client.here())?;
    if list.quiet {
        (list.columns, list.format) = (vec![Column::Id], Some(Format::Tsv));
    }
    if list.columns.is_empty() && list.format.is_none() {
        let (rows, next) = pages::all(client, &list).await?;
        if rows.is_empty() && list.chooses() {
            output.text("No task matches.\n")?;
            return Ok(0);
        }
        return output.reply::<List>(&Listed::Page { rows, next });
    }
    let columns = if list.columns.is_empty() { DEFAULT.to_vec() } else { list.columns.clone() };
    list.attempts = [Column::Attempts, Column::Runtime].iter().any(|column| columns.contains(column));
    list.why |= columns.contains(&Column::Why);
    let (tasks, next) = pages::all(client, &list).await?;
    let now = SystemClock.now();
    let row = |task: &Task| columns.iter().map(|column| cell(*column, task, now)).collect::<Vec<_>>();
    let rows: Vec<Vec<Cell>> = tasks.iter().map(row).collect();
    let mut screen = output.screen();
    match list.format {
        Some(Format::Tsv) => {
            for row in &rows {
                // A tab separates fields, so tabs in a title become spaces.
                let fields: Vec<String> = row.iter().map(|cell| cell.text().replace('\t', " ")).collect();
                screen.line(fields.join("\t"));
            }
        }
        Some(Format::Table) | None => {
            let header: Vec<&str> = columns.iter().map(|column| heading(*column)).collect();
            screen.columns(&header, rows);
            show_next(next.as_deref(), &mut screen);
        }
    }
    output.text(&screen.into_text())?;
    Ok(0)
}

fn heading(column: Column) -> &'static str {
    match column {
        Column::Id => "ID",
        Column::Status => "STATUS",
        Column::Assignee => "ASSIGNEE",
        Column::Tenant => "TENANT",
        Column::Priority => "PRIORITY",
        Column::Age => "AGE",
        Column::Updated => "UPDATED",
        Column::Runtime => "RUNTIME",
        Column::Attempts => "ATTEMPTS",
        Column::Workspace => "WORKSPACE",
        Column::Policy => "POLICY",
        Column::Why => "WHY",
        Column::Title => "TITLE",
    }
}

fn cell(column: Column, task: &Task, now: Timestamp) -> Cell {
    let short = |time: Duration| Cell::from(in_column(time));
    match column {
        Column::Id => Cell::from(task.id.to_string()),
        Column::Status => Cell::inked(status_ink(task.status), task.status.as_str()),
        Column::Assignee => Cell::or_dash(task.assignee.as_ref()),
        Column::Tenant => Cell::or_dash(task.tenant.as_ref()),
        Column::Priority => Cell::from(task.priority.to_string()),
        Column::Age => short(now.since(task.created_at)),
        Column::Updated => Cell::from(timestamp::soon(task.updated_at, now)),
        Column::Runtime => {
            let end = task.last_run_ended_at.or_else(|| (task.status == Status::Running).then_some(now));
            let time = task.started_at.zip(end).map(|(start, end)| end.since(start));
            time.map_or_else(|| Cell::or_dash(None::<&str>), short)
        }
        Column::Attempts => Cell::or_dash(task.attempts),
        Column::Workspace => {
            Cell::from(task.workspace_path.clone().unwrap_or_else(|| task.workspace.to_string()))
        }
        Column::Policy => Cell::or_dash(task.policy.as_ref()),
        Column::Why => {
            Cell::or_dash(task.why.as_ref().map(|why| printable(&upkeep::diagnosis::why::line(why))))
        }
        Column::Title => Cell::from(task.title.clone()),
    }
}
