//! Cursors of plugins.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::model::id::PluginName;
use crate::testing::{Bench, alice, titled};
use crate::{Clock as _, EventFilter, EventId, PluginCursor};

fn name(text: &str) -> PluginName {
    text.parse().unwrap()
}

fn define(bench: &Bench, listening: &[&str], kept: &[&str]) {
    let set = |names: &[&str]| names.iter().copied().map(name).collect::<BTreeSet<_>>();
    let (listening, kept) = (set(listening), set(kept));
    bench.call(move |board| board.define_plugins(&listening, &kept)).unwrap();
}

fn cursors(bench: &Bench) -> Vec<PluginCursor> {
    bench.readers.with(|view| view.plugin_cursors()).unwrap()
}

fn last(bench: &Bench) -> EventId {
    bench.readers.with(|view| view.events(&EventFilter::default())).unwrap().last().unwrap().id
}

#[test]
fn a_new_plugin_begins_with_what_happens_next_and_one_that_is_gone_is_forgotten() {
    let bench = Bench::new();
    bench.create(titled("before"));
    let before = last(&bench);
    define(&bench, &["a", "b"], &[]);
    bench.create(titled("after"));
    define(&bench, &["a"], &["b"]);
    let started: Vec<_> = cursors(&bench).into_iter().map(|cursor| (cursor.plugin, cursor.event)).collect();
    assert_eq!(started, [(name("a"), before), (name("b"), before)], "neither is begun anew");

    define(&bench, &["a"], &[]);

    assert_eq!(cursors(&bench).len(), 1);
}

#[test]
fn a_plugin_that_fails_waits_is_paused_and_goes_on_where_it_was() {
    let bench = Bench::new();
    define(&bench, &["a"], &[]);
    let started = cursors(&bench)[0].event;
    bench.create(titled("x"));
    let now = bench.clock.now();
    let next = now.after(Duration::from_secs(5));
    bench.call(move |board| board.plugin_failed(&name("a"), "no\u{1b}[31m", Some(next))).unwrap();
    let failing = cursors(&bench).remove(0);
    assert_eq!((failing.event, failing.attempts, failing.due_at), (started, 1, next));
    assert_eq!((failing.last_error.as_deref(), failing.paused_at), (Some("no[31m"), None));

    bench.call(|board| board.plugin_failed(&name("a"), "no", None)).unwrap();
    let paused = cursors(&bench).remove(0);
    assert_eq!((paused.attempts, paused.paused_at, paused.failing_since), (2, Some(now), Some(now)));

    let resumed = bench.call(|board| board.resume_plugin(&name("a"), None, &alice())).unwrap();
    assert_eq!((resumed.event, resumed.attempts, resumed.paused_at), (started, 0, None));
    let past = last(&bench);
    let skipped = bench.call(move |board| board.resume_plugin(&name("a"), Some(past), &alice())).unwrap();
    assert_eq!(skipped.event, past);
    bench.call(move |board| board.plugin_handled(&name("a"), started)).unwrap();
    assert_eq!(cursors(&bench)[0].event, past, "a cursor never moves back");
    bench.call(|board| board.resume_plugin(&name("b"), None, &alice())).unwrap_err();
}
