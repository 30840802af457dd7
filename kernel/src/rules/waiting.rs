//! Reasons why tasks wait, as far as the board knows them.

use std::collections::BTreeMap;

use crate::model::actor::Label;
use crate::model::candidate::Accounts;
use crate::model::clock::Timestamp;
use crate::model::figures::brief;
use crate::model::hold::{Hold, Stance, Target};
use crate::model::id::{RunId, TaskId};
use crate::model::outcome::BlockKind;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::waiting::{OpenParent, Waiting, WaitingCode};

/// Parents of a task that are not done.
#[derive(Default)]
pub(crate) struct Open {
    named: Vec<OpenParent>,
    more: usize,
}

impl Open {
    /// Number of parents that are named.
    const NAMED: usize = 3;
    /// Longest shown title of a parent, in characters.
    const TITLE: usize = 40;

    pub(crate) fn add(&mut self, parent: &TaskId, status: Status, title: &str) {
        if self.named.len() == Self::NAMED {
            self.more += 1;
            return;
        }
        let title = match title.char_indices().nth(Self::TITLE) {
            None => title.to_owned(),
            Some((end, _)) => format!("{}…", title[..end].trim_end()),
        };
        self.named.push(OpenParent { id: parent.clone(), status, title });
    }

    /// Returns the reason for the child.
    fn waiting(&self) -> Waiting {
        let named =
            self.named.iter().map(|OpenParent { id, status, title }| format!("{id} ({status}: {title})"));
        let named = named.collect::<Vec<_>>().join(", ");
        let text = match self.more {
            0 => format!("waits for {named}"),
            more => format!("waits for {named} and {more} more"),
        };
        let parents = self.named.clone();
        Waiting { parents, more_parents: self.more, ..Waiting::new(WaitingCode::Parents, text) }
    }
}

/// Facts about several tasks beside their rows, read for all of them at once.
pub(crate) struct WaitingFacts<'a> {
    pub(crate) parents: BTreeMap<TaskId, Open>,
    pub(crate) nonspawnable: BTreeMap<TaskId, String>,
    pub(crate) ending: BTreeMap<TaskId, RunId>,
    /// Tasks whose last run met a limit of its service, with the exit code that reported it.
    pub(crate) limited: BTreeMap<TaskId, Option<i32>>,
    /// Tasks in triage whose last run was blocked, with the reason.
    pub(crate) blocked: BTreeMap<TaskId, String>,
    pub(crate) holds: Vec<Hold>,
    pub(crate) accounts: &'a Accounts,
}

impl WaitingFacts<'_> {
    /// Returns the longest hold that keeps a task from starting.
    fn hold(&self, task: &Task, now: Timestamp) -> Option<&Hold> {
        let profile = if task.status != Status::Review {
            &task.assignee
        } else if task.unchecked_run.is_some() {
            // The board does not know the profile that runs a check.
            &None
        } else {
            &task.reviewer
        };
        let account = profile.as_ref().and_then(|profile| self.accounts.get(profile)).map(String::as_str);
        let (profile, tenant) = (profile.as_ref(), task.tenant.as_ref());
        let target = Target { task: &task.id, profile, tenant, account, mission: task.mission() };
        let holds =
            self.holds.iter().filter(|hold| hold.concerns(target) && hold.stance(now) == Stance::Closed);
        holds.max_by_key(|hold| hold.until.map_or(i64::MAX, Timestamp::as_micros))
    }
}

