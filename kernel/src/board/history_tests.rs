//! Random histories: after any acts the invariants hold, and the log replays to the same board.

use std::time::Duration;

use proptest::prelude::*;

use crate::testing::{Bench, alice, gated, start, titled};
use crate::{
    Actor, Approval, BlockKind, Blocking, Check, Destination, Detach, EndCause, Ending, Error, Handoff,
    HoldKind, HoldOn, HoldScope, InitialState, NewHold, NewTask, OnCleanExit, RunId, StopReason, TaskId,
};

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Create { parents: Vec<usize>, intake: u8, later: bool },
    Link(usize, usize),
    Unlink(usize, usize),
    Start(usize),
    Claim(usize),
    WorkerCompletes(usize),
    WorkerBlocks(usize, u8),
    WorkerAsksForReview(usize),
    PersonCompletes(usize),
    PersonBlocks(usize),
    Unblock(usize),
    Archive(usize, bool),
    Delete(usize),
    Reclaim(usize),
    Move(usize, bool),
    RequestChanges(usize),
    AsksForReview(usize, bool),
    Approve(usize),
    ReviewerApproves(usize),
    ReviewerRequestsChanges(usize),
    Promote(usize, bool),
    Answer(usize),
    Deny(usize),
    Schedule(usize),
    Finish(usize, u8),
    FinishAgain(usize),
    Wait(u16),
    Fold(u16, u8),
    Hold(usize, bool),
    Release(usize, bool),
    Reopen(usize),
    Unarchive(usize),
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    let at = 0_usize..8;
    prop_oneof![
        3 => (prop::collection::vec(0_usize..8, 0..3), 0_u8..6, any::<bool>())
            .prop_map(|(parents, intake, later)| Act::Create { parents, intake, later }),
        1 => (at.clone(), at.clone()).prop_map(|(a, b)| Act::Link(a, b)),
        1 => (at.clone(), at.clone()).prop_map(|(a, b)| Act::Unlink(a, b)),
        5 => at.clone().prop_map(Act::Start),
        1 => at.clone().prop_map(Act::Claim),
        3 => at.clone().prop_map(Act::WorkerCompletes),
        2 => (at.clone(), 0_u8..4).prop_map(|(a, kind)| Act::WorkerBlocks(a, kind)),
        1 => at.clone().prop_map(Act::WorkerAsksForReview),
        1 => at.clone().prop_map(Act::PersonCompletes),
        1 => at.clone().prop_map(Act::PersonBlocks),
        2 => at.clone().prop_map(Act::Unblock),
        1 => (at.clone(), any::<bool>()).prop_map(|(a, detach)| Act::Archive(a, detach)),
        1 => at.clone().prop_map(Act::Delete),
        1 => at.clone().prop_map(Act::Reclaim),
        1 => (at.clone(), any::<bool>()).prop_map(|(a, triage)| Act::Move(a, triage)),
        1 => at.clone().prop_map(Act::RequestChanges),
        1 => (at.clone(), any::<bool>()).prop_map(|(a, named)| Act::AsksForReview(a, named)),
        2 => at.clone().prop_map(Act::Approve),
        2 => at.clone().prop_map(Act::ReviewerApproves),
        1 => at.clone().prop_map(Act::ReviewerRequestsChanges),
        1 => (at.clone(), any::<bool>()).prop_map(|(a, force)| Act::Promote(a, force)),
        1 => at.clone().prop_map(Act::Answer),
        1 => at.clone().prop_map(Act::Deny),
        1 => at.clone().prop_map(Act::Schedule),
        6 => (at.clone(), 0_u8..12).prop_map(|(a, cause)| Act::Finish(a, cause)),
        1 => (at.clone(), any::<bool>()).prop_map(|(a, profile)| Act::Hold(a, profile)),
        1 => (at.clone(), any::<bool>()).prop_map(|(a, profile)| Act::Release(a, profile)),
        1 => at.clone().prop_map(Act::Reopen),
        1 => at.clone().prop_map(Act::Unarchive),
        1 => at.prop_map(Act::FinishAgain),
        2 => (1_u16..900).prop_map(Act::Wait),
        1 => (0_u16..900, 1_u8..40).prop_map(|(age, limit)| Act::Fold(age, limit)),
    ]
}

fn cause(number: u8, bench: &Bench) -> EndCause {
    match number {
        0 | 1 => EndCause::Exited { code: 0 },
        2 => EndCause::Exited { code: 1 },
        3 => EndCause::Signaled { signal: 9 },
        4 => EndCause::TimedOut,
        5 => EndCause::OutOfMemory,
        6 => EndCause::LostReboot,
        7 => EndCause::ShimKilled,
        8 => EndCause::NeverStarted,
        9 => EndCause::Stopped(StopReason::Preempted),
        10 => EndCause::Stopped(StopReason::Cancelled),
        _ => EndCause::RateLimited { until: crate::Clock::now(&*bench.clock).after(Duration::from_secs(30)) },
    }
}

