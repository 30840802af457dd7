//! Proposals: applied as a whole if valid, refused with a reason otherwise, with limits on what their workers may change.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::testing::{Bench, alice, gated, titled};
use crate::{
    Actor, Comment, Edit, EndCause, Ending, Error, ErrorCode, EventFilter, Force, Handoff, InitialState,
    Lineage, MissionCaps, MissionLimits, NewProposal, NewTask, OnCleanExit, Outcome, ProposalKind, Question,
    ReviewRequest, RunId, Settled, Status, Task, TaskId,
};

pub(super) fn asked(subject: &TaskId, kind: ProposalKind) -> NewProposal {
    let staff =
        ["bob", "carol", "specifier"].map(|name| (name.parse().unwrap(), format!("what {name} is for")));
    NewProposal {
        kind,
        subject: subject.clone(),
        assignee: "specifier".parse().unwrap(),
        staff: staff.into(),
        unconfined: BTreeSet::new(),
        taken: ["bob", "shell"].map(|name| name.parse().unwrap()).into(),
        policy: Some("narrow".to_owned()),
        author: None,
    }
}

fn idea(bench: &Bench) -> TaskId {
    let new =
        NewTask { initial_state: InitialState::Triage, tenant: "acme".parse().ok(), ..titled("an idea") };
    bench.create(NewTask { assignee: None, ..new }).id
}

fn propose(bench: &Bench, subject: &TaskId, kind: ProposalKind) -> Result<Task, Error> {
    let new = asked(subject, kind);
    bench.call(move |board| board.propose(new, &alice())).map(|made| made.task)
}

/// Returns the run of a proposal's task and its worker.
fn worker(bench: &Bench, task: &Task) -> (RunId, Actor) {
    let run = bench.start(&task.id);
    (run, Actor::worker("specifier", run, task.id.clone(), task.tenant.clone()))
}

fn returns(bench: &Bench, task: &Task, actor: &Actor, metadata: Value) -> Result<Settled, Error> {
    let (id, actor) = (task.id.clone(), actor.clone());
    let handoff = Handoff { metadata: Some(metadata), ..Handoff::default() };
    bench.call(move |board| board.complete(&id, handoff, None, &actor))
}

fn children(bench: &Bench, id: &TaskId) -> Vec<Task> {
    let parents = bench.readers.with(|view| view.parents(id)).unwrap();
    parents.iter().map(|id| bench.task(id)).collect()
}

/// Returns the question of a mission to a person.
fn question(bench: &Bench, id: &TaskId) -> Option<Question> {
    let view = bench.readers.with(|view| view.mission(id, &MissionLimits::default(), &alice()));
    view.unwrap().mission.question
}

fn events(bench: &Bench, kind: &str) -> usize {
    let filter = EventFilter { kinds: vec![kind.to_owned()], ..EventFilter::default() };
    bench.readers.with(|view| view.events(&filter)).unwrap().len()
}

#[test]
fn a_proposal_is_never_checked_by_a_command() {
    let bench = Bench::new();
    let proposal = propose(&bench, &idea(&bench), ProposalKind::Specify).unwrap().id;
    for edit in [
        Edit { check: Some("false".to_owned()), ..Edit::default() },
        Edit { max_checks: Some(2), ..Edit::default() },
    ] {
        let id = proposal.clone();
        let refused = bench.call(move |board| board.edit(&id, &edit, &alice())).unwrap_err();
        assert!(refused.to_string().contains("makes a proposal"), "{refused}");
    }
    let id = proposal.clone();
    let edit = Edit { title: Some("other words".to_owned()), ..Edit::default() };
    assert_eq!(bench.call(move |board| board.edit(&id, &edit, &alice())).unwrap().title, "other words");
}

