//! Approvals by class: rules of the configuration, and requests of workers.

use std::time::Duration;

use crate::testing::{Bench, alice, titled};
use crate::{
    Actor, Approval, ApprovalClass, ApprovalGate, ApprovalRule, ApprovalRules, ApprovalState, BlockKind,
    EndCause, ErrorCode, Letters, NewTask, NoticeKind, Quotas, RunId, SharedQuotas, Status, SubscriptionKey,
    Task, TaskId, WriterOptions,
};

fn class(name: &str) -> ApprovalClass {
    name.parse().unwrap()
}

fn bench(rules: impl IntoIterator<Item = (&'static str, ApprovalRule)>) -> Bench {
    let approvals = ApprovalRules(rules.into_iter().map(|(name, rule)| (class(name), rule)).collect());
    let mut quotas = Quotas::default();
    quotas.approvals = approvals;
    let quotas = SharedQuotas::new(quotas);
    Bench::with(|options| WriterOptions { quotas, ..options })
}

fn of_class(name: &str) -> NewTask {
    NewTask { approval: Approval { class: Some(class(name)), ..Approval::default() }, ..titled("buy") }
}

fn made(bench: &Bench, name: &str) -> Result<Task, crate::Error> {
    let new = of_class(name);
    bench.call(move |board| board.create(new, &alice())).map(|created| created.task)
}

/// Has a worker ask for an approval and end.
fn asks(bench: &Bench, name: &str) -> (TaskId, RunId) {
    let id = bench.ready();
    let run = bench.start(&id);
    let (bob, class, task) = (Actor::worker("bob", run, id.clone(), None), class(name), id.clone());
    bench.call(move |board| board.ask_approval(&task, &class, "420 USD?", &bob)).unwrap();
    bench.finish(run, EndCause::Exited { code: 0 });
    (id, run)
}

fn last_comment(bench: &Bench, id: &TaskId) -> String {
    bench.readers.with(|view| view.comments(id)).unwrap().pop().unwrap().body
}

fn approve(bench: &Bench, id: &TaskId, actor: Actor) -> Result<Task, crate::Error> {
    let id = id.clone();
    bench.call(move |board| board.approve(&id, None, None, &actor)).map(|settled| settled.task)
}

#[test]
fn a_task_of_a_class_waits_goes_on_or_is_refused_as_the_configuration_says() {
    let gate = |gate| ApprovalRule { gate, ..ApprovalRule::default() };
    let bench = bench([("deploy", gate(ApprovalGate::Allow)), ("destructive", gate(ApprovalGate::Deny))]);
    let waits = made(&bench, "spend").unwrap();
    assert_eq!((waits.status, waits.block_kind), (Status::Blocked, Some(BlockKind::Approval)));
    let allowed = made(&bench, "deploy").unwrap();
    assert_eq!((allowed.status, allowed.approval.state), (Status::Ready, Some(ApprovalState::Granted)));
    assert_eq!(made(&bench, "destructive").unwrap_err().code(), ErrorCode::Forbidden);
    assert_eq!(made(&bench, "unheard_of").unwrap_err().code(), ErrorCode::Invalid);
    bench.check();
}

#[test]
fn the_approvers_of_a_class_decide_and_nobody_else_and_read_its_form() {
    let rule = ApprovalRule {
        approvers: vec!["ann".to_owned(), "worker:eve".to_owned()],
        message: Some("{class}: {title}?".to_owned()),
        ..ApprovalRule::default()
    };
    let bench = bench([("spend", rule)]);
    let task = made(&bench, "spend").unwrap();
    assert_eq!(task.question.unwrap().text, "spend: buy?");
    assert_eq!(task.block_reason.as_deref(), Some("waits for the approval of ann or worker:eve (spend)"));
    let other = bench.ready();
    let eve = Actor::worker("eve", bench.start(&other), other, None);
    for actor in [alice(), eve] {
        assert_eq!(approve(&bench, &task.id, actor).unwrap_err().code(), ErrorCode::Forbidden);
    }
    assert_eq!(approve(&bench, &task.id, Actor::person("ann")).unwrap().status, Status::Ready);
    bench.check();
}

#[test]
fn a_worker_asks_by_class_and_its_next_run_reads_who_approved() {
    let bench = bench([]);
    let (id, _) = asks(&bench, "spend");
    let task = bench.task(&id);
    assert_eq!((task.status, task.block_kind), (Status::Blocked, Some(BlockKind::Approval)));
    assert_eq!(
        task.approval,
        Approval { state: Some(ApprovalState::Required), class: Some(class("spend")), approver: None }
    );
    assert_eq!(task.question.unwrap().text, "420 USD?");
    let other = bench.ready();
    let run = bench.start(&other);
    for name in ["bob", "eve"] {
        let worker = Actor::worker(name, run, other.clone(), None);
        assert_eq!(approve(&bench, &id, worker).unwrap_err().code(), ErrorCode::Forbidden, "{name}");
    }
    let answered = id.clone();
    assert!(bench.call(move |board| board.answer(&answered, "yes", &alice())).is_err(), "it is no question");

    let task = approve(&bench, &id, alice()).unwrap();

    assert_eq!((task.status, task.approval.state), (Status::Ready, Some(ApprovalState::Granted)));
    assert_eq!(last_comment(&bench, &id), "APPROVED (spend): 420 USD?");
    let events = bench
        .readers
        .with(|view| {
            view.events(&crate::EventFilter { task: Some(id.clone()), ..crate::EventFilter::default() })
        })
        .unwrap();
    let granted = events.iter().find(|event| event.kind == "approval_granted").unwrap();
    assert_eq!(granted.actor.as_deref(), Some("person:alice"));
    bench.check();
}

#[test]
fn what_a_worker_asks_for_is_denied_with_a_reason_and_its_task_goes_on_without_it() {
    let bench = bench([]);
    let (id, _) = asks(&bench, "book");
    let denied = id.clone();
    let task = bench.call(move |board| board.deny(&denied, "too dear", &alice())).unwrap().task;
    assert_eq!((task.status, task.approval), (Status::Ready, Approval::default()));
    assert_eq!(last_comment(&bench, &id), "DENIED (book): 420 USD?\ntoo dear");
    bench.check();
}

#[test]
fn a_request_that_nobody_decides_in_its_time_is_denied() {
    let rule = ApprovalRule { expires: Some(Duration::from_hours(2)), ..ApprovalRule::default() };
    let bench = bench([("spend", rule)]);
    let gated = made(&bench, "spend").unwrap().id;
    let (asked, _) = asks(&bench, "spend");
    let end = crate::Clock::now(&*bench.clock).after(Duration::from_hours(2));
    assert_eq!(bench.next_wake(), Some(end));
    bench.clock.advance(Duration::from_hours(2));

    assert_eq!(bench.wake().len(), 2);

    assert_eq!(bench.task(&gated).status, Status::Triage);
    assert_eq!(bench.task(&asked).status, Status::Ready);
    assert!(last_comment(&bench, &asked).ends_with("nobody approved it in time"));
    assert_eq!((bench.next_wake(), bench.wake()), (None, Vec::new()));
    let again = made(&bench, "spend").unwrap().id;
    approve(&bench, &again, alice()).unwrap();
    assert_eq!(bench.next_wake(), None, "an approved one has no end");
    bench.check();
}

#[test]
fn what_is_allowed_goes_on_at_once_and_what_is_denied_or_asked_by_a_person_is_refused() {
    let gate = |gate| ApprovalRule { gate, ..ApprovalRule::default() };
    let bench = bench([("deploy", gate(ApprovalGate::Allow)), ("destructive", gate(ApprovalGate::Deny))]);
    let id = bench.ready();
    let bob = Actor::worker("bob", bench.start(&id), id.clone(), None);
    let ask = |name: &str, actor: &Actor| {
        let (id, class, actor) = (id.clone(), class(name), actor.clone());
        bench.call(move |board| board.ask_approval(&id, &class, "may I?", &actor))
    };
    assert_eq!(ask("deploy", &bob).unwrap().task.status, Status::Running);
    assert_eq!(ask("destructive", &bob).unwrap_err().code(), ErrorCode::Forbidden);
    assert_eq!(ask("unheard_of", &bob).unwrap_err().code(), ErrorCode::Invalid);
    assert_eq!(ask("spend", &alice()).unwrap_err().code(), ErrorCode::Invalid);
    let other = bench.ready();
    let eve = Actor::worker("eve", bench.start(&other), other, None);
    assert_eq!(ask("spend", &eve).unwrap_err().code(), ErrorCode::Forbidden);
    bench.check();
}

#[test]
fn what_a_worker_asks_for_is_one_message() {
    let bench = bench([]);
    let id = bench.ready();
    let key = SubscriptionKey {
        task_id: id.clone(),
        platform: "ops".to_owned(),
        chat_id: String::new(),
        thread_id: String::new(),
    };
    bench.call(move |board| board.subscribe(&key, None, None, &alice())).unwrap();
    let run = bench.start(&id);
    let (bob, task) = (Actor::worker("bob", run, id.clone(), None), id.clone());
    bench.call(move |board| board.ask_approval(&task, &class("spend"), "420 USD?", &bob)).unwrap();
    bench.finish(run, EndCause::Exited { code: 0 });

    let all = Letters { limit: 10, ..Letters::default() };
    let page = bench.readers.with(|view| view.outbox(&all, &alice())).unwrap();
    let kinds: Vec<NoticeKind> = page.iter().map(|letter| letter.kind).collect();
    assert_eq!(kinds, [NoticeKind::Approval]);
    assert!(page[0].notice.text.as_deref().unwrap().contains("420 USD?"), "{:?}", page[0].notice);
}
