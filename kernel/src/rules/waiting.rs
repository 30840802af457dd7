//! What a task waits for, as far as the board knows.

use std::collections::BTreeMap;

use crate::model::actor::Label;
use crate::model::candidate::Accounts;
use crate::model::clock::Timestamp;
use crate::model::hold::{Hold, Stance, Target};
use crate::model::id::{RunId, TaskId};
use crate::model::outcome::BlockKind;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::waiting::{Waiting, WaitingCode, brief};

/// The parents of one task that are not done.
#[derive(Default)]
pub(crate) struct Open {
    told: Vec<String>,
    more: usize,
}

impl Open {
    /// How many parents are named.
    const NAMED: usize = 3;
    /// How much of a parent's title is shown, in characters.
    const TITLE: usize = 40;

    /// Adds a parent.
    pub(crate) fn add(&mut self, parent: &TaskId, status: Status, title: &str) {
        if self.told.len() == Self::NAMED {
            self.more += 1;
            return;
        }
        let title = match title.char_indices().nth(Self::TITLE) {
            None => title.to_owned(),
            Some((end, _)) => format!("{}…", title[..end].trim_end()),
        };
        self.told.push(format!("{parent} ({status}: {title})"));
    }
}

/// What the board knows of several tasks beside their rows, read for all of them at once.
pub(crate) struct Known<'a> {
    pub(crate) parents: BTreeMap<TaskId, Open>,
    pub(crate) nonspawnable: BTreeMap<TaskId, String>,
    pub(crate) ending: BTreeMap<TaskId, RunId>,
    pub(crate) holds: Vec<Hold>,
    pub(crate) accounts: &'a Accounts,
}

impl Known<'_> {
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

/// Returns what a task waits for; none when it could run or is over.
pub(crate) fn of_task(task: &Task, known: &Known<'_>, now: Timestamp) -> Option<Waiting> {
    let on_hold = || known.hold(task, now).map(|hold| hold.waiting(now));
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
        Status::Ready => on_hold().or_else(|| match (&task.assignee, known.nonspawnable.get(&task.id)) {
            (None, _) => Some(Waiting::new(
                WaitingCode::Unassigned,
                format!("has no assignee: `supervisor assign {} <assignee>`", task.id),
            )),
            (Some(_), Some(why)) => Some(Waiting::nonspawnable(why)),
            (Some(_), None) => None,
        }),
        Status::Running => known
            .ending
            .get(&task.id)
            .map(|run| Waiting::new(WaitingCode::Ending, format!("run {run} is being ended"))),
        Status::Review => {
            let held = task.reviewer.as_ref().and_then(|_| on_hold());
            Some(held.unwrap_or_else(|| in_review(task, known.nonspawnable.get(&task.id), now)))
        }
        Status::Blocked => Some(blocked(task)),
        Status::Done | Status::Archived => None,
    }
}

fn scheduled(task: &Task, now: Timestamp) -> Waiting {
    let Some(at) = task.not_before else { return Waiting::new(WaitingCode::Time, "waits for its time") };
    if at >= Timestamp::OPEN_END {
        let text = format!("waits until somebody unblocks it: `supervisor unblock {}`", task.id);
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
    let author = task.work_by.as_deref().map_or("", |label| Label::parse(label).name);
    let held = task.not_before.filter(|at| *at > now);
    let text = match (&task.reviewer, nonspawnable, held) {
        (Some(reviewer), Some(why), _) => format!("waits for a review by {reviewer}: {why}"),
        (Some(reviewer), None, Some(at)) => {
            let text = format!("{reviewer} tries the review again in {}", brief(at.since(now).as_secs()));
            return Waiting::new(WaitingCode::Review, text).until(at);
        }
        (Some(reviewer), None, None) => format!("waits for a review by {reviewer}"),
        (None, _, _) => format!("waits for a review by a person other than {author}"),
    };
    Waiting::new(WaitingCode::Review, text)
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
    // The reasons of the first two are the board's own, and need no kind before them.
    let (code, text) = match task.block_kind {
        Some(BlockKind::Approval) => (WaitingCode::Approval, reason.to_owned()),
        Some(BlockKind::GaveUp) => (WaitingCode::GaveUp, reason.to_owned()),
        Some(
            BlockKind::NeedsInput
            | BlockKind::Capability
            | BlockKind::Transient
            | BlockKind::Dependency
            | BlockKind::Budget,
        )
        | None => (WaitingCode::Blocked, format!("{kind}: {reason}")),
    };
    Waiting::new(code, text)
}
