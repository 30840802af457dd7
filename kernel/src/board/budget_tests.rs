//! Budgets: the counting of use, and the starts that a spent budget prevents.

use std::time::Duration;

use crate::testing::{Bench, start, titled};
use crate::{
    Accounts, Balance, Budget, Budgets, Consumed, Egress, EndCause, Ending, Error, Hold, HoldKind, HoldOn,
    HoldScope, NewTask, Outcome, PayerKind, Quotas, RunId, SharedQuotas, Spent, Start, Status, TaskId,
    WriterOptions,
};

fn bench(budgets: Budgets) -> (Bench, SharedQuotas) {
    let quotas = SharedQuotas::new(quotas_of(budgets));
    let shared = quotas.clone();
    (Bench::with(|options| WriterOptions { quotas: shared, ..options }), quotas)
}

fn quotas_of(budgets: Budgets) -> Quotas {
    let mut quotas = Quotas::default();
    quotas.budgets = budgets;
    quotas
}

fn requests(most: u64) -> Budget {
    Budget { requests: Some(most), ..Budget::default() }
}

fn task_of(bench: &Bench, tenant: &str) -> TaskId {
    bench.create(NewTask { tenant: Some(tenant.parse().unwrap()), ..titled("work") }).id
}

/// Starts a task for the account `main`.
fn run(bench: &Bench, id: &TaskId) -> Result<RunId, Error> {
    let start = Start { account: Some("main".to_owned()), ..start(&*bench.clock) };
    let id = id.clone();
    bench.call(move |board| board.start_run(&id, start)).map(|run| run.id)
}

fn sent(requests: u64, bytes: u64) -> Egress {
    Egress { requests, sent_bytes: bytes, ..Egress::default() }
}

fn record(bench: &Bench, run: RunId, egress: Egress) -> Balance {
    bench.call(move |board| board.record_egress(run, &egress)).unwrap()
}

fn costs(bench: &Bench, run: RunId, tokens: u64, micros: u64) {
    let spent = Spent { output_tokens: tokens, cost_micros: Some(micros), ..Spent::default() };
    bench.call(move |board| board.record_spent(run, &spent)).unwrap();
}

fn today(balance: &Balance, scope: PayerKind) -> Consumed {
    balance.payers.iter().find(|used| used.payer.scope == scope).unwrap().consumed
}

#[expect(clippy::redundant_closure_for_method_calls, reason = "the bare path is not general over lifetimes")]
fn holds(bench: &Bench) -> Vec<Hold> {
    bench.readers.with(|view| view.holds()).unwrap()
}

fn offered(bench: &Bench) -> Vec<TaskId> {
    let accounts = Accounts::from([("bob".parse().unwrap(), "main".to_owned())]);
    bench.offered(10, &accounts).into_iter().map(|one| one.task).collect()
}

#[test]
fn what_runs_report_is_counted_once_for_tenant_profile_and_account_however_often_they_report_it() {
    let (bench, _) = bench(Budgets::default());
    let first = run(&bench, &task_of(&bench, "acme")).unwrap();
    record(&bench, first, sent(2, 100));
    record(&bench, first, sent(3, 150));
    costs(&bench, first, 10, 1_000);
    costs(&bench, first, 40, 5_000);
    let second = run(&bench, &task_of(&bench, "beta")).unwrap();
    let balance = record(&bench, second, sent(1, 1));

    let used = Consumed { requests: 1, bytes: 1, tokens: 0, cost_micros: 0 };
    assert_eq!((balance.run, today(&balance, PayerKind::Tenant)), (used, used));
    let all = Consumed { requests: 4, bytes: 151, tokens: 40, cost_micros: 5_000 };
    assert_eq!(today(&balance, PayerKind::Account), all);
    assert_eq!(today(&balance, PayerKind::Profile), all);
    let spent = Some(Spent { output_tokens: 40, cost_micros: Some(5_000), ..Spent::default() });
    bench
        .call(move |board| board.finish_run(first, Ending { spent, ..Ending::new(EndCause::TimedOut) }))
        .unwrap();
    assert_eq!(
        today(&record(&bench, second, sent(1, 1)), PayerKind::Account),
        all,
        "the end reports the same"
    );
    let late = record(&bench, first, sent(99, 0));
    assert_eq!(today(&late, PayerKind::Account), all, "a run that has ended is left alone");
    bench.check();
}

