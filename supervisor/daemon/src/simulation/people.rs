//! People of a simulation, who do anything that the board permits, at any time.

use std::time::Duration;

use kernel::{
    Actor, Approval, ApprovalState, BlockKind, Blocking, Board, Check, ClaimTerms, Destination, Detach, Edit,
    Error, Force, Handoff, HoldKind, HoldOn, HoldScope, InitialState, Limits, NewHold, NewTask, Profile,
    TaskId,
};

use super::bench::Bench;
use super::dice::Dice;
use super::ledger::{AcknowledgedTask, Ledger, Unanswered};
use super::plant::Plant;

/// Number of tasks from which people create no more, and clear the board instead.
const TASKS: usize = 20;
/// Assignees: two lanes, a reviewer, and an unknown name.
pub(super) const PROFILES: [&str; 4] = ["alpha", "beta", "gamma", "stranger"];
const TENANTS: [Option<&str>; 3] = [None, Some("acme"), Some("zeta")];

fn profile(dice: &mut Dice) -> Profile {
    let known = if dice.one_in(12) { 4 } else { 3 };
    PROFILES[dice.below(known)].parse().unwrap()
}

/// Carries out one random action of a person. Returns a description of it with its result. A comment without a reply is
/// repeated before any other action.
pub(super) fn act(bench: &mut Bench, ledger: &mut Ledger, dice: &mut Dice, plant: Option<Plant>) -> String {
    if ledger.unanswered.is_some() {
        return repeat(bench, ledger);
    }
    let count = ledger.tasks.len();
    if count == 0 || (count < TASKS && dice.one_in(4)) {
        return create(bench, ledger, dice);
    }
    if count >= TASKS && dice.one_in(2) {
        return clear(bench, ledger, dice);
    }
    let Some(id) = ledger.task(dice.below(count)) else { return String::new() };
    match dice.below(32) {
        0..3 => comment(bench, ledger, &id, plant),
        3 => link(bench, ledger, dice, &id),
        act => {
            let other = dice.draw();
            let step_text = WORDS[act - 4];
            let person = Actor::person(if dice.one_in(2) { "alice" } else { "carol" });
            let task = id.clone();
            let done = bench.call(move |board| one(board, step_text, &task, other, &person));
            outcome_text(&format!("{step_text} {id}"), &done)
        }
    }
}

/// Actions of people on one task. Actions that are listed twice are as frequent as two.
const WORDS: [&str; 28] = [
    "prioritize",
    "retitle",
    "assign",
    "block",
    "unblock",
    "unblock",
    "answer",
    "approve",
    "approve",
    "deny",
    "request changes on",
    "complete",
    "cancel",
    "retry",
    "retry",
    "reclaim",
    "archive",
    "unarchive",
    "reopen",
    "hold",
    "hold the profile of",
    "release",
    "release the profile of",
    "move",
    "schedule",
    "promote",
    "claim",
    "beat for",
];

fn outcome_text<T>(what: &str, done: &Result<T, Error>) -> String {
    match done {
        Ok(_) => what.to_owned(),
        Err(error) => format!("{what}: {error}"),
    }
}

