//! Events of the proxy of a run.

use super::told;
use crate::testing::Bench;
use crate::{EndCause, StopReason};

#[test]
fn egress_denied_tells_of_a_host_that_the_proxy_of_a_run_refused() {
    let bench = Bench::new();
    let run = bench.start(&bench.ready());
    let denied = crate::Denied {
        policy: "agent".to_owned(),
        act: "connecting to b.example:443".to_owned(),
        line: Some("[network] hosts = [\"b.example:443\"]".to_owned()),
        text: "denied".to_owned(),
    };
    bench.call(move |board| board.note_egress_denied(run, &denied, "b.example:443")).unwrap();
    insta::assert_snapshot!(
        told(&bench, "egress_denied"),
        @r#"its run: {"host":"b.example:443","line":"[network] hosts = [\"b.example:443\"]","policy":"agent","text":"denied"}"#
    );
}

#[test]
fn egress_tells_of_what_the_proxy_of_a_run_passed_on() {
    let bench = Bench::new();
    let run = bench.start(&bench.ready());
    let egress = crate::Egress { requests: 2, denied: 1, sent_bytes: 10, received_bytes: 20 };
    bench.call(move |board| board.note_egress(run, &egress)).unwrap();
    insta::assert_snapshot!(
        told(&bench, "egress"),
        @r#"its run: {"denied":1,"received_bytes":20,"requests":2,"sent_bytes":10}"#
    );
    bench.finish(run, EndCause::Stopped(StopReason::Reclaimed));
    bench.call(move |board| board.note_egress(run, &crate::Egress::default())).unwrap();
    assert!(told(&bench, "egress").contains("\"requests\":2"), "a run that has ended is left alone");
}
