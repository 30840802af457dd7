//! `supervisor __a2a`: worker of the lane `a2a`. Gives its task to a remote agent that speaks A2A 1.0, waits for the
//! agent's task, and reports the result to the board.
//!
//! The process runs confined, like every worker. The agent's responses are hostile: their size is limited, and the
//! verdict goes through a verb of this run, with the checks of every worker. When the run is ended, the process cancels
//! the agent's task. A question of the agent becomes a question of this task; the answer goes to the same task of the
//! agent, whose id is kept in the notes.
//!
//! The process polls with `GetTask` instead of reading a stream, because each restart of the daemon would cut the
//! stream. The interface in an agent's card must have the address of the card, because the token of the agent would
//! otherwise go to any host that the card names.

mod agent;
mod ending;

use std::ffi::OsString;
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kernel::{ActorKind, EventKind};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use self::agent::Agent;
use self::ending::{ending, state};
use super::request::CONTEXT_BYTES;
use crate::client::Client;
use base::environment;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::complain;
use setup::lanes::Service;
use verbs::{Show, ShownTask};

/// First and longest interval between two reads of the agent's task.
const LOOK: Duration = Duration::from_millis(250);
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// Time for which an unreachable agent is retried. A restart of the daemon cuts connections through its proxy.
const AWAY: Duration = Duration::from_mins(2);
/// Time limit of the cancellation of the agent's task when this run is ended. By default, a run has five seconds to
/// end.
const CANCELLED: Duration = Duration::from_secs(3);
/// Prefix of the agent's task id in the notes.
const NOTE: &str = "a2a-task: ";

pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    super::ended(super::asked(arguments), async |service: Service| work(&service).await)
}

async fn work(service: &Service) -> Result<(), Failure> {
    let client = Client::of_this_run()?;
    let mut context = String::new();
    let read = std::io::stdin().lock().take(CONTEXT_BYTES).read_to_string(&mut context);
    read.map_err(|e| Failure::failed(format!("failed to read the context of the task: {e}")))?;
    let run_task = client.worker().map(|worker| worker.task.clone());
    let shown = client.call(&Show { task_id: run_task, ..Show::default() }).await?;
    let mut terminate = signal(SignalKind::terminate())
        .map_err(|e| Failure::failed(format!("failed to listen to signals: {e}")))?;
    let begun: OnceLock<(Agent, Option<String>)> = OnceLock::new();
    let working = async {
        let agent = Agent::of_card(service).await?;
        let task = agent.send(&message(&shown, &context)).await?;
        let name = task["id"].as_str().map(str::to_owned);
        let (agent, _) = begun.get_or_init(|| (agent, name));
        follow(agent, task).await
    };
    let followed = tokio::select! {
        followed = working => followed,
        _ = terminate.recv() => {
            // Without the id of its task, the agent cannot be asked to cancel it.
            let Some((agent, Some(name))) = begun.get() else {
                return Err(Failure::failed("this run was ended before the agent had named its task"));
            };
            let cancelled = tokio::time::timeout(CANCELLED, agent.call("CancelTask", json!({ "id": name }))).await;
            return Err(Failure::failed(match cancelled {
                Ok(Ok(_)) => "this run was ended, and the agent has cancelled its task",
                Ok(Err(_)) | Err(_) => "this run was ended; the agent may still work on its task",
            }));
        }
    };
    ending(&followed?)?.tell(&client).await
}

/// Builds the message to the agent: the task, or the answer to its question in an earlier run.
fn message(shown: &ShownTask, context: &str) -> Value {
    let run = environment::text("SUPERVISOR_RUN_ID").unwrap_or_default();
    let mut message = json!({
        "messageId": format!("{}-{run}", shown.task.id),
        "role": "ROLE_USER",
        "parts": [{ "text": context, "mediaType": "text/plain" }],
    });
    if let (Some(name), Some(answer)) = (task_of_agent(shown), answer(shown)) {
        message["taskId"] = name.into();
        message["parts"] = json!([{ "text": answer, "mediaType": "text/plain" }]);
    }
    message
}

/// Returns the id of the agent's task that asked a question, from the notes of the run that passed the question on.
fn task_of_agent(shown: &ShownTask) -> Option<String> {
    let notes = shown.task.notes.as_deref()?;
    notes.lines().find_map(|line| line.strip_prefix(NOTE)).map(str::to_owned)
}

/// Returns a person's answer since the end of the last run: the last answer to its question, else the last comment.
fn answer(shown: &ShownTask) -> Option<String> {
    let since = shown.runs.iter().filter_map(|run| run.ended_at).max()?;
    let answered = shown
        .events
        .iter()
        .rev()
        .find(|event| event.kind == EventKind::Answered.as_str() && event.created_at >= since);
    let answer = answered.and_then(|event| event.payload.as_ref()?["answer"].as_str().map(str::to_owned));
    let comment = || {
        let people = shown
            .comments
            .iter()
            .rev()
            .find(|one| one.author_kind == ActorKind::Person && one.created_at >= since);
        people.map(|comment| comment.body.clone())
    };
    answer.or_else(comment)
}

/// Reads the agent's task until it is over or waits for a person, and returns it. Logs each change of its status. While
/// the agent is unreachable, tries for [`AWAY`].
async fn follow(agent: &Agent, mut task: Value) -> Result<Value, Failure> {
    let (mut pause, mut last_status, mut away) = (LOOK, String::new(), None::<Instant>);
    loop {
        let status = task["status"].to_string();
        if status != last_status {
            agent::log(&task["status"]);
            (last_status, pause) = (status, LOOK);
        }
        let Some(name) = task["id"].as_str().filter(|_| !state(&task).rests()) else { return Ok(task) };
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_LOOK);
        match agent.call("GetTask", json!({ "id": name })).await {
            Ok(next) if next["id"] == name => (task, away) = (next, None),
            Ok(_) => {
                return Err(Failure::failed("the agent answers with another task than the one asked for"));
            }
            Err(failure) if matches!(failure.code, Code::Unreachable | Code::Throttled) => {
                let since = *away.get_or_insert_with(Instant::now);
                if since.elapsed() >= AWAY {
                    return Err(failure);
                }
                complain(&format!("warning: {}", failure.message));
                pause = LONGEST_LOOK;
            }
            Err(failure) => return Err(failure),
        }
    }
}