/// Carries out an action of [`WORDS`]. The random number `chance` chooses its parameters.
fn one(board: &mut Board<'_>, word: &str, id: &TaskId, chance: u64, by: &Actor) -> Result<(), Error> {
    let far = Duration::from_secs(1 + chance % 90);
    let odd = chance % 2 == 1;
    let of_task = HoldOn { scope: HoldScope::Task, name: id.to_string() };
    let named = PROFILES[usize::try_from(chance % 3).unwrap_or(0)];
    let of_profile = HoldOn { scope: HoldScope::Profile, name: named.to_owned() };
    let until = board.now().after(far);
    let new = NewHold { kind: HoldKind::Manual, reason: "simulated".to_owned(), until: odd.then_some(until) };
    match word {
        "prioritize" => {
            let edit = Edit { priority: i64::try_from(chance % 5).ok(), ..Edit::default() };
            board.edit(id, &edit, by).map(drop)
        }
        "retitle" => {
            board.edit(id, &Edit { body: Some("simulated".to_owned()), ..Edit::default() }, by).map(drop)
        }
        "assign" => board.assign(id, named.parse().ok(), by).map(drop),
        "block" => {
            let kind = if odd { BlockKind::NeedsInput } else { BlockKind::Dependency };
            board.block(id, Blocking { kind, ..Blocking::default() }, None, by).map(drop)
        }
        "unblock" => board.unblock(id, None, by).map(drop),
        "answer" => board.answer(id, "yes", by).map(drop),
        "approve" => board.approve(id, None, None, by).map(drop),
        "deny" => board.deny(id, "no", by).map(drop),
        "request changes on" => board.request_changes(id, "no", None, by).map(drop),
        "complete" => board.complete(id, Handoff::default(), None, by).map(drop),
        "cancel" => board.cancel(id, None, by).map(drop),
        "retry" => board.retry(id, None, by).map(drop),
        "reclaim" => board.reclaim(id, None, by).map(drop),
        "archive" => board.archive(id, if odd { Detach::Unlink } else { Detach::Refuse }, by).map(drop),
        "unarchive" => board.unarchive(id, by).map(drop),
        "reopen" => board.reopen(id, None, by).map(drop),
        "hold" => board.hold(&of_task, &new, by).map(drop),
        "hold the profile of" => board.hold(&of_profile, &new, by).map(drop),
        "release" => board.release(&of_task, None, by).map(drop),
        "release the profile of" => board.release(&of_profile, None, by).map(drop),
        "move" => {
            board.move_task(id, if odd { Destination::Triage } else { Destination::Queue }, by).map(drop)
        }
        "schedule" => board.schedule(id, until, None, by).map(drop),
        "promote" => board.promote(id, None, if odd { Force::Yes } else { Force::No }, by).map(drop),
        "claim" => board.claim(id, &ClaimTerms::lasting(far), by).map(drop),
        _ => board.heartbeat(id, None, by).map(drop),
    }
}

fn create(bench: &mut Bench, ledger: &mut Ledger, dice: &mut Dice) -> String {
    let title = format!("task {}", ledger.number());
    let mut parents: Vec<TaskId> = Vec::new();
    while dice.one_in(3) && parents.len() < 3 {
        let one = ledger.task(dice.below(TASKS)).filter(|one| !parents.contains(one));
        parents.extend(one);
    }
    let new = NewTask {
        title: title.clone(),
        assignee: (!dice.one_in(12)).then(|| profile(dice)),
        tenant: dice
            .pick(&TENANTS)
            .copied()
            .flatten()
            .filter(|_| parents.is_empty())
            .map(|name| name.parse().unwrap()),
        parents,
        priority: i64::try_from(dice.below(4)).unwrap_or(0),
        workspace: dice.one_in(5).then(|| format!("dir:/simulated/place-{}", dice.below(2))),
        initial_state: if dice.one_in(15) { InitialState::Triage } else { InitialState::Normal },
        not_before: dice.one_in(8).then(|| bench.now().after(Duration::from_secs(dice.draw() % 120))),
        approval: Approval {
            state: dice.one_in(12).then_some(ApprovalState::Required),
            ..Approval::default()
        },
        idempotency_key: Some(title.clone()),
        check: Check { command: dice.one_in(8).then(|| "true".to_owned()), max_checks: None },
        limits: Limits { max_retries: dice.one_in(6).then_some(2), ..Limits::default() },
        ..NewTask::default()
    };
    let person = Actor::person("alice");
    match bench.call(move |board| board.create(new, &person)) {
        Ok(created) => {
            let id = created.task.id;
            let step_text = format!("create {id}");
            ledger.tasks.insert(id, AcknowledgedTask { title, comments: Vec::new() });
            step_text
        }
        Err(error) => format!("create {title}: {error}"),
    }
}

