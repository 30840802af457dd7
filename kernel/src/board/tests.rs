//! Writes of a board.

use std::time::Duration;

use serde_json::json;

use crate::testing::{Bench, alice, start, titled};
use crate::{
    Actor, BlockKind, Blocking, Board, Detach, Effect, EndCause, ErrorCode, Fault, Handoff, NewTask, Outcome,
    RunId, Status, StopReason, Task, TaskId,
};

/// Write whose result has no value.
type Write = Box<dyn FnOnce(&mut Board<'_>) -> Result<(), crate::Error> + Send>;

fn worker(task: &Task, run: RunId) -> Actor {
    Actor::worker("bob", run, task.id.clone(), task.tenant.clone())
}

fn summary(text: &str) -> Handoff {
    Handoff { summary: Some(text.to_owned()), ..Handoff::default() }
}

#[test]
fn a_verdict_takes_effect_only_when_the_run_has_ended() {
    let bench = Bench::new();
    let id = bench.ready();
    let child = bench.child_of(&[&id]);
    assert_eq!(bench.task(&child).status, Status::Todo);
    let run = bench.start(&id);
    let bob = worker(&bench.task(&id), run);
    let settled = bench.call({
        let id = id.clone();
        move |board| board.complete(&id, summary("did it"), None, &bob)
    });
    let settled = settled.unwrap();
    assert_eq!((settled.effect, settled.task.status), (Effect::WhenRunEnds, Status::Running));
    assert_eq!(bench.task(&child).status, Status::Todo);
    let stop = bench.runs_to_stop();
    assert_eq!((stop.len(), stop[0].stop_reason), (1, Some(StopReason::Verdict)));
    let finished = bench.finish(run, EndCause::Signaled { signal: 9 });
    assert_eq!((finished.status, finished.outcome), (Status::Done, Outcome::Completed));
    assert_eq!(bench.task(&child).status, Status::Ready);
    bench.check();
}

#[test]
fn a_second_finish_returns_what_the_first_did() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let first = bench.finish(run, EndCause::Exited { code: 3 });
    let again = bench.start(&id);
    let second = bench.finish(run, EndCause::Exited { code: 0 });
    assert!(second.already_finished);
    assert_eq!((second.outcome, second.status), (first.outcome, first.status));
    assert_eq!(bench.task(&id).current_run_id, Some(again));
    bench.check();
}

#[test]
fn a_stale_run_cannot_complete_its_task() {
    let bench = Bench::new();
    let id = bench.ready();
    let old = bench.start(&id);
    let stale = worker(&bench.task(&id), old);
    bench.finish(old, EndCause::Exited { code: 1 });
    bench.start(&id);
    let task = id.clone();
    let error = bench.call(move |board| board.complete(&task, summary("late"), None, &stale)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Forbidden);
    assert!(error.to_string().contains("has ended"), "{error}");
    let task = id.clone();
    let error =
        bench.call(move |board| board.complete(&task, summary("late"), Some(old), &alice())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    assert_eq!(bench.task(&id).status, Status::Running);
}

#[test]
fn the_breaker_blocks_after_the_limit_and_stays_shut() {
    let bench = Bench::new();
    let id = bench.ready();
    let mut pauses = Vec::new();
    for attempt in 1..=5 {
        let run = bench.start(&id);
        let before = crate::Clock::now(&*bench.clock);
        let end = bench.finish(run, EndCause::Exited { code: 1 });
        assert_eq!(end.status == Status::Blocked, attempt == 5, "attempt {attempt}");
        if let Some(at) = end.retry_at {
            pauses.push(at.since(before).as_secs());
            bench.clock.advance(at.since(before));
            bench.wake();
        }
    }
    assert_eq!(pauses, [1, 2, 4]);
    let task = bench.task(&id);
    assert_eq!(task.block_kind, Some(BlockKind::GaveUp));
    assert!(task.block_reason.unwrap().contains("exit code 1"));
    bench.clock.advance(Duration::from_hours(48));
    bench.wake();
    assert_eq!(bench.task(&id).status, Status::Blocked);
    let task = id.clone();
    let task = bench.call(move |board| board.unblock(&task, None, &alice())).unwrap();
    assert_eq!((task.status, task.consecutive_failures), (Status::Ready, 0));
    bench.check();
}

#[test]
fn endings_that_are_not_the_workers_fault_are_not_counted() {
    let bench = Bench::new();
    let id = bench.ready();
    let later = crate::Clock::now(&*bench.clock).after(Duration::from_mins(1));
    for cause in [
        EndCause::LostReboot,
        EndCause::NeverStarted,
        EndCause::Stopped(StopReason::Preempted),
        EndCause::Stopped(StopReason::Reclaimed),
        EndCause::SpawnFailed {
            step: "exec".to_owned(),
            error: "no program".to_owned(),
            fault: Fault::Environment,
        },
        EndCause::RateLimited { until: later },
    ] {
        let run = bench.start(&id);
        bench.finish(run, cause);
        assert_eq!(bench.task(&id).consecutive_failures, 0);
    }
    assert_eq!(bench.task(&id).status, Status::Scheduled);
    assert_eq!(bench.task(&id).not_before, Some(later));
    bench.clock.advance(Duration::from_mins(1));
    bench.wake();
    for (number, cause) in [
        EndCause::ShimKilled,
        EndCause::SpawnFailed { step: "exec".to_owned(), error: "no".to_owned(), fault: Fault::Task },
    ]
    .into_iter()
    .enumerate()
    {
        let run = bench.start(&id);
        bench.finish(run, cause);
        assert_eq!(bench.task(&id).consecutive_failures as usize, number + 1);
    }
    bench.check();
}

#[test]
fn a_person_completes_a_running_task_when_its_run_has_ended() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let task = id.clone();
    let settled = bench.call(move |board| board.complete(&task, summary("mine"), None, &alice())).unwrap();
    assert_eq!(settled.effect, Effect::WhenRunEnds);
    assert_eq!(bench.finish(run, EndCause::Stopped(StopReason::Cancelled)).status, Status::Done);
    bench.check();
}