#[test]
fn an_idea_says_what_its_specifier_returns_from_the_moment_in_which_that_is_done() {
    let bench = Bench::new();
    let id = idea(&bench);
    let task = propose(&bench, &id, ProposalKind::Specify).unwrap();
    assert_eq!(propose(&bench, &id, ProposalKind::Specify).unwrap().id, task.id, "one at a time");
    assert_eq!((task.tenant.clone(), task.policy.as_deref()), ("acme".parse().ok(), Some("narrow")));
    assert_eq!(task.title, format!("Specify {id}: an idea"));
    let (run, bob) = worker(&bench, &task);
    let context =
        bench.readers.with(|view| view.context(&task.id, crate::ContextLimits::default(), &|_| None));
    let context = context.unwrap().text;
    assert!(
        context.contains("Specify the task below so that a worker who knows nothing else can do it."),
        "{context}"
    );
    assert!(context.contains("> an idea") && context.contains("- `carol`: what carol is for"), "{context}");
    assert!(!context.contains("what specifier is for"), "{context}");

    let refused = returns(&bench, &task, &bob, json!({ "body": "do it", "assignee": "eve" })).unwrap_err();
    assert!(refused.to_string().contains("nobody is called eve; there are bob, carol"), "{refused}");
    assert!(refused.hint().unwrap().contains("the run goes on"), "{refused:?}");
    assert_eq!(bench.readers.with(|view| view.expect_run(run)).unwrap().verdict, None);
    returns(&bench, &task, &bob, json!({ "title": "a task", "body": "do it", "assignee": "carol" })).unwrap();
    assert_eq!(bench.task(&id).status, Status::Triage, "its run goes on");
    bench.finish(run, EndCause::Exited { code: 0 });

    let subject = bench.task(&id);
    assert_eq!((subject.title.as_str(), subject.body.as_deref()), ("a task", Some("do it")));
    assert_eq!((subject.status, subject.assignee), (Status::Ready, "carol".parse().ok()));
    assert_eq!((bench.task(&task.id).status, events(&bench, "specified")), (Status::Done, 1));
    bench.check();
}

#[test]
fn what_a_run_says_at_its_end_is_applied_or_the_next_attempt_reads_why_not() {
    for policy in [
        |summary| OnCleanExit::Complete { summary },
        |summary| OnCleanExit::Review { summary },
        |summary| OnCleanExit::TurnEnded { summary },
    ] {
        let bench = Bench::new();
        let id = idea(&bench);
        let task = propose(&bench, &id, ProposalKind::Specify).unwrap();
        let ends = |text: &str| {
            let run = bench.start(&task.id);
            let result_policy = policy(Some(text.to_owned()));
            let ending = Ending { result_policy, ..Ending::new(EndCause::Exited { code: 0 }) };
            bench.call(move |board| board.finish_run(run, ending)).unwrap()
        };
        let first = ends("I would do it.");
        assert_eq!((first.outcome, bench.task(&id).status), (Outcome::Unreported, Status::Triage));
        bench.clock.advance(std::time::Duration::from_hours(1));
        bench.wake();
        let context =
            bench.readers.with(|view| view.context(&task.id, crate::ContextLimits::default(), &|_| None));
        let message = "what it returned was refused: metadata: no JSON object was returned";
        assert!(context.unwrap().text.contains(message));
        let second = ends("It is:\n{\"body\": \"do it\"}\n");
        assert_eq!((second.outcome, bench.task(&id).status), (Outcome::Completed, Status::Ready));
        assert_eq!(bench.task(&id).body.as_deref(), Some("do it"));
        bench.check();
    }
}

#[test]
fn a_proposal_whose_task_has_gone_on_without_it_changes_nothing() {
    let bench = Bench::new();
    let id = idea(&bench);
    let task = propose(&bench, &id, ProposalKind::Specify).unwrap();
    let (run, bob) = worker(&bench, &task);
    returns(&bench, &task, &bob, json!({ "body": "too late" })).unwrap();
    let promoted = id.clone();
    bench.call(move |board| board.promote(&promoted, None, Force::No, &alice())).unwrap();
    bench.finish(run, EndCause::Exited { code: 0 });
    assert_eq!((bench.task(&id).body, bench.task(&task.id).status), (None, Status::Done));
    assert_eq!((events(&bench, "specified"), events(&bench, "proposal_dropped")), (0, 1));
    assert!(propose(&bench, &id, ProposalKind::Specify).unwrap_err().to_string().contains("not in triage"));
    bench.check();
}

#[test]
fn a_task_is_divided_into_parts_of_its_own_tenant_and_mission_that_it_waits_for() {
    let bench = Bench::new();
    let id = idea(&bench);
    let task = propose(&bench, &id, ProposalKind::Decompose).unwrap();
    let (run, bob) = worker(&bench, &task);
    let part = |name: &str, after: &[&str]| json!({ "name": name, "title": name, "body": "b", "assignee": "bob", "after": after });
    let parts = json!([part("join", &["left", "right"]), part("left", &[]), part("right", &[])]);
    returns(&bench, &task, &bob, json!({ "tasks": parts, "body": "judge it", "assignee": "carol" })).unwrap();
    assert_eq!(children(&bench, &id).len(), 0);
    bench.finish(run, EndCause::Exited { code: 0 });

    let subject = bench.task(&id);
    assert_eq!((subject.status, subject.body.as_deref()), (Status::Todo, Some("judge it")));
    let last = children(&bench, &id);
    assert_eq!(last.iter().map(|task| task.title.as_str()).collect::<Vec<_>>(), ["join"]);
    let first = children(&bench, &last[0].id);
    assert_eq!(first.len(), 2);
    for part in last.iter().chain(&first) {
        assert_eq!((part.tenant.clone(), part.mission()), ("acme".parse().ok(), id.as_str()));
        assert_eq!((part.policy.as_deref(), part.lineage.depth), (Some("narrow"), 1));
        assert_eq!(part.created_by.as_deref(), Some("specifier"));
    }
    let used = bench.readers.with(|view| view.tx.mission(id.as_str())).unwrap().unwrap();
    assert_eq!(used.tasks, 5, "with the idea and the proposal");
    bench.check();
}

