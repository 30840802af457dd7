//! Why a task is not running: where what the board knows and what the daemon knows meet.
//!
//! The board answers first: parents, times, people. What it would let run at once, the daemon is asked about, or found
//! not to be there. So every task that is neither running nor over has an answer, and none of them is remembered.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Profile, Status, Task, TaskId, Waiting, WaitingCode};

use crate::api::Call;
use crate::daemon::{OwnerLink, ask_why};
use crate::failure::Failure;
use crate::lanes::check_performer;
use crate::roster::CannotRun;
use crate::time::timestamp;

/// Puts into each of these tasks why it is not running.
pub(crate) async fn explain(call: &Call, tasks: Vec<Task>) -> Result<Vec<Task>, Failure> {
    let roster = call.service.roster();
    let config = call.service.config();
    let accounts = roster.accounts(&config);
    let mut tasks = call
        .read(move |view| {
            let mut tasks = tasks;
            let told = view.waiting_all(&tasks, &accounts)?;
            for (task, why) in tasks.iter_mut().zip(told) {
                task.why = why;
            }
            Ok(tasks)
        })
        .await?;
    let open: Vec<(Task, Option<Profile>)> = tasks.iter().filter_map(left_open).collect();
    if open.is_empty() {
        return Ok(tasks);
    }
    let cannot_run: BTreeMap<TaskId, CannotRun> = open
        .iter()
        .filter(|(task, _)| task.status != Status::Running)
        .filter_map(|(task, profile)| {
            let resolved = roster.resolve(profile.as_ref()?, task.policy.as_deref(), &config);
            Some((task.id.clone(), resolved.err()?))
        })
        .collect();
    let answers = match OwnerLink::of(&call.service) {
        Some(daemon) => {
            ask_why(daemon, call.board()?.name(), open, (Arc::clone(&roster), Arc::clone(&config))).await
        }
        None => None,
    };
    for task in &mut tasks {
        let Some((_, profile)) = left_open(task) else { continue };
        let answer = match (cannot_run.get(&task.id), &answers) {
            (Some(why), _) if task.status == Status::Review && why.is_claimed() => {
                Some(Waiting::new(WaitingCode::Review, why.to_string()))
            }
            (Some(why), _) => Some(why.waiting()),
            (None, Some(answers)) => answers.get(&task.id).cloned(),
            (None, None) => Some(no_daemon(task)),
        };
        // A run that goes on has nothing to wait for.
        let about_runs =
            [WaitingCode::Ending, WaitingCode::Survivors, WaitingCode::Stuck, WaitingCode::NoDaemon];
        let answer =
            answer.filter(|answer| task.status != Status::Running || about_runs.contains(&answer.code));
        if let Some(answer) = answer {
            task.why = Some(match (task.status, profile) {
                (Status::Review, Some(_)) if task.unchecked_run.is_some() => {
                    Waiting { text: format!("its check is to run: {}", answer.text), ..answer }
                }
                (Status::Review, Some(reviewer)) => {
                    Waiting { text: format!("waits for a review by {reviewer}: {}", answer.text), ..answer }
                }
                _ => answer,
            });
        }
    }
    Ok(tasks)
}

/// A task that the board lets run, or would, with its assignee.
fn left_open(task: &Task) -> Option<(Task, Option<Profile>)> {
    let code = task.why.as_ref().map(|why| why.code);
    let held = task.why.as_ref().is_some_and(|why| why.until.is_some());
    let profile = match (task.status, code) {
        // What nothing could run when the board was told, something may run by now.
        (Status::Ready, None | Some(WaitingCode::Nonspawnable)) | (Status::Running, _) => {
            task.assignee.clone()
        }
        (Status::Review, Some(WaitingCode::Check)) if !held => Some(check_performer()),
        (Status::Review, Some(WaitingCode::Review)) if !held && task.reviewer.is_some() => {
            task.reviewer.clone()
        }
        _ => return None,
    };
    let is_external = task.status == Status::Running && task.claim_expires.is_some();
    (!is_external).then(|| (task.clone(), profile))
}

fn no_daemon(task: &Task) -> Waiting {
    let text = match task.status {
        Status::Running => "no daemon watches its run; the next one takes it over: supervisor daemon",
        _ => "no daemon serves this root; start one with: supervisor daemon",
    };
    Waiting::new(WaitingCode::NoDaemon, text)
}

/// A reason in a line for people, with the moment at which it ends.
pub(crate) fn line(why: &Waiting) -> String {
    let starts = matches!(why.code, WaitingCode::Time | WaitingCode::Retry);
    let word = if starts { "at" } else { "until" };
    match why.until {
        Some(at) => {
            format!("{} ({word} {})", why.text, timestamp::soon(at, kernel::Clock::now(&kernel::SystemClock)))
        }
        None => why.text.clone(),
    }
}
