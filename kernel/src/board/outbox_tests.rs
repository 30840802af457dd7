//! Messages to people about a task, and their delivery.

use std::time::Duration;

use crate::model::clock::Clock as _;
use crate::testing::{Bench, alice, gated, titled};
use crate::{
    Actor, BlockKind, Blocking, EndCause, EventId, Handoff, Letter, LetterState, Letters, NewTask,
    NoticeKind, Outcome, Question, StopReason, SubscriptionKey, TaskId,
};

fn key(task: &TaskId, channel: &str) -> SubscriptionKey {
    SubscriptionKey {
        task_id: task.clone(),
        platform: channel.to_owned(),
        chat_id: String::new(),
        thread_id: String::new(),
    }
}

fn subscribe(bench: &Bench, task: &TaskId, channel: &str) {
    let key = key(task, channel);
    bench.call(move |board| board.subscribe(&key, None, None, &alice())).unwrap();
}

fn all() -> Letters {
    Letters { limit: 1000, ..Letters::default() }
}

fn letters(bench: &Bench) -> Vec<Letter> {
    bench.readers.with(|view| view.outbox(&all(), &alice())).unwrap()
}

fn in_trouble(bench: &Bench) -> Vec<String> {
    bench.readers.with(|view| view.troubled_channels()).unwrap()
}

fn kinds(bench: &Bench) -> Vec<NoticeKind> {
    letters(bench).iter().map(|letter| letter.kind).collect()
}

fn subscriptions(bench: &Bench) -> usize {
    bench.readers.with(|view| view.subscriptions(None, &alice())).unwrap().len()
}

fn block(bench: &Bench, task: &TaskId, blocking: Blocking) {
    let task = task.clone();
    bench.call(move |board| board.block(&task, blocking, None, &alice())).unwrap();
}

fn complete(bench: &Bench, task: &TaskId, result: &str) {
    let (task, handoff) = (task.clone(), Handoff { result: Some(result.to_owned()), ..Handoff::default() });
    bench.call(move |board| board.complete(&task, handoff, None, &alice())).unwrap();
}

#[test]
fn a_run_that_completes_its_task_is_told_with_the_first_line_of_the_result() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    let run = bench.start(&task);
    complete(&bench, &task, "\n42 tests pass\nthe rest is noise");
    assert_eq!(kinds(&bench), [], "the run goes on");

    bench.finish(run, EndCause::Exited { code: 0 });

    let letter = letters(&bench).remove(0);
    assert_eq!((letter.kind, letter.task_id), (NoticeKind::Completed, task.clone()));
    assert_eq!(letter.notice.text.as_deref(), Some("42 tests pass"));
    assert_eq!(subscriptions(&bench), 0, "nothing more comes of it");
    bench.check();
}

#[test]
fn a_question_is_told_with_its_choices_and_a_block_with_its_reason() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    let question = Question {
        text: "Which one?".to_owned(),
        choices: vec!["red".to_owned(), "blue".to_owned()],
        ..Question::default()
    };
    block(&bench, &task, Blocking { question: Some(question), ..Blocking::default() });
    let id = task.clone();
    bench.call(move |board| board.unblock(&id, None, &alice())).unwrap();
    let reason = Some("no such host".to_owned());
    block(&bench, &task, Blocking { kind: BlockKind::Capability, reason, ..Blocking::default() });

    let sent = letters(&bench);
    assert_eq!(
        sent.iter().map(|one| one.kind).collect::<Vec<_>>(),
        [NoticeKind::Question, NoticeKind::Blocked]
    );
    assert_eq!(sent[0].notice.text.as_deref(), Some("Which one?"));
    assert_eq!(sent[0].notice.choices, ["red", "blue"]);
    assert_eq!(sent[1].notice.text.as_deref(), Some("no such host"));
    assert_eq!(subscriptions(&bench), 1, "it goes on");
}

