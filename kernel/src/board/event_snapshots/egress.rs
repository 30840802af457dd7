//! Events of a run's proxy.

use super::rendered_events;
use crate::testing::Bench;
use crate::{EndCause, StopReason};

#[test]
fn egress_denied_tells_of_a_host_that_the_proxy_of_a_run_refused() {
    let bench = Bench::new();
    let run = bench.start(&bench.ready());
    let denied = crate::Denied {
        policy: "agent".to_owned(),
        act: "connecting to b.example:443".to_owned(),
        line: Some("network.hosts = [\"b.example:443\"]".to_owned()),
        text: "denied".to_owned(),
    };
    bench.call(move |board| board.note_egress_denied(run, &denied, "b.example:443")).unwrap();
    insta::assert_snapshot!(
        rendered_events(&bench, "egress_denied"),
        @r#"its run: {"host":"b.example:443","line":"network.hosts = [\"b.example:443\"]","policy":"agent","text":"denied"}"#
    );
}

#[test]
fn egress_tells_of_what_the_proxy_of_a_run_passed_on() {
    let bench = Bench::new();
    let run = bench.start(&bench.ready());
    let egress =
        crate::Egress { requests: 2, denied: 1, sent_bytes: 10, received_bytes: 20, ..Default::default() };
    bench.call(move |board| board.note_egress(run, &egress)).unwrap();
    insta::assert_snapshot!(
        rendered_events(&bench, "egress"),
        @r#"its run: {"denied":1,"over_budget":0,"received_bytes":20,"requests":2,"sent_bytes":10}"#
    );
    bench.finish(run, EndCause::Stopped(StopReason::Reclaimed));
    bench.call(move |board| board.note_egress(run, &crate::Egress::default())).unwrap();
    assert!(
        rendered_events(&bench, "egress").contains("\"requests\":2"),
        "a run that has ended is left alone"
    );
}

#[test]
fn budget_spent_tells_of_a_run_that_was_refused_a_request() {
    let bench = Bench::new();
    let run = bench.start(&bench.ready());
    let budgets = crate::Budgets {
        per_run: crate::Budget { requests: Some(2), ..crate::Budget::default() },
        ..crate::Budgets::default()
    };
    let used = crate::Consumed { requests: 2, ..crate::Consumed::default() };
    let spent = budgets.spent_by_run(&used).unwrap();
    bench.call(move |board| board.note_budget_spent(run, &spent)).unwrap();
    insta::assert_snapshot!(
        rendered_events(&bench, "budget_spent"),
        @r#"its run: {"key":"budgets.per_run.requests","name":null,"of":null,"text":"the budget of this run is spent: 2 requests of 2 (budgets.per_run.requests)"}"#
    );
}
