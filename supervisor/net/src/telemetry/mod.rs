//! Traces: a span for each ended run and for each of its steps, sent to a collector that speaks OTLP over HTTP.
//! Disabled unless `[telemetry]` names a collector.
//!
//! The board has all data of the spans, except for the times at which a start began and its workspace was ready.
//! These two are kept in memory for live runs. The queue is bounded and no caller waits for it: spans that do not fit, or
//! that the collector refuses, are dropped and counted.
//!
//! A span of the OpenTelemetry crates lives in the process that began it, and a run outlives its daemon; so spans are
//! made of the row of a run when its end is recorded.

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

/// Limit on the runs that wait for the collector; more are dropped. A run has five spans of about 1 KiB.
const WAITING: usize = 1024;

type RunKey = (BoardId, RunId);

/// Start times of a live run that its row lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StartTimes {
    /// Time at which the claim was requested.
    claiming: Option<Timestamp>,
    /// Time at which the workspace was ready.
    prepared: Option<Timestamp>,
}

/// Numbers of spans that were exported and dropped.
#[derive(Debug, Default)]
pub struct ExportCounts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl ExportCounts {
    pub fn exported(&self) -> u64 {
        self.exported.load(Ordering::Relaxed)
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Spans of one run.
type Spans = Vec<Value>;

/// Collects the data for spans.
#[derive(Clone, Debug)]
pub struct Tracer {
    queue: mpsc::Sender<Spans>,
    marks: Arc<Mutex<HashMap<RunKey, StartTimes>>>,
    counts: Arc<ExportCounts>,
}

impl Tracer {
    /// Makes the queue and its exporter.
    pub fn open() -> (Self, Exporter) {
        let (queue, waiting) = mpsc::channel(WAITING);
        let counts = Arc::new(ExportCounts::default());
        let tracer = Tracer { queue, marks: Arc::default(), counts: Arc::clone(&counts) };
        (tracer, Exporter::new(waiting, counts))
    }

    pub fn counts(&self) -> &ExportCounts {
        &self.counts
    }

    /// Records the time at which a run's claim was requested.
    pub fn claimed(&self, run: RunKey, asked_at: Timestamp) {
        self.marks().entry(run).or_default().claiming = Some(asked_at);
    }

    /// Records the time at which a run's workspace was ready.
    pub fn prepared(&self, run: RunKey, at: Timestamp) {
        self.marks().entry(run).or_default().prepared = Some(at);
    }

    /// Queues the spans of a run, as the board has it, whose end was recorded at `recorded_at`. Never waits.
    pub fn ended(&self, name: &BoardName, id: BoardId, run: &Run, recorded_at: Timestamp) {
        let marks = self.marks().remove(&(id, run.id)).unwrap_or_default();
        self.send(spans::for_run(name, id, run, marks, recorded_at));
    }

    /// Queues spans. Returns true if there was space.
    fn send(&self, spans: Spans) -> bool {
        let count = spans.len() as u64;
        let is_sent = self.queue.try_send(spans).is_ok();
        if !is_sent {
            self.counts.dropped.fetch_add(count, Ordering::Relaxed);
        }
        is_sent
    }

    /// Forgets the times of a run whose spans are not wanted.
    pub fn forget(&self, run: RunKey) {
        self.marks().remove(&run);
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<RunKey, StartTimes>> {
        // A thread that panicked with the lock had changed a single entry, which is complete.
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