#[test]
fn a_tenant_that_has_used_up_its_day_starts_nothing_until_the_next_one_and_others_go_on() {
    let (bench, _) = bench(Budgets { per_tenant: requests(3), ..Budgets::default() });
    let (own, other) = (task_of(&bench, "acme"), task_of(&bench, "beta"));
    let worker = run(&bench, &task_of(&bench, "acme")).unwrap();
    record(&bench, worker, sent(2, 0));
    assert_eq!(holds(&bench), []);
    record(&bench, worker, sent(3, 0));

    assert_eq!(offered(&bench), [other]);
    let held = holds(&bench).remove(0);
    assert_eq!((held.kind, held.on().to_string().as_str()), (HoldKind::Budget, "tenant acme"));
    let why = bench.readers.with(|view| view.waiting(&own)).unwrap().unwrap();
    assert!(why.text.contains("3 requests of 3 (budgets.per_tenant.requests)"), "{why:?}");
    assert!(
        run(&bench, &own).unwrap_err().to_string().contains("the budget of tenant acme for today is spent")
    );
    let midnight = held.until.unwrap();
    assert_eq!(bench.next_wake(), Some(midnight));
    bench.clock.advance(midnight.since(crate::Clock::now(&*bench.clock)) + Duration::from_secs(1));
    bench.wake();
    assert_eq!(holds(&bench), []);
    run(&bench, &own).unwrap();
    bench.check();
}

#[test]
fn a_budget_that_is_raised_frees_what_waits_for_it_and_one_that_is_lowered_holds() {
    let (bench, quotas) = bench(Budgets { per_account: requests(3), ..Budgets::default() });
    let own = task_of(&bench, "acme");
    let worker = run(&bench, &task_of(&bench, "beta")).unwrap();
    record(&bench, worker, sent(3, 0));
    assert_eq!(offered(&bench), [], "all tenants share the account");
    let apply = |most| {
        quotas.set(quotas_of(Budgets { per_account: requests(most), ..Budgets::default() }));
        #[expect(
            clippy::redundant_closure_for_method_calls,
            reason = "the bare path is not general over lifetimes"
        )]
        bench.call(|board| board.apply_budgets()).unwrap();
    };
    apply(4);
    assert_eq!(offered(&bench), std::slice::from_ref(&own));
    apply(2);
    assert_eq!(offered(&bench), []);
    assert_eq!(holds(&bench)[0].reason, "3 requests of 2 (budgets.per_account.requests)");
}

#[test]
fn a_release_grants_as_much_again_for_today() {
    let (bench, _) = bench(Budgets { per_tenant: requests(3), ..Budgets::default() });
    let own = task_of(&bench, "acme");
    let worker = run(&bench, &task_of(&bench, "acme")).unwrap();
    record(&bench, worker, sent(7, 0));
    let on = HoldOn { scope: HoldScope::Tenant, name: "acme".to_owned() };
    bench.call(move |board| board.release(&on, None, &crate::testing::alice())).unwrap();
    assert_eq!(offered(&bench), [own]);
    record(&bench, worker, sent(8, 0));
    assert_eq!(holds(&bench), []);
    record(&bench, worker, sent(9, 0));
    assert_eq!(holds(&bench)[0].reason, "9 requests of 9 (budgets.per_tenant.requests)");
}

#[test]
fn a_run_that_gives_up_for_its_own_budget_asks_a_person_and_one_for_that_of_a_day_is_tried_again() {
    for (budgets, outcome, status) in [
        (Budgets { per_run: requests(2), ..Budgets::default() }, Outcome::Blocked, Status::Blocked),
        (Budgets { per_tenant: requests(2), ..Budgets::default() }, Outcome::RateLimited, Status::Scheduled),
    ] {
        for cause in [EndCause::Exited { code: 1 }, EndCause::Exited { code: 0 }, EndCause::TimedOut] {
            let (bench, _) = bench(budgets.clone());
            let task = task_of(&bench, "acme");
            let worker = run(&bench, &task).unwrap();
            record(&bench, worker, Egress { over_budget: 1, ..sent(2, 0) });
            let finished = bench.finish(worker, cause);
            assert_eq!((finished.outcome, finished.status), (outcome, status));
            let task = bench.task(&task);
            assert_eq!(task.consecutive_failures, 0);
            if outcome == Outcome::Blocked {
                let reason = "the budget of this run is spent: 2 requests of 2 (budgets.per_run.requests)";
                assert_eq!(task.block_reason.as_deref(), Some(reason));
            }
            let accounts: Vec<_> =
                holds(&bench).into_iter().filter(|hold| hold.scope == HoldScope::Account).collect();
            assert_eq!(accounts, [], "the account has nothing to do with it");
        }
    }
}

#[test]
fn a_run_that_does_its_work_within_its_budget_fails_as_ever() {
    let (bench, _) = bench(Budgets { per_run: requests(2), ..Budgets::default() });
    let task = task_of(&bench, "acme");
    let worker = run(&bench, &task).unwrap();
    record(&bench, worker, sent(2, 0));
    assert_eq!(bench.finish(worker, EndCause::Exited { code: 1 }).outcome, Outcome::Crashed);
}