#[test]
fn a_proposal_that_goes_beyond_its_mission_is_refused_and_makes_nothing() {
    let bench = Bench::new();
    let caps = MissionCaps { max_tasks: Some(3), ..MissionCaps::default() };
    let id = bench.call(move |board| board.create_mission(titled("site"), &caps, &alice())).unwrap().task.id;
    let task = propose(&bench, &id, ProposalKind::Plan).unwrap();
    assert_eq!(bench.task(&id).status, Status::Todo, "it waits for its plan");
    let (run, bob) = worker(&bench, &task);
    let part = |name: &str| json!({ "name": name, "title": name, "body": "b" });
    let refused = returns(&bench, &task, &bob, json!({ "tasks": [part("a"), part("b")] })).unwrap_err();
    assert!(refused.to_string().contains("missions.tasks"), "{refused}");
    assert_eq!(children(&bench, &id).len(), 1, "only the plan");
    returns(&bench, &task, &bob, json!({ "tasks": [part("a")] })).unwrap();
    bench.finish(run, EndCause::Exited { code: 0 });
    let mut titles: Vec<String> = children(&bench, &id).into_iter().map(|task| task.title).collect();
    titles.sort();
    assert_eq!(titles, [task.title.as_str(), "a"].map(str::to_owned));
    assert_eq!(bench.task(&id).status, Status::Todo);
    bench.check();
}

#[test]
fn a_mission_without_room_for_a_proposal_is_paused_until_a_person_grants_it() {
    let bench = Bench::new();
    let caps = MissionCaps { max_tasks: Some(3), ..MissionCaps::default() };
    let id = bench.call(move |board| board.create_mission(titled("site"), &caps, &alice())).unwrap().task.id;
    let task = propose(&bench, &id, ProposalKind::Plan).unwrap();
    let (run, bob) = worker(&bench, &task);
    let parts: Vec<Value> =
        (0..6).map(|n| json!({ "name": n.to_string(), "title": n.to_string(), "body": "b" })).collect();
    let plan = json!({ "tasks": parts });
    let refused = returns(&bench, &task, &bob, plan.clone()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Exhausted, "{refused}");
    assert!(refused.hint().unwrap().contains("return fewer tasks"), "{refused}");
    let asks = |bench: &Bench, metadata: Value| {
        let (own, actor) = (task.id.clone(), bob.clone());
        let handoff = Handoff { metadata: Some(metadata), ..Handoff::default() };
        bench.call(move |board| board.ask_for_proposed_tasks(&own, &handoff, &actor)).unwrap();
        question(bench, &id)
    };
    assert!(asks(&bench, json!({ "tasks": [parts[0]] })).is_none(), "there is room for one");

    let question = asks(&bench, plan.clone()).unwrap();

    assert!(
        question.text.contains("a proposal has 6 tasks, and 1 of 3 are left (missions.tasks)"),
        "{question:?}"
    );
    let mission = id.clone();
    bench.call(move |board| board.answer(&mission, "1", &alice())).unwrap();
    returns(&bench, &task, &bob, plan).unwrap();
    bench.finish(run, EndCause::Exited { code: 0 });
    assert_eq!(children(&bench, &id).len(), 7, "the plan and its tasks");
    bench.check();
}