#[test]
fn what_a_person_has_cancelled_is_no_news() {
    let bench = Bench::new();
    let (waits, runs) = (bench.ready(), bench.ready());
    let run = bench.start(&runs);
    for task in [&waits, &runs] {
        subscribe(&bench, task, "ops");
        let task = task.clone();
        bench.call(move |board| board.cancel(&task, Some("not needed"), &alice())).unwrap();
    }
    bench.finish(run, EndCause::Stopped(StopReason::Cancelled));
    subscribe(&bench, &waits, "late");
    assert_eq!(kinds(&bench), []);
    assert!(bench.task(&waits).is_cancelled() && bench.task(&runs).is_cancelled());
}

#[test]
fn a_crash_is_told_and_the_last_one_as_the_end_of_the_attempts() {
    let bench = Bench::new();
    let limits = crate::Limits { max_retries: Some(2), ..crate::Limits::default() };
    let task = bench.create(NewTask { limits, ..titled("t") }).id;
    subscribe(&bench, &task, "ops");
    let run = bench.start(&task);
    bench.finish(run, EndCause::Exited { code: 3 });
    bench.clock.advance(Duration::from_hours(1));
    bench.wake();
    let run = bench.start(&task);
    bench.finish(run, EndCause::Exited { code: 3 });

    assert_eq!(kinds(&bench), [NoticeKind::Crashed, NoticeKind::GaveUp]);
    let text = letters(&bench)[1].notice.text.clone().unwrap();
    assert!(text.starts_with("gave up after 2 failures"), "{text}");
}

#[test]
fn a_run_that_takes_too_long_or_says_nothing_is_told() {
    for (cause, expected) in
        [(EndCause::Exited { code: 0 }, NoticeKind::Unreported), (EndCause::TimedOut, NoticeKind::TimedOut)]
    {
        let bench = Bench::new();
        let task = bench.ready();
        subscribe(&bench, &task, "ops");
        let run = bench.start(&task);
        let finished = bench.finish(run, cause);
        assert_ne!(finished.outcome, Outcome::Completed);
        assert_eq!(kinds(&bench), [expected]);
    }
}

#[test]
fn an_approval_is_told_when_it_is_asked_for_and_to_who_subscribes_later() {
    let bench = Bench::new();
    let parent = bench.ready();
    let task = bench.create(NewTask { parents: vec![parent.clone()], approval: gated(), ..titled("t") }).id;
    subscribe(&bench, &task, "ops");
    assert_eq!(kinds(&bench), []);
    complete(&bench, &parent, "done");
    assert_eq!(kinds(&bench), [NoticeKind::Approval]);

    subscribe(&bench, &task, "late");
    subscribe(&bench, &task, "late");

    let late: Vec<_> = letters(&bench).into_iter().filter(|one| one.address.channel == "late").collect();
    assert_eq!(late.len(), 1);
    assert_eq!(late[0].kind, NoticeKind::Approval);
}

#[test]
fn who_is_told_of_a_request_by_its_mission_is_not_told_again_as_its_creator() {
    let bench = Bench::new();
    let mission = bench.ready();
    subscribe(&bench, &mission, "ops");
    let lineage = crate::Lineage { mission: Some(mission.to_string()), ..crate::Lineage::default() };
    let task = bench.create(NewTask { lineage, approval: gated(), ..titled("t") }).id;
    subscribe(&bench, &task, "ops");

    let sent = letters(&bench);
    assert_eq!(sent.len(), 1, "{sent:#?}");
    assert_eq!(
        (sent[0].kind, sent[0].notice.text.as_deref()),
        (NoticeKind::Approval, Some("Approve this task: t"))
    );
    assert_eq!(sent[0].notice.choices, ["approve", "deny"]);
}

#[test]
fn a_task_that_is_done_already_is_told_at_once_and_keeps_no_subscription() {
    let bench = Bench::new();
    let task = bench.ready();
    complete(&bench, &task, "done");
    subscribe(&bench, &task, "ops");
    assert_eq!((kinds(&bench), subscriptions(&bench)), (vec![NoticeKind::Completed], 0));
}

