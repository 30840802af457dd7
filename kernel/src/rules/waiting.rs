//! What a task waits for.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::board::view::View;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::hold::{Hold, Stance, Target};
use crate::model::id::{RunId, TaskId};
use crate::model::outcome::BlockKind;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::words::words;
use crate::rules::admission::Accounts;

words! {
    /// What a task waits for, as a word. The board knows the first ones, the daemon the others.
    "waiting code"
    WaitingCode {
        /// Somebody has to specify it.
        Triage => "triage",
        /// Parents are not done.
        Parents => "parents",
        /// Its time has not come.
        Time => "time",
        /// It failed, and is tried again later.
        Retry => "retry",
        /// It has no assignee.
        Unassigned => "unassigned",
        /// Nothing can spawn its assignee.
        Nonspawnable => "nonspawnable",
        /// A reviewer has to look.
        Review => "review",
        /// Somebody has to approve it.
        Approval => "approval",
        /// Somebody has to answer a question.
        Question => "question",
        /// It failed too often in a row.
        GaveUp => "gave_up",
        /// A person has to act.
        Blocked => "blocked",
        /// Its run is ending.
        Ending => "ending",
        /// No daemon runs that would start it.
        NoDaemon => "no_daemon",
        /// Somebody holds it back, or its profile, tenant or account.
        Hold => "hold",
        /// Its account or profile has met a limit of its service.
        RateLimit => "rate_limit",
        /// It is being started.
        Starting => "starting",
        /// Those before it are looked at first.
        Turn => "turn",
        /// As many run as may run: in all, of its tenant or of its profile.
        Slot => "slot",
        /// Another task works in its directory.
        Workspace => "workspace",
        /// What every run of its kind needs is broken.
        Environment => "environment",
        /// The host lacks something for now, or the board cannot be written.
        Host => "host",
        /// The daemon is stopping.
        Stopping => "stopping",
        /// The pass has started as many as it was to.
        Pass => "pass",
        /// Nobody knows whether the processes of its last run are gone.
        Survivors => "survivors",
        /// Its run is over, and its end cannot be proven or recorded.
        Stuck => "stuck",
    }
}

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// As a word.
    pub code: WaitingCode,
    /// In words: the rest of a sentence about the task, on one line.
    pub text: String,
    /// Until when, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Waiting {
    /// Makes a reason without a known end.
    pub fn new(code: WaitingCode, text: impl Into<String>) -> Self {
        let text: String = text.into();
        // One line, whatever a person or a worker wrote.
        Self { code, text: text.split_whitespace().collect::<Vec<_>>().join(" "), until: None }
    }

    /// Makes the reason of a task whose assignee nothing here can run.
    pub fn nonspawnable(why: &str) -> Self {
        Self::new(WaitingCode::Nonspawnable, format!("waits for an outside worker to claim it: {why}"))
    }

    /// Adds the end that is known.
    #[must_use]
    pub fn until(self, at: Timestamp) -> Self {
        Self { until: Some(at), ..self }
    }
}

/// How many parents are told one by one.
const TOLD: usize = 3;
/// How much of a parent's title is told, in characters.
const TITLE: usize = 40;

/// The parents of one task that are not done.
#[derive(Default)]
struct Open {
    told: Vec<String>,
    more: usize,
}

/// What the board knows of several tasks beside their rows, read for all of them at once.
struct Known<'a> {
    parents: BTreeMap<TaskId, Open>,
    nonspawnable: BTreeMap<TaskId, String>,
    ending: BTreeMap<TaskId, RunId>,
    holds: Vec<Hold>,
    accounts: &'a Accounts,
}

