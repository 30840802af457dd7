//! Runs that hand over work which is not committed.

use crate::testing::{Bench, alice, titled};
use crate::{
    BlockKind, CommitMode, Commits, Edit, EndCause, Ending, Error, Handoff, NewTask, OnCleanExit, Outcome,
    RunId, Status, TaskId,
};

const LEFT: &str = "2 uncommitted changes: a, b";

fn ends_with_changes(bench: &Bench, run: RunId) -> crate::Finished {
    let mut ending = Ending::new(EndCause::Exited { code: 0 });
    ending.result_policy = OnCleanExit::Complete { summary: Some("made".to_owned()) };
    ending.uncommitted = Some(LEFT.to_owned());
    assert!(bench.readers.with(|view| view.hands_over(run, &ending)).unwrap());
    bench.call(move |board| board.finish_run(run, ending)).unwrap()
}

fn require(bench: &Bench) -> TaskId {
    let commits = Commits { mode: Some(CommitMode::Require) };
    bench.create(NewTask { commits, workspace: Some("worktree:/srv/app".to_owned()), ..titled("work") }).id
}

#[test]
fn a_run_that_leaves_changes_uncommitted_blocks_a_task_that_requires_commits() {
    for has_verdict in [false, true] {
        let bench = Bench::new();
        let id = require(&bench);
        let run = bench.start(&id);
        if has_verdict {
            let (of, worker) = (id.clone(), crate::Actor::worker("bob", run, id.clone(), None));
            let handoff = Handoff { summary: Some("made".to_owned()), ..Handoff::default() };
            bench.call(move |board| board.complete(&of, handoff, None, &worker)).unwrap();
        }
        let end = ends_with_changes(&bench, run);
        assert_eq!((end.outcome, end.status), (Outcome::Blocked, Status::Blocked));
        let task = bench.task(&id);
        assert_eq!(
            (task.block_kind, task.block_reason.as_deref()),
            (Some(BlockKind::NeedsInput), Some(LEFT))
        );
        assert_eq!((task.result, task.consecutive_failures), (None, 0));
        let run = bench.readers.with(|view| view.expect_run(run)).unwrap();
        assert_eq!((run.summary.as_deref(), run.error.as_deref()), (Some("made"), Some(LEFT)));
        bench.check();
    }
}

#[test]
fn a_message_about_work_in_a_worktree_has_the_note_about_its_branch() {
    let bench = Bench::new();
    let id = require(&bench);
    let key = crate::SubscriptionKey {
        task_id: id.clone(),
        platform: "mail".to_owned(),
        chat_id: String::new(),
        thread_id: String::new(),
    };
    bench.call(move |board| board.subscribe(&key, None, None, &alice())).unwrap();
    let run = bench.start(&id);
    let mut ending = Ending::new(EndCause::Exited { code: 0 });
    ending.result_policy = OnCleanExit::Complete { summary: Some("made".to_owned()) };
    ending.branch_note = Some("1 commit: git -C /srv/app merge task/t_1".to_owned());
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
    let letters = bench
        .readers
        .with(|view| view.outbox(&crate::Letters { limit: 9, ..crate::Letters::default() }, &alice()))
        .unwrap();
    let notice_text = letters.first().and_then(|letter| letter.notice.text.clone());
    assert_eq!(notice_text.as_deref(), Some("made | 1 commit: git -C /srv/app merge task/t_1"));
    bench.check();
}

#[test]
fn the_decision_of_a_person_needs_no_commit() {
    let bench = Bench::new();
    let id = require(&bench);
    let run = bench.start(&id);
    let of = id.clone();
    bench.call(move |board| board.complete(&of, Handoff::default(), None, &alice())).unwrap();
    assert_eq!(ends_with_changes(&bench, run).status, Status::Done);
    bench.check();
}

#[test]
fn work_that_is_not_committed_is_not_checked() {
    let bench = Bench::new();
    let check = crate::Check { command: Some("make test".to_owned()), max_checks: None };
    let id = bench.create(NewTask { check, ..titled("work") }).id;
    let end = ends_with_changes(&bench, bench.start(&id));
    assert_eq!((end.outcome, end.status), (Outcome::Blocked, Status::Blocked));
    bench.check();
}

#[test]
fn only_a_task_in_a_worktree_has_a_handling_of_uncommitted_changes() {
    let bench = Bench::new();
    for (workspace, mode) in [(None, CommitMode::Auto), (Some("dir:/srv"), CommitMode::No)] {
        let workspace = workspace.map(str::to_owned);
        let new = NewTask { commits: Commits { mode: Some(mode) }, workspace, ..titled("work") };
        let refused = bench.call(|board| board.create(new, &alice())).unwrap_err();
        assert!(matches!(&refused, Error::Invalid { .. }), "{refused}");
        assert!(refused.hint().unwrap().contains("--workspace worktree:"), "{refused:?}");
    }
    let edit = |id: &TaskId, edit: Edit| {
        let id = id.clone();
        bench.call(move |board| board.edit(&id, &edit, &alice()))
    };
    let id = require(&bench);
    assert_eq!(bench.task(&id).commits.mode, Some(CommitMode::Require));
    let auto = Edit { commit: Some(CommitMode::Auto), ..Edit::default() };
    assert_eq!(edit(&id, auto.clone()).unwrap().commits.mode, Some(CommitMode::Auto));
    let moved = Edit { workspace: Some("scratch".to_owned()), ..Edit::default() };
    assert_eq!(edit(&id, moved).unwrap().commits.mode, None, "nothing is committed there");
    assert!(matches!(edit(&id, auto), Err(Error::Invalid { .. })));
    bench.check();
}