#[test]
fn what_a_worker_makes_is_told_to_the_subscribers_of_its_mission_where_somebody_has_to_act() {
    let bench = Bench::new();
    let mission = bench.ready();
    subscribe(&bench, &mission, "ops");
    let run = bench.start(&mission);
    let worker = Actor::worker("bob", run, mission.clone(), None);
    let part = bench.call(move |board| board.create(titled("part"), &worker)).unwrap().task;
    assert_eq!(part.lineage.mission.as_deref(), Some(mission.as_str()));

    let reason = Some("the key is missing".to_owned());
    block(&bench, &part.id, Blocking { reason, ..Blocking::default() });
    let id = part.id.clone();
    bench.call(move |board| board.unblock(&id, None, &alice())).unwrap();
    complete(&bench, &part.id, "done");

    let sent = letters(&bench);
    assert_eq!(sent.len(), 1, "the end of a part is no news: {sent:?}");
    assert_eq!((&sent[0].task_id, sent[0].kind), (&part.id, NoticeKind::Question));
}

#[test]
fn a_mission_whose_first_task_is_done_still_asks_those_who_subscribed_to_it() {
    let bench = Bench::new();
    let mission = bench.ready();
    subscribe(&bench, &mission, "ops");
    let run = bench.start(&mission);
    let worker = Actor::worker("bob", run, mission.clone(), None);
    let part = bench.call(move |board| board.create(titled("part"), &worker)).unwrap().task.id;
    complete(&bench, &mission, "the parts are made");
    bench.finish(run, EndCause::Exited { code: 0 });
    assert_eq!(subscriptions(&bench), 1, "a part is open");

    let reason = Some("pay 420?".to_owned());
    block(&bench, &part, Blocking { reason, ..Blocking::default() });
    assert_eq!(kinds(&bench), [NoticeKind::Completed, NoticeKind::Question]);
    let id = part.clone();
    bench.call(move |board| board.unblock(&id, None, &alice())).unwrap();
    complete(&bench, &part, "paid");

    assert_eq!((kinds(&bench).len(), subscriptions(&bench)), (2, 0), "all of the mission is over");
}

#[test]
fn a_task_that_is_brought_back_is_told_to_those_who_subscribed_to_it() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    complete(&bench, &task, "once");
    let id = task.clone();
    bench.call(move |board| board.reopen(&id, None, &alice())).unwrap();
    assert_eq!(subscriptions(&bench), 1);

    let reason = Some("again?".to_owned());
    block(&bench, &task, Blocking { reason, ..Blocking::default() });

    assert_eq!(kinds(&bench), [NoticeKind::Completed, NoticeKind::Question]);
}

#[test]
fn a_refused_write_leaves_no_message() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    let id = task.clone();
    let refused: Result<(), crate::Error> = bench.call(move |board| {
        board.block(&id, Blocking { reason: Some("x".to_owned()), ..Blocking::default() }, None, &alice())?;
        Err(crate::Error::Writer { message: "undone".to_owned() })
    });
    refused.unwrap_err();
    assert_eq!(kinds(&bench), []);
}

/// Blocks and unblocks a task, which writes a message each time.
fn shake(bench: &Bench, task: &TaskId, times: usize) {
    for n in 0..times {
        let reason = Some(format!("number {n}"));
        let kind = if n % 2 == 0 { BlockKind::Transient } else { BlockKind::Capability };
        block(bench, task, Blocking { kind, reason, ..Blocking::default() });
        let id = task.clone();
        bench.call(move |board| board.unblock(&id, None, &alice())).unwrap();
    }
}

#[test]
fn messages_of_one_task_beyond_a_bound_are_put_together_and_the_newest_is_told() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    shake(&bench, &task, 20);
    let sent = letters(&bench);
    assert_eq!(sent.len(), 16);
    assert_eq!((sent[15].events, sent[15].notice.text.as_deref()), (5, Some("number 19")));
    assert!(sent.windows(2).all(|two| two[0].id < two[1].id));
}