#[test]
fn a_run_that_ends_with_a_proposal_beyond_its_mission_pauses_it_too() {
    let bench = Bench::new();
    let caps = MissionCaps { max_tasks: Some(3), ..MissionCaps::default() };
    let id = bench.call(move |board| board.create_mission(titled("site"), &caps, &alice())).unwrap().task.id;
    let task = propose(&bench, &id, ProposalKind::Plan).unwrap();
    let (run, bob) = worker(&bench, &task);
    let part = |name: &str| json!({ "name": name, "title": name, "body": "b" });
    returns(&bench, &task, &bob, json!({ "tasks": [part("a")] })).unwrap();
    // Another caller takes the last task of the limit before the run has ended.
    let lineage = Lineage { mission: Some(id.to_string()), ..Lineage::default() };
    bench.create(NewTask { lineage, ..titled("another") });

    bench.finish(run, EndCause::Exited { code: 0 });

    let question = question(&bench, &id).unwrap();
    assert!(question.text.contains("a proposal has 1 task, and 0 of 3 are left"), "{question:?}");
    bench.check();
}

/// Act of a worker on a task.
type Act = fn(&mut crate::Board<'_>, &TaskId, &Actor) -> Result<(), Error>;

#[test]
fn the_worker_of_a_proposal_changes_nothing_by_itself() {
    let bench = Bench::new();
    let id = idea(&bench);
    let task = propose(&bench, &id, ProposalKind::Specify).unwrap();
    let (_, bob) = worker(&bench, &task);
    let acts: [Act; 5] = [
        |board, _, bob| board.create(titled("more"), bob).map(drop),
        |board, _, bob| board.consult(titled("a question"), bob).map(drop),
        |board, id, bob| board.comment(id, "hello", None, bob).map(|_: Comment| ()),
        |board, id, bob| {
            board.link(id, &bob.run.clone().unwrap().task, crate::AtWork::TakeBack, bob).map(drop)
        },
        |board, id, bob| {
            let request =
                ReviewRequest { handoff: Handoff::default(), reviewer: None, work_by: String::new() };
            let _ = id;
            board
                .decide(&bob.run.clone().unwrap().task, crate::Verdict::RequestReview(request), None, bob)
                .map(drop)
        },
    ];
    for act in acts {
        let (id, bob) = (id.clone(), bob.clone());
        let refused = bench.call(move |board| act(board, &id, &bob)).unwrap_err();
        assert!(matches!(refused, Error::Forbidden { .. } | Error::Conflict { .. }), "{refused}");
    }
    let other = bob.clone();
    let asks = bench.call(move |board| board.propose(asked(&id, ProposalKind::Decompose), &other));
    assert!(matches!(asks, Err(Error::Forbidden { .. })));
    bench.check();
}

#[test]
fn a_person_returns_what_is_wanted_instead_of_a_run() {
    let bench = Bench::new();
    let id = idea(&bench);
    let task = propose(&bench, &id, ProposalKind::Specify).unwrap();
    assert!(returns(&bench, &task, &alice(), json!({ "text": "x" })).is_err());
    assert_eq!(bench.task(&task.id).status, Status::Ready, "nothing was recorded");
    returns(&bench, &task, &alice(), json!({ "body": "do it" })).unwrap();
    assert_eq!((bench.task(&task.id).status, bench.task(&id).status), (Status::Done, Status::Ready));
    bench.check();
}

#[test]
fn a_task_that_has_no_assignee_gets_the_one_that_its_router_names() {
    let bench = Bench::new();
    let id = bench.create(NewTask { assignee: None, ..titled("whose is it") }).id;
    let task = propose(&bench, &id, ProposalKind::Route).unwrap();
    returns(&bench, &task, &alice(), json!({ "assignee": "carol" })).unwrap();
    assert_eq!(bench.task(&id).assignee, "carol".parse().ok());
    assert!(propose(&bench, &id, ProposalKind::Route).is_err());
    bench.check();
}

#[test]
fn only_what_has_not_started_is_planned() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let refused = propose(&bench, &id, ProposalKind::Plan).unwrap_err().to_string();
    assert!(refused.contains("its tasks can be planned before it starts"), "{refused}");
    bench.finish(run, EndCause::NeverStarted);
    for id in [id, idea(&bench)] {
        propose(&bench, &id, ProposalKind::Plan).unwrap();
    }
}

#[test]
fn a_task_that_was_approved_gets_an_assignee_and_no_other_words() {
    let bench = Bench::new();
    let id = bench.create(NewTask { assignee: None, approval: gated(), ..titled("approved as it is") }).id;
    let task = id.clone();
    bench.call(move |board| board.approve(&task, None, None, &alice())).unwrap();
    for kind in [ProposalKind::Specify, ProposalKind::Decompose, ProposalKind::Plan] {
        let refused = propose(&bench, &id, kind).unwrap_err().to_string();
        assert!(refused.contains("was approved as it is"), "{kind}: {refused}");
    }
    propose(&bench, &id, ProposalKind::Route).unwrap();
}

