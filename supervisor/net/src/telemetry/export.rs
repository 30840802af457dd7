//! Sends the queued spans in batches, retries while the collector does not respond, and stops with the daemon.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::collector::{NotAccepted, send};
use super::{ExportCounts, Spans, spans};
use service::Service;

/// Limit on the runs in one message.
const BATCH: usize = 64;
/// Pause after the first failure; each further failure doubles it.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// Time limit of the last message when the daemon ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Receiving end of the queue.
#[derive(Debug)]
pub struct Exporter {
    waiting: mpsc::Receiver<Spans>,
    counts: Arc<ExportCounts>,
}

/// Spans of several runs.
struct SpanBatch {
    spans: Vec<serde_json::Value>,
}

impl Exporter {
    pub(super) fn new(waiting: mpsc::Receiver<Spans>, counts: Arc<ExportCounts>) -> Self {
        Exporter { waiting, counts }
    }

    /// Sends batches until the daemon ends.
    pub async fn run(mut self, service: Arc<Service>, host: String, stop: CancellationToken) {
        loop {
            let first = tokio::select! {
                // Cancel-safe: a cancelled `recv` takes nothing out of the queue.
                () = stop.cancelled() => break,
                first = self.waiting.recv() => first,
            };
            let Some(first) = first else { return };
            let batch = self.batch(first);
            tokio::select! {
                // The message in progress is lost.
                () = stop.cancelled() => {
                    add(&self.counts.dropped, batch.count());
                    break;
                }
                () = self.send(&service, &host, &batch) => {}
            }
        }
        self.last(&service, &host).await;
    }

    /// Collects the spans for one message.
    fn batch(&mut self, first: Spans) -> SpanBatch {
        let mut spans = first;
        for _ in 1..BATCH {
            let Ok(more) = self.waiting.try_recv() else { break };
            spans.extend(more);
        }
        SpanBatch { spans }
    }

    /// Sends a message until it is accepted or refused for good.
    async fn send(&self, service: &Service, host: &str, batch: &SpanBatch) {
        let message = batch.message(host);
        let mut pause = PAUSE;
        loop {
            // Read for each try: a reload may change or remove the collector.
            let Some(endpoint) = service.config().telemetry.otlp_endpoint.clone() else {
                return add(&self.counts.dropped, batch.count());
            };
            match send(&endpoint, message.clone()).await {
                Ok(rejected) => return self.taken(batch, rejected),
                Err(error @ NotAccepted::Refused(_)) => {
                    tracing::warn!(collector = %endpoint, %error, spans = batch.count(), "spans_refused");
                    return add(&self.counts.dropped, batch.count());
                }
                Err(error @ NotAccepted::Later(_)) => {
                    if pause == PAUSE {
                        tracing::warn!(collector = %endpoint, %error, "collector_not_reached");
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST);
                }
            }
        }
    }

    fn taken(&self, batch: &SpanBatch, rejected: u64) {
        let rejected = rejected.min(batch.count());
        add(&self.counts.exported, batch.count() - rejected);
        add(&self.counts.dropped, rejected);
    }

    /// Sends the remaining spans in one brief try.
    async fn last(&mut self, service: &Service, host: &str) {
        let Ok(first) = self.waiting.try_recv() else { return };
        let mut batch = SpanBatch { spans: first };
        while let Ok(more) = self.waiting.try_recv() {
            batch.spans.extend(more);
        }
        let endpoint = service.config().telemetry.otlp_endpoint.clone();
        let sent = match endpoint {
            Some(endpoint) => tokio::time::timeout(FAREWELL, send(&endpoint, batch.message(host))).await,
            None => return add(&self.counts.dropped, batch.count()),
        };
        match sent {
            Ok(Ok(rejected)) => self.taken(&batch, rejected),
            Ok(Err(_)) | Err(_) => add(&self.counts.dropped, batch.count()),
        }
    }
}

impl SpanBatch {
    fn count(&self) -> u64 {
        self.spans.len() as u64
    }

    fn message(&self, host: &str) -> Bytes {
        spans::message(host, &self.spans).to_string().into()
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}
