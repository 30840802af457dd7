//! Checks of work.

use crate::testing::{Bench, alice, checked, titled};
use crate::{
    Actor, BlockKind, Candidate, Check, Detach, Edit, EndCause, Ending, EventFilter, Fault, Force, Handoff,
    NewTask, OnCleanExit, Outcome, Purpose, RunId, Status, StopReason, TaskId, WaitingCode,
};

const WELL: EndCause = EndCause::Exited { code: 0 };

fn bob(run: RunId, id: &TaskId) -> Actor {
    Actor::worker("bob", run, id.clone(), None)
}

/// Has a worker complete a task, and ends its run.
fn handed_over(bench: &Bench, id: &TaskId) -> RunId {
    let run = bench.start(id);
    let (of, bob) = (id.clone(), bob(run, id));
    let handoff =
        Handoff { summary: Some("did it".to_owned()), result: Some("42".to_owned()), ..Handoff::default() };
    bench.call(move |board| board.complete(&of, handoff, None, &bob)).unwrap();
    let end = bench.finish(run, WELL);
    assert_eq!((end.outcome, end.status), (Outcome::Completed, Status::Review));
    run
}

/// Returns a task with a check whose work was handed over.
fn unchecked(bench: &Bench, max_checks: Option<u32>) -> TaskId {
    let id = bench.create(checked("cargo test", max_checks)).id;
    handed_over(bench, &id);
    id
}

fn offered(bench: &Bench) -> Vec<Candidate> {
    bench.offered(9, &crate::Accounts::new())
}

fn kinds(bench: &Bench, id: &TaskId) -> Vec<String> {
    let filter = EventFilter { task: Some(id.clone()), ..EventFilter::default() };
    let events = bench.readers.with(|view| view.events(&filter)).unwrap();
    events.into_iter().map(|event| event.kind).collect()
}

/// Starts the check of a task.
fn check_of(bench: &Bench, id: &TaskId) -> RunId {
    let run = bench.start(id);
    assert_eq!(bench.readers.with(|view| view.expect_run(run)).unwrap().purpose, Purpose::Check);
    run
}

#[test]
fn work_is_done_and_its_children_go_on_only_when_its_check_has_passed() {
    let bench = Bench::new();
    let id = bench.create(checked("cargo test", None)).id;
    let child = bench.child_of(&[&id]);
    let worked = handed_over(&bench, &id);

    let task = bench.task(&id);
    assert_eq!((task.status, task.unchecked_run), (Status::Review, Some(worked)));
    assert_eq!(bench.task(&child).status, Status::Todo);
    assert!(kinds(&bench, &id).ends_with(&["check_pending".to_owned()]));
    let why = bench.readers.with(|view| view.waiting(&id)).unwrap().unwrap();
    assert_eq!((why.code, why.text.as_str()), (WaitingCode::Check, "its check has not run yet: cargo test"));
    let candidates = offered(&bench);
    assert_eq!((&candidates[0].task, candidates[0].assignee.as_str(), candidates.len()), (&id, "sh", 1));
    bench.check();

    let check = check_of(&bench, &id);
    assert_eq!((bench.task(&id).status, offered(&bench)), (Status::Running, Vec::new()));
    let end = bench.finish(check, WELL);

    assert_eq!((end.outcome, end.status), (Outcome::CheckPassed, Status::Done));
    let task = bench.task(&id);
    assert_eq!((task.result.as_deref(), task.unchecked_run, task.work_by), (Some("42"), None, None));
    assert_eq!(bench.task(&child).status, Status::Ready);
    assert!(kinds(&bench, &id).ends_with(&["check_passed".to_owned(), "completed".to_owned()]));
    let context =
        bench.readers.with(|view| view.context(&child, crate::ContextLimits::default(), &|_| None)).unwrap();
    assert!(context.text.contains("> did it"), "{}", context.text);
    bench.check();
}

