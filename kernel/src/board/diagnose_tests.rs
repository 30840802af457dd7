//! Problems that the diagnosis finds, with their severity and age.

use std::time::Duration;

use crate::testing::{Bench, alice, checked, limited, titled};
use crate::{
    BlockKind, Blocking, Clock as _, EndCause, Ending, Finding, HoldKind, HoldOn, HoldScope, NewHold,
    NewTask, OnCleanExit, Seen, Severity, TaskId,
};

fn found(bench: &Bench, id: &TaskId) -> Vec<Finding> {
    let all = bench.readers.with(|view| view.diagnose(Some(id))).unwrap();
    all.into_iter().flat_map(|one| one.diagnostics).collect()
}

fn seen(finding: &Finding) -> &Seen {
    finding.seen.as_ref().unwrap()
}

fn kinds(bench: &Bench, id: &TaskId) -> Vec<(String, Severity)> {
    found(bench, id).into_iter().map(|one| (one.code.as_str().to_owned(), one.severity)).collect()
}

#[test]
fn a_ready_task_is_stranded_after_half_an_hour_and_worse_as_time_goes_by() {
    let bench = Bench::new();
    let since = bench.clock.now();
    let task = bench.ready();
    let mut diagnostics = Vec::new();
    for minutes in [29, 1, 30, 120] {
        bench.clock.advance(Duration::from_mins(minutes));
        diagnostics.push(kinds(&bench, &task).pop().map(|(_, severity)| severity));
    }
    assert_eq!(diagnostics, [None, Some(Severity::Warning), Some(Severity::Error), Some(Severity::Critical)]);
    // A comment changes the task, but not the time since which it is ready.
    let id = task.clone();
    bench.call(move |board| board.comment(&id, "still there", None, &alice())).unwrap();
    let stranded = found(&bench, &task).remove(0);
    assert_eq!((seen(&stranded).first_seen_at, seen(&stranded).last_seen_at), (since, bench.clock.now()));
    assert_eq!(bench.readers.with(|view| view.status_since(&task)).unwrap(), Some(since));
}

#[test]
fn what_is_held_on_purpose_is_not_stranded_and_what_is_held_beside_it_is() {
    let bench = Bench::new();
    let [task, mission, profile] = [(); 3].map(|()| bench.ready());
    let others = bench.create(NewTask { assignee: "carol".parse().ok(), ..titled("for another") }).id;
    let hold = |scope: HoldScope, name: &str| {
        let on = HoldOn { scope, name: name.to_owned() };
        let new = NewHold { kind: HoldKind::Manual, reason: "later".to_owned(), until: None };
        bench.call(move |board| board.hold(&on, &new, &alice())).unwrap();
    };
    bench.clock.advance(Duration::from_hours(1));
    let stranded = || {
        let all = [&task, &mission, &profile, &others];
        all.map(|id| kinds(&bench, id) == [("stranded_in_ready".to_owned(), Severity::Error)])
    };
    assert_eq!(stranded(), [true, true, true, true]);
    hold(HoldScope::Task, task.as_str());
    assert_eq!(stranded(), [false, true, true, true]);
    hold(HoldScope::Mission, mission.as_str());
    assert_eq!(stranded(), [false, false, true, true]);
    hold(HoldScope::Profile, "bob");
    assert_eq!(stranded(), [false, false, false, true]);
}

#[test]
fn a_stranded_task_that_nobody_can_claim_is_to_be_given_to_the_shell_first() {
    let bench = Bench::new();
    let nobodys = bench.create(NewTask { assignee: None, ..titled("whose is it") }).id;
    let bobs = bench.ready();
    bench.clock.advance(Duration::from_hours(1));
    let first = |id: &TaskId| found(&bench, id)[0].remedies[0].to_string();
    assert_eq!(first(&nobodys), format!("give it to the lane `shell`: supervisor assign {nobodys} shell"));
    assert_eq!(first(&bobs), format!("see why: supervisor show {bobs}"));
}

