//! `list`: the tasks of a board, filtered and sorted, all of them or page by page.

use clap::builder::NonEmptyStringValueParser;
use kernel::{ActorKind, Archived, Filter, Page, Profile, Sort, Status, Task, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::list_or_one::{self, ListOrOne};
use crate::views::pages::{self, Listed, PageRequest, PagedRow, pages};
use crate::views::{cursor, parse};
use api::command::{Command, ToolProcess};
use api::{Call, Verb, confine_to, verb};
use base::cli_context;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Cell, Ink, Screen, printable};
use base::time::since::Since;
use upkeep::diagnosis::why;

/// Show the tasks of a board
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    visible_alias = "ls",
    after_help = "\
JSON is an array of tasks. With --page or --cursor it is an object with one page:
{\"tasks\": […], \"next\": \"…\"}, where `next` is the cursor of the next page, or null.

Examples:
  supervisor list
  supervisor list --status ready --assignee shell
  supervisor list --status ready,scheduled --why
  supervisor list --search 'figures of May' --since 2d
  supervisor list --columns id,status,age,runtime,attempts,title
  supervisor list --status done --format tsv --columns id,title
  supervisor list --status ready --quiet | xargs supervisor cancel
  supervisor list --tenant acme --sort updated --json
  supervisor list --limit 100 --page --json"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct List {
    /// Only tasks assigned to the caller's own name
    #[arg(long)]
    pub mine: bool,
    /// Only tasks of this assignee
    #[arg(long, value_name = "NAME")]
    pub assignee: Option<Profile>,
    /// Only tasks in these statuses, separated by commas
    #[arg(
        long,
        short,
        value_name = "STATUS",
        value_delimiter = ',',
        value_parser = parse::TypedStatus
    )]
    #[serde(with = "list_or_one")]
    #[schemars(with = "ListOrOne<Status>")]
    pub status: Vec<Status>,
    /// Only tasks with this text in the title or the body
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub search: Option<String>,
    /// Only tasks that have changed since: 10m, 2h, 'yesterday', '2026-11-23 09:00'
    #[arg(long, value_name = "WHEN")]
    pub since: Option<Since>,
    /// Only tasks of this tenant
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<Tenant>,
    /// Only tasks of this session of a client
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Only tasks of this workflow of a client
    #[arg(long, value_name = "ID")]
    pub workflow_template_id: Option<String>,
    /// Only tasks at this step of a workflow
    #[arg(long, value_name = "KEY")]
    pub step_key: Option<String>,
    /// Archived tasks too
    #[arg(long, short = 'a', alias = "all")]
    pub archived: bool,
    /// The order of the tasks
    #[arg(long, value_name = "ORDER", value_parser = parse::word::<Sort>(Sort::ALL.iter().map(|word| word.as_str())))]
    pub sort: Option<Sort>,
    /// At most this many [default: all]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Show what each task that is not running waits for
    #[arg(long)]
    pub why: bool,
    /// These columns, separated by commas
    #[arg(long, value_name = "COLUMNS", value_enum, value_delimiter = ',')]
    #[serde(skip)]
    pub columns: Vec<Column>,
    /// A table, or a line of fields between tabs for each task
    #[arg(long, value_name = "FORMAT", value_enum)]
    #[serde(skip)]
    pub format: Option<Format>,
    /// Print the ids alone
    #[arg(long, short, conflicts_with_all = ["columns", "format", "why"])]
    #[serde(skip)]
    pub quiet: bool,
    /// Count the runs of each task, and say when the last of them ended
    #[arg(skip)]
    pub attempts: bool,
    /// Print the cursor of the next page
    #[arg(long)]
    pub page: bool,
    /// Start where a page ended: its `next`
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

/// Contents of a column of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Column {
    Id,
    Status,
    Assignee,
    Tenant,
    Priority,
    /// Since its creation.
    Age,
    /// Time of its last change.
    Updated,
    /// From the start of its last run to its end.
    Runtime,
    /// Number of its runs.
    Attempts,
    Workspace,
    Policy,
    /// Reason why it waits.
    Why,
    Title,
}

/// Output format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Table,
    Tsv,
}

impl List {
    /// Returns true if it filters the tasks.
    pub fn chooses(&self) -> bool {
        let words = [&self.search, &self.session, &self.workflow_template_id, &self.step_key, &self.cursor];
        self.mine
            || self.assignee.is_some()
            || !self.status.is_empty()
            || self.since.is_some()
            || self.tenant.is_some()
            || words.into_iter().any(Option::is_some)
    }
}

impl PagedRow for Task {
    const ROWS: &'static str = "tasks";
}

pages!(List, Task);

