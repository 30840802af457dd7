//! `runs`: the attempts at a task.

use std::time::Duration;

use kernel::{Run, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts;
use crate::api::{Audience, Call, Effect, Verb};
use crate::client::Client;
use crate::failure::Failure;
use crate::moment;
use crate::span::brief;
use crate::terminal::{Cell, Ink, Screen};

/// Show every attempt at a task
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor runs t_0123abcd
  supervisor runs t_0123abcd --json")]
pub(crate) struct Runs {
    /// The task
    pub(crate) task_id: Option<TaskId>,
}

impl Verb for Runs {
    const NAME: &'static str = "runs";
    const AUDIENCE: Audience = Audience::Worker;
    const EFFECT: Effect = Effect::Read;
    type Reply = Vec<Run>;

    fn localize(&mut self, client: &Client) -> Result<(), Failure> {
        self.task_id = Some(texts::own_task(self.task_id.take(), client)?);
        Ok(())
    }

    async fn run(self, call: Call) -> Result<Vec<Run>, Failure> {
        let id = texts::named(self.task_id)?;
        let actor = call.actor.clone();
        call.read(move |view| {
            view.task_for(&id, &actor)?;
            view.runs(&id)
        })
        .await
    }

    fn show(reply: &Vec<Run>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("No run yet.");
            return;
        }
        table(reply, screen);
    }
}

/// The table of runs: how each ended, how long it took, what it said.
pub(super) fn table(runs: &[Run], screen: &mut Screen) {
    let rows = runs.iter().map(|run| {
        let took = run.ended_at.map_or_else(
            || "running".to_owned(),
            |end| {
                brief(Duration::from_micros(
                    (end.as_micros() - run.started_at.as_micros()).max(0).unsigned_abs(),
                ))
            },
        );
        let code = match (run.exit_code, run.signal) {
            (_, Some(signal)) => format!("signal {signal}"),
            (Some(code), None) => format!("exit {code}"),
            (None, None) => "-".to_owned(),
        };
        let text = run.summary.as_deref().or(run.error.as_deref()).unwrap_or("-");
        let outcome = run.outcome.map_or_else(|| run.status.to_string(), |outcome| outcome.to_string());
        [
            Cell::from(run.id.to_string()),
            Cell::inked(ink(run.outcome), outcome),
            Cell::from(code),
            Cell::from(moment::local(run.started_at)),
            Cell::from(took),
            Cell::from(text.to_owned()),
        ]
    });
    screen.table(["RUN", "OUTCOME", "CODE", "STARTED", "TOOK", "SUMMARY"], rows);
}

/// The colour of an outcome; of none while the run goes on.
pub(super) fn ink(outcome: Option<kernel::Outcome>) -> Ink {
    match outcome {
        Some(kernel::Outcome::Completed | kernel::Outcome::Approved) => Ink::Green,
        None => Ink::Cyan,
        Some(_) => Ink::Yellow,
    }
}
