//! Verdicts that the ending of an agent implies, as its lane has read it.

use crate::testing::{Bench, alice};
use crate::{BlockKind, EndCause, Ending, Handoff, OnCleanExit, Outcome, Status, StopReason};

#[test]
fn a_clean_exit_completes_only_where_the_lane_says_so() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    assert_eq!(bench.finish(run, EndCause::Exited { code: 0 }).outcome, Outcome::Unreported);
    let run = bench.start(&id);
    let mut ending = Ending::new(EndCause::Exited { code: 0 });
    ending.result_policy = OnCleanExit::Complete { summary: Some("tail".to_owned()) };
    let end = bench.call(move |board| board.finish_run(run, ending)).unwrap();
    assert_eq!((end.outcome, end.status), (Outcome::Completed, Status::Done));
    assert_eq!(bench.task(&id).result.as_deref(), Some("tail"));
}

#[test]
fn a_clean_exit_asks_for_a_review_where_the_lane_says_so() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let mut ending = Ending::new(EndCause::Exited { code: 0 });
    ending.result_policy = OnCleanExit::Review { summary: Some("look".to_owned()) };
    ending.reviewer = "critic".parse().ok();
    let end = bench.call(move |board| board.finish_run(run, ending)).unwrap();
    assert_eq!((end.outcome, end.status), (Outcome::ReviewRequested, Status::Review));
    assert_eq!(bench.readers.with(|view| view.expect_run(run)).unwrap().summary.as_deref(), Some("look"));
    assert_eq!(bench.task(&id).reviewer, "critic".parse().ok());
    bench.check();
}

#[test]
fn a_reviewer_whose_lane_says_how_work_ends_has_reviewed_nothing_by_a_clean_exit() {
    for result_policy in [
        OnCleanExit::Review { summary: Some("look".to_owned()) },
        OnCleanExit::TurnEnded { summary: Some("look".to_owned()) },
    ] {
        let bench = Bench::new();
        let goal = crate::Goal { mode: true, ..crate::Goal::default() };
        let check = crate::Check { command: Some("make test".to_owned()), max_checks: None };
        let id = bench.create(crate::NewTask { check, goal, ..crate::testing::titled("work") }).id;
        let worked = bench.start(&id);
        let (task, bob) = (id.clone(), crate::Actor::worker("bob", worked, id.clone(), None));
        let critic = "critic".parse().ok();
        bench.call(move |board| board.request_review(&task, Handoff::default(), critic, None, &bob)).unwrap();
        bench.finish(worked, EndCause::Exited { code: 0 });
        bench.finish(bench.start(&id), EndCause::Exited { code: 0 });
        assert_eq!(bench.task(&id).status, Status::Review, "its check has passed");
        let ending = Ending { result_policy, ..Ending::new(EndCause::Exited { code: 0 }) };
        let review = bench.start(&id);
        let end = bench.call(move |board| board.finish_run(review, ending)).unwrap();
        assert_eq!((end.outcome, end.status), (Outcome::Unreported, Status::Review));
        bench.check();
    }
}

#[test]
fn a_limit_that_the_lane_has_set_is_a_question_and_no_failure() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let end = bench.finish(run, EndCause::OwnLimit(crate::OwnLimit::Turns));
    assert_eq!((end.outcome, end.status), (Outcome::Blocked, Status::Blocked));
    let task = bench.task(&id);
    assert_eq!((task.block_kind, task.consecutive_failures), (Some(BlockKind::NeedsInput), 0));
    assert!(task.question.unwrap().text.contains("limit of its lane on turns"));
    bench.check();
}

