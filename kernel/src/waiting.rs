//! What a task waits for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::TaskId;
use crate::status::Status;
use crate::store::tasks;
use crate::view::View;
use crate::words::words;

words! {
    /// What a task waits for, as a word.
    "waiting code"
    WaitingCode {
        /// Somebody has to specify it.
        Triage => "triage",
        /// Parents are not done.
        Parents => "parents",
        /// Its time has not come.
        Time => "time",
        /// It has no assignee.
        Unassigned => "unassigned",
        /// Nothing can spawn its assignee.
        Nonspawnable => "nonspawnable",
        /// A reviewer has to look.
        Review => "review",
        /// A person has to act.
        Blocked => "blocked",
        /// Its run is ending.
        Ending => "ending",
    }
}

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// As a word.
    pub code: WaitingCode,
    /// In words.
    pub text: String,
}

pub(crate) fn waiting(view: &View<'_>, id: &TaskId) -> Result<Option<Waiting>, Error> {
    let task = view.expect_task(id)?;
    let some = |code, text: String| Ok(Some(Waiting { code, text }));
    match task.status {
        Status::Triage => some(WaitingCode::Triage, "waits to be specified or promoted".to_owned()),
        Status::Todo => {
            let open: Vec<String> = view.open_parents(id)?.iter().map(ToString::to_string).collect();
            some(WaitingCode::Parents, format!("waits for {}", open.join(", ")))
        }
        Status::Scheduled => {
            let seconds = task.not_before.map_or(0, |at| at.since(view.now()).as_secs());
            let why = task.last_failure_error.filter(|_| task.consecutive_failures > 0);
            let text = match why {
                Some(error) => format!("tries again in {seconds} s after: {error}"),
                None => format!("starts in {seconds} s"),
            };
            some(WaitingCode::Time, text)
        }
        Status::Ready => match (&task.assignee, tasks::nonspawnable(view.conn, id)?) {
            (None, _) => some(WaitingCode::Unassigned, "has no assignee".to_owned()),
            (Some(_), Some(why)) => some(WaitingCode::Nonspawnable, why),
            (Some(_), None) => Ok(None),
        },
        Status::Running => {
            let run = task.current_run_id.map(|run| view.expect_run(run)).transpose()?;
            match run.filter(|run| run.ending_since.is_some()) {
                Some(run) => some(WaitingCode::Ending, format!("run {} is being ended", run.id)),
                None => Ok(None),
            }
        }
        Status::Review => some(WaitingCode::Review, "waits for a review".to_owned()),
        Status::Blocked => {
            let kind = task.block_kind.map_or("", |kind| kind.as_str());
            let reason = task.block_reason.unwrap_or_else(|| "no reason given".to_owned());
            some(WaitingCode::Blocked, format!("{kind}: {reason}"))
        }
        Status::Done | Status::Archived => Ok(None),
    }
}
