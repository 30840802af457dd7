//! `show`: everything about one task.

use kernel::{
    Comment, CommentId, Counted, Egress, Event, EventFilter, EventKind, HostEgress, Message, Outcome, Run,
    Status, Task, TaskId, Waiting,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attachments::list::{self as attachments, StoredAttachment};
use crate::runs::list::{self as runs, RunState, StateType};
use crate::views::end_text;
use crate::views::messages;
use crate::views::parse;
use crate::views::time_limit::TimeLimitLine;
use api::command::Command;
use api::{Call, Verb, verb};
use base::cli_context;
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Ink, Screen, printable, printable_lines};
use base::time::timestamp;

const EVENTS: u32 = 50;

/// Show a task, its runs, files and comments, and why it waits
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor show t_0123abcd
  supervisor show t_0123abcd --verbose
  supervisor show t_0123abcd --json
  supervisor show t_0123abcd --state-type outcome --state-name crashed
  supervisor show                (inside a run: the run's own task)")]
pub struct Show {
    /// The task; inside a run, the run's own task if none is named
    pub task_id: Option<TaskId>,
    /// Only runs whose status or outcome is --state-name
    #[arg(long, value_name = "WHICH", value_enum, requires = "state_name")]
    pub state_type: Option<StateType>,
    /// The status or outcome
    #[arg(long, value_name = "WORD", requires = "state_type")]
    pub state_name: Option<String>,
    /// Show the comments before this one
    #[arg(long, value_name = "COMMENT")]
    pub before_comment: Option<CommentId>,
    /// Show the layers of the last run's sandbox as well
    #[arg(long, short)]
    #[serde(skip)]
    pub verbose: bool,
}

/// The lists of a task that are cut in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum More {
    Parents,
    Children,
    Comments,
    Events,
    Runs,
}

/// A task with everything that belongs to it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShownTask {
    pub task: Task,
    /// Reason why it is not running.
    pub why: Option<Waiting>,
    /// Time limit of its current or next run; none if no run is possible here or to be expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<TimeLimitLine>,
    /// The summary of the latest run that has one.
    pub latest_summary: Option<String>,
    pub parents: Vec<TaskId>,
    pub children: Vec<TaskId>,
    /// The latest of the thread, oldest first.
    pub comments: Vec<Comment>,
    /// The latest messages to the agents of its runs, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// Its files, oldest first.
    pub attachments: Vec<StoredAttachment>,
    /// The latest events, oldest first.
    pub events: Vec<Event>,
    /// The latest attempts, oldest first.
    pub runs: Vec<Run>,
    /// The latest events of the proxies of its runs, oldest first: refused hosts, and the traffic of ended runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<Event>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<More>,
}

impl Verb for Show {
    verb! {
        "show": Worker, Read,
        members,
        tool(Worker, "Call it first: it returns the body, the comments, the files, the earlier attempts and the tasks before and after it.")
        => ShownTask
    }

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    async fn run(self, call: Call) -> Result<ShownTask, Failure> {
        let id = parse::named(self.task_id)?;
        let actor = call.actor.clone();
        let state = RunState::from_arguments(self.state_type, self.state_name)?;
        let before = self.before_comment;
        let place = attachments::place_of(&call)?;
        let mut shown = call
            .read(move |view| {
                let task = view.task_for(&id, &actor)?;
                let filter = EventFilter {
                    task: Some(id.clone()),
                    limit: EVENTS,
                    newest_first: true,
                    ..EventFilter::default()
                };
                let (parents, children) = (view.some_parents(&id)?, view.some_children(&id)?);
                let comments = view.thread(&id, before, &actor)?;
                let events = view.some_events(&filter)?;
                let kinds = [EventKind::Egress, EventKind::EgressDenied, EventKind::BudgetSpent]
                    .map(|kind| kind.as_str().to_owned());
                let egress = view.some_events(&EventFilter { kinds: kinds.to_vec(), ..filter })?;
                let runs = view.history(&id, &actor)?;
                let more = [
                    (More::Parents, parents.more),
                    (More::Children, children.more),
                    (More::Comments, comments.more),
                    (More::Events, events.more),
                    (More::Runs, runs.more),
                ];
                Ok(ShownTask {
                    why: None,
                    time_limit: TimeLimitLine::of_open(&runs.rows),
                    latest_summary: runs.rows.iter().rev().find_map(handed_over),
                    parents: parents.rows,
                    children: children.rows,
                    comments: comments.rows,
                    messages: view.messages(&id, messages::SHOWN)?,
                    attachments: StoredAttachment::all(view.attachments(&id)?, &place),
                    events: events.rows,
                    egress: egress.rows,
                    runs: RunState::among(state.as_ref(), runs.rows),
                    more: more.into_iter().filter_map(|(what, more)| more.then_some(what)).collect(),
                    task,
                })
            })
            .await?;
        let explained = upkeep::diagnosis::why::explain(&call, vec![shown.task.clone()]).await?;
        shown.why = explained.into_iter().next().and_then(|task| task.why);
        shown.time_limit = shown.time_limit.or_else(|| TimeLimitLine::of_next(&call, &shown.task));
        Ok(shown)
    }
}

