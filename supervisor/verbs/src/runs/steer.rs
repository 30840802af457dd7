//! `steer`: sends a message to the agent of a running task.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Message, MessageState, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use api::command::Command;
use api::{Call, REPLY_TIME, Verb, to_its_end, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::Screen;
use base::time::duration::WrittenDuration;
use daemon::{OwnerLink, TaskKey};

/// Default time to wait for the agent's confirmation.
const TIMEOUT: &str = "5s";
/// Limit on this time.
const LONGEST: Duration = Duration::from_hours(1);

/// Send a message to the agent of a running task
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The agent reads it between two steps of its work, or as its next turn. It gets each
message once, even if the daemon is restarted in between. Its delivery is shown in
`supervisor show` and in the events of the task.

Exit code: 4 if it was not delivered, because no agent is at work, its lane takes no
messages, or the run ended first.

Examples:
  supervisor steer t_0123abcd 'leave the tests alone'
  supervisor steer t_0123abcd 'use the new endpoint' --timeout 1m")]
pub struct Steer {
    /// The task
    pub task_id: TaskId,
    /// The message to the agent
    pub message: String,
    /// Time to wait until the agent has taken it up; the message stays queued after that
    #[arg(long, value_name = "DURATION", default_value = TIMEOUT)]
    #[serde(default = "timeout")]
    pub timeout: WrittenDuration,
}

fn timeout() -> WrittenDuration {
    TIMEOUT.parse().unwrap_or_else(|_| unreachable!("a literal duration parses"))
}

/// Notifies the daemon of a message to the agent of a task.
pub(crate) fn ring(call: &Call, task: &TaskId) {
    if let Some(daemon) = OwnerLink::from_service(&call.service) {
        daemon.wake_run(&TaskKey { board: call.board_name().clone(), task: task.clone() });
    }
}

impl Verb for Steer {
    verb! { "steer": Operator, Daemon, members, hang_up(Ends) => Message }

    fn answered_within(&self) -> Duration {
        REPLY_TIME + self.timeout.duration().min(LONGEST)
    }

    async fn run(self, call: Call) -> Result<Message, Failure> {
        if call.service.daemon().is_none() {
            return Err(Failure::new(
                Code::Unreachable,
                format!("the message to {} was not delivered: no daemon is running", self.task_id),
            )
            .hint("start one with: supervisor daemon"));
        }
        let until = Instant::now() + self.timeout.duration().min(LONGEST);
        // The subscription precedes the message, so that no change is missed in between.
        let mut news = call.board()?.changes();
        let service = Arc::clone(&call.service);
        let sending = async move {
            let (task, text) = (self.task_id.clone(), self.message);
            let sent = call.write(move |board, actor| board.steer(&task, &text, actor)).await?;
            ring(&call, &self.task_id);
            Ok((call, sent))
        };
        // The daemon is notified of a stored message even if the caller hangs up.
        let (call, sent) = to_its_end(&service, "the message was not delivered", sending).await?;
        let (run, number) = (sent.run_id, sent.number);
        loop {
            news.mark_unchanged();
            let now = call.read(move |view| view.message(run, number)).await?.unwrap_or_else(|| sent.clone());
            match now.state {
                MessageState::Delivered => return Ok(now),
                MessageState::NotDelivered => return Err(not_delivered(&now)),
                MessageState::Queued | MessageState::Written => {}
            }
            if call.board()?.is_closing() || Instant::now() >= until {
                return Ok(now);
            }
            // Cancel-safe: if the timeout wins, the next iteration reads the message again.
            tokio::select! {
                changed = news.changed() => drop(changed),
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }
}

fn not_delivered(message: &Message) -> Failure {
    let Message { task_id, run_id, number, reason, .. } = message;
    let why = reason.as_deref().unwrap_or("the run has ended");
    Failure::new(
        Code::Conflict,
        format!("message {number} to run {run_id} of {task_id} was not delivered: {why}"),
    )
    .hint(format!(
        "leave it as a comment, which the next run of the task reads: supervisor comment {task_id} '…'"
    ))
    .after_a_change()
}

impl Command for Steer {
    fn show(reply: &Message, screen: &mut Screen) {
        let Message { task_id, run_id, number, .. } = reply;
        let of = format!("message {number} to run {run_id} of {task_id}");
        let later = format!("`supervisor show {task_id}` says what becomes of it");
        screen.line(match reply.state {
            MessageState::Delivered => format!("Delivered {of}"),
            MessageState::Written => format!("Sent {of}: its agent has not taken it up yet; {later}"),
            MessageState::Queued => format!("Not delivered yet: {of} waits for the agent; {later}"),
            MessageState::NotDelivered => format!("Not delivered: {of}"),
        });
    }
}