#[test]
fn a_failed_check_is_another_attempt_that_reads_its_output_and_the_last_one_blocks_the_task() {
    let bench = Bench::new();
    let id = unchecked(&bench, Some(2));
    let fail = |check: RunId| {
        let tail = Some("test a ... FAILED\n1 failed".to_owned());
        let ending = Ending { stderr_tail: tail, ..Ending::new(EndCause::Exited { code: 101 }) };
        bench.call(move |board| board.finish_run(check, ending)).unwrap()
    };

    let end = fail(check_of(&bench, &id));

    assert_eq!((end.outcome, end.status), (Outcome::CheckFailed, Status::Ready));
    let task = bench.task(&id);
    assert_eq!((task.failed_checks, task.consecutive_failures, task.unchecked_run), (1, 0, None));
    let context =
        bench.readers.with(|view| view.context(&id, crate::ContextLimits::default(), &|_| None)).unwrap();
    for part in
        ["> cargo test\n", "check_failed", "the check failed: exit code 101; 1 failed", "> test a ... FAILED"]
    {
        assert!(context.text.contains(part), "{part}: {}", context.text);
    }
    assert_eq!(offered(&bench)[0].assignee.as_str(), "bob");
    bench.check();

    handed_over(&bench, &id);
    let end = fail(check_of(&bench, &id));

    assert_eq!((end.outcome, end.status), (Outcome::CheckFailed, Status::Blocked));
    let task = bench.task(&id);
    assert_eq!((task.block_kind, task.failed_checks), (Some(BlockKind::GaveUp), 2));
    assert_eq!(
        task.block_reason.as_deref(),
        Some("gave up after 2 failed checks: the check failed: exit code 101; 1 failed")
    );
    let found = bench.readers.with(|view| view.diagnose(Some(&id))).unwrap().remove(0).diagnostics.remove(0);
    assert_eq!(found.text, "gave up after 2 failed checks");
    assert_eq!(found.seen.unwrap().count, 2);
    bench.check();

    let of = id.clone();
    let task = bench.call(move |board| board.unblock(&of, None, &alice())).unwrap();
    assert_eq!((task.status, bench.task(&id).failed_checks), (Status::Ready, 0));
    bench.check();
}

#[test]
fn every_end_of_a_check_that_ran_is_its_answer_and_no_other_end_counts_as_one() {
    let until = crate::Timestamp::from_secs(i64::from(u32::MAX));
    let spawn = |fault| EndCause::SpawnFailed { step: "exec".to_owned(), error: "gone".to_owned(), fault };
    for (cause, outcome, status, failed) in [
        (WELL, Outcome::CheckPassed, Status::Done, 0),
        (EndCause::Exited { code: 75 }, Outcome::CheckFailed, Status::Ready, 1),
        (EndCause::RateLimited { until }, Outcome::CheckFailed, Status::Ready, 1),
        (EndCause::Signaled { signal: 11 }, Outcome::CheckFailed, Status::Ready, 1),
        (EndCause::TimedOut, Outcome::CheckFailed, Status::Ready, 1),
        (EndCause::OutOfMemory, Outcome::CheckFailed, Status::Ready, 1),
        (EndCause::LostReboot, Outcome::Lost, Status::Review, 0),
        (EndCause::ShimKilled, Outcome::Lost, Status::Review, 0),
        (EndCause::NeverStarted, Outcome::Reclaimed, Status::Review, 0),
        (spawn(Fault::Environment), Outcome::SpawnFailed, Status::Review, 0),
        (spawn(Fault::Task), Outcome::SpawnFailed, Status::Review, 0),
        (EndCause::Stopped(StopReason::Preempted), Outcome::Preempted, Status::Review, 0),
        (EndCause::Stopped(StopReason::Reclaimed), Outcome::Reclaimed, Status::Review, 0),
    ] {
        let bench = Bench::new();
        let id = unchecked(&bench, None);
        let end = bench.finish(check_of(&bench, &id), cause.clone());
        assert_eq!((end.outcome, end.status), (outcome, status), "{cause:?}");
        let task = bench.task(&id);
        assert_eq!(task.failed_checks, failed, "{cause:?}");
        assert_eq!(task.unchecked_run.is_some(), status == Status::Review, "{cause:?}");
        bench.check();
    }
}

/// A check that cannot start is tried again later, a limited number of times.
#[test]
fn a_check_that_never_starts_pauses_and_its_task_gives_up_in_the_end() {
    let bench = Bench::new();
    let id = unchecked(&bench, None);
    let mut waited = false;
    for _ in 0..crate::DEFAULT_FAILURE_LIMIT {
        if offered(&bench).is_empty() {
            let why = bench.readers.with(|view| view.waiting(&id)).unwrap().unwrap();
            assert!(why.text.starts_with("its check runs again in"), "{}", why.text);
            waited = true;
            bench.clock.advance(std::time::Duration::from_mins(10));
        }
        assert_eq!(offered(&bench).len(), 1);
        let (step, error) = ("exec".to_owned(), "gone".to_owned());
        bench.finish(check_of(&bench, &id), EndCause::SpawnFailed { step, error, fault: Fault::Task });
    }
    let task = bench.task(&id);
    assert!(waited);
    assert_eq!((task.status, task.failed_checks), (Status::Blocked, 0));
    let of = id.clone();
    bench.call(move |board| board.unblock(&of, None, &alice())).unwrap();
    assert_eq!(bench.finish(check_of(&bench, &id), WELL).status, Status::Done, "the work is kept");
    bench.check();
}

