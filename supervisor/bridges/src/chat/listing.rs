//! `/kanban list`: the most recently changed tasks, as many as fit into a message, with the number of the remaining
//! tasks and the command that lists them.

use clap::ArgMatches;
use kernel::{Sort, Status};

use super::reply;
use super::verb::ChatCommand;
use base::failure::Failure;
use verbs::{List, Listed};

/// Default limit on the tasks of a list.
const LISTED: u32 = 20;
/// Part of a message reserved for the text after the tasks, in characters.
const FOOT: usize = 400;

/// Handles the words after `/kanban list`.
pub(super) async fn list(command: &ChatCommand<'_>, matches: &ArgMatches) -> Result<String, Failure> {
    let mut list: List = command.verb(matches)?;
    list.sort.get_or_insert(Sort::Updated);
    list.page = true;
    let mut limit = list.limit.unwrap_or(LISTED);
    loop {
        list.limit = Some(limit);
        let (tasks, next) = command.call(list.clone()).await?.split();
        let shown = tasks.len();
        if shown == 0 {
            return Ok("No tasks.".to_owned());
        }
        let text = command.text_of::<List>(&Listed::Rows(tasks))?;
        if !reply::has_room_for(&text, FOOT) && shown > 1 {
            limit = u32::try_from(shown / 2).unwrap_or(1);
            continue;
        }
        let Some(next) = next else { return Ok(text) };
        let more = match total(command, &list).await? {
            Some(total) => format!("{} more", total.saturating_sub(shown as u64)),
            None => "more".to_owned(),
        };
        let text = reply::bounded(&text);
        return Ok(format!("{text}\nand {more}: send the same line with --cursor {next}"));
    }
}

/// Returns the number of tasks that match a list; none if it cannot be taken from the counts.
async fn total(command: &ChatCommand<'_>, list: &List) -> Result<Option<u64>, Failure> {
    let is_counted = !list.mine && list.search.is_none() && list.since.is_none() && list.cursor.is_none();
    if !is_counted {
        return Ok(None);
    }
    let call = command.call_for::<List>().await?;
    let tenant = command.actor().tenant.or_else(|| list.tenant.clone());
    let (assignee, statuses, archived) = (list.assignee.clone(), list.status.clone(), list.archived);
    let counts = call.read(move |view| view.tasks_by_status(tenant.as_ref(), assignee.as_ref())).await?;
    let is_listed = |status: &Status| {
        if statuses.is_empty() { archived || *status != Status::Archived } else { statuses.contains(status) }
    };
    let counted = Status::ALL.iter().filter(|status| is_listed(status));
    let counted = counted.filter_map(|status| counts.get(status));
    Ok(Some(counted.map(|count| count.unsigned_abs()).sum()))
}