/// Returns the reason why a task waits; none when it could run or is over.
pub(crate) fn of_task(task: &Task, known: &WaitingFacts<'_>, now: Timestamp) -> Option<Waiting> {
    let on_hold = || known.hold(task, now).map(|hold| hold.waiting(now));
    match task.status {
        Status::Triage => Some(in_triage(task, known.blocked.get(&task.id))),
        Status::Todo => Some(match known.parents.get(&task.id) {
            None => Waiting::new(WaitingCode::Parents, "waits for its parents"),
            Some(open) => open.waiting(),
        }),
        // A hold is the reason only if it lasts longer than the task's own time.
        Status::Scheduled => Some(match known.hold(task, now) {
            Some(hold) if hold.until.is_none() || hold.until >= task.not_before => hold.waiting(now),
            Some(_) | None => scheduled(task, known.limited.get(&task.id), now),
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
        Status::Review if task.unchecked_run.is_some() => {
            Some(on_hold().unwrap_or_else(|| to_check(task, now)))
        }
        Status::Review => {
            let held = task.reviewer.as_ref().and_then(|_| on_hold());
            Some(held.unwrap_or_else(|| in_review(task, known.nonspawnable.get(&task.id), now)))
        }
        Status::Blocked => Some(blocked(task)),
        Status::Done | Status::Archived => None,
    }
}

/// Explains a task in triage. `reason` comes from its last run, if that run was blocked. A question that was repeated
/// too often is shown only here.
fn in_triage(task: &Task, reason: Option<&String>) -> Waiting {
    let waits =
        format!("waits until a person has specified it: `supervisor promote {}` then releases it", task.id);
    let text = match reason {
        Some(reason) => format!("its last run was blocked: {}; {waits}", reason.trim()),
        None => waits,
    };
    Waiting::new(WaitingCode::Triage, text)
}

fn scheduled(task: &Task, limited: Option<&Option<i32>>, now: Timestamp) -> Waiting {
    let Some(at) = task.not_before else { return Waiting::new(WaitingCode::Time, "waits for its time") };
    if at >= Timestamp::OPEN_END {
        let text = format!("waits until somebody unblocks it: `supervisor unblock {}`", task.id);
        return Waiting::new(WaitingCode::Time, text);
    }
    let wait = brief(at.since(now));
    let due = at <= now;
    let why = task.last_failure_error.as_deref().filter(|_| task.consecutive_failures > 0);
    let waiting = match why {
        _ if due => Waiting::new(WaitingCode::Time, "is due; start a daemon, or run `supervisor dispatch`"),
        _ if limited.is_some() => {
            let code = limited.copied().flatten();
            let code = code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
            Waiting::new(WaitingCode::Time, format!("starts in {wait}: its last run was rate limited{code}"))
        }
        Some(error) => Waiting::new(WaitingCode::Retry, format!("tries again in {wait} after: {error}")),
        None => Waiting::new(WaitingCode::Time, format!("starts in {wait}")),
    };
    waiting.until(at)
}

fn to_check(task: &Task, now: Timestamp) -> Waiting {
    let command = task.check.command.as_deref().unwrap_or_default();
    match task.not_before.filter(|at| *at > now) {
        Some(at) => {
            let wait = brief(at.since(now));
            Waiting::new(WaitingCode::Check, format!("its check runs again in {wait}: {command}")).until(at)
        }
        None => Waiting::new(WaitingCode::Check, format!("its check has not run yet: {command}")),
    }
}

fn in_review(task: &Task, nonspawnable: Option<&String>, now: Timestamp) -> Waiting {
    let author = task.work_by.as_deref().map_or("", |label| Label::parse(label).name);
    let held = task.not_before.filter(|at| *at > now);
    let text = match (&task.reviewer, nonspawnable, held) {
        (Some(reviewer), Some(why), _) => format!("waits for a review by {reviewer}: {why}"),
        (Some(reviewer), None, Some(at)) => {
            let text = format!("{reviewer} tries the review again in {}", brief(at.since(now)));
            return Waiting::new(WaitingCode::Review, text).until(at);
        }
        (Some(reviewer), None, None) => format!("waits for a review by {reviewer}"),
        (None, _, _) => format!("waits for a review by a person other than {author}"),
    };
    Waiting::new(WaitingCode::Review, text)
}

/// Prefix of a block's reason that asks for a review, by a convention of workers.
const REVIEW_REQUIRED: &str = "review-required:";

fn blocked(task: &Task) -> Waiting {
    let kind = task.block_kind.map_or("", |kind| kind.as_str());
    let reason = task.block_reason.as_deref().unwrap_or("no reason given");
    if let Some(question) = task.open_question() {
        let choices = question.choices.iter().enumerate();
        let choices: Vec<String> = choices.map(|(at, choice)| format!("{}: {choice}", at + 1)).collect();
        let choices = if choices.is_empty() { String::new() } else { format!(" [{}]", choices.join(", ")) };
        let asked = format!("{}{choices}", question.text.trim_end());
        // A sentence that has ended gets no semicolon.
        let mark = if asked.ends_with(['?', '.', '!']) { "" } else { ";" };
        let text = format!("{kind}: {asked}{mark} `{}`", question.command(&task.id));
        return Waiting::new(WaitingCode::Question, text);
    }
    if let Some(what) = reason.strip_prefix(REVIEW_REQUIRED) {
        let text = format!(
            "waits for a review: {}; `supervisor unblock {}` sends it to its worker again",
            what.trim(),
            task.id
        );
        return Waiting::new(WaitingCode::Review, text);
    }
    if task.is_cancelled() {
        return Waiting::new(WaitingCode::Cancelled, reason);
    }
    // The board itself wrote the reasons of the first two kinds, so they need no kind as a prefix.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Question;
    use crate::model::hold::{HoldKind, HoldScope, Within};
    use crate::testing::{Bench, titled};

    const NOW: Timestamp = Timestamp::from_secs(1_000_000);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(NOW.as_secs() + seconds)
    }

    fn task(status: Status) -> Task {
        let task = Bench::new().create(titled("work"));
        Task { status, assignee: "bob".parse().ok(), ..task }
    }

    fn hold(profile: &str, reason: &str, until: Option<Timestamp>) -> Hold {
        Hold {
            id: 1,
            kind: HoldKind::Manual,
            scope: HoldScope::Profile,
            name: profile.to_owned(),
            reason: reason.to_owned(),
            placed_by: "person:alice".to_owned(),
            within: Within::Board,
            run_id: None,
            met_by_task: None,
            met_by_tenant: None,
            probe_run: None,
            until,
            created_at: NOW,
        }
    }

    /// Returns the reason why a task waits under these holds.
    fn waiting(task: &Task, holds: &[Hold]) -> Option<Waiting> {
        limited(task, holds, BTreeMap::new())
    }

    /// Returns the reason why a task waits, when the last runs of these tasks met a limit.
    fn limited(task: &Task, holds: &[Hold], limited: BTreeMap<TaskId, Option<i32>>) -> Option<Waiting> {
        let accounts = Accounts::new();
        let (parents, nonspawnable, ending) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let holds = holds.to_vec();
        let blocked = BTreeMap::new();
        let known =
            WaitingFacts { parents, nonspawnable, ending, limited, blocked, holds, accounts: &accounts };
        of_task(task, &known, NOW)
    }

    fn code(task: &Task, holds: &[Hold]) -> Option<WaitingCode> {
        waiting(task, holds).map(|waiting| waiting.code)
    }

    #[test]
    fn of_several_holds_the_one_that_lasts_longest_is_named() {
        let ready = task(Status::Ready);
        let short = hold("bob", "short", Some(at(60)));
        let long = hold("bob", "long", Some(at(600)));
        let open = hold("bob", "open", None);
        let over = hold("bob", "over", Some(at(-1)));
        let named = |holds: &[Hold]| waiting(&ready, holds).map(|waiting| waiting.text).unwrap_or_default();
        for holds in [[short.clone(), long.clone()], [long.clone(), short.clone()]] {
            assert!(named(&holds).contains("long"), "{}", named(&holds));
        }
        for holds in [[long.clone(), open.clone()], [open.clone(), long]] {
            assert!(named(&holds).contains("open"), "{}", named(&holds));
        }
        assert_eq!(code(&ready, &[over]), None);
        assert_eq!(code(&ready, &[hold("carol", "of another", None)]), None);
    }

    #[test]
    fn a_block_whose_reason_requires_a_review_waits_for_one() {
        let blocked = |reason: &str| Task {
            block_kind: Some(BlockKind::NeedsInput),
            block_reason: Some(reason.to_owned()),
            ..task(Status::Blocked)
        };
        let waits = waiting(&blocked("review-required: the parser, 14 tests"), &[]).unwrap();
        assert_eq!(waits.code, WaitingCode::Review);
        assert!(
            waits.text.starts_with("waits for a review: the parser, 14 tests; `supervisor unblock t_"),
            "{}",
            waits.text
        );
        assert_eq!(code(&blocked("a review-required: no"), &[]), Some(WaitingCode::Blocked));
    }

    #[test]
    fn a_review_waits_for_the_hold_of_its_reviewer() {
        let review = Task { reviewer: "carol".parse().ok(), ..task(Status::Review) };
        assert_eq!(code(&review, &[hold("carol", "out", None)]), Some(WaitingCode::Hold));
        assert_eq!(code(&review, &[hold("bob", "out", None)]), Some(WaitingCode::Review));
        assert_eq!(code(&task(Status::Ready), &[hold("carol", "out", None)]), None);
        assert_eq!(code(&task(Status::Ready), &[hold("bob", "out", None)]), Some(WaitingCode::Hold));
    }

    #[test]
    fn a_review_that_is_tried_again_says_when() {
        let again = |not_before| Task {
            reviewer: "carol".parse().ok(),
            not_before: Some(not_before),
            ..task(Status::Review)
        };
        let later = waiting(&again(at(120)), &[]).unwrap();
        assert_eq!(later.until, Some(at(120)));
        assert!(later.text.contains("tries the review again in 2m"), "{}", later.text);
        for seconds in [-1, 0] {
            let due = waiting(&again(at(seconds)), &[]).unwrap();
            assert_eq!((due.until, due.text.as_str()), (None, "waits for a review by carol"));
        }
    }

    #[test]
    fn a_check_that_runs_again_says_when() {
        let check = crate::Check { command: Some("make test".to_owned()), max_checks: None };
        let work = Task { check, unchecked_run: Some(crate::RunId(1)), ..task(Status::Review) };
        let text_after = |seconds| {
            let waits = waiting(&Task { not_before: Some(at(seconds)), ..work.clone() }, &[]).unwrap();
            (waits.until, waits.text)
        };
        assert_eq!(text_after(120), (Some(at(120)), "its check runs again in 2m: make test".to_owned()));
        assert_eq!(text_after(0), (None, "its check has not run yet: make test".to_owned()));
    }

    #[test]
    fn a_scheduled_task_waits_for_its_time_or_for_a_longer_hold() {
        let scheduled = |seconds| Task { not_before: Some(at(seconds)), ..task(Status::Scheduled) };
        let code_with = |hold: Hold| code(&scheduled(60), &[hold]);
        assert_eq!(code_with(hold("bob", "open", None)), Some(WaitingCode::Hold));
        assert_eq!(code_with(hold("bob", "longer", Some(at(61)))), Some(WaitingCode::Hold));
        assert_eq!(code_with(hold("bob", "shorter", Some(at(59)))), Some(WaitingCode::Time));

        let text = |task: &Task| waiting(task, &[]).unwrap().text;
        assert_eq!(text(&scheduled(60)), "starts in 1m");
        assert!(text(&scheduled(0)).starts_with("is due"));
        let failed = Task { last_failure_error: Some("no luck".to_owned()), ..scheduled(60) };
        assert_eq!(text(&failed), "starts in 1m", "the failure is of an earlier series");
        let again = Task { consecutive_failures: 1, ..failed };
        assert_eq!(text(&again), "tries again in 1m after: no luck");
        let open_end = Task { not_before: Some(Timestamp::OPEN_END), ..task(Status::Scheduled) };
        let waits = waiting(&open_end, &[]).unwrap();
        assert!(waits.text.contains("supervisor unblock"), "{}", waits.text);
        assert_eq!(waits.until, None);
    }

    #[test]
    fn a_task_that_waits_for_the_end_of_a_limit_says_what_its_last_run_met() {
        let scheduled = Task { not_before: Some(at(60)), ..task(Status::Scheduled) };
        let met = |code| limited(&scheduled, &[], BTreeMap::from([(scheduled.id.clone(), code)])).unwrap();
        assert_eq!(met(Some(75)).text, "starts in 1m: its last run was rate limited (exit code 75)");
        assert_eq!(met(None).text, "starts in 1m: its last run was rate limited");
        assert_eq!((met(None).code, met(None).until), (WaitingCode::Time, Some(at(60))));
    }

    #[test]
    fn three_parents_are_named_and_the_others_counted() {
        let child = task(Status::Todo);
        let accounts = Accounts::new();
        let waits = |count: usize| {
            let mut open = Open::default();
            for n in 0..count {
                open.add(&format!("t_0000000{n}").parse().unwrap(), Status::Ready, &format!("part {n}"));
            }
            let parents = BTreeMap::from([(child.id.clone(), open)]);
            let (nonspawnable, ending) = (BTreeMap::new(), BTreeMap::new());
            let (limited, blocked, holds) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
            let known =
                WaitingFacts { parents, nonspawnable, ending, limited, blocked, holds, accounts: &accounts };
            of_task(&child, &known, NOW).unwrap()
        };
        let text = |count: usize| waits(count).text;
        assert_eq!(text(1), "waits for t_00000000 (ready: part 0)");
        let three =
            "waits for t_00000000 (ready: part 0), t_00000001 (ready: part 1), t_00000002 (ready: part 2)";
        assert_eq!(text(3), three);
        assert_eq!(text(5), format!("{three} and 2 more"));
        let five = waits(5);
        assert_eq!((five.parents.len(), five.more_parents), (3, 2));
        let second = OpenParent {
            id: "t_00000001".parse().unwrap(),
            status: Status::Ready,
            title: "part 1".to_owned(),
        };
        assert_eq!(five.parents[1], second, "what is said is there by itself, too");
    }

    #[test]
    fn what_does_not_work_is_named_apart_from_why() {
        let breaker = Hold { kind: HoldKind::Breaker, ..hold("bob", "three runs failed (no /bin/x)", None) };
        let waits = waiting(&task(Status::Ready), &[breaker]).unwrap();
        assert_eq!(waits.code, WaitingCode::Environment);
        let broken = waits.broken.unwrap();
        assert_eq!(
            (broken.what.as_str(), broken.why.as_str()),
            ("profile bob", "three runs failed (no /bin/x)")
        );
        let login = Hold { kind: HoldKind::Login, ..hold("bob", "expired", Some(at(60))) };
        let waits = waiting(&task(Status::Ready), &[login]).unwrap();
        assert_eq!(
            (waits.broken.unwrap().what.as_str(), waits.until),
            ("login of profile bob", Some(at(60)))
        );
        assert_eq!(waiting(&task(Status::Ready), &[hold("bob", "out", None)]).unwrap().broken, None);
    }

    #[test]
    fn a_task_that_was_cancelled_says_so_by_its_code() {
        let cancelled = Task {
            block_kind: Some(BlockKind::NeedsInput),
            block_reason: Some("cancelled by ann".to_owned()),
            cancelled: true,
            ..task(Status::Blocked)
        };
        assert_eq!(code(&cancelled, &[]), Some(WaitingCode::Cancelled));
        let said_so = Task { cancelled: false, ..cancelled };
        assert_eq!(code(&said_so, &[]), Some(WaitingCode::Blocked), "a worker has written that");
    }

    #[test]
    fn a_question_is_shown_of_a_block_that_asks_for_input_alone() {
        let question = Question { text: "which?".to_owned(), ..Question::default() };
        let blocked = |kind| Task {
            block_kind: Some(kind),
            block_reason: Some("stuck".to_owned()),
            question: Some(question.clone()),
            ..task(Status::Blocked)
        };
        let asked = waiting(&blocked(BlockKind::NeedsInput), &[]).unwrap().text;
        assert!(asked.starts_with("needs_input: which? `supervisor answer t_"), "{asked}");
        assert_eq!(code(&blocked(BlockKind::NeedsInput), &[]), Some(WaitingCode::Question));
        assert_eq!(code(&blocked(BlockKind::Capability), &[]), Some(WaitingCode::Blocked));
        assert_eq!(code(&blocked(BlockKind::Approval), &[]), Some(WaitingCode::Approval));
    }
}
