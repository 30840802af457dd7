//! Carries out a person's decisions: one verb each, as from the command line.

use std::time::Duration;

use kernel::TaskId;
use tokio::sync::mpsc;

use super::message::{LogPart, TaskVerb, TopMessage};
use crate::client::Client;
use base::failure::Failure;
use verbs::{Answer, Approve, Cancel, Deny, Edit, Log, RequestChanges, Retry, Show};

/// Number of log lines read at first.
const LINES: u32 = 1000;
/// Longest wait of one log request at the daemon.
const WAIT_SECONDS: u64 = 30;
/// Pause before another request for a log that has ended or could not be read.
const PAUSE: Duration = Duration::from_secs(2);
/// Least interval between two pieces of a log, however much is written.
const LEAST: Duration = Duration::from_millis(200);
/// Limit on the comments in a dialog.
const COMMENTS: usize = 3;

/// Carries out an act, and reports the result.
pub(super) async fn act(client: &Client, act: TaskVerb) -> TopMessage {
    TopMessage::Acted(carry_out(client, act).await.map_err(|failure| in_words(&failure)))
}

async fn carry_out(client: &Client, act: TaskVerb) -> Result<String, Failure> {
    match act {
        TaskVerb::Answer { task, answer } => {
            let verb = Answer { task_id: Some(task.clone()), words: Vec::new(), reply: Some(answer) };
            let answered = client.call(&verb).await?;
            Ok(format!("answered {task}: {}", answered.answer))
        }
        TaskVerb::Approve { task } => {
            client.call(&Approve { task_id: Some(task.clone()), ..Approve::default() }).await?;
            Ok(format!("approved {task}"))
        }
        TaskVerb::RequestChanges { task, reason } => {
            let (task_id, reason) = (Some(task.clone()), Some(reason));
            client.call(&RequestChanges { task_id, reason, ..RequestChanges::default() }).await?;
            Ok(format!("sent {task} back"))
        }
        TaskVerb::Deny { task, reason } => {
            client.call(&Deny { task_ids: vec![task.clone()], reason: Some(reason) }).await?;
            Ok(format!("denied {task}"))
        }
        TaskVerb::Retry { task } => {
            client.call(&Retry { task_ids: vec![task.clone()], ..Retry::default() }).await?;
            Ok(format!("retried {task}"))
        }
        TaskVerb::Cancel { task } => {
            client.call(&Cancel { task_ids: vec![task.clone()], ..Cancel::default() }).await?;
            Ok(format!("cancelled {task}"))
        }
        TaskVerb::Prioritize { task, priority } => {
            let edit = Edit { task_id: Some(task.clone()), priority: Some(priority), ..Edit::default() };
            client.call(&edit).await?;
            Ok(format!("the priority of {task} is {priority}"))
        }
    }
}

fn in_words(failure: &Failure) -> String {
    let hint = failure.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{}{hint}", failure.message)
}

/// Collects facts for a dialog about an approval. Errors are left out, because the act itself reports them.
pub(super) async fn find(client: &Client, task: TaskId) -> TopMessage {
    let shown = client.call(&Show { task_id: Some(task.clone()), ..Show::default() }).await;
    let facts = shown.map_or_else(
        |failure| vec![in_words(&failure)],
        |shown| {
            let why = shown.why.as_ref().map(upkeep::diagnosis::why::line);
            let summary = shown.latest_summary.map(|summary| format!("Summary: {summary}"));
            let asked = shown.task.question.iter().flat_map(|question| &question.results);
            let before = asked.filter_map(|finding| Some(format!("Before: {}", finding.summary.as_ref()?)));
            let latest = shown.comments.len().saturating_sub(COMMENTS);
            let comments = shown.comments[latest..].iter();
            let comments = comments.map(|comment| format!("{}: {}", comment.author, comment.body));
            why.into_iter().chain(summary).chain(before).chain(comments).collect()
        },
    );
    TopMessage::Facts { task, facts }
}

/// Follows the log of a task's latest run, and of later ones, until the receiver is gone.
pub(super) async fn follow(client: &Client, task: TaskId, messages: mpsc::Sender<TopMessage>) {
    let first = Log { task_id: Some(task.clone()), lines: Some(LINES), ..Log::default() };
    let mut log = first.clone();
    let mut last = None;
    loop {
        let Ok(logged) = client.call(&log).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let has_more = !logged.text.is_empty();
        let (run, ended) = (logged.run_id, logged.ended);
        let is_new = last.as_ref() != Some(&(run, ended));
        last = Some((run, ended));
        if has_more || is_new {
            let piece = LogPart {
                task: task.clone(),
                run,
                format: logged.stdout,
                text: logged.text,
                ended: ended && !has_more,
            };
            if messages.send(TopMessage::Logged(piece)).await.is_err() {
                return;
            }
        }
        // Further requests wait at the daemon for this run's output.
        log.offset = Some(logged.next_offset);
        (log.run, log.wait) = (run, WAIT_SECONDS);
        if run.is_some() && (has_more || !ended) {
            tokio::time::sleep(LEAST).await;
            continue;
        }
        // The run has ended, or there is none; another one may start.
        tokio::time::sleep(PAUSE).await;
        let latest = Log { task_id: Some(task.clone()), offset: Some(0), tail: None, ..Log::default() };
        match client.call(&latest).await {
            Ok(logged) if logged.run_id != run => {
                log = Log { offset: Some(0), run: logged.run_id, ..first.clone() }
            }
            Ok(_) | Err(_) => {}
        }
    }
}
