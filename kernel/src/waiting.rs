//! What a task waits for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::TaskId;
use crate::outcome::BlockKind;
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
                Some(error) => format!("tries again in {} after: {error}", brief(seconds)),
                None => format!("starts in {}", brief(seconds)),
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
        Status::Review => {
            let author =
                task.work_by.as_deref().and_then(|label| label.split_once(':')).map_or("", |(_, name)| name);
            let text = match (&task.reviewer, tasks::nonspawnable(view.conn, id)?) {
                (Some(_), Some(why)) => format!("waits for a review: {why}"),
                (Some(reviewer), None) => match task.not_before.filter(|at| *at > view.now()) {
                    Some(at) => {
                        let seconds = at.since(view.now()).as_secs();
                        format!("{reviewer} tries the review again in {}", brief(seconds))
                    }
                    None => format!("waits for a review by {reviewer}"),
                },
                (None, _) => format!("waits for a review by a person other than {author}"),
            };
            some(WaitingCode::Review, text)
        }
        Status::Blocked => {
            let kind = task.block_kind.map_or("", |kind| kind.as_str());
            let reason = task.block_reason.unwrap_or_else(|| "no reason given".to_owned());
            let question = task.question.filter(|_| task.block_kind == Some(BlockKind::NeedsInput));
            if let Some(question) = question {
                let choices = question.choices.iter().enumerate();
                let choices: Vec<String> =
                    choices.map(|(at, choice)| format!("{}: {choice}", at + 1)).collect();
                let choices =
                    if choices.is_empty() { String::new() } else { format!(" [{}]", choices.join(", ")) };
                let text = format!("{kind}: {}{choices}; `supervisor answer {id}`", question.text);
                return some(WaitingCode::Blocked, text);
            }
            // A task that was given up has said so in its reason.
            let told = reason.starts_with("gave up") || reason.starts_with("waits for the approval");
            let text = if told { reason } else { format!("{kind}: {reason}") };
            some(WaitingCode::Blocked, text)
        }
        Status::Done | Status::Archived => Ok(None),
    }
}

/// Seconds in two units at most: `45 s`, `5 min`, `2 h 10 min`, `3 d 4 h`.
fn brief(seconds: u64) -> String {
    let two = |big: u64, name: &str, small: u64, rest: &str| match small {
        0 => format!("{big} {name}"),
        _ => format!("{big} {name} {small} {rest}"),
    };
    match seconds {
        0..120 => format!("{seconds} s"),
        120..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_wait_is_told_in_two_units_at_most() {
        let told = [0, 119, 120, 3597, 7800, 90_000].map(super::brief);
        assert_eq!(told, ["0 s", "119 s", "2 min", "59 min 57 s", "2 h 10 min", "1 d 1 h"]);
    }
}
