//! Events of the ticks of schedules.

use std::collections::BTreeSet;
use std::time::Duration;

use super::rendered_events;
use crate::testing::{Bench, titled};
use crate::{ScheduleSpec, TemplateTask, Timing};

#[test]
fn ticked_tells_of_a_tick_and_its_tasks() {
    let bench = Bench::new();
    let spec = ScheduleSpec {
        timing: Timing { every: Some(Duration::from_hours(1)), ..Timing::default() },
        tasks: vec![TemplateTask { task: titled("work"), ..TemplateTask::default() }],
        ..ScheduleSpec::default()
    };
    let defined = vec![("hourly".parse().unwrap(), spec)];
    bench.call(move |board| board.define_schedules(&defined, &BTreeSet::new())).unwrap();
    bench.clock.advance(Duration::from_hours(1));
    bench.wake();
    insta::assert_snapshot!(rendered_events(&bench, "ticked"),
        @r#"no run: {"missed":0,"more":false,"note":null,"outcome":"made","schedule":"hourly","tasks":["t_id"],"tick":"moment"}"#
    );
}