#[test]
fn what_a_sandbox_denied_is_told_with_the_first_failure_until_the_next_run_ends_otherwise() {
    let bench = Bench::new();
    let task = bench.create(titled("is denied")).id;
    let run = bench.start(&task);
    let mut ending = crate::Ending::new(EndCause::Exited { code: 127 });
    ending.denied = Some(crate::Denied {
        policy: "default".to_owned(),
        act: "executing /x/cargo".to_owned(),
        line: Some("filesystem.toolchains = [\"cargo\"]".to_owned()),
        text: "the sandbox denied executing /x/cargo".to_owned(),
    });
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
    let diagnostics = found(&bench, &task);
    assert_eq!(kinds(&bench, &task), [("sandbox_denied".to_owned(), Severity::Error)]);
    assert_eq!(diagnostics[0].text, "its sandbox denied executing /x/cargo");
    assert_eq!(seen(&diagnostics[0]).data["line"], "filesystem.toolchains = [\"cargo\"]");
    let error = bench.readers.with(|view| view.expect_run(run)).unwrap().error.unwrap();
    assert_eq!(error, "exit code 127; the sandbox denied executing /x/cargo");
    bench.clock.advance(Duration::from_mins(1));
    bench.finish(bench.start(&task), EndCause::Exited { code: 3 });
    assert!(kinds(&bench, &task).iter().all(|(kind, _)| kind != "sandbox_denied"));
}

#[test]
fn failures_in_a_row_are_told_with_the_first_and_the_last_of_them() {
    let bench = Bench::new();
    let task = bench.create(NewTask { limits: limited(2), ..titled("fails") }).id;
    bench.finish(bench.start(&task), EndCause::Exited { code: 3 });
    let first = bench.clock.now();
    assert_eq!(kinds(&bench, &task), [], "one failure may be an accident");
    bench.clock.advance(Duration::from_mins(1));
    let run = bench.start(&task);
    bench.finish(run, EndCause::Exited { code: 3 });
    let last = bench.clock.now();
    bench.clock.advance(Duration::from_mins(1));

    let diagnostics = found(&bench, &task);

    assert_eq!(
        kinds(&bench, &task),
        [
            ("repeated_failures".to_owned(), Severity::Critical),
            ("repeated_crashes".to_owned(), Severity::Error)
        ]
    );
    for one in diagnostics {
        assert_eq!((seen(&one).first_seen_at, seen(&one).last_seen_at, seen(&one).count), (first, last, 2));
        assert_eq!(seen(&one).run_id, Some(run));
        assert_eq!(one.remedies.iter().filter(|action| action.suggested).count(), 1);
    }
}

#[test]
fn failures_are_told_without_what_ended_between_them_for_another_reason() {
    let bench = Bench::new();
    let task = bench.create(NewTask { limits: limited(9), ..titled("fails") }).id;
    let failed = || {
        let run = bench.start(&task);
        bench.finish(run, EndCause::Exited { code: 3 });
        run
    };
    failed();
    let first = bench.clock.now();
    bench.clock.advance(Duration::from_mins(1));
    let run = failed();
    let last = bench.clock.now();
    bench.clock.advance(Duration::from_mins(1));
    bench.wake();
    bench.finish(bench.start(&task), EndCause::Stopped(crate::StopReason::Preempted));

    let diagnostics = found(&bench, &task).remove(0);

    assert_eq!(
        (diagnostics.code.as_str(), seen(&diagnostics).count, seen(&diagnostics).run_id),
        ("repeated_failures", 2, Some(run))
    );
    assert_eq!((seen(&diagnostics).first_seen_at, seen(&diagnostics).last_seen_at), (first, last));
}

#[test]
fn a_task_that_gave_up_is_told_after_however_few_failures_and_one_that_a_person_blocked_is_not() {
    let bench = Bench::new();
    let task = bench.create(NewTask { limits: limited(1), ..titled("fails once") }).id;
    let run = bench.start(&task);
    bench.finish(run, EndCause::Exited { code: 3 });
    let diagnostics = found(&bench, &task);
    assert_eq!(kinds(&bench, &task), [("gave_up".to_owned(), Severity::Critical)], "one is no repetition");
    assert_eq!(
        (diagnostics[0].text.as_str(), seen(&diagnostics[0]).count, seen(&diagnostics[0]).run_id),
        ("gave up after 1 failure", 1, Some(run))
    );
    assert!(
        diagnostics[0]
            .remedies
            .iter()
            .any(|remedy| remedy.to_string() == format!("try it again: supervisor unblock {task}"))
    );

    let other = bench.create(titled("fails once, and waits for a person")).id;
    bench.finish(bench.start(&other), EndCause::Exited { code: 3 });
    let id = other.clone();
    bench.call(move |board| board.block(&id, Blocking::default(), None, &alice())).unwrap();
    assert_eq!(kinds(&bench, &other), []);
}