/// Returns the result that a run handed over. A run without a verdict has only its last output, which is no result.
fn handed_over(run: &Run) -> Option<String> {
    run.summary.clone().filter(|_| run.outcome != Some(Outcome::Unreported))
}

impl Command for Show {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::default_to_own_task(&mut self.task_id, here)
    }

    fn show(reply: &ShownTask, screen: &mut Screen) {
        let task = &reply.task;
        let title = screen.paint(Ink::Bold, &printable(&task.title));
        screen.line(format!("{}  {title}", task.id));
        let status = screen.paint(super::list::ink(task.status), task.status.as_str());
        field(screen, "status", &status);
        if let Some(why) = &reply.why {
            field(screen, "why", &printable(&upkeep::diagnosis::why::line(why)));
        }
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        field(screen, "assignee", &or_dash(task.assignee.as_ref().map(ToString::to_string)));
        if let Some(reviewer) = &task.reviewer {
            field(screen, "reviewer", reviewer.as_str());
        }
        if let Some(tenant) = &task.tenant {
            field(screen, "tenant", tenant.as_str());
        }
        let path = task.workspace_path.as_deref().map(|path| format!(" at {path}")).unwrap_or_default();
        field(screen, "workspace", &printable(&format!("{}{path}", task.workspace)));
        for (name, value) in [("branch", &task.branch_name), ("policy", &task.policy)] {
            if let Some(value) = value {
                field(screen, name, &printable(value));
            }
        }
        show_given(task, screen);
        if task.priority != 0 {
            field(screen, "priority", &task.priority.to_string());
        }
        let by = task.created_by.as_deref().map(|by| format!(" by {}", printable(by))).unwrap_or_default();
        field(screen, "created", &format!("{}{by}", timestamp::local(task.created_at)));
        for (name, ids) in [("parents", &reply.parents), ("children", &reply.children)] {
            if !ids.is_empty() {
                field(screen, name, &ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
            }
        }
        if let Some(limit) = &reply.time_limit {
            field(screen, "time limit", &limit.words());
        }
        show_approval(task, screen);
        show_check(task, screen);
        show_goal(task, screen);
        if let Some(question) = &task.question {
            show_question(question, screen);
        }
        if let Some(body) = &task.body {
            screen.heading("Body");
            screen.line(printable_lines(body));
        }
        if let Some(notes) = &task.notes {
            screen.heading("Notes");
            screen.line(printable_lines(notes));
        }
        if let Some(result) = &task.result {
            screen.heading(result_heading(task, &reply.runs));
            screen.line(printable_lines(result));
        }
        if !reply.runs.is_empty() {
            screen.heading("Runs");
            if reply.more.contains(&More::Runs) {
                let hint = format!("There are older ones: supervisor runs {}", task.id);
                screen.line(cli_context::repeated(&hint));
            }
            runs::table(&reply.runs, screen);
            if let Some((run, line)) = reply.runs.iter().rev().find_map(end_text::line) {
                field(screen, &format!("run {run}"), &line);
            }
            if let Some((run, report)) =
                reply.runs.iter().rev().find_map(confinement).filter(|(_, report)| !report.is_whole())
            {
                let hint = format!("{}: supervisor show {} --verbose", report.summary(), task.id);
                let text = cli_context::repeated(&hint);
                field(screen, &format!("sandbox {run}"), &printable(&text));
            }
        }
        if let Some((run, lines)) = crate::views::evidence::lines(&reply.runs) {
            screen.heading(&format!("Evidence of run {run}"));
            for (name, text) in &lines {
                field(screen, name, text);
            }
        }
        show_spent(&reply.runs, screen);
        show_egress(&reply.egress, &reply.runs, screen);
        messages::show(&reply.messages, screen);
        if !reply.attachments.is_empty() {
            screen.heading("Attachments");
            attachments::table(&reply.attachments, screen);
        }
        if !reply.comments.is_empty() {
            screen.heading("Comments");
            if let Some(first) = reply.comments.first().filter(|_| reply.more.contains(&More::Comments)) {
                let older = format!("supervisor show {} --before-comment {}", task.id, first.id);
                screen.line(format!("There are older ones: {older}"));
            }
            for comment in &reply.comments {
                show_comment(comment, screen);
            }
        }
    }
}