#[test]
fn a_verdict_goes_before_whatever_the_end_stands_for() {
    let causes = [
        EndCause::OwnLimit(crate::OwnLimit::Cost),
        EndCause::NotLoggedIn { until: crate::Timestamp::from_secs(i64::from(u32::MAX)) },
        EndCause::RateLimited { until: crate::Timestamp::from_secs(i64::from(u32::MAX)) },
        EndCause::Exited { code: 1 },
        EndCause::TimedOut,
    ];
    for cause in causes {
        let bench = Bench::new();
        let id = bench.ready();
        let run = bench.start(&id);
        let mine = Handoff { summary: Some("mine".to_owned()), ..Handoff::default() };
        bench.call(move |board| board.complete(&id, mine, None, &alice())).unwrap();
        assert_eq!(bench.finish(run, cause.clone()).outcome, Outcome::Completed, "{cause:?}");
        assert!(bench.readers.with(|view| view.holds()).unwrap().is_empty(), "{cause:?}");
    }
}

#[test]
fn what_an_agent_has_used_is_kept_with_its_run_and_a_session_that_goes_on_is_charged_once() {
    let bench = Bench::new();
    let id = bench.ready();
    let used = |input_tokens, output_tokens| crate::Spent {
        session: Some("s".to_owned()),
        input_tokens,
        output_tokens,
        cost_micros: Some(7),
        counters: crate::Counters::OfSession,
        ..crate::Spent::default()
    };
    for spent in [used(22, 5), used(33, 7), used(u64::MAX, u64::MAX)] {
        let run = bench.start(&id);
        let ending = Ending { spent: Some(spent), ..Ending::new(EndCause::Stopped(StopReason::Preempted)) };
        bench.call(move |board| board.finish_run(run, ending)).unwrap();
    }
    let runs = bench.readers.with(|view| view.history(&id, &alice())).unwrap().rows;
    let spent: Vec<_> = runs.iter().map(|run| run.spent.clone().unwrap()).collect();
    let tokens: Vec<_> = spent[..2].iter().map(|spent| (spent.input_tokens, spent.output_tokens)).collect();
    assert_eq!((tokens, spent[0].cost_micros), (vec![(22, 5), (11, 2)], Some(7)));
    assert_eq!(spent[2].input_tokens, 1 << 46, "a number beyond all reason is the largest that counts");
}

#[test]
fn tokens_without_a_cost_have_the_price_of_their_model_also_in_a_session_that_goes_on() {
    let price = crate::Price { input: 1_000_000, cached_input: 100_000, output: 10_000_000 };
    let mut quotas = crate::Quotas::default();
    quotas.prices = crate::Prices::new([("gpt-5*".to_owned(), price)].into());
    let quotas = crate::SharedQuotas::new(quotas);
    let bench = Bench::with(|options| crate::WriterOptions { quotas, ..options });
    let id = bench.ready();
    let used = |input_tokens, output_tokens, cost_micros| crate::Spent {
        session: Some("s".to_owned()),
        model: Some("gpt-5.1-codex".to_owned()),
        input_tokens,
        output_tokens,
        cost_micros,
        counters: crate::Counters::OfSession,
        ..crate::Spent::default()
    };
    for spent in [used(20, 5, None), used(30, 6, None), used(40, 7, Some(3))] {
        let run = bench.start(&id);
        let ending = Ending { spent: Some(spent), ..Ending::new(EndCause::Stopped(StopReason::Preempted)) };
        bench.call(move |board| board.finish_run(run, ending)).unwrap();
    }
    let runs = bench.readers.with(|view| view.history(&id, &alice())).unwrap().rows;
    let costs: Vec<_> = runs.iter().map(|run| run.spent.clone().unwrap().cost_micros.unwrap()).collect();
    assert_eq!(costs, [70, 20, 3], "20 and 5 tokens, then 10 and 1 more, then what the agent says");
    bench.check();
}

