//! Explains why a task is not running, from the board's and the daemon's knowledge.
//!
//! The board answers first: parents, times, people. For a task that the board would let run, the daemon is asked, or
//! found missing. So every task that neither runs nor is over has a reason, and none of the reasons is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Profile, Status, Task, TaskId, Waiting, WaitingCode};

use api::Call;
use base::cli_context;
use base::failure::Failure;
use base::time::timestamp;
use daemon::{OwnerLink, Performer, ask_why, left_open, merged};
use setup::roster::CannotRun;

/// Reason of every task that a daemon would start.
const NO_DAEMON: &str = "no daemon serves this root; start one with: supervisor daemon";

/// Sets the reason of each of these tasks.
pub async fn explain(call: &Call, tasks: Vec<Task>) -> Result<Vec<Task>, Failure> {
    let roster = call.service.roster();
    let config = call.service.config();
    let accounts = roster.accounts(&config);
    let mut tasks = call
        .read(move |view| {
            let mut tasks = tasks;
            let reasons = view.waiting_all(&tasks, &accounts)?;
            for (task, why) in tasks.iter_mut().zip(reasons) {
                task.why = why;
            }
            Ok(tasks)
        })
        .await?;
    let open: Vec<(Task, Option<Profile>)> =
        tasks.iter().filter_map(|task| Some((task.clone(), left_open(task)?.0))).collect();
    if open.is_empty() {
        return Ok(tasks);
    }
    // The daemon is asked for capacity only; an assignee or policy that cannot run is found here.
    let cannot_run: BTreeMap<TaskId, CannotRun> = open
        .iter()
        .filter(|(task, _)| task.status != Status::Running)
        .filter_map(|(task, profile)| {
            let resolved = roster.resolve(profile.as_ref()?, task.policy.as_deref(), &config);
            Some((task.id.clone(), resolved.err()?))
        })
        .collect();
    let answers = match OwnerLink::from_service(&call.service) {
        Some(daemon) => {
            ask_why(daemon, call.board()?.name(), open, Arc::clone(&roster), Arc::clone(&config)).await
        }
        None => None,
    };
    for task in &mut tasks {
        let Some(Performer(profile)) = left_open(task) else { continue };
        let answer = if let Some(answers) = &answers {
            answers.get(&task.id).cloned()
        } else {
            let disabled = config.tenants.waiting(task.tenant.as_ref());
            Some(disabled.filter(|_| task.status != Status::Running).unwrap_or_else(|| no_daemon(task)))
        };
        if let Some(reasons) = merged(task, profile.as_ref(), cannot_run.get(&task.id), answer) {
            task.why = Some(reasons);
        }
    }
    Ok(tasks)
}

fn no_daemon(task: &Task) -> Waiting {
    if task.status == Status::Running {
        let text = "no daemon watches its run; the next one takes it over: supervisor daemon";
        return Waiting::new(WaitingCode::NoDaemon, text);
    }
    // A daemon would know better, so without one the last failure is all that can be said.
    let failed = task.last_failure_error.as_deref().and_then(|error| error.lines().next());
    match failed.map(str::trim).filter(|error| !error.is_empty()) {
        Some(error) => {
            Waiting::new(WaitingCode::NoDaemon, format!("its last run failed: {error}; {NO_DAEMON}"))
        }
        None => Waiting::new(WaitingCode::NoDaemon, NO_DAEMON),
    }
}

/// Returns a reason as one line for people, with its end.
pub fn line(why: &Waiting) -> String {
    let starts = matches!(why.code, WaitingCode::Time | WaitingCode::Retry);
    let word = if starts { "at" } else { "until" };
    // Other reasons contain texts of workers and people, in which no option may be inserted.
    let is_own = matches!(why.code, WaitingCode::NoDaemon | WaitingCode::Unassigned | WaitingCode::Time);
    let text = match why.text.strip_suffix(NO_DAEMON) {
        // An error of a run stands before it.
        Some(before) => format!("{before}{}", cli_context::repeated(NO_DAEMON)),
        None if is_own => cli_context::repeated(&why.text),
        None => why.text.clone(),
    };
    match why.until {
        Some(at) => {
            format!("{text} ({word} {})", timestamp::soon(at, kernel::Clock::now(&kernel::SystemClock)))
        }
        None => text,
    }
}
