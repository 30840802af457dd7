//! Limits of replies, and parts that together are the whole.

use serde_json::json;

use crate::testing::{Bench, alice, titled};
use crate::{EndCause, Error, EventFilter, RunId, StopReason};

#[test]
fn events_come_in_parts_of_so_many_bytes_and_one_always_comes() {
    let bench = Bench::new();
    for _ in 0..20 {
        bench.create(titled("x"));
    }
    let part = |filter: EventFilter| bench.readers.with(|view| view.some_events(&filter)).unwrap();
    let whole = part(EventFilter::default());
    assert!(!whole.more && whole.rows.len() == 20);
    for bytes in [0, 1, 500, 100_000] {
        let mut filter = EventFilter { bytes, ..EventFilter::default() };
        let mut events = Vec::new();
        loop {
            let some = part(filter.clone());
            filter.since = some.rows.last().unwrap().id;
            assert!(some.rows.len() == 1 || bytes > 1, "{bytes}");
            events.extend(some.rows);
            if !some.more {
                break;
            }
        }
        assert_eq!(events, whole.rows, "{bytes}");
    }
    let newest = part(EventFilter { limit: 3, newest_first: true, ..EventFilter::default() });
    assert_eq!((&newest.rows[..], newest.more), (&whole.rows[17..], true));
}

#[test]
fn a_kind_of_events_that_no_board_writes_is_refused_with_those_that_there_are() {
    let bench = Bench::new();
    bench.ready();
    let known = |kinds: &[&str]| {
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        bench.readers.with(|view| view.require_event_kinds(&kinds))
    };
    known(&[]).unwrap();
    known(&["created", "timed_out"]).unwrap();
    let refused = known(&["created", "respawn_guarded"]).unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
    assert!(refused.to_string().contains("respawn_guarded"), "{refused}");
    assert!(refused.hint().unwrap().contains("are: answered, approval_denied, "), "{refused:?}");
}

#[test]
fn comments_and_runs_come_in_parts_and_say_that_there_are_more() {
    let rows = crate::model::limits::REPLY_ROWS as usize;
    let bench = Bench::new();
    let task = bench.ready();
    let id = task.clone();
    bench
        .call(move |board| {
            (0..rows + 3).try_for_each(|at| board.comment(&id, &format!("{at}"), None, &alice()).map(drop))
        })
        .unwrap();
    let thread = |before| bench.readers.with(|view| view.thread(&task, before, &alice())).unwrap();
    let latest = thread(None);
    assert!(latest.more && latest.rows.len() == rows && latest.rows[0].body == "3");
    let older = thread(Some(latest.rows[0].id));
    let bodies: Vec<&str> = older.rows.iter().map(|comment| comment.body.as_str()).collect();
    assert_eq!((bodies, older.more), (vec!["0", "1", "2"], false));

    for _ in 0..5 {
        let run = bench.start(&task);
        bench.finish(run, EndCause::Stopped(StopReason::Preempted));
    }
    let runs =
        |after, limit| bench.readers.with(|view| view.history_after(&task, after, limit, &alice())).unwrap();
    let first = runs(RunId(0), 3);
    assert!(first.more && first.rows.len() == 3);
    let second = runs(first.rows[2].id, 3);
    assert!(!second.more && second.rows.len() == 2);
    let all = bench.readers.with(|view| view.history(&task, &alice())).unwrap();
    assert_eq!(json!([first.rows, second.rows].concat()), json!(all.rows));
}