impl<'a> Known<'a> {
    fn read(view: &View<'_>, tasks: &[Task], accounts: &'a Accounts) -> Result<Self, Error> {
        let with = |statuses: &[Status]| -> Vec<&TaskId> {
            tasks.iter().filter(|task| statuses.contains(&task.status)).map(|task| &task.id).collect()
        };
        let mut known = Known {
            parents: BTreeMap::new(),
            nonspawnable: BTreeMap::new(),
            ending: BTreeMap::new(),
            holds: view.holds()?,
            accounts,
        };
        let (waiting, spawnable, running) =
            (with(&[Status::Todo]), with(&[Status::Ready, Status::Review]), with(&[Status::Running]));
        if !waiting.is_empty() {
            view.tx.each_open_parent(&waiting, |open| {
                let of = known.parents.entry(open.child).or_default();
                if of.told.len() == TOLD {
                    of.more += 1;
                } else {
                    let title = shortened(&open.title);
                    of.told.push(format!("{} ({}: {title})", open.parent, open.status));
                }
            })?;
        }
        if !spawnable.is_empty() {
            known.nonspawnable = view.tx.nonspawnable_of(&spawnable)?;
        }
        if !running.is_empty() {
            known.ending = view.tx.ending_runs_of(&running)?.into_iter().collect();
        }
        Ok(known)
    }

    /// The hold that keeps a task from starting, if one does: that which lasts longest.
    fn hold(&self, task: &Task, now: Timestamp) -> Option<&Hold> {
        let profile = if task.status == Status::Review { &task.reviewer } else { &task.assignee };
        let account = profile.as_ref().and_then(|profile| self.accounts.get(profile)).map(String::as_str);
        let (profile, tenant) = (profile.as_ref(), task.tenant.as_ref());
        let target = Target { task: &task.id, profile, tenant, account };
        let holds =
            self.holds.iter().filter(|hold| hold.concerns(target) && hold.stance(now) == Stance::Closed);
        holds.max_by_key(|hold| hold.until.map_or(i64::MAX, Timestamp::as_micros))
    }
}

fn shortened(title: &str) -> String {
    match title.char_indices().nth(TITLE) {
        None => title.to_owned(),
        Some((end, _)) => format!("{}…", title[..end].trim_end()),
    }
}

pub(crate) fn waiting(
    view: &View<'_>,
    tasks: &[Task],
    accounts: &Accounts,
) -> Result<Vec<Option<Waiting>>, Error> {
    let known = Known::read(view, tasks, accounts)?;
    Ok(tasks.iter().map(|task| of_task(task, &known, view.now())).collect())
}

fn of_task(task: &Task, known: &Known<'_>, now: Timestamp) -> Option<Waiting> {
    match task.status {
        Status::Triage => Some(Waiting::new(
            WaitingCode::Triage,
            "waits to be thought over, then promoted or assigned anew by a person",
        )),
        Status::Todo => {
            let text = match known.parents.get(&task.id) {
                None => "waits for its parents".to_owned(),
                Some(open) if open.more == 0 => format!("waits for {}", open.told.join(", ")),
                Some(open) => format!("waits for {} and {} more", open.told.join(", "), open.more),
            };
            Some(Waiting::new(WaitingCode::Parents, text))
        }
        Status::Scheduled => Some(match known.hold(task, now) {
            Some(hold) if hold.until.is_none() || hold.until >= task.not_before => hold.waiting(now),
            Some(_) | None => scheduled(task, now),
        }),
        Status::Ready if known.hold(task, now).is_some() => {
            known.hold(task, now).map(|hold| hold.waiting(now))
        }
        Status::Ready => match (&task.assignee, known.nonspawnable.get(&task.id)) {
            (None, _) => Some(Waiting::new(
                WaitingCode::Unassigned,
                format!("has no assignee: `supervisor assign {} <profile>`", task.id),
            )),
            (Some(_), Some(why)) => Some(Waiting::nonspawnable(why)),
            (Some(_), None) => None,
        },
        Status::Running => known
            .ending
            .get(&task.id)
            .map(|run| Waiting::new(WaitingCode::Ending, format!("run {run} is being ended"))),
        Status::Review if task.reviewer.is_some() && known.hold(task, now).is_some() => {
            known.hold(task, now).map(|hold| hold.waiting(now))
        }
        Status::Review => Some(in_review(task, known.nonspawnable.get(&task.id), now)),
        Status::Blocked => Some(blocked(task)),
        Status::Done | Status::Archived => None,
    }
}