#[test]
fn a_tenant_that_floods_fills_its_own_queue_and_what_is_left_out_is_counted() {
    let bench = Bench::new();
    let of = |tenant: &str| NewTask { tenant: Some(tenant.parse().unwrap()), ..titled("t") };
    let loud = of("loud");
    let flood = bench.call(move |board| {
        for _ in 0..510 {
            let task = board.create(loud.clone(), &alice())?.task.id;
            board.subscribe(&key(&task, "ops"), None, None, &alice())?;
            board.complete(&task, Handoff::default(), None, &alice())?;
        }
        Ok(())
    });
    flood.unwrap();
    let quiet = bench.create(of("quiet")).id;
    subscribe(&bench, &quiet, "ops");
    complete(&bench, &quiet, "done");

    let sent = letters(&bench);
    let left_out: Vec<_> = sent.iter().filter(|one| one.kind == NoticeKind::LeftOut).collect();
    assert_eq!((sent.len(), left_out.len(), left_out[0].events), (502, 1, 10));
    assert_eq!(sent.last().unwrap().task_id, quiet, "another tenant gets its message as ever");
}

#[test]
fn a_delivery_removes_the_message_and_moves_the_subscription_on() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    shake(&bench, &task, 1);
    let letter = letters(&bench).remove(0);
    let ids = [letter.id];
    bench.call(move |board| board.letters_delivered(&ids, None)).unwrap();
    assert_eq!(kinds(&bench), []);
    let seen = bench.readers.with(|view| view.subscriptions(None, &alice())).unwrap()[0].last_event_id;
    assert_eq!(seen, letter.event_id);
    assert!(seen > EventId(0));
    shake(&bench, &task, 1);
    assert!(letters(&bench)[0].id > letter.id, "a number is never given out twice");
    bench.call(move |board| board.letters_delivered(&ids, None)).unwrap();
    assert_eq!(letters(&bench).len(), 1, "a delivery that is reported twice removes no other message");
}

#[test]
fn a_message_that_fails_waits_and_then_is_dead_and_can_be_retried_and_dropped() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    shake(&bench, &task, 2);
    let ids: Vec<_> = letters(&bench).iter().map(|one| one.id).collect();
    let later = bench.clock.now().after(Duration::from_mins(1));
    let (first, second) = (ids[0], ids[1]);
    bench.call(move |board| board.letters_failed(&[first], "refused\u{7}", Some(later))).unwrap();
    bench.call(move |board| board.letters_failed(&[second], "gone", None)).unwrap();

    let sent = letters(&bench);
    assert_eq!(
        (sent[0].attempts, sent[0].due_at, sent[0].last_error.as_deref()),
        (1, later, Some("refused"))
    );
    assert_eq!(sent[1].state, LetterState::Dead);
    let mail = bench.readers.with(|view| view.mail(None)).unwrap().remove(0);
    assert_eq!((mail.waiting, mail.dead, mail.last_error.as_deref()), (1, 1, Some("gone")));
    assert!(mail.is_in_trouble(bench.clock.now()));
    assert_eq!(in_trouble(&bench), [mail.channel], "a message is dead");

    assert_eq!(bench.call(|board| board.retry_letters(&all(), &alice())).unwrap(), 2);
    let sent = letters(&bench);
    assert!(sent.iter().all(|one| one.state == LetterState::Waiting && one.attempts == 0));
    bench.call(move |board| board.letters_failed(&[second], "gone", None)).unwrap();
    assert_eq!(bench.call(|board| board.drop_letters(&all(), &alice())).unwrap(), 1, "only what is dead");
    let one = Letters { id: Some(first), ..all() };
    assert_eq!(bench.call(move |board| board.drop_letters(&one, &alice())).unwrap(), 1);
    let gone = Letters { id: Some(first), ..all() };
    let refused = bench.call(move |board| board.retry_letters(&gone, &alice())).unwrap_err();
    assert!(refused.to_string().contains("message"), "{refused}");
}