#[test]
fn a_review_is_asked_for_when_the_check_has_passed() {
    let bench = Bench::new();
    let id = bench.create(checked("true", None)).id;
    let run = bench.start(&id);
    let (of, worker) = (id.clone(), bob(run, &id));
    let eve = Some("eve".parse().unwrap());
    bench.call(move |board| board.request_review(&of, Handoff::default(), eve, None, &worker)).unwrap();
    assert_eq!(bench.finish(run, WELL).outcome, Outcome::ReviewRequested);
    assert_eq!(offered(&bench)[0].assignee.as_str(), "sh", "no reviewer looks at unproved work");

    let end = bench.finish(check_of(&bench, &id), WELL);

    assert_eq!((end.outcome, end.status), (Outcome::CheckPassed, Status::Review));
    assert_eq!(offered(&bench)[0].assignee.as_str(), "eve");
    assert!(kinds(&bench, &id).ends_with(&["check_passed".to_owned(), "review_requested".to_owned()]));
    let of = id.clone();
    let done = bench.call(move |board| board.approve(&of, None, None, &alice())).unwrap();
    assert_eq!(done.task.status, Status::Done);
    bench.check();
}

#[test]
fn a_clean_exit_that_completes_is_checked_as_well() {
    let bench = Bench::new();
    let id = bench.create(checked("true", None)).id;
    let run = bench.start(&id);
    let result_policy = OnCleanExit::Complete { summary: Some("tail".to_owned()) };
    let ending = Ending { result_policy, ..Ending::new(WELL) };
    assert_eq!(bench.call(move |board| board.finish_run(run, ending)).unwrap().status, Status::Review);
    assert_eq!(bench.finish(check_of(&bench, &id), WELL).status, Status::Done);
    assert_eq!(bench.task(&id).result.as_deref(), Some("tail"));
    bench.check();
}

#[test]
fn a_person_decides_without_a_check_and_a_claim_by_hand_of_a_check_is_refused() {
    let bench = Bench::new();
    let id = unchecked(&bench, None);
    let of = id.clone();
    let claim = bench.call(move |board| {
        board.claim(&of, &crate::ClaimTerms::lasting(std::time::Duration::from_mins(1)), &alice())
    });
    assert!(claim.unwrap_err().to_string().contains("waits for its check"));
    let of = id.clone();
    bench.call(move |board| board.complete(&of, Handoff::default(), None, &alice())).unwrap();
    assert_eq!(bench.task(&id).status, Status::Done);
    let id = bench.create(checked("false", None)).id;
    let run = bench.start(&id);
    let of = id.clone();
    bench.call(move |board| board.complete(&of, Handoff::default(), None, &alice())).unwrap();
    assert_eq!(bench.finish(run, EndCause::Stopped(StopReason::Cancelled)).status, Status::Done);
    bench.check();
}

/// A worker's verdict stays a worker's, even if a person asked for the end of the run.
#[test]
fn what_a_worker_has_completed_is_checked_also_where_a_person_ends_its_run() {
    let bench = Bench::new();
    let id = bench.create(checked("true", None)).id;
    let run = bench.start(&id);
    let (of, worker) = (id.clone(), bob(run, &id));
    bench
        .call(move |board| {
            board.complete(&of, Handoff::default(), None, &worker)?;
            board.stop_run(run, StopReason::Cancelled, None, &alice())
        })
        .unwrap();
    assert_eq!(bench.finish(run, WELL).status, Status::Review);
    bench.check();
}

#[test]
fn work_that_was_archived_before_its_check_is_not_done() {
    let bench = Bench::new();
    let id = bench.create(checked("true", None)).id;
    let child = bench.child_of(&[&id]);
    let run = bench.start(&id);
    let (of, worker) = (id.clone(), bob(run, &id));
    bench
        .call(move |board| {
            board.complete(&of, Handoff::default(), None, &worker)?;
            board.archive(&of, Detach::Unlink, &alice())
        })
        .unwrap();
    assert_eq!(bench.finish(run, WELL).status, Status::Archived);
    assert!(!bench.task(&id).is_done());
    assert_eq!(bench.readers.with(|view| view.parents(&child)).unwrap(), Vec::new());
    let id = unchecked(&bench, None);
    let of = id.clone();
    bench.call(move |board| board.archive(&of, Detach::Refuse, &alice())).unwrap();
    let of = id.clone();
    let back = bench.call(move |board| board.unarchive(&of, &alice())).unwrap();
    assert_eq!((back.status, back.unchecked_run), (Status::Ready, None));
    bench.check();
}