#[test]
fn what_a_live_run_has_used_is_shown_and_counted_once_when_it_ends() {
    let bench = Bench::new();
    let id = bench.ready();
    let used = |input_tokens| crate::Spent { input_tokens, ..crate::Spent::default() };
    let run = bench.start(&id);
    for tokens in [5, 9] {
        bench.call(move |board| board.record_spent(run, &used(tokens))).unwrap();
        let open = bench.readers.with(|view| view.open_runs_with_spent()).unwrap();
        assert_eq!(open[0].spent, Some(used(tokens)));
    }
    let ending = crate::Ending { spent: Some(used(11)), ..crate::Ending::new(EndCause::Exited { code: 1 }) };
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
    let history = bench.readers.with(|view| view.history(&id, &alice())).unwrap();
    assert_eq!(history.rows[0].spent, Some(used(11)));
    assert!(bench.call(move |board| board.record_spent(run, &used(99))).is_err(), "it is over");
    bench.check();
}

#[test]
fn a_core_that_was_dumped_is_kept_with_the_run_and_told_where_it_is_known() {
    for core_dumped in [Some(true), Some(false), None] {
        let bench = Bench::new();
        let id = bench.ready();
        let run = bench.start(&id);
        let ending = Ending { core_dumped, ..Ending::new(EndCause::Signaled { signal: 11 }) };
        bench.call(move |board| board.finish_run(run, ending)).unwrap();
        let ended = bench.readers.with(|view| view.expect_run(run)).unwrap();
        assert_eq!((ended.signal, ended.core_dumped), (Some(11), core_dumped));
        assert_eq!(ended.error.unwrap().contains("dumped its core"), core_dumped == Some(true));
        let json = serde_json::to_value(bench.readers.with(|view| view.expect_run(run)).unwrap()).unwrap();
        assert_eq!(json.get("core_dumped").is_some(), core_dumped.is_some(), "what is not known is absent");
        let kinds = vec!["crashed".to_owned()];
        let filter = crate::EventFilter { task: Some(id), kinds, limit: 1, ..crate::EventFilter::default() };
        let used = bench.readers.with(|view| view.events(&filter)).unwrap().remove(0).payload.unwrap();
        assert_eq!(used.get("core_dumped"), core_dumped.map(serde_json::Value::from).as_ref());
        bench.check();
    }
}

#[test]
fn what_a_worker_said_last_that_reported_nothing_is_kept_with_its_run_and_is_no_result() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let words = Some("I wait for the tests".to_owned() + &"é".repeat(crate::limits::SUMMARY));
    let result_policy = OnCleanExit::TurnEnded { summary: words };
    let ending = Ending { result_policy, ..Ending::new(EndCause::Exited { code: 0 }) };
    let end = bench.call(move |board| board.finish_run(run, ending)).unwrap();
    assert_eq!(end.outcome, Outcome::Unreported);
    let ended = bench.readers.with(|view| view.expect_run(run)).unwrap();
    let kept = ended.summary.unwrap();
    assert!(kept.starts_with("I wait for the tests") && kept.len() <= crate::limits::SUMMARY);
    assert!(ended.error.unwrap().starts_with("the worker exited without"));
    let context =
        bench.readers.with(|view| view.context(&id, crate::ContextLimits::default(), &|_| None)).unwrap();
    assert!(context.text.contains("what it said last:\n> I wait for the tests"), "{}", context.text);

    let task = id.clone();
    bench.call(move |board| board.complete(&task, Handoff::default(), None, &alice())).unwrap();
    assert_eq!(bench.task(&id).result, None);
    bench.check();
}

#[test]
fn a_question_of_an_agent_that_refused_its_own_tools_is_kept_with_its_run() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let result_policy = OnCleanExit::ToolsRefused { summary: Some("Which registry, A or B?".to_owned()) };
    let trouble = Some("the agent itself refused calls of its tools (1)".to_owned());
    let ending = Ending { result_policy, trouble, ..Ending::new(EndCause::Exited { code: 0 }) };
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
    let ended = bench.readers.with(|view| view.expect_run(run)).unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Unreported));
    assert_eq!(ended.summary.as_deref(), Some("Which registry, A or B?"));
    let error = ended.error.unwrap();
    assert!(error.ends_with("request-review: the agent itself refused calls of its tools (1)"), "{error}");
    bench.check();
}