impl Verb for List {
    verb! {
        "list": Operator, Read,
        members,
        tool(Orchestrator, "It returns a page of 50 tasks unless `limit` says otherwise; `next` is the cursor of the next page.")
        => Listed<Task>
    }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        confine_to(tenant, &mut self.tenant)
    }

    async fn run(self, call: Call) -> Result<Listed<Task>, Failure> {
        let wanted = PageRequest::by(&self);
        if self.search.is_some() && call.actor.kind == ActorKind::Worker {
            // A search reads every task of the board.
            return Err(Failure::new(Code::NotPermitted, "a worker may not search")
                .hint("list with a status or an assignee, and read the pages"));
        }
        let assignee = if self.mine {
            Some(call.actor.name.parse::<Profile>().map_err(|e| Failure::usage(e.to_string()))?)
        } else {
            self.assignee
        };
        let filter = Filter {
            limit: pages::limit(self.limit)?,
            assignee,
            statuses: self.status,
            search: self.search.filter(|text| !text.is_empty()),
            since: self.since.map(Since::timestamp),
            tenant: self.tenant,
            archived: if self.archived { Archived::Show } else { Archived::Hide },
            session: self.session,
            workflow: self.workflow_template_id,
            step: self.step_key,
            sort: self.sort.unwrap_or(Sort::Priority),
            cursor: self.cursor.as_deref().map(cursor::opened).transpose()?,
            ..Filter::default()
        };
        let counted = self.attempts;
        let Page { tasks, next } = call
            .read(move |view| {
                let mut page = view.tasks(&filter)?;
                for task in page.tasks.iter_mut().filter(|_| counted) {
                    task.attempts = Some(view.attempts(&task.id)?);
                    task.last_run_ended_at = view.last_run_ended(&task.id)?;
                }
                Ok(page)
            })
            .await?;
        if !self.why {
            return Ok(wanted.reply(tasks, next.as_deref().map(cursor::sealed)));
        }
        let mut tasks = why::explain(&call, tasks).await?;
        // Tasks that run or have ended have a start or end time, so only the waiting ones need this one.
        let is_waiting = |task: &&mut Task| task.why.is_some();
        let ids: Vec<TaskId> = tasks.iter_mut().filter(is_waiting).map(|task| task.id.clone()).collect();
        let since =
            call.read(move |view| ids.iter().map(|id| view.status_since(id)).collect::<Result<Vec<_>, _>>());
        for (task, since) in tasks.iter_mut().filter(is_waiting).zip(since.await?) {
            task.status_since = since;
        }
        Ok(wanted.reply(tasks, next.as_deref().map(cursor::sealed)))
    }
}

impl Command for List {
    fn as_tool(&mut self, _side: ToolProcess) -> Result<(), Failure> {
        pages::of_an_agent(&mut self.page, &mut self.limit);
        Ok(())
    }

    fn show(reply: &Listed<Task>, screen: &mut Screen) {
        let (tasks, next) = reply.parts();
        if tasks.is_empty() {
            screen.line(cli_context::repeated(
                "No tasks. Create one with: supervisor create '<title>' --assignee shell --body '<script>'",
            ));
            return;
        }
        if tasks.iter().any(|task| task.why.is_some()) {
            show_why(tasks, screen);
        } else {
            show_plain(tasks, screen);
        }
        pages::show_next(next, screen);
    }
}

/// Cells of a task.
const SHOWN: [&str; 4] = ["ID", "STATUS", "ASSIGNEE", "TITLE"];

fn cells(task: &Task) -> [Cell; 4] {
    [
        Cell::from(task.id.to_string()),
        Cell::inked(ink(task.status), task.status.as_str()),
        Cell::or_dash(task.assignee.as_ref()),
        Cell::from(task.title.clone()),
    ]
}

fn show_plain(tasks: &[Task], screen: &mut Screen) {
    if tasks.iter().all(|task| task.tenant.is_none()) {
        return screen.list(SHOWN, tasks.iter().map(cells));
    }
    let rows = tasks.iter().map(|task| {
        let [id, status, assignee, title] = cells(task);
        [id, status, assignee, Cell::or_dash(task.tenant.as_ref()), title]
    });
    screen.list(["ID", "STATUS", "ASSIGNEE", "TENANT", "TITLE"], rows);
}

/// Shows the tasks with the reason why each waits: in a column if the terminal is wide enough, else in a line below the
/// task.
fn show_why(tasks: &[Task], screen: &mut Screen) {
    const WIDE: [&str; 5] = ["ID", "STATUS", "ASSIGNEE", "TITLE", "WHY"];
    let reason = |task: &Task| task.why.as_ref().map(|why| printable(&why::line(why)));
    let wide = tasks.iter().map(|task| {
        let [id, status, assignee, title] = cells(task);
        [id, status, assignee, title, Cell::or_dash(reason(task))]
    });
    let wide: Vec<[Cell; 5]> = wide.collect();
    if screen.fits(&WIDE, &wide) {
        return screen.list(WIDE, wide);
    }
    let rows =
        tasks.iter().map(|task| (cells(task), reason(task).map(|why| vec![why]).into_iter().collect()));
    screen.list_with_details(SHOWN, rows.collect());
}

pub fn ink(status: Status) -> Ink {
    match status {
        Status::Done => Ink::Green,
        Status::Running | Status::Review => Ink::Cyan,
        Status::Blocked => Ink::Red,
        Status::Ready | Status::Scheduled | Status::Todo | Status::Triage => Ink::Yellow,
        Status::Archived => Ink::Dim,
    }
}