#[test]
fn a_task_nobody_claimed_keeps_its_handoff_in_a_run_of_zero_length() {
    let bench = Bench::new();
    let id = bench.ready();
    let task = id.clone();
    let settled = bench.call(move |board| board.complete(&task, summary("by hand"), None, &alice())).unwrap();
    assert_eq!((settled.task.status, settled.effect), (Status::Done, Effect::Now));
    let run = bench.readers.with(|view| view.expect_run(settled.run.unwrap())).unwrap();
    assert_eq!((run.started_at, run.summary.as_deref()), (run.ended_at.unwrap(), Some("by hand")));
    bench.check();
}

#[test]
fn a_claim_by_hand_settles_at_once_and_expires() {
    let bench = Bench::new();
    let id = bench.ready();
    let task = id.clone();
    let claimed = bench
        .call(move |board| board.claim(&task, &crate::ClaimTerms::lasting(Duration::from_mins(1)), &alice()))
        .unwrap();
    assert_eq!(claimed.task.status, Status::Running);
    let task = id.clone();
    let error = bench
        .call(move |board| board.claim(&task, &crate::ClaimTerms::lasting(Duration::from_mins(1)), &alice()))
        .unwrap_err();
    assert!(error.to_string().contains("lock=hand:alice"), "{error}");
    bench.clock.advance(Duration::from_secs(59));
    let task = id.clone();
    bench.call(move |board| board.heartbeat(&task, None, &alice())).unwrap();
    bench.clock.advance(Duration::from_secs(59));
    assert!(bench.wake().is_empty());
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(bench.wake(), vec![id.clone()]);
    assert_eq!(bench.task(&id).status, Status::Ready);
    let task = id.clone();
    bench
        .call(move |board| board.claim(&task, &crate::ClaimTerms::lasting(Duration::from_mins(1)), &alice()))
        .unwrap();
    let task = id.clone();
    let settled = bench.call(move |board| board.complete(&task, summary("ok"), None, &alice())).unwrap();
    assert_eq!((settled.task.status, settled.effect), (Status::Done, Effect::Now));
    bench.check();
}

#[test]
fn an_attempt_does_not_inherit_the_heartbeat_of_the_one_before() {
    let bench = Bench::new();
    let id = bench.ready();
    let claim = || {
        let task = id.clone();
        bench
            .call(move |board| {
                board.claim(&task, &crate::ClaimTerms::lasting(Duration::from_mins(1)), &alice())
            })
            .unwrap()
            .run
            .id
    };
    claim();
    let task = id.clone();
    bench.call(move |board| board.heartbeat(&task, None, &alice())).unwrap();
    bench.clock.advance(Duration::from_hours(2));
    assert_eq!(bench.wake(), vec![id.clone()], "the first attempt has run out");

    let second = claim();

    let run = bench.readers.with(|view| view.run(second)).unwrap().unwrap();
    assert_eq!(run.last_heartbeat_at, None);
    bench.clock.advance(Duration::from_secs(59));
    assert!(bench.wake().is_empty(), "the second has its whole lease");
    assert_eq!(bench.task(&id).current_run_id, Some(second));
}