#[test]
fn tasks_of_full_missions_hide_no_other_from_the_router() {
    let bench = Bench::new();
    let nobodys = |title: &str| NewTask { assignee: None, ..titled(title) };
    let first = nobodys("full");
    let first = bench
        .call(move |board| board.create_mission(first, &MissionCaps::default(), &alice()))
        .unwrap()
        .task
        .id;
    for at in 0..8 {
        let lineage = Lineage { mission: Some(first.to_string()), ..Lineage::default() };
        bench.create(NewTask { lineage, ..nobodys(&format!("part {at}")) });
    }
    let other = bench.create(nobodys("of another")).id;
    let limits = MissionLimits { tasks: 9, ..MissionLimits::default() };
    let found = bench.readers.with(|view| view.unrouted(&limits, 1)).unwrap();
    assert_eq!(found.into_iter().map(|task| task.id).collect::<Vec<_>>(), [other]);
}

#[test]
fn a_profile_without_a_sandbox_is_offered_only_for_a_task_that_names_a_policy() {
    let bench = Bench::new();
    let (bare, narrow) = (idea(&bench), idea(&bench));
    let change = Edit { policy: Some("narrow".to_owned()), ..Edit::default() };
    let edited = narrow.clone();
    bench.call(move |board| board.edit(&edited, &change, &alice()).map(drop)).unwrap();
    let open: BTreeSet<crate::Profile> = [String::from("carol").parse().unwrap()].into();
    let staff = |task: &TaskId| {
        let proposal = bench.readers.with(|view| view.tx.proposal(task)).unwrap().unwrap();
        proposal.staff.into_keys().map(|name| name.to_string()).collect::<Vec<_>>()
    };
    let of = |subject: &TaskId| {
        let new = NewProposal { unconfined: open.clone(), ..asked(subject, ProposalKind::Decompose) };
        bench.call(move |board| board.propose(new, &alice())).unwrap().task.id
    };
    let (first, second) = (of(&bare), of(&narrow));
    assert_eq!((staff(&first), staff(&second)), (vec!["bob".into()], vec!["bob".into(), "carol".into()]));

    // An import, or a profile that has changed since.
    let open: BTreeSet<crate::Profile> = [String::from("bob").parse().unwrap()].into();
    bench.call(move |board| board.withdraw_profiles(&BTreeSet::new(), &open)).unwrap();

    assert_eq!((staff(&first), staff(&second)), (vec![], vec!["bob".into(), "carol".into()]));
}

#[test]
fn a_profile_that_is_removed_before_or_after_it_is_named_is_refused_and_nothing_of_it_is_applied() {
    let bench = Bench::new();
    let id = idea(&bench);
    let task = propose(&bench, &id, ProposalKind::Decompose).unwrap();
    let (run, bob) = worker(&bench, &task);
    let part = |name: &str, of: &str| json!({ "name": name, "title": name, "body": "do it", "assignee": of });
    let plan =
        |of: &str| json!({ "tasks": [part("a", "bob"), part("b", of)], "body": "say so", "assignee": "bob" });
    let gone = |name: &str| {
        let gone = BTreeSet::from([name.parse().unwrap()]);
        bench.call(move |board| board.withdraw_profiles(&gone, &BTreeSet::new())).unwrap();
    };
    let offered = || bench.readers.with(|view| view.offered_profiles()).unwrap().len();
    assert_eq!(offered(), 2);
    returns(&bench, &task, &bob, plan("carol")).unwrap();
    gone("carol");
    bench.finish(run, EndCause::Exited { code: 0 });

    let refused = bench.readers.with(|view| view.expect_run(run)).unwrap();
    assert_eq!(refused.outcome, Some(Outcome::Unreported));
    let why = refused.error.unwrap();
    assert!(why.contains("what it returned was refused") && why.contains("nobody is called carol"), "{why}");
    assert_eq!((bench.task(&id).status, children(&bench, &id).len()), (Status::Triage, 0));

    bench.clock.advance(std::time::Duration::from_hours(1));
    bench.wake();
    let (run, bob) = worker(&bench, &task);
    let refused = returns(&bench, &task, &bob, plan("carol")).unwrap_err();
    assert!(refused.to_string().contains("nobody is called carol; there are bob"), "{refused}");
    returns(&bench, &task, &bob, plan("bob")).unwrap();
    bench.finish(run, EndCause::Exited { code: 0 });
    assert_eq!(children(&bench, &id).len(), 2);
    assert_eq!(offered(), 0, "it is over");
    bench.check();
}
