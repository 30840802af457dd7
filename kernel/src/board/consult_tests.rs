//! Consults, and the runs that wait for their answers.

use crate::testing::{Bench, alice, titled};
use crate::{Accounts, Actor, EndCause, ErrorCode, Handoff, RunId, Status, StopReason, Task, TaskId};

fn worker(name: &str, run: RunId, task: &TaskId) -> Actor {
    Actor::worker(name, run, task.clone(), None)
}

fn ask(bench: &Bench, actor: &Actor) -> Result<Task, crate::Error> {
    ask_what(bench, actor, "which?")
}

fn ask_what(bench: &Bench, actor: &Actor, what: &'static str) -> Result<Task, crate::Error> {
    let actor = actor.clone();
    bench.call(move |board| board.consult(titled(what), &actor)).map(|made| made.task)
}

fn offered(bench: &Bench) -> Vec<TaskId> {
    let mut found = Vec::new();
    bench
        .readers
        .with(|view| view.consults(&Accounts::new(), |candidate| found.push(candidate.task)))
        .unwrap();
    found
}

#[test]
fn a_run_asks_one_question_at_a_time_and_questions_go_two_deep() {
    let bench = Bench::new();
    let first = bench.ready();
    let asker = worker("bob", bench.start(&first), &first);
    let question = ask(&bench, &asker).unwrap();
    assert_eq!((question.lineage.consult, question.creator_task.as_ref()), (Some(1), Some(&first)));
    assert_eq!(offered(&bench), std::slice::from_ref(&question.id));
    assert_eq!(ask(&bench, &asker).unwrap().id, question.id, "who asks the same again waits on");

    let second = worker("bob", bench.start(&question.id), &question.id);
    assert_eq!(offered(&bench), []);
    let deeper = ask(&bench, &second).unwrap();
    let third = worker("bob", bench.start(&deeper.id), &deeper.id);
    let refused = ask(&bench, &third).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Exhausted);
    assert_eq!(refused.to_string(), "consult: this would be 3 questions deep, the limit is 2");

    let answer = question.id.clone();
    let run = second.run.clone().unwrap().run;
    bench.call(move |board| board.complete(&answer, Handoff::default(), None, &second)).unwrap();
    bench.finish(run, EndCause::Stopped(StopReason::Verdict));
    ask(&bench, &asker).unwrap();
    bench.check();
}

#[test]
fn the_questions_of_a_run_go_with_it_and_one_is_given_up_by_its_asker_alone() {
    let bench = Bench::new();
    let first = bench.ready();
    let run = bench.start(&first);
    let asker = worker("bob", run, &first);
    let question = ask(&bench, &asker).unwrap().id;
    let part = {
        let asker = asker.clone();
        bench.call(move |board| board.create(titled("part"), &asker)).unwrap().task.id
    };
    let give_up = |id: &TaskId, actor: &Actor| {
        let (id, actor) = (id.clone(), actor.clone());
        bench.call(move |board| board.drop_consult(&id, &actor))
    };
    assert!(give_up(&part, &asker).is_err(), "it is no question");
    let other = bench.ready();
    let stranger = worker("bob", bench.start(&other), &other);
    assert!(give_up(&question, &stranger).is_err());
    give_up(&question, &asker).unwrap();
    assert_eq!(bench.task(&question).status, Status::Archived);

    let second = ask(&bench, &asker).unwrap().id;
    let by_person = bench.call(move |board| board.consult(titled("mine"), &alice())).unwrap().task.id;
    bench.finish(run, EndCause::Stopped(StopReason::Preempted));
    assert_eq!(bench.task(&second).status, Status::Archived);
    assert_eq!(offered(&bench), [by_person]);
    assert_eq!(bench.task(&part).status, Status::Ready);
    bench.check();
}

#[test]
fn a_question_is_offered_however_many_older_ones_wait_for_somebody_else() {
    let bench = Bench::new();
    for _ in 0..200 {
        ask(&bench, &alice()).unwrap();
    }
    bench.clock.advance(std::time::Duration::from_secs(1));
    let last = ask(&bench, &alice()).unwrap().id;
    let found = offered(&bench);
    assert_eq!((found.len(), found.last()), (201, Some(&last)));
}

#[test]
fn another_question_of_a_run_takes_the_place_of_the_one_before_also_while_that_is_answered() {
    let bench = Bench::new();
    let first = bench.ready();
    let asker = worker("bob", bench.start(&first), &first);
    let waits = ask(&bench, &asker).unwrap().id;
    let answered = ask_what(&bench, &asker, "or this?").unwrap().id;
    assert_eq!((bench.task(&waits).status, offered(&bench)), (Status::Archived, vec![answered.clone()]));

    let run = bench.start(&answered);
    let third = ask_what(&bench, &asker, "and that?").unwrap().id;
    assert_eq!(bench.runs_to_stop()[0].id, run);
    // The earlier consult is still being ended, and its question differs from the new one.
    let again = ask_what(&bench, &asker, "or this?").unwrap().id;
    assert!(again != answered && again != third);
    assert_eq!(offered(&bench), [again]);
    bench.finish(run, EndCause::Stopped(StopReason::Cancelled));
    assert_eq!(bench.task(&answered).status, Status::Archived);
    bench.check();
}

#[test]
fn a_question_that_somebody_holds_is_not_offered() {
    let bench = Bench::new();
    let [by_task, by_profile, free] = ["bob", "carol", "eve"].map(|name| {
        let asked = crate::NewTask { assignee: name.parse().ok(), ..titled(name) };
        bench.call(move |board| board.consult(asked, &alice())).unwrap().task.id
    });
    assert_eq!(offered(&bench).len(), 3);
    for (scope, name) in
        [(crate::HoldScope::Task, by_task.to_string()), (crate::HoldScope::Profile, "carol".to_owned())]
    {
        let on = crate::HoldOn { scope, name };
        let new = crate::NewHold { kind: crate::HoldKind::Manual, reason: "later".to_owned(), until: None };
        bench.call(move |board| board.hold(&on, &new, &alice())).unwrap();
    }
    assert_eq!(offered(&bench), [free], "{by_profile}");
}