fn scheduled(task: &Task, now: Timestamp) -> Waiting {
    let Some(at) = task.not_before else { return Waiting::new(WaitingCode::Time, "waits for its time") };
    if at >= Timestamp::OPEN_END {
        let text = format!("waits until somebody lets it go on: `supervisor unblock {}`", task.id);
        return Waiting::new(WaitingCode::Time, text);
    }
    let wait = brief(at.since(now).as_secs());
    let due = at <= now;
    let why = task.last_failure_error.as_deref().filter(|_| task.consecutive_failures > 0);
    let waiting = match why {
        _ if due => Waiting::new(WaitingCode::Time, "its time has come, and a daemon has to see it"),
        Some(error) => Waiting::new(WaitingCode::Retry, format!("tries again in {wait} after: {error}")),
        None => Waiting::new(WaitingCode::Time, format!("starts in {wait}")),
    };
    waiting.until(at)
}

fn in_review(task: &Task, nonspawnable: Option<&String>, now: Timestamp) -> Waiting {
    let author = task.work_by.as_deref().and_then(|label| label.split_once(':')).map_or("", |(_, name)| name);
    let held = task.not_before.filter(|at| *at > now);
    match (&task.reviewer, nonspawnable, held) {
        (Some(reviewer), Some(why), _) => {
            Waiting::new(WaitingCode::Review, format!("waits for a review by {reviewer}: {why}"))
        }
        (Some(reviewer), None, Some(at)) => {
            let wait = brief(at.since(now).as_secs());
            let text = format!("{reviewer} tries the review again in {wait}");
            Waiting::new(WaitingCode::Review, text).until(at)
        }
        (Some(reviewer), None, None) => {
            Waiting::new(WaitingCode::Review, format!("waits for a review by {reviewer}"))
        }
        (None, _, _) => {
            let text = format!("waits for a review by a person other than {author}");
            Waiting::new(WaitingCode::Review, text)
        }
    }
}

fn blocked(task: &Task) -> Waiting {
    let kind = task.block_kind.map_or("", |kind| kind.as_str());
    let reason = task.block_reason.as_deref().unwrap_or("no reason given");
    let question = task.question.as_ref().filter(|_| task.block_kind == Some(BlockKind::NeedsInput));
    if let Some(question) = question {
        let choices = question.choices.iter().enumerate();
        let choices: Vec<String> = choices.map(|(at, choice)| format!("{}: {choice}", at + 1)).collect();
        let choices = if choices.is_empty() { String::new() } else { format!(" [{}]", choices.join(", ")) };
        let text = format!("{kind}: {}{choices}; `supervisor answer {}`", question.text, task.id);
        return Waiting::new(WaitingCode::Question, text);
    }
    let code = match task.block_kind {
        Some(BlockKind::Approval) => WaitingCode::Approval,
        Some(BlockKind::GaveUp) => WaitingCode::GaveUp,
        Some(
            BlockKind::NeedsInput
            | BlockKind::Capability
            | BlockKind::Transient
            | BlockKind::Dependency
            | BlockKind::Budget,
        )
        | None => WaitingCode::Blocked,
    };
    // A task that was given up has said so in its reason.
    let told = reason.starts_with("gave up") || reason.starts_with("waits for the approval");
    Waiting::new(code, if told { reason.to_owned() } else { format!("{kind}: {reason}") })
}

/// Seconds in two units at most: `45 s`, `5 min`, `2 h 10 min`, `3 d 4 h`.
pub(crate) fn brief(seconds: u64) -> String {
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
