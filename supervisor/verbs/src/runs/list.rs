//! `runs`: lists the runs of a task.

use kernel::{Dollars, Outcome, Run, RunStatus, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::pages::{self, Listed, PageRequest, PagedRow, pages};
use crate::views::{cursor, end_text, parse};
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Cell, Ink, Screen};
use base::time::duration::in_column;
use base::time::timestamp;

/// List the runs of a task
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor runs t_0123abcd
  supervisor runs t_0123abcd --state-type outcome --state-name crashed --json
  supervisor runs t_0123abcd --limit 100 --page --json

JSON is an array of runs. With --page or --cursor it is an object with one page:
{\"runs\": […], \"next\": \"…\"}, where `next` is the cursor of the next page, or null.")]
pub struct Runs {
    /// The task
    pub task_id: Option<TaskId>,
    /// Only runs whose status or outcome is --state-name
    #[arg(long, value_name = "WHICH", value_enum, requires = "state_name")]
    pub state_type: Option<StateType>,
    /// The status or outcome
    #[arg(long, value_name = "WORD", requires = "state_type")]
    pub state_name: Option<String>,
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

impl PagedRow for Run {
    const ROWS: &'static str = "runs";
}

pages!(Runs, Run);

/// Kind of a run's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateType {
    Status,
    Outcome,
}

/// States of `hermes kanban` that runs here never have.
const FOREIGN: [&str; 5] = ["stale", "gave_up", "scheduled", "failed", "released"];

/// The state by which a request filters runs.
pub(crate) struct RunState {
    kind: StateType,
    name: String,
}

impl RunState {
    /// Returns the state that a request names; none if it names none.
    pub(crate) fn from_arguments(
        kind: Option<StateType>,
        name: Option<String>,
    ) -> Result<Option<Self>, Failure> {
        let (kind, name) = match (kind, name) {
            (None, None) => return Ok(None),
            (Some(kind), Some(name)) => (kind, name),
            (Some(_), None) | (None, Some(_)) => {
                return Err(Failure::usage("state_type and state_name go together")
                    .hint("such as --state-type outcome --state-name completed"));
            }
        };
        let words: Vec<&str> = match kind {
            StateType::Status => RunStatus::ALL.iter().map(|word| word.as_str()).collect(),
            StateType::Outcome => Outcome::ALL.iter().map(|word| word.as_str()).collect(),
        };
        if !words.contains(&name.as_str()) && !FOREIGN.contains(&name.as_str()) {
            let what = if kind == StateType::Status { "status" } else { "outcome" };
            return Err(Failure::usage(format!("unknown {what} `{name}`"))
                .hint(format!("it is one of {}", words.join(", "))));
        }
        Ok(Some(RunState { kind, name }))
    }

    /// Returns the runs in a state; all runs if there is no state.
    pub(crate) fn among(state: Option<&Self>, mut runs: Vec<Run>) -> Vec<Run> {
        if let Some(state) = state {
            runs.retain(|run| match state.kind {
                StateType::Status => run.status.as_str() == state.name,
                StateType::Outcome => run.outcome.is_some_and(|outcome| outcome.as_str() == state.name),
            });
        }
        runs
    }
}

impl Verb for Runs {
    verb! { "runs": Worker, Read, members => Listed<Run> }

    async fn run(self, call: Call) -> Result<Listed<Run>, Failure> {
        let wanted = PageRequest::by(&self);
        let after = cursor::after(self.cursor.as_deref())?;
        let limit = pages::limit(self.limit)?;
        let id = parse::named(self.task_id)?;
        let actor = call.actor.clone();
        let state = RunState::from_arguments(self.state_type, self.state_name)?;
        let part = call
            .read(move |view| {
                view.task_for(&id, &actor)?;
                view.history_after(&id, after, limit, &actor)
            })
            .await?;
        let next = part.rows.last().filter(|_| part.more).map(|last| cursor::sealed(&last.id.to_string()));
        let runs = RunState::among(state.as_ref(), part.rows);
        Ok(wanted.reply(runs, next))
    }
}

impl Command for Runs {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::default_to_own_task(&mut self.task_id, here)
    }

    fn show(reply: &Listed<Run>, screen: &mut Screen) {
        let (runs, next) = reply.parts();
        if runs.is_empty() && next.is_none() {
            screen.line("No runs yet.");
            return;
        }
        table(runs, screen);
        let lines: Vec<_> = runs.iter().filter_map(end_text::line).collect();
        if !lines.is_empty() {
            screen.heading("Used");
        }
        for (run, line) in lines {
            screen.hanging(&format!("  run {run:<6} "), &line);
        }
        pages::show_next(next, screen);
    }
}

/// Shows a table of runs: the outcome, duration and summary of each, and below it the usage of its agent, if known.
pub(crate) fn table(runs: &[Run], screen: &mut Screen) {
    let rows = runs.iter().map(|run| {
        let took =
            run.ended_at.map_or_else(|| "running".to_owned(), |end| in_column(end.since(run.started_at)));
        let outcome = run.outcome.map_or_else(|| run.status.to_string(), |outcome| outcome.to_string());
        let outcome = match run.tries {
            Some(tries) if tries > 1 => format!("{outcome} ({tries} tries)"),
            Some(_) | None => outcome,
        };
        [
            Cell::from(run.id.to_string()),
            Cell::inked(ink(run.outcome), outcome),
            Cell::or_dash(end_text::code(run)),
            Cell::from(timestamp::local(run.started_at)),
            Cell::from(took),
        ]
    });
    let text =
        |run: &Run| Cell::from(run.summary.as_deref().or(run.error.as_deref()).unwrap_or("-").to_owned());
    if runs.iter().all(|run| run.spent.is_none()) {
        let rows = rows
            .zip(runs)
            .map(|([id, outcome, code, started, took], run)| [id, outcome, code, started, took, text(run)]);
        screen.table(["RUN", "OUTCOME", "CODE", "STARTED", "TOOK", "SUMMARY"], rows);
        return;
    }
    let rows = rows.zip(runs).map(|([id, outcome, code, started, took], run)| {
        let tokens = run.spent.as_ref().map(kernel::Spent::all_tokens);
        let cost = run.spent.as_ref().and_then(|spent| spent.cost_micros).map(Dollars);
        let tokens = Cell::or_dash(tokens.map(|tokens| tokens.to_string()));
        [id, outcome, code, started, took, tokens, Cell::or_dash(cost), text(run)]
    });
    screen.table(["RUN", "OUTCOME", "CODE", "STARTED", "TOOK", "TOKENS", "COST", "SUMMARY"], rows);
}

/// The colour of an outcome; for none, the colour of an active run.
pub(crate) fn ink(outcome: Option<kernel::Outcome>) -> Ink {
    match outcome {
        Some(kernel::Outcome::Completed | kernel::Outcome::Approved | kernel::Outcome::CheckPassed) => {
            Ink::Green
        }
        None => Ink::Cyan,
        Some(_) => Ink::Yellow,
    }
}