/// Skills and tools of its workers, its mission, and its subscribers.
fn show_given(task: &Task, screen: &mut Screen) {
    if !task.skills.is_empty() {
        field(screen, "skills", &printable(&task.skills.join(", ")));
    }
    if let Some(mode) = task.commits.mode {
        field(screen, "commit", mode.as_str());
    }
    if let Some(note) = &task.branch_note {
        field(screen, "merge", &printable(note));
    }
    if !task.pools.is_empty() {
        let pools: Vec<&str> = task.pools.iter().map(kernel::Pool::as_str).collect();
        field(screen, "pools", &pools.join(", "));
    }
    if let Some(mission) = &task.lineage.mission {
        field(screen, "mission", &printable(mission));
    }
    if let Some(channel) = &task.origin.channel {
        field(screen, "channel", &printable(channel));
    }
    if let Some(from) = forked(task) {
        field(screen, "forked from", &from);
    }
}

/// Origin of the session of its first run.
pub(super) fn forked(task: &Task) -> Option<String> {
    let kernel::Origin { forked_from, forked_run, forked_session, .. } = &task.origin;
    let (task, run) = (forked_from.as_ref()?, forked_run.as_ref()?);
    Some(format!("{task}, run {run}, session {}", printable(forked_session.as_deref()?)))
}

/// State of the task's approval, if it needs one.
fn show_approval(task: &Task, screen: &mut Screen) {
    let Some(approval) = &task.approval.state else { return };
    let approver = task.approval.approver.as_deref();
    let by = approver.map(|by| format!(" by {}", printable(by))).unwrap_or_default();
    let class = task.approval.class.as_ref().map(|class| format!(" ({class})")).unwrap_or_default();
    field(screen, "approval", &format!("{approval}{by}{class}"));
}

/// Heading of the result. It is a claim until a check or a person has confirmed it.
fn result_heading(task: &Task, runs: &[Run]) -> &'static str {
    let is_refuted =
        task.failed_checks > 0 || runs.iter().rev().find_map(|run| run.outcome) == Some(Outcome::CheckFailed);
    match task.status {
        Status::Done => "Result",
        _ if task.unchecked_run.is_some() => "Claimed (its check has not ended)",
        _ if is_refuted => "Claimed (its check failed)",
        _ => "Result",
    }
}

/// The check of the task, and its failures in a row.
fn show_check(task: &Task, screen: &mut Screen) {
    let Some(command) = &task.check.command else { return };
    let failed = match task.failed_checks {
        0 => String::new(),
        failed => format!("  (failed {failed} of {})", task.check.limit(&task.goal)),
    };
    field(screen, "check", &format!("{}{failed}", printable(command)));
}

/// Progress of its worker toward its goal.
fn show_goal(task: &Task, screen: &mut Screen) {
    let Some(turns) = task.goal.turns() else { return };
    // With a check, each turn ends with a check, so the failed ones are counted.
    let over = if task.check.command.is_some() { task.failed_checks } else { task.goal_turns };
    field(screen, "goal", &format!("{over} of {} over", Counted(turns, "turn")));
}

/// The question to a person, with the answers to choose from.
fn show_question(question: &kernel::Question, screen: &mut Screen) {
    screen.heading("Question");
    screen.line(printable_lines(&question.text));
    for (at, choice) in question.choices.iter().enumerate() {
        screen.line(format!("  {}. {}", at + 1, printable(choice)));
    }
    if question.free_text {
        screen.line("  or in other words");
    }
    for finding in &question.results {
        let head = format!("{}  {}", finding.task, printable(&finding.title));
        let head = screen.paint(Ink::Dim, &head);
        screen.line(head);
        screen.line(printable_lines(finding.summary.as_deref().unwrap_or("(no summary)")));
    }
}

/// A comment beneath its author and its time.
fn show_comment(comment: &Comment, screen: &mut Screen) {
    let head =
        format!("{} ({}), {}", comment.author, comment.author_kind, timestamp::local(comment.created_at));
    let head = screen.paint(Ink::Dim, &printable(&head));
    screen.line(head);
    screen.line(printable_lines(&comment.body));
}

