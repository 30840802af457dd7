//! Events for readers of Hermes Kanban: their kinds, each with the keys that its table documents.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::testing::{Bench, alice, limited, titled};
use crate::{
    Actor, BlockKind, Blocking, Destination, Detach, Edit, EndCause, Ending, EventFilter, Fault, Handoff,
    NewTask, StopReason, TaskId,
};

/// Kinds with their keys, as documented.
const TABLE: [(&str, &[&str]); 18] = [
    ("created", &["assignee", "status", "parents", "tenant"]),
    ("promoted", &[]),
    ("claimed", &["lock", "expires", "run_id"]),
    ("completed", &["result_len", "summary"]),
    ("blocked", &["reason"]),
    ("unblocked", &[]),
    ("archived", &[]),
    ("assigned", &["assignee"]),
    ("edited", &["fields"]),
    ("reprioritized", &["priority"]),
    ("status", &["status"]),
    ("spawned", &["pid"]),
    ("heartbeat", &["note"]),
    ("reclaimed", &["stale_lock"]),
    ("crashed", &["pid", "claimer"]),
    ("timed_out", &["pid", "elapsed_seconds", "limit_seconds", "sigkill"]),
    ("spawn_failed", &["error", "failures"]),
    ("gave_up", &["failures", "error"]),
];

/// Starts a task that may fail once, spawns it, and ends it.
fn ended(bench: &Bench, cause: EndCause, signal: Option<i32>) {
    let id = bench.create(NewTask { limits: limited(1), ..titled("ends") }).id;
    let limit = crate::TimeLimit { limit: Duration::from_mins(1), from: crate::LimitSource::Lane };
    let limited = crate::Start { max_runtime: Some(limit), ..crate::testing::start(&*bench.clock) };
    let run = bench.call(move |board| board.start_run(&id, limited)).unwrap().id;
    bench.call(move |board| board.record_spawned(run, 17, &serde_json::json!({}))).unwrap();
    bench.clock.advance(Duration::from_secs(61));
    bench.call(move |board| board.finish_run(run, Ending { signal, ..Ending::new(cause) })).unwrap();
}

fn history(bench: &Bench) {
    let parent = bench.ready();
    bench.child_of(&[&parent]);
    let summary = Handoff { summary: Some("did it".to_owned()), ..Handoff::default() };
    bench.call(move |board| board.complete(&parent, summary, None, &alice())).unwrap();
    let on = |deed: fn(&mut crate::Board<'_>, &TaskId) -> Result<(), crate::Error>| {
        let id = bench.ready();
        bench.call(move |board| deed(board, &id)).unwrap();
    };
    on(|board, id| {
        let blocking =
            Blocking { kind: BlockKind::Transient, reason: Some("later".to_owned()), ..Blocking::default() };
        board.block(id, blocking, None, &alice())?;
        board.unblock(id, None, &alice()).map(drop)
    });
    on(|board, id| board.archive(id, Detach::Refuse, &alice()).map(drop));
    on(|board, id| board.assign(id, None, &alice()).map(drop));
    on(|board, id| {
        let edit = Edit { title: Some("other".to_owned()), priority: Some(7), ..Edit::default() };
        board.edit(id, &edit, &alice()).map(drop)
    });
    on(|board, id| board.move_task(id, Destination::Triage, &alice()).map(drop));
    let id = bench.ready();
    let worker = Actor::worker("bob", bench.start(&id), id.clone(), None);
    bench.call(move |board| board.heartbeat(&id, Some("half way"), &worker)).unwrap();
    ended(bench, EndCause::Stopped(StopReason::Reclaimed), None);
    ended(bench, EndCause::Exited { code: 1 }, None);
    ended(bench, EndCause::TimedOut, Some(9));
    let failed =
        EndCause::SpawnFailed { step: "exec".to_owned(), error: "not found".to_owned(), fault: Fault::Task };
    ended(bench, failed, None);
}

#[test]
fn every_kind_of_the_table_is_told_with_its_keys() {
    let bench = Bench::new();
    history(&bench);
    let events = bench
        .readers
        .with(|view| view.events(&EventFilter { limit: 1000, ..EventFilter::default() }))
        .unwrap();
    for (kind, keys) in TABLE {
        let event = events.iter().find(|event| event.kind == kind);
        let event = event.unwrap_or_else(|| panic!("no event of the kind {kind}"));
        let payload = event.payload.clone().unwrap_or_default();
        let kinds: BTreeSet<&str> =
            payload.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let missing: Vec<&&str> = keys.iter().filter(|key| !kinds.contains(**key)).collect();
        assert!(missing.is_empty(), "{kind} lacks {missing:?}: {payload}");
    }
    let of = |kind: &str| events.iter().find(|event| event.kind == kind).unwrap().payload.clone().unwrap();
    assert_eq!(of("reclaimed")["stale_lock"], "host:1:x");
    assert_eq!(of("crashed")["claimer"], "host:1:x");
    let late = of("timed_out");
    assert_eq!((&late["elapsed_seconds"], &late["limit_seconds"]), (&61.into(), &60.into()));
    assert_eq!(late["limit_from"], "lane");
    assert_eq!((&late["sigkill"], &late["pid"]), (&true.into(), &17.into()));
    bench.check();
}