#[test]
fn a_task_whose_checks_made_it_give_up_is_told_with_their_number() {
    let bench = Bench::new();
    let task = bench.create(checked("false", Some(2))).id;
    for _ in 0..2 {
        let work = bench.start(&task);
        let result_policy = OnCleanExit::Complete { summary: None };
        let ending = Ending { result_policy, ..Ending::new(EndCause::Exited { code: 0 }) };
        bench.call(move |board| board.finish_run(work, ending)).unwrap();
        let check = bench.start(&task);
        bench.finish(check, EndCause::Exited { code: 1 });
    }
    let diagnostics = found(&bench, &task);
    assert_eq!(kinds(&bench, &task), [("gave_up".to_owned(), Severity::Critical)]);
    assert_eq!(
        (diagnostics[0].text.as_str(), seen(&diagnostics[0]).count),
        ("gave up after 2 failed checks", 2)
    );
}

#[test]
fn a_task_that_is_blocked_for_a_day_or_over_and_over_is_told() {
    let bench = Bench::new();
    let task = bench.ready();
    // Each block has another kind of reason; otherwise the board itself would send the task to triage.
    for kind in [BlockKind::Capability, BlockKind::Transient, BlockKind::Capability] {
        assert_eq!(kinds(&bench, &task), [], "twice is no cycle");
        let id = task.clone();
        bench
            .call(move |board| {
                board.block(&id, Blocking { kind, ..Blocking::default() }, None, &alice())?;
                board.unblock(&id, None, &alice())
            })
            .unwrap();
    }
    assert_eq!(kinds(&bench, &task), [("block_unblock_cycling".to_owned(), Severity::Warning)]);
    let id = task.clone();
    bench.call(move |board| board.block(&id, Blocking::default(), None, &alice())).unwrap();
    bench.clock.advance(Duration::from_hours(24));
    assert!(kinds(&bench, &task).contains(&("stuck_in_blocked".to_owned(), Severity::Warning)));
}

#[test]
fn a_scheduled_task_that_nobody_woke_is_told() {
    let bench = Bench::new();
    let at = bench.clock.now().after(Duration::from_mins(1));
    let task = bench.create(NewTask { not_before: Some(at), ..titled("later") }).id;
    bench.clock.advance(Duration::from_mins(5));
    assert_eq!(kinds(&bench, &task), []);
    bench.clock.advance(Duration::from_mins(1));
    assert_eq!(kinds(&bench, &task), [("overdue".to_owned(), Severity::Error)]);
    assert_eq!(seen(&found(&bench, &task)[0]).first_seen_at, at);
}

#[test]
fn the_diagnosis_of_all_tasks_finds_each_kind_of_problem_and_reads_no_other_task() {
    let bench = Bench::new();
    let stranded = bench.ready();
    let failing = bench.create(NewTask { limits: limited(9), ..titled("fails") }).id;
    for _ in 0..2 {
        bench.finish(bench.start(&failing), EndCause::Exited { code: 3 });
        bench.clock.advance(Duration::from_hours(1));
        bench.wake();
    }
    let forgotten = bench.ready();
    let id = forgotten.clone();
    bench.call(move |board| board.block(&id, Blocking::default(), None, &alice())).unwrap();
    bench.clock.advance(Duration::from_hours(25));
    let wanted: Vec<TaskId> = vec![stranded, failing, forgotten];
    let all = bench.readers.with(|view| view.diagnose(None)).unwrap();
    for task in &wanted {
        let one = bench.readers.with(|view| view.diagnose(Some(task))).unwrap();
        assert!(!one.is_empty() && all.contains(&one[0]), "{task}: {all:?}");
    }
    assert_eq!(all.len(), wanted.len());
}