/// Shows the usage that the agent of the latest run reported, and the sum over all runs if there are several.
fn show_spent(runs: &[Run], screen: &mut Screen) {
    let Some((run, spent)) = runs.iter().rev().find_map(|run| Some((run.id, run.spent.as_ref()?))) else {
        return;
    };
    screen.heading(&format!("Usage of run {run}"));
    for (name, value) in [("model", &spent.model), ("session", &spent.session)] {
        if let Some(value) = value {
            field(screen, name, &printable(value));
        }
    }
    field(screen, "used", &crate::views::usage_text::amounts(spent));
    let all: Vec<&kernel::Spent> = runs.iter().filter_map(|run| run.spent.as_ref()).collect();
    if all.len() > 1 {
        let count = Counted(all.len() as u64, "run");
        let total = crate::views::usage_text::amounts(&crate::views::usage_text::total(&all));
        field(screen, "in all", &format!("{total} ({count})"));
    }
}

/// Returns the sandbox report of a run; none if the run has none.
fn confinement(run: &Run) -> Option<(kernel::RunId, policies::Report)> {
    let report = serde_json::from_value(run.sandbox.clone()?).ok()?;
    Some((run.id, report))
}

/// Sandbox of the latest run that had one.
pub fn show_sandbox(reply: &ShownTask, screen: &mut Screen) {
    match reply.runs.iter().rev().find_map(confinement) {
        Some((run, report)) => show_confinement(run, &report, screen),
        None => screen.line("No run has been confined yet."),
    }
}

/// Enforced layers in a line, and each missing or partial layer with the reason.
fn show_confinement(run: kernel::RunId, report: &policies::Report, screen: &mut Screen) {
    screen.heading(&format!("Sandbox of run {run}"));
    let policy = format!("{}, Landlock ABI {}", report.policy, report.landlock_abi);
    field(screen, "policy", &printable(&policy));
    let (enforced, other): (Vec<_>, Vec<_>) =
        report.layers.iter().partition(|entry| entry.state == policies::State::Enforced);
    let enforced: Vec<String> = enforced.iter().map(|entry| entry.layer.to_string()).collect();
    if !enforced.is_empty() {
        field(screen, "enforced", &enforced.join(", "));
    }
    for entry in other {
        let why = entry.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        field(screen, &entry.state.to_string(), &printable(&format!("{}{why}", entry.layer)));
    }
}

/// Traffic that the proxies of its runs have passed on or refused.
fn show_egress(egress: &[Event], runs: &[Run], screen: &mut Screen) {
    let live = || {
        runs.iter()
            .filter(|run| run.ended_at.is_none())
            .filter_map(|run| Some((run.id, run.egress.as_ref()?)))
    };
    if egress.is_empty() && live().next().is_none() {
        return;
    }
    screen.heading("Way out");
    for (run, figures) in live() {
        field(
            screen,
            &format!("run {run}"),
            &format!("{} so far", crate::views::usage_text::passed(figures)),
        );
    }
    for event in egress {
        let Some(payload) = event.payload.clone() else { continue };
        let of_run = event.run_id.map(|run| format!("run {run}")).unwrap_or_default();
        if event.kind != EventKind::Egress.as_str() {
            let text = payload["text"].as_str().unwrap_or_default();
            field(screen, &of_run, &printable(text));
        } else if let Ok(figures) = serde_json::from_value::<Egress>(payload) {
            field(screen, &of_run, &crate::views::usage_text::passed(&figures));
            for host in figures.hosts.iter().filter(|_| figures.hosts.len() > 1) {
                field(screen, "", &printable(&host_line(host)));
            }
        }
    }
}

/// Traffic to a host, and the number of its refusals.
fn host_line(host: &HostEgress) -> String {
    let HostEgress { host, requests, throttled, unauthorized, sent_bytes, received_bytes } = host;
    let refusals = [(*throttled, "answered with 429"), (*unauthorized, "answered with 401 or 403")];
    let refusals = refusals.into_iter().filter(|(count, _)| *count > 0);
    let requests = Counted(*requests, "request");
    let mut line = format!("{host}: {requests}, {sent_bytes} bytes sent, {received_bytes} received");
    for (count, what) in refusals {
        line = format!("{line}, {count} {what}");
    }
    line
}

fn field(screen: &mut Screen, name: &str, value: &str) {
    let name = screen.paint(Ink::Dim, &format!("{name:<10}"));
    screen.hanging(&format!("  {name} "), value);
}