fn comment(bench: &mut Bench, ledger: &mut Ledger, id: &TaskId, plant: Option<Plant>) -> String {
    let number = ledger.number();
    let text = format!("comment {number}");
    let person = Actor::person("alice");
    let name = format!("request-{number}").parse().unwrap();
    let request = kernel::Request::new(kernel::Caller::for_actor(&person), "comment", name, text.as_bytes());
    ledger.unanswered = Some(Unanswered { task: id.clone(), text, request });
    // The planted fault: the comment counts as acknowledged and is never sent.
    if plant == Some(Plant::DropAcknowledged) && number.is_multiple_of(4) {
        let Some(lost) = ledger.unanswered.take() else { return String::new() };
        if let Some(acknowledged) = ledger.tasks.get_mut(id) {
            acknowledged.comments.push(lost.text);
        }
        return format!("comment {id}");
    }
    repeat(bench, ledger)
}

/// Sends the unanswered comment, always as the same request, so that the board stores it once.
fn repeat(bench: &mut Bench, ledger: &mut Ledger) -> String {
    let Some(Unanswered { task, text, request }) = ledger.unanswered.clone() else { return String::new() };
    let (id, body) = (task.clone(), text.clone());
    let job = move |board: &mut Board<'_>| {
        board.comment(&id, &body, None, &Actor::person("alice")).map(|one| one.id)
    };
    let done = bench.call_once(request, job);
    match &done {
        Ok(_) => {
            if let Some(acknowledged) = ledger.tasks.get_mut(&task) {
                acknowledged.comments.push(text);
            }
            ledger.unanswered = None;
        }
        // The comment may have been written, so it stays unanswered and is repeated.
        Err(Error::Storage { .. } | Error::Writer { .. }) => {}
        Err(_) => ledger.unanswered = None,
    }
    outcome_text(&format!("comment {task}"), &done)
}

fn link(bench: &mut Bench, ledger: &Ledger, dice: &mut Dice, id: &TaskId) -> String {
    let Some(parent) = ledger.task(dice.below(TASKS)) else { return String::new() };
    let (child, is_link) = (id.clone(), !dice.one_in(3));
    let step_text = format!("{} {parent} above {child}", if is_link { "link" } else { "unlink" });
    let done = bench.call(move |board| {
        let person = Actor::person("alice");
        if is_link {
            board.link(&parent, &child, kernel::AtWork::TakeBack, &person).map(drop)
        } else {
            board.unlink(&parent, &child, &person)
        }
    });
    outcome_text(&step_text, &done)
}

/// Archives a task, or deletes it if it is archived. The ledger notes the id before the call, whose reply may be lost.
fn clear(bench: &mut Bench, ledger: &mut Ledger, dice: &mut Dice) -> String {
    let Some(id) = ledger.task(dice.below(TASKS)) else { return String::new() };
    ledger.deleted.insert(id.clone());
    let gone = id.clone();
    let done = bench.call(move |board| {
        let person = Actor::person("carol");
        if board.expect_task(&gone)?.status != kernel::Status::Archived {
            return board.archive(&gone, Detach::Unlink, &person).map(|_| false);
        }
        board.delete(&gone, &person).map(|_| true)
    });
    if matches!(done, Ok(true) | Err(Error::NotFound { .. })) {
        ledger.forget(&id);
    }
    outcome_text(&format!("clear {id}"), &done)
}

/// Releases all holds and reclaims all open runs, so that a simulation can come to its end. Refusals are ignored.
pub(super) fn make_way(bench: &mut Bench) -> Result<(), Error> {
    bench.call(|board| {
        let person = Actor::person("alice");
        for hold in board.holds()? {
            board.release(&hold.on(), None, &person).map(drop).or_else(refused)?;
        }
        for run in board.open_runs()? {
            board.reclaim(&run.task_id, None, &person).map(drop).or_else(refused)?;
        }
        Ok(())
    })
}

fn refused(error: Error) -> Result<(), Error> {
    match error {
        Error::Storage { .. } | Error::Writer { .. } => Err(error),
        _ => Ok(()),
    }
}
