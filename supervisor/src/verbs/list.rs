//! `list`: the tasks of a board, filtered and sorted.

use kernel::{Archived, Filter, Profile, Sort, Status, Task, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts;
use crate::api::{Audience, Call, Effect, Verb};
use crate::failure::Failure;
use crate::terminal::{Cell, Ink, Screen, printable};

/// How many tasks are read at once.
const PAGE: u32 = 1000;

/// Show the tasks of a board
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    visible_alias = "ls",
    after_help = "\
Examples:
  supervisor list
  supervisor list --status ready --assignee shell
  supervisor list --status ready --why
  supervisor list --tenant acme --sort updated --json"
)]
pub(crate) struct List {
    /// Only tasks assigned to the caller's own name
    #[arg(long)]
    pub(crate) mine: bool,
    /// Only tasks of this profile
    #[arg(long, value_name = "PROFILE")]
    pub(crate) assignee: Option<Profile>,
    /// Only tasks in this status
    #[arg(long, value_name = "STATUS", value_parser = texts::word::<Status>(Status::ALL.iter().map(|status| status.as_str())))]
    pub(crate) status: Option<Status>,
    /// Only tasks of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<Tenant>,
    /// Archived tasks too
    #[arg(long)]
    pub(crate) archived: bool,
    /// In which order
    #[arg(long, value_name = "ORDER", value_parser = texts::word::<Sort>(Sort::ALL.iter().map(|word| word.as_str())))]
    pub(crate) sort: Option<Sort>,
    /// At most this many [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// Say of each task that is not running what it waits for
    #[arg(long)]
    pub(crate) why: bool,
}

impl Verb for List {
    const NAME: &'static str = "list";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Read;
    type Reply = Vec<Task>;

    async fn run(self, call: Call) -> Result<Vec<Task>, Failure> {
        let assignee = if self.mine {
            Some(call.actor.name.parse::<Profile>().map_err(|e| Failure::usage(e.to_string()))?)
        } else {
            self.assignee
        };
        let filter = Filter {
            assignee,
            status: self.status,
            tenant: self.tenant,
            archived: if self.archived { Archived::Show } else { Archived::Hide },
            sort: self.sort.unwrap_or(Sort::Priority),
            limit: PAGE,
            ..Filter::default()
        };
        let limit = self.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let tasks = call
            .read(move |view| {
                let mut filter = filter;
                let mut tasks = Vec::new();
                loop {
                    let page = view.tasks(&filter)?;
                    tasks.extend(page.tasks);
                    filter.cursor = page.next;
                    if filter.cursor.is_none() || tasks.len() >= limit {
                        tasks.truncate(limit);
                        return Ok(tasks);
                    }
                }
            })
            .await?;
        if self.why { crate::why::explain(&call, tasks).await } else { Ok(tasks) }
    }

    fn show(reply: &Vec<Task>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("No tasks. Put one on the board with: supervisor create '<title>' --assignee shell --body '<script>'");
            return;
        }
        if reply.iter().any(|task| task.why.is_some()) {
            return show_why(reply, screen);
        }
        let rows = reply.iter().map(|task| {
            [
                Cell::from(task.id.to_string()),
                Cell::inked(ink(task.status), task.status.as_str()),
                Cell::or_dash(task.assignee.as_ref()),
                Cell::or_dash(task.tenant.as_ref()),
                Cell::from(task.title.clone()),
            ]
        });
        if reply.iter().any(|task| task.tenant.is_some()) {
            screen.list(["ID", "STATUS", "ASSIGNEE", "TENANT", "TITLE"], rows);
        } else {
            let rows = rows.map(|[id, status, assignee, _, title]| [id, status, assignee, title]);
            screen.list(["ID", "STATUS", "ASSIGNEE", "TITLE"], rows);
        }
    }
}

/// The tasks with what each waits for: beside it where the terminal is wide enough, else under it.
fn show_why(tasks: &[Task], screen: &mut Screen) {
    const WIDE: [&str; 5] = ["ID", "STATUS", "ASSIGNEE", "TITLE", "WHY"];
    let told = |task: &Task| task.why.as_ref().map(|why| printable(&crate::why::line(why)));
    let wide: Vec<[Cell; 5]> = tasks
        .iter()
        .map(|task| {
            [
                Cell::from(task.id.to_string()),
                Cell::inked(ink(task.status), task.status.as_str()),
                Cell::or_dash(task.assignee.as_ref()),
                Cell::from(task.title.clone()),
                Cell::or_dash(told(task)),
            ]
        })
        .collect();
    if screen.fits(&WIDE, &wide) {
        return screen.list(WIDE, wide);
    }
    let rows = wide.into_iter().zip(tasks).map(|([id, status, assignee, title, _], task)| {
        ([id, status, assignee, title], told(task).into_iter().collect())
    });
    screen.list_with_details(["ID", "STATUS", "ASSIGNEE", "TITLE"], rows.collect());
}

/// The colour of a status.
pub(super) fn ink(status: Status) -> Ink {
    match status {
        Status::Done => Ink::Green,
        Status::Running | Status::Review => Ink::Cyan,
        Status::Blocked => Ink::Red,
        Status::Ready | Status::Scheduled | Status::Todo | Status::Triage => Ink::Yellow,
        Status::Archived => Ink::Dim,
    }
}
