//! `schedule`: keeps tasks from starting before a time.

use kernel::{Status, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, TaskResult, pending};
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::Screen;
use base::time::timestamp::{self, When};

/// Delay tasks until a time, or until they are unblocked
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
If a task is running, its worker is ended first.

Examples:
  supervisor schedule t_0123abcd --at 2h
  supervisor schedule t_0123abcd 'waits for the customer'
  supervisor schedule t_0123abcd 'after the release' --at '2026-11-23 09:00' \\
      --ids t_4567cdef")]
pub struct Schedule {
    /// The task
    #[arg(required = true)]
    pub task_id: Option<TaskId>,
    /// Reason for the delay
    #[arg(value_name = "REASON", num_args = 0..)]
    pub reason: Vec<String>,
    /// Earliest start: 2h, '2026-11-23 09:00', 'tomorrow 9am', an RFC 3339 time, epoch seconds [default: when unblocked]
    #[arg(long, value_name = "WHEN")]
    pub at: Option<When>,
    /// More tasks
    #[arg(long, value_name = "TASK", num_args = 1..)]
    pub ids: Vec<TaskId>,
}

/// Result for each task, and the time at which the tasks start.
#[derive(Debug, Serialize, Deserialize)]
pub struct Scheduled {
    #[serde(flatten)]
    bulk: Bulk,
    /// Time from which the tasks can start; none if a person has to unblock them.
    #[serde(skip_serializing_if = "Option::is_none")]
    starts_at: Option<Timestamp>,
}

impl Verb for Schedule {
    verb! { "schedule": Operator, Write, members => Scheduled }

    async fn run(self, call: Call) -> Result<Scheduled, Failure> {
        let starts_at = self.at.map(When::timestamp);
        let at = starts_at.unwrap_or(Timestamp::OPEN_END);
        let reason = parse::sentence(&self.reason);
        let ids: Vec<TaskId> = self.task_id.into_iter().chain(self.ids).collect();
        call.refuse_live_without_daemon(&ids).await?;
        call.write(move |board, actor| {
            let bulk = Bulk::each(board, ids, |board, id| {
                let settled = board.schedule(id, at, reason.as_deref(), actor)?;
                let parked = match (starts_at, settled.task.status) {
                    (Some(_), _) => None,
                    (None, Status::Todo) => {
                        Some("when its parents are done, parked until unblocked".to_owned())
                    }
                    (None, _) => Some(format!("until: supervisor unblock {id}")),
                };
                Ok((settled.task.status, joined(pending(settled.effect), parked)))
            })?;
            Ok(Scheduled { bulk, starts_at })
        })
        .await
    }
}

impl Command for Schedule {
    fn show(reply: &Scheduled, screen: &mut Screen) {
        let starts = reply.starts_at.map(|at| format!("starts at {}", timestamp::local(at)));
        for one in &reply.bulk.results {
            let note = joined(one.note.clone(), starts.clone());
            TaskResult { note, ..one.clone() }.show("Scheduled", screen);
        }
    }

    fn verdict(reply: &Scheduled) -> u8 {
        reply.bulk.verdict()
    }
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    let notes: Vec<String> = first.into_iter().chain(second).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}