#[test]
fn a_run_without_a_proxy_that_reports_its_whole_budget_is_ended_and_its_task_asks_a_person() {
    let cost = Budget { cost_micros: Some(1_000_000), ..Budget::default() };
    let (bench, _) = bench(Budgets { per_run: cost, ..Budgets::default() });
    let (alone, proxied) = (task_of(&bench, "acme"), task_of(&bench, "acme"));
    let (first, second) = (run(&bench, &alone).unwrap(), run(&bench, &proxied).unwrap());
    record(&bench, second, sent(1, 1));
    costs(&bench, first, 1, 999_999);
    assert_eq!(bench.runs_to_stop(), []);
    costs(&bench, first, 1, 1_000_000);
    costs(&bench, first, 1, 1_100_000);
    costs(&bench, second, 1, 1_100_000);

    let ended: Vec<RunId> = bench.runs_to_stop().into_iter().map(|run| run.id).collect();
    assert_eq!(ended, [first], "the other one is refused by its proxy");
    let finished = bench.finish(first, EndCause::Stopped(crate::StopReason::Cancelled));
    assert_eq!((finished.outcome, finished.status), (Outcome::Blocked, Status::Blocked));
    let reason = bench.task(&alone).block_reason.unwrap();
    assert_eq!(reason, "the budget of this run is spent: $1.00 of $1.00 (budgets.per_run.cost_usd)");
    bench.check();
}

/// Returns a budget of an account, of tokens and of cost.
fn of_account(tokens: u64, micros: u64) -> Budget {
    Budget { tokens: Some(tokens), cost_micros: Some(micros), ..Budget::default() }
}

#[test]
fn a_worker_that_lies_about_its_use_spends_its_tenant_and_no_account_of_others() {
    let day = of_account(1_000_000, 40_000_000);
    for (claimed_per_run, per_run, counted) in [
        (Budget::default(), Budget::default(), (250_000, 10_000_000)),
        (Budget::default(), of_account(500, 600), (500, 600)),
        (of_account(700, 800), of_account(500, 600), (700, 800)),
    ] {
        for (own, other) in [(Some("acme"), Some("beta")), (None, Some("beta")), (Some("acme"), None)] {
            let budgets =
                Budgets { per_account: day, per_tenant: day, claimed_per_run, per_run, ..Budgets::default() };
            let (bench, _) = bench(budgets);
            let make = |tenant: Option<&str>| {
                let tenant = tenant.map(|name| name.parse().unwrap());
                bench.create(NewTask { tenant, ..titled("work") }).id
            };
            let (liar, honest) = (make(own), make(other));
            let worker = run(&bench, &liar).unwrap();
            costs(&bench, worker, 1 << 63, 9_999_999_000_000);
            costs(&bench, worker, u64::MAX, 9_999_999_000_000);

            let balance = bench.readers.with(|view| view.balance(worker)).unwrap();
            let account = today(&balance, PayerKind::Account);
            assert_eq!((account.tokens, account.cost_micros), counted, "{own:?}");
            let held: Vec<String> = holds(&bench).iter().map(|hold| hold.on().to_string()).collect();
            assert!(!held.iter().any(|on| on.starts_with("account")), "{held:?}");
            if own.is_some() {
                assert!(held.contains(&"tenant acme".to_owned()), "{held:?}");
            }
            assert!(offered(&bench).contains(&honest));
            // A mission has its limits as well.
            assert!(held.contains(&format!("mission {liar}")), "{held:?}");
        }
    }
}

#[test]
fn an_account_that_nobody_shares_counts_all_that_its_runs_report() {
    let (bench, _) = bench(Budgets { per_account: of_account(1_000, 1_000), ..Budgets::default() });
    let worker = run(&bench, &task_of(&bench, "acme")).unwrap();
    let next = task_of(&bench, "acme");
    costs(&bench, worker, 999, 999);
    assert_eq!(offered(&bench), [next]);
    costs(&bench, worker, 1_000, 1_000);
    assert_eq!(offered(&bench), []);
}

#[test]
fn what_is_beyond_all_reason_is_the_same_for_a_run_and_for_the_ledger() {
    let (bench, _) = bench(Budgets::default());
    for number in 1..=2 {
        let worker = run(&bench, &task_of(&bench, "acme")).unwrap();
        let spent = Spent {
            input_tokens: u64::MAX,
            output_tokens: u64::MAX,
            cost_micros: Some(u64::MAX),
            ..Spent::default()
        };
        bench.call(move |board| board.record_spent(worker, &spent)).unwrap();
        let spent_tokens = bench.readers.with(|view| view.balance(worker)).unwrap().run.tokens;
        let used = bench
            .readers
            .with(|view| view.spend(crate::SpendBy::Tenant, None, None, &crate::testing::alice()));
        assert_eq!((spent_tokens, used.unwrap()[0].consumed.tokens), (1 << 46, number << 46));
        bench.finish(worker, EndCause::Stopped(crate::StopReason::Preempted));
    }
    bench.check();
}