/// Performs an act. Returns the failure of the board; a refusal counts as a success.
pub(crate) fn perform(bench: &Bench, ids: &mut Vec<TaskId>, act: &Act) -> Result<(), Error> {
    let pick = |ids: &[TaskId], index: usize| ids.get(index % ids.len().max(1)).cloned();
    // Another writer may have deleted the task.
    let open = |id: &TaskId| {
        let task = bench.readers.with(|view| view.expect_task(id)).ok();
        task.and_then(|task| task.current_run_id)
    };
    let person = alice();
    let result: Result<(), Error> = match act.clone() {
        Act::Create { parents, intake, later } => {
            let parents = parents.into_iter().filter_map(|index| pick(ids, index)).collect();
            let initial_state = match intake {
                0 => InitialState::Triage,
                1 => InitialState::Blocked,
                _ => InitialState::Normal,
            };
            let not_before = later.then(|| crate::Clock::now(&*bench.clock).after(Duration::from_mins(5)));
            let approval = if intake == 2 { gated() } else { Approval::default() };
            let check = Check { command: (intake == 3).then(|| "true".to_owned()), max_checks: None };
            let new = NewTask { parents, initial_state, not_before, check, approval, ..titled("random") };
            bench.call(move |board| board.create(new, &person)).map(|created| ids.push(created.task.id))
        }
        Act::Wait(seconds) => {
            bench.clock.advance(Duration::from_secs(seconds.into()));
            bench.call(|board| board.wake_due()).map(drop)
        }
        Act::Fold(age, limit) => {
            let now = crate::Clock::now(&*bench.clock).as_micros();
            let before = crate::Timestamp::from_micros(now - i64::from(age) * 1_000_000 + 1);
            let folded = bench.call(move |board| board.fold_events(before, limit.into()));
            assert!(folded.is_ok(), "{folded:?}");
            bench.check();
            Ok(())
        }
        Act::Link(a, b) | Act::Unlink(a, b) => {
            let (Some(a), Some(b)) = (pick(ids, a), pick(ids, b)) else { return Ok(()) };
            let link = matches!(act, Act::Link(..));
            bench.call(move |board| draw(board, &a, &b, link))
        }
        Act::Finish(index, number) => {
            let Some(run) = pick(ids, index).and_then(|id| open(&id)) else { return Ok(()) };
            let mut ending = Ending::new(cause(number, bench));
            if number == 0 {
                ending.result_policy = OnCleanExit::Complete { summary: None };
            }
            bench.call(move |board| board.finish_run(run, ending)).map(drop)
        }
        Act::Delete(index) => {
            let Some(id) = pick(ids, index) else { return Ok(()) };
            let gone = id.clone();
            let deleted = bench.call(move |board| board.delete(&id, &person)).map(drop);
            if deleted.is_ok() {
                ids.retain(|id| *id != gone);
            }
            deleted
        }
        Act::FinishAgain(number) => {
            let run = RunId(i64::try_from(number).unwrap());
            let ended =
                bench.readers.with(|view| view.run(run)).unwrap().is_some_and(|run| run.ended_at.is_some());
            if !ended {
                return Ok(());
            }
            let again = bench.call(move |board| board.finish_run(run, Ending::new(EndCause::TimedOut)));
            again.map(|again| assert!(again.already_finished))
        }
        Act::Start(index)
        | Act::Claim(index)
        | Act::WorkerCompletes(index)
        | Act::WorkerBlocks(index, _)
        | Act::WorkerAsksForReview(index)
        | Act::PersonCompletes(index)
        | Act::PersonBlocks(index)
        | Act::Unblock(index)
        | Act::Archive(index, _)
        | Act::Reclaim(index)
        | Act::Move(index, _)
        | Act::RequestChanges(index)
        | Act::AsksForReview(index, _)
        | Act::Approve(index)
        | Act::ReviewerApproves(index)
        | Act::ReviewerRequestsChanges(index)
        | Act::Promote(index, _)
        | Act::Answer(index)
        | Act::Deny(index)
        | Act::Hold(index, _)
        | Act::Release(index, _)
        | Act::Reopen(index)
        | Act::Unarchive(index)
        | Act::Schedule(index) => {
            let Some(id) = pick(ids, index) else { return Ok(()) };
            let worker = open(&id).map(|run| Actor::worker("bob", run, id.clone(), None));
            let start = start(&*bench.clock);
            let act = act.clone();
            bench.call(move |board| single(board, &id, &act, worker, start))
        }
    };
    match result {
        Err(error @ (Error::Storage { .. } | Error::Writer { .. })) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Adds or removes a link.
fn draw(board: &mut crate::Board<'_>, a: &TaskId, b: &TaskId, link: bool) -> Result<(), Error> {
    if link {
        let moments = crate::AtWork::TakeBackWithin(Duration::from_mins(1));
        board.link(a, b, moments, &alice()).map(drop)
    } else {
        board.unlink(a, b, &alice())
    }
}

fn single(
    board: &mut crate::Board<'_>,
    id: &TaskId,
    act: &Act,
    worker: Option<Actor>,
    start: crate::Start,
) -> Result<(), Error> {
    let person = alice();
    match (act, worker) {
        (Act::Start(_), _) => board.start_run(id, start).map(drop),
        (Act::Claim(_), _) => {
            board.claim(id, &crate::ClaimTerms::lasting(Duration::from_mins(5)), &person).map(drop)
        }
        (Act::WorkerCompletes(_), Some(worker)) => {
            board.complete(id, Handoff::default(), None, &worker).map(drop)
        }
        (Act::WorkerBlocks(_, kind), Some(worker)) => {
            let kind =
                [BlockKind::NeedsInput, BlockKind::NeedsInput, BlockKind::Transient, BlockKind::Dependency]
                    [usize::from(*kind)];
            board.block(id, Blocking { kind, ..Blocking::default() }, None, &worker).map(drop)
        }
        (Act::WorkerAsksForReview(_), Some(worker)) => {
            let reviewer = Some("eve".parse().unwrap());
            board.request_review(id, Handoff::default(), reviewer, None, &worker).map(drop)
        }
        (Act::PersonCompletes(_), _) => board.complete(id, Handoff::default(), None, &person).map(drop),
        (Act::PersonBlocks(_), _) => board.block(id, Blocking::default(), None, &person).map(drop),
        (Act::Unblock(_), _) => board.unblock(id, None, &person).map(drop),
        (Act::Reopen(_), _) => board.reopen(id, None, &person).map(drop),
        (Act::Unarchive(_), _) => board.unarchive(id, &person).map(drop),
        (Act::Archive(_, detach), _) => {
            board.archive(id, if *detach { Detach::Unlink } else { Detach::Refuse }, &person).map(drop)
        }
        (Act::Reclaim(_), _) => board.reclaim(id, None, &person).map(drop),
        (Act::Move(_, triage), _) => board
            .move_task(id, if *triage { Destination::Triage } else { Destination::Queue }, &person)
            .map(drop),
        (Act::RequestChanges(_), _) => board.request_changes(id, "no", None, &person).map(drop),
        (Act::AsksForReview(_, named), _) => {
            let reviewer = named.then(|| "eve".parse().unwrap());
            board.request_review(id, Handoff::default(), reviewer, None, &person).map(drop)
        }
        (Act::Approve(_), _) => board.approve(id, None, None, &Actor::person("carol")).map(drop),
        (Act::ReviewerApproves(_), Some(worker)) => {
            board.approve(id, Some("good"), None, &Actor { name: "eve".to_owned(), ..worker }).map(drop)
        }
        (Act::ReviewerRequestsChanges(_), Some(worker)) => {
            board.request_changes(id, "no", None, &Actor { name: "eve".to_owned(), ..worker }).map(drop)
        }
        (Act::Promote(_, force), _) => {
            let force = if *force { crate::Force::Yes } else { crate::Force::No };
            board.promote(id, None, force, &person).map(drop)
        }
        (Act::Answer(_), _) => board.answer(id, "yes", &person).map(drop),
        (Act::Deny(_), _) => board.deny(id, "no", &person).map(drop),
        (Act::Schedule(_), _) => {
            let at = board.now().after(Duration::from_mins(2));
            board.schedule(id, at, None, &person).map(drop)
        }
        (Act::Hold(_, profile) | Act::Release(_, profile), _) => {
            let on = if *profile {
                HoldOn { scope: HoldScope::Profile, name: "bob".to_owned() }
            } else {
                HoldOn { scope: HoldScope::Task, name: id.to_string() }
            };
            if matches!(act, Act::Release(..)) {
                return board.release(&on, None, &person).map(drop);
            }
            let until = profile.then(|| board.now().after(Duration::from_mins(1)));
            let new = NewHold { kind: HoldKind::Manual, reason: "random".to_owned(), until };
            board.hold(&on, &new, &person).map(drop)
        }
        (_, _) => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_histories_keep_the_invariants_and_replay_to_the_same_board(
        acts in prop::collection::vec(act(), 1..80)
    ) {
        let bench = Bench::new();
        let mut ids = Vec::new();
        for act in &acts {
            perform(&bench, &mut ids, act).unwrap_or_else(|error| panic!("{act:?}: {error}"));
        }
        bench.check();
    }
}