#[test]
fn a_worker_that_calls_its_block_a_cancellation_is_told_as_any_other() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    let reason = Some("cancelled by alice".to_owned());
    block(&bench, &task, Blocking { reason, ..Blocking::default() });
    assert!(!bench.task(&task).is_cancelled());
    assert_eq!(kinds(&bench), [NoticeKind::Question]);
}

#[test]
fn a_channel_is_in_trouble_once_it_has_taken_nothing_for_half_an_hour_until_it_takes_its_messages() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    complete(&bench, &task, "done");
    let id = letters(&bench)[0].id;
    let fails = || {
        let later = bench.clock.now().after(Duration::from_mins(1));
        bench.call(move |board| board.letters_failed(&[id], "refused", Some(later))).unwrap();
    };
    assert_eq!(in_trouble(&bench), Vec::<String>::new(), "it waits");
    fails();
    for (minutes, expected) in [(29, 0), (1, 1), (60, 1)] {
        bench.clock.advance(Duration::from_mins(minutes));
        fails();
        assert_eq!(in_trouble(&bench).len(), expected, "after {minutes} more minutes");
    }
    bench.call(move |board| board.letters_delivered(&[id], None)).unwrap();
    assert_eq!(in_trouble(&bench), Vec::<String>::new());
}

#[test]
fn a_digest_keeps_its_messages_whatever_comes_meanwhile() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    shake(&bench, &task, 16);
    let ids: Vec<_> = letters(&bench).iter().map(|one| one.id).collect();
    let (of, first) = (ids.clone(), ids[0]);
    bench.call(move |board| board.bind_letters(&of)).unwrap();
    shake(&bench, &task, 1);
    let sent = letters(&bench);
    assert_eq!(sent.len(), 17);
    assert!(sent[..16].iter().all(|one| one.digest == Some(first)) && sent[16].digest.is_none());
    let heads = bench.readers.with(|view| view.delivery_queues()).unwrap();
    assert_eq!((heads.len(), heads[0].waiting, &heads[0].address.channel[..]), (1, 17, "ops"));
}

#[test]
fn a_caller_of_a_tenant_sees_and_drops_messages_of_its_own_only() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    complete(&bench, &task, "secret");
    let acme = Actor { tenant: Some("acme".parse().unwrap()), ..alice() };
    assert_eq!(bench.readers.with(|view| view.outbox(&all(), &acme)).unwrap(), []);
    assert_eq!(bench.readers.with(|view| view.mail(acme.tenant.as_ref())).unwrap(), []);
    let one = Letters { id: Some(letters(&bench)[0].id), ..all() };
    bench.call(move |board| board.drop_letters(&one, &acme)).unwrap_err();
}

#[test]
fn an_import_sends_nothing_by_itself_that_the_former_board_may_have_sent() {
    let bench = Bench::new();
    let task = bench.ready();
    subscribe(&bench, &task, "ops");
    complete(&bench, &task, "done");
    let text = bench.dump();
    let other = Bench::new();
    let blobs = crate::Blobs::of_board(&other.path);
    other.call(move |board| board.import(&mut text.as_bytes(), &blobs, &alice()).map(drop)).unwrap();
    assert_eq!(letters(&other)[0].state, LetterState::Dead);
    assert_eq!(letters(&bench)[0].state, LetterState::Waiting);
}

#[test]
fn a_worker_makes_no_subscription() {
    let bench = Bench::new();
    let task = bench.ready();
    let run = bench.start(&task);
    let worker = Actor::worker("bob", run, task.clone(), None);
    let of = key(&task, "ops");
    assert!(bench.call(move |board| board.subscribe(&of, None, None, &worker)).is_err());
}