#[test]
fn unchecked_work_that_a_person_blocks_is_checked_when_it_goes_on() {
    for promote in [false, true] {
        let bench = Bench::new();
        let id = unchecked(&bench, None);
        let of = id.clone();
        let task = bench
            .call(move |board| {
                board.block(&of, crate::Blocking::default(), None, &alice())?;
                if promote {
                    board.promote(&of, None, Force::No, &alice())
                } else {
                    board.unblock(&of, None, &alice())
                }
            })
            .unwrap();
        assert_eq!((task.status, task.unchecked_run.is_some()), (Status::Review, true));
        assert_eq!(bench.finish(check_of(&bench, &id), WELL).status, Status::Done);
        bench.check();
    }
}

#[test]
fn a_check_is_changed_until_work_waits_for_it_and_one_that_says_nothing_is_refused() {
    let bench = Bench::new();
    let id = bench.create(titled("later proved")).id;
    let edit = |id: &TaskId, edit: Edit| {
        let id = id.clone();
        bench.call(move |board| board.edit(&id, &edit, &alice()))
    };
    let check = |text: &str| Edit { check: Some(text.to_owned()), ..Edit::default() };
    let limit = |limit| Edit { max_checks: Some(limit), ..Edit::default() };
    assert!(edit(&id, limit(2)).unwrap_err().to_string().contains("no check"));
    let task = edit(&id, check("make test")).unwrap();
    assert_eq!((task.check.command.as_deref(), task.check.limit(&task.goal)), (Some("make test"), 3));
    assert!(edit(&id, limit(0)).is_err() && edit(&id, check(" ")).is_err());
    assert_eq!(edit(&id, limit(9)).unwrap().check.max_checks, Some(9));
    assert_eq!(edit(&id, check("")).unwrap().check.command, None);
    edit(&id, check("make")).unwrap();
    handed_over(&bench, &id);
    assert!(edit(&id, check("")).unwrap_err().to_string().contains("waits for its check"));
    for wrong in [
        Check { command: Some(" ".to_owned()), max_checks: None },
        Check { command: Some("x".repeat(5000)), max_checks: None },
        Check { command: Some("true".to_owned()), max_checks: Some(0) },
        Check { command: None, max_checks: Some(1) },
    ] {
        let new = NewTask { check: wrong.clone(), ..titled("wrong") };
        let refused = bench.call(move |board| board.create(new, &alice())).map(drop);
        assert!(refused.is_err(), "{wrong:?}");
    }
    bench.check();
}

/// A reviewer has the files of the work, and could break the proved work.
#[test]
fn work_that_a_reviewers_run_approves_is_checked_again_and_that_which_a_person_approves_is_not() {
    for by_person in [false, true] {
        let bench = Bench::new();
        let id = bench.create(checked("cargo test", None)).id;
        let run = bench.start(&id);
        let (of, author) = (id.clone(), bob(run, &id));
        let handoff = Handoff { summary: Some("did it".to_owned()), ..Handoff::default() };
        let reviewer = Some("carol".parse().unwrap());
        bench.call(move |board| board.request_review(&of, handoff, reviewer, None, &author)).unwrap();
        bench.finish(run, WELL);
        let passed = bench.finish(check_of(&bench, &id), WELL);
        assert_eq!((passed.outcome, passed.status), (Outcome::CheckPassed, Status::Review));
        if by_person {
            let of = id.clone();
            bench.call(move |board| board.approve(&of, None, None, &alice())).unwrap();
            assert_eq!(bench.task(&id).status, Status::Done);
            continue;
        }
        let review = bench.start(&id);
        let (of, carol) = (id.clone(), Actor::worker("carol", review, id.clone(), None));
        bench.call(move |board| board.approve(&of, None, None, &carol)).unwrap();
        let approved = bench.finish(review, WELL);
        assert_eq!((approved.outcome, approved.status), (Outcome::Approved, Status::Review));
        assert_eq!(bench.task(&id).unchecked_run, Some(review));
        bench.check();

        let proved = bench.finish(check_of(&bench, &id), WELL);
        assert_eq!((proved.outcome, proved.status), (Outcome::CheckPassed, Status::Done));
        let filter = EventFilter {
            task: Some(id.clone()),
            kinds: vec!["completed".to_owned()],
            ..EventFilter::default()
        };
        let completed = bench.readers.with(|view| view.events(&filter)).unwrap();
        assert_eq!(completed[0].payload.as_ref().unwrap()["summary"], "did it");
        bench.check();
    }
}

#[test]
fn a_check_that_somebody_ends_says_nothing_of_the_work_whatever_it_exits_with() {
    for code in [0, 1] {
        let bench = Bench::new();
        let id = unchecked(&bench, Some(1));
        let check = check_of(&bench, &id);
        bench.call(move |board| board.stop_run(check, StopReason::Cancelled, None, &alice())).unwrap();
        let end = bench.finish(check, EndCause::Exited { code });
        assert_eq!((end.outcome, end.status), (Outcome::Cancelled, Status::Blocked), "{code}");
        assert_eq!(bench.task(&id).failed_checks, 0);
    }
}