#[test]
fn a_link_that_closes_a_circle_is_refused() {
    let bench = Bench::new();
    let a = bench.ready();
    let b = bench.child_of(&[&a]);
    let c = bench.child_of(&[&b]);
    let error = bench.call(move |board| board.link(&c, &a, crate::AtWork::TakeBack, &alice())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    bench.check();
}

#[test]
fn an_archived_parent_counts_as_done_only_if_it_was() {
    let bench = Bench::new();
    let parent = bench.ready();
    let child = bench.child_of(&[&parent]);
    let id = parent.clone();
    let error = bench.call(move |board| board.archive(&id, Detach::Refuse, &alice())).unwrap_err();
    assert!(error.hint().unwrap().contains("--detach"));
    let id = parent.clone();
    bench.call(move |board| board.archive(&id, Detach::Unlink, &alice())).unwrap();
    assert_eq!(bench.task(&child).status, Status::Ready);
    let done = bench.ready();
    let id = done.clone();
    bench
        .call(move |board| {
            board.complete(&id, Handoff::default(), None, &alice())?;
            board.archive(&id, Detach::Refuse, &alice())
        })
        .unwrap();
    assert_eq!(bench.task(&bench.child_of(&[&done])).status, Status::Ready);
    bench.check();
}

#[test]
fn archiving_a_running_task_ends_its_run_first_and_keeps_a_completion() {
    let bench = Bench::new();
    for completed in [false, true] {
        let id = bench.ready();
        let run = bench.start(&id);
        let bob = worker(&bench.task(&id), run);
        let task = id.clone();
        let settled = bench
            .call(move |board| {
                if completed {
                    board.complete(&task, summary("done"), None, &bob)?;
                }
                board.archive(&task, Detach::Refuse, &alice())
            })
            .unwrap();
        assert_eq!((settled.effect, settled.task.status), (Effect::WhenRunEnds, Status::Running));
        let end = bench.finish(run, EndCause::Stopped(StopReason::Cancelled));
        assert_eq!(end.status, Status::Archived);
        assert_eq!(bench.task(&id).is_done(), completed);
    }
    bench.check();
}

#[test]
fn the_same_key_names_the_same_task() {
    let bench = Bench::new();
    let handles: Vec<_> = (0..8)
        .map(|_| {
            let writer = bench.writer.clone();
            std::thread::spawn(move || {
                let new = NewTask { idempotency_key: Some("once".to_owned()), ..titled("keyed") };
                writer.call(move |board| board.create(new, &alice())).unwrap()
            })
        })
        .collect();
    let created: Vec<_> = handles.into_iter().map(|handle| handle.join().unwrap()).collect();
    assert_eq!(created.iter().filter(|one| !one.existing).count(), 1);
    assert!(created.iter().all(|one| one.task.id == created[0].task.id));
}

#[test]
fn a_workers_task_has_the_policy_of_its_run_and_acts_for_the_same_person() {
    let bench = Bench::new();
    let carol = Actor { uid: Some(1001), ..alice() };
    let own = bench.call(move |board| board.create(titled("own"), &carol)).unwrap().task;
    let start = crate::Start { policy: Some("strict".to_owned()), ..start(&*bench.clock) };
    let id = own.id.clone();
    let run = bench.call(move |board| board.start_run(&id, start)).unwrap().id;
    let bob = worker(&own, run);
    let wide = NewTask { policy: Some("network".to_owned()), ..titled("wide") };
    let who = bob.clone();
    assert_eq!(bench.call(move |b| b.create(wide, &who)).unwrap_err().code(), ErrorCode::Forbidden);
    let child = bench.call(move |b| b.create(titled("child"), &bob)).unwrap().task;
    assert_eq!((child.policy.as_deref(), child.creator_uid), (Some("strict"), Some(1001)));
}

#[test]
fn a_worker_stays_within_its_task_and_tenant() {
    let bench = Bench::new();
    let own = bench.create(NewTask { tenant: Some("red".parse().unwrap()), ..titled("own") });
    let other = bench.create(NewTask { tenant: Some("blue".parse().unwrap()), ..titled("other") }).id;
    let mate = bench.create(NewTask { tenant: Some("red".parse().unwrap()), ..titled("mate") }).id;
    let run = bench.start(&own.id);
    let bob = worker(&own, run);
    let refused = |job: Write| bench.call(job).unwrap_err().code();
    let (who, id) = (bob.clone(), other.clone());
    assert_eq!(refused(Box::new(move |b| b.comment(&id, "hi", None, &who).map(drop))), ErrorCode::NotFound);
    let (who, id) = (bob.clone(), mate.clone());
    assert_eq!(
        refused(Box::new(move |b| b.complete(&id, summary("x"), None, &who).map(drop))),
        ErrorCode::Forbidden
    );
    let (who, id, own_id) = (bob.clone(), mate.clone(), own.id.clone());
    assert_eq!(
        refused(Box::new(move |b| b
            .link(&own_id, &id, crate::AtWork::TakeBackWithin(Duration::ZERO), &who)
            .map(drop))),
        ErrorCode::Forbidden
    );
    let (who, id) = (bob.clone(), mate.clone());
    assert_eq!(refused(Box::new(move |b| b.assign(&id, None, &who).map(drop))), ErrorCode::Forbidden);
    let who = bob.clone();
    let wide = NewTask { workspace: crate::Workspace::stored("dir:/etc"), ..titled("wide") };
    assert_eq!(refused(Box::new(move |b| b.create(wide, &who).map(drop))), ErrorCode::Forbidden);
    let (who, id) = (bob.clone(), mate.clone());
    bench.call(move |board| board.comment(&id, "hello", Some("operator"), &who)).unwrap();
    let comments = bench.readers.with(|view| view.comments(&mate)).unwrap();
    assert_eq!((comments[0].author.as_str(), comments[0].author_kind), ("bob", crate::ActorKind::Worker));
    let who = bob.clone();
    let fresh = bench.call(move |board| board.create(titled("made"), &who)).unwrap().task;
    assert_eq!(
        (fresh.tenant, fresh.creator_task, fresh.lineage.depth),
        (own.tenant.clone(), Some(own.id.clone()), 1)
    );
    bench.finish(run, EndCause::Exited { code: 1 });
    assert_eq!(refused(Box::new(move |b| b.create(titled("late"), &bob).map(drop))), ErrorCode::Forbidden);
    bench.check();
}

#[test]
fn the_third_block_of_the_same_kind_goes_to_triage() {
    let bench = Bench::new();
    let id = bench.ready();
    for round in 1..=3 {
        let run = bench.start(&id);
        let bob = worker(&bench.task(&id), run);
        let task = id.clone();
        let question = Some(crate::Question { text: format!("A or B, {round}?"), ..Default::default() });
        let asked = Blocking { question, ..Blocking::default() };
        bench.call(move |board| board.block(&task, asked, None, &bob)).unwrap();
        let end = bench.finish(run, EndCause::Exited { code: 0 });
        let expected = if round == 3 { Status::Triage } else { Status::Blocked };
        assert_eq!(end.status, expected, "round {round}");
        let task = id.clone();
        if round < 3 {
            bench.call(move |board| board.unblock(&task, None, &alice())).unwrap();
        }
    }
    let why = bench.readers.with(|view| view.waiting(&id)).unwrap().unwrap();
    assert!(
        why.text.starts_with("its last run was blocked: A or B, 3?; waits until a person"),
        "{}",
        why.text
    );
    bench.check();
}

#[test]
fn tenants_take_turns() {
    let bench = Bench::new();
    for number in 0..6 {
        let tenant = if number < 5 { "many" } else { "few" };
        bench.create(NewTask { tenant: Some(tenant.parse().unwrap()), ..titled(tenant) });
    }
    let turns = |limit| {
        let found = bench.offered(limit, &crate::Accounts::new());
        found.iter().map(|one| one.tenant.as_ref().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(turns(3), ["many", "few", "many"]);
    let first: TaskId = bench.offered(1, &crate::Accounts::new())[0].task.clone();
    bench.start(&first);
    assert_eq!(turns(2), ["few", "many"]);
}

#[test]
fn too_much_is_refused_with_what_and_how_much() {
    let bench = Bench::new();
    let new = NewTask { body: Some("x".repeat(10 * 1024 * 1024)), ..titled("big") };
    let error = bench.call(move |board| board.create(new, &alice())).unwrap_err();
    assert_eq!(error.to_string(), "body: it has 10485760 bytes, the limit is 1048576");
    assert!(error.hint().is_some());
    for title in ["", "  ", "a\nb", "\u{7}", &"x".repeat(501)] {
        let new = titled(title);
        assert_eq!(
            bench.call(move |board| board.create(new, &alice())).unwrap_err().code(),
            ErrorCode::Invalid
        );
    }
    let id = bench.ready();
    let handoff = Handoff { metadata: Some(json!([1])), ..Handoff::default() };
    let error = bench.call(move |board| board.complete(&id, handoff, None, &alice())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
}

#[test]
fn a_uid_belongs_to_one_task_and_rests_when_it_is_freed() {
    let bench = Bench::new();
    let (one, two) = (bench.ready(), bench.ready());
    let task = one.clone();
    let first = bench.call(move |board| board.allocate_uid(&task, 1000, 1002)).unwrap();
    let (task, other) = (one.clone(), two.clone());
    let uids = bench
        .call(move |board| {
            Ok((board.allocate_uid(&task, 1000, 1002)?, board.allocate_uid(&other, 1000, 1002)?))
        })
        .unwrap();
    assert_eq!((first, uids), (1000, (1000, 1001)));
    bench
        .call(move |board| {
            board.archive(&one, Detach::Refuse, &alice())?;
            board.delete(&one, &alice())
        })
        .unwrap();
    let three = bench.ready();
    assert_eq!(bench.call(move |board| board.allocate_uid(&three, 1000, 1002)).unwrap(), 1002);
    let four = bench.ready();
    assert_eq!(bench.call(move |board| board.allocate_uid(&four, 1000, 1002)).unwrap(), 1000);
    let five = bench.ready();
    assert!(bench.call(move |board| board.allocate_uid(&five, 1000, 1002)).is_err());
}

#[test]
fn nothing_starts_a_task_twice() {
    let bench = Bench::new();
    let id = bench.ready();
    bench.start(&id);
    let again = start(&*bench.clock);
    let error = bench.call(move |board| board.start_run(&id, again)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    bench.check();
}

#[test]
fn each_place_where_tasks_work_is_listed_once_until_they_are_archived() {
    let bench = Bench::new();
    let at = |place: &str| NewTask { workspace: crate::Workspace::stored(place), ..titled("there") };
    let places = ["dir:/b", "worktree:/a", "dir:/b", "scratch", "dir:/a"];
    let ids = places.map(|place| bench.create(at(place)).id);
    let listed = || {
        bench
            .readers
            .with(|view| view.workplaces())
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(), ["dir:/a", "dir:/b", "worktree:/a"]);
    let [_, archived, ..] = ids;
    bench.call(move |board| board.archive(&archived, Detach::Refuse, &alice())).unwrap();
    assert_eq!(listed(), ["dir:/a", "dir:/b"]);
}

#[test]
fn sentences_about_a_workspace_are_one_comment_however_many_runs_have_them() {
    let bench = Bench::new();
    let id = bench.ready();
    let note = |run| {
        let notes = ["a is a pointer.".to_owned(), "b is another.".to_owned()];
        bench.call(move |board| board.note_workspace(run, &notes)).unwrap();
    };
    let first = bench.start(&id);
    note(first);
    bench.finish(first, EndCause::ShimKilled);
    assert!(bench.call(move |board| board.note_workspace(first, &["c".to_owned()])).is_err(), "it has ended");
    note(bench.start(&id));
    let comments = bench.call(move |board| board.tx.comments_of(&id)).unwrap();
    let bodies: Vec<&str> = comments.iter().map(|comment| comment.body.as_str()).collect();
    assert_eq!(bodies, ["a is a pointer.\n\nb is another."]);
}

#[test]
fn a_branch_that_was_named_outlives_the_first_run() {
    let bench = Bench::new();
    let named = bench.create(NewTask { branch: Some("release".to_owned()), ..titled("named") }).id;
    let unnamed = bench.ready();
    for (id, kept) in [(&named, "release"), (&unnamed, "task/x")] {
        let run = bench.start(id);
        let place =
            crate::Placement { path: "/w".to_owned(), branch: Some("task/x".to_owned()), worker_uid: None };
        bench.call(move |board| board.record_workspace(run, &place)).unwrap();
        assert_eq!(bench.task(id).branch_name.as_deref(), Some(kept));
    }
    bench.check();
}
