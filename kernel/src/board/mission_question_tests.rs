//! Questions of missions at a limit: their recipients, their lists and their answers.

use crate::testing::{Bench, alice, titled};
use crate::{
    Actor, Address, AskingMission, Letter, Letters, MissionCaps, MissionLimits, NewTask, NoticeKind, Pause,
    SubscriptionKey, TaskId, Tenant,
};

fn key(task: &TaskId, channel: &str) -> SubscriptionKey {
    SubscriptionKey {
        task_id: task.clone(),
        platform: channel.to_owned(),
        chat_id: "7".to_owned(),
        thread_id: String::new(),
    }
}

fn subscribe(bench: &Bench, task: &TaskId, channel: &str) {
    let key = key(task, channel);
    bench.call(move |board| board.subscribe(&key, None, None, &alice())).unwrap();
}

fn letters(bench: &Bench) -> Vec<Letter> {
    let all = Letters { limit: 100, ..Letters::default() };
    bench.readers.with(|view| view.outbox(&all, &alice())).unwrap()
}

fn asking(bench: &Bench, actor: &Actor) -> Vec<AskingMission> {
    bench.readers.with(|view| view.asking_missions(None, None, 10, actor)).unwrap()
}

/// Returns a mission limited to two tasks, with a task that its worker has made.
fn mission(bench: &Bench, tenant: Option<Tenant>) -> (TaskId, TaskId, Actor) {
    let caps = MissionCaps { max_tasks: Some(2), ..MissionCaps::default() };
    let new = NewTask { tenant: tenant.clone(), ..titled("site") };
    let first = bench.call(move |board| board.create_mission(new, &caps, &alice())).unwrap().task.id;
    let worker = Actor::worker("bob", bench.start(&first), first.clone(), tenant);
    let by = worker.clone();
    let part = bench.call(move |board| board.create(titled("part"), &by)).unwrap().task.id;
    (first, part, worker)
}

/// Has its worker ask for one task too many.
fn reach(bench: &Bench, worker: Actor) {
    bench.call(move |board| board.ask_for_more_tasks(&worker)).unwrap();
}

#[test]
fn a_mission_at_a_limit_asks_the_subscribers_of_its_tasks_once_each() {
    let bench = Bench::new();
    let (first, part, worker) = mission(&bench, None);
    subscribe(&bench, &first, "ops");
    subscribe(&bench, &part, "ops");
    subscribe(&bench, &part, "design");
    subscribe(&bench, &bench.ready(), "elsewhere");

    reach(&bench, worker.clone());
    reach(&bench, worker);

    let sent = letters(&bench);
    let to: Vec<&str> = sent.iter().map(|one| one.address.channel.as_str()).collect();
    assert_eq!(to, ["design", "ops"]);
    for letter in &sent {
        assert_eq!((letter.kind, &letter.task_id), (NoticeKind::Question, &first));
        let text = letter.notice.text.as_deref().unwrap();
        assert!(text.contains("2 tasks of 2 (missions.tasks). Continue?"), "{text}");
        assert_eq!(letter.notice.choices, ["raise the limit: as much again", "stop the mission"]);
    }
    bench.check();
}

#[test]
fn a_chat_that_subscribes_to_a_mission_at_a_limit_reads_what_it_asks() {
    let bench = Bench::new();
    let (first, part, worker) = mission(&bench, None);
    reach(&bench, worker);
    subscribe(&bench, &part, "part");
    subscribe(&bench, &first, "ops");

    let sent = letters(&bench);
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].kind, sent[0].notice.choices.len()), (NoticeKind::Question, 2));
}

#[test]
fn the_question_of_a_mission_is_open_where_it_was_sent_until_it_is_answered() {
    let bench = Bench::new();
    let (first, part, worker) = mission(&bench, None);
    subscribe(&bench, &first, "ops");
    reach(&bench, worker);
    let ids: Vec<_> = letters(&bench).iter().map(|one| one.id).collect();
    bench.call(move |board| board.letters_delivered(&ids, Some("m-1"))).unwrap();
    let at = Address { channel: "ops".to_owned(), chat_id: "7".to_owned(), thread_id: String::new() };
    let open = || bench.readers.with(|view| view.questions_at(&at, &alice())).unwrap();
    let is_asking = || bench.readers.with(|view| view.is_asking(&view.expect_task(&first)?)).unwrap();
    assert_eq!((open(), is_asking()), (vec![first.clone()], true));

    let id = part.clone();
    let refused = bench.call(move |board| board.answer(&id, "2", &alice())).unwrap_err();
    assert_eq!(refused.hint().unwrap(), format!("its mission asks: `supervisor answer {first} 1`"));
    let id = first.clone();
    bench.call(move |board| board.answer(&id, "1", &alice())).unwrap();
    assert_eq!((open(), is_asking()), (Vec::new(), false));
}

#[test]
fn missions_that_ask_are_listed_to_who_may_see_them_the_latest_first() {
    let bench = Bench::new();
    let acme: Tenant = "acme".parse().unwrap();
    let (early, _, worker) = mission(&bench, None);
    reach(&bench, worker);
    bench.clock.advance(std::time::Duration::from_secs(5));
    let (late, _, worker) = mission(&bench, Some(acme.clone()));
    reach(&bench, worker);
    mission(&bench, None);

    let of_acme = Actor { tenant: Some(acme), ..alice() };
    let ids = |actor: &Actor| asking(&bench, actor).into_iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(&alice()), [late.clone(), early.clone()]);
    assert_eq!(ids(&of_acme), [late]);
    let stop = early.clone();
    bench.call(move |board| board.answer(&stop, "2", &alice())).unwrap();
    assert!(!ids(&alice()).contains(&early), "a mission that was stopped asks nothing");
}

#[test]
fn a_pause_by_hand_outlives_the_answer_and_a_resume_says_that_the_limit_was_raised() {
    let bench = Bench::new();
    let (first, _, worker) = mission(&bench, None);
    reach(&bench, worker);
    let id = first.clone();
    bench
        .call(move |board| board.pause_by_hand(&id, Pause::Starts, Some("legal says stop"), &alice()))
        .unwrap();
    let paused = || {
        bench
            .readers
            .with(|view| view.mission(&first, &MissionLimits::default(), &alice()))
            .unwrap()
            .mission
            .paused
    };
    assert!(paused().unwrap().contains("legal says stop") && paused().unwrap().contains("2 tasks of 2"));

    let id = first.clone();
    bench.call(move |board| board.answer(&id, "1", &alice())).unwrap();
    assert_eq!(paused().as_deref(), Some("legal says stop"));
    let resume = || {
        let id = first.clone();
        bench.call(move |board| board.resume_mission(&id, None, &alice()))
    };
    assert!(!resume().unwrap(), "the limit was raised by the answer");
    assert_eq!(paused(), None);

    let over = bench.ready();
    let id = over.clone();
    bench.call(move |board| board.cancel_mission(&id, None, &alice())).unwrap();
    let refused =
        bench.call(move |board| board.pause_by_hand(&over, Pause::Starts, None, &alice())).unwrap_err();
    assert!(refused.to_string().contains("is over"), "{refused}");
}
