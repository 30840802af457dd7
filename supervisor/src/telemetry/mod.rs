//! Traces: a span for each run that has ended, with one for each of its steps, to a collector that speaks OTLP over HTTP. Off unless
//! `[telemetry]` names one.
//!
//! What a span says is on the board already, except when a start began and its workspace was there: those two times are kept for live
//! runs. The queue is bounded and nobody waits for room in it: what a collector does not take is dropped and counted.

mod collector;
mod export;
mod spans;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::{BoardId, BoardName, Run, RunId, Timestamp};
use serde_json::Value;
use tokio::sync::mpsc;

pub(crate) use self::export::Exporter;

/// How many runs wait for the collector; what is more is dropped. A span has about 1 KiB, and a run five.
const WAITING: usize = 1024;

type RunKey = (BoardId, RunId);

/// What is known of the start of a live run beside its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks {
    /// When its claim was asked for.
    claiming: Option<Timestamp>,
    /// When its workspace was there.
    prepared: Option<Timestamp>,
}

/// How many spans a collector has taken, and how many it never got.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    pub(crate) fn exported(&self) -> u64 {
        self.exported.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The spans of one run.
type Spans = Vec<Value>;

/// Where runs leave what their spans say.
#[derive(Clone, Debug)]
pub(crate) struct Tracer {
    queue: mpsc::Sender<Spans>,
    marks: Arc<Mutex<HashMap<RunKey, Marks>>>,
    counts: Arc<Counts>,
}

impl Tracer {
    /// Makes the queue, and what empties it.
    pub(crate) fn open() -> (Self, Exporter) {
        let (queue, waiting) = mpsc::channel(WAITING);
        let counts = Arc::new(Counts::default());
        let tracer = Tracer { queue, marks: Arc::default(), counts: Arc::clone(&counts) };
        (tracer, Exporter::new(waiting, counts))
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Notes when the claim of a run was asked for.
    pub(crate) fn claimed(&self, run: RunKey, asked_at: Timestamp) {
        self.marks().entry(run).or_default().claiming = Some(asked_at);
    }

    /// Notes when the workspace of a run was there.
    pub(crate) fn prepared(&self, run: RunKey, at: Timestamp) {
        self.marks().entry(run).or_default().prepared = Some(at);
    }

    /// Sends the spans of a run, as the board has it, whose end was recorded at a time. Waits for nothing.
    pub(crate) fn ended(&self, (name, id): (&BoardName, BoardId), run: &Run, recorded_at: Timestamp) {
        let marks = self.marks().remove(&(id, run.id)).unwrap_or_default();
        self.send(spans::of((name, id), run, marks, recorded_at));
    }

    /// Returns whether there was room.
    fn send(&self, spans: Spans) -> bool {
        let count = spans.len() as u64;
        let is_sent = self.queue.try_send(spans).is_ok();
        if !is_sent {
            self.counts.dropped.fetch_add(count, Ordering::Relaxed);
        }
        is_sent
    }

    /// Forgets the times of a run, whose spans nobody wants.
    pub(crate) fn forget(&self, run: RunKey) {
        self.marks().remove(&run);
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<RunKey, Marks>> {
        // A thread that panicked with the lock had changed one entry, which is complete.
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_the_queue_full_is_dropped_and_counted_and_waits_for_nothing() {
        let (tracer, exporter) = Tracer::open();
        let run = (BoardId(uuid::Uuid::nil()), RunId(7));
        for _ in 0..WAITING {
            assert!(tracer.send(vec![Value::Null; 5]));
        }
        assert!(!tracer.send(vec![Value::Null; 5]) && !tracer.send(vec![Value::Null; 2]));
        assert_eq!((tracer.counts().dropped(), tracer.counts().exported()), (7, 0));
        drop(exporter);
        assert!(!tracer.send(vec![Value::Null]), "nobody empties it any more");
        tracer.claimed(run, Timestamp::from_micros(1));
        tracer.prepared(run, Timestamp::from_micros(2));
        tracer.forget(run);
        assert!(tracer.marks().is_empty());
    }
}
