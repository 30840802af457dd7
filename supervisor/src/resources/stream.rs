//! `GET /api/v1/stream`: the events of a board as server-sent events, for a page that stays open.
//!
//! ```text
//! event: hello
//! data: {"last_event": 41}
//!
//! id: 42
//! event: event
//! data: {"id": 42, "kind": "created", …}
//! ```

use axum::body::{Body, Bytes};
use axum::extract::Extension;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::stream::unfold;
use kernel::{Event, EventId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::feed::{self, ALIVE, Feed, FeedPiece, OpenFeed, STALL};
use api::{Ask, Routes, Streamed};
use base::failure::Failure;

/// Number of pieces buffered for a slow client. The next one is read from the board when there is space.
const BEHIND: usize = 1;
/// Header by which a reconnecting browser names its last event.
const LAST_EVENT: &str = "last-event-id";

pub(super) fn mount(router: Routes) -> Routes {
    router.route("/api/v1/stream", get(stream))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamQuery {
    since: Option<EventId>,
    tenant: Option<Tenant>,
}

async fn stream(ask: Ask<StreamQuery>, headers: HeaderMap) -> Result<Response, Failure> {
    let (ask, StreamQuery { since, tenant }) = ask.split();
    let seen = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok()?.trim().parse::<EventId>().ok());
    let opened = feed::open(&ask, seen.max(since), tenant).await?;
    let (sender, receiver) = mpsc::channel(BEHIND);
    // Tracked by its connection: it ends when the body is not read any more.
    tokio::spawn(run(opened, sender));
    let pieces = unfold(receiver, |mut receiver: mpsc::Receiver<Bytes>| async {
        receiver.recv().await.map(|bytes| (Ok::<_, std::convert::Infallible>(bytes), receiver))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Keeps proxies such as nginx from buffering the events.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Extension(Streamed), Body::from_stream(pieces)).into_response())
}

/// Copies a feed to its client until either ends.
async fn run(opened: OpenFeed, sender: mpsc::Sender<Bytes>) {
    let OpenFeed { feed, stream: place, last, longest } = opened;
    let carried = async {
        let hello = frame("hello", None, &json!({ "last_event": last }));
        if !sent(&sender, hello.into()).await {
            return;
        }
        carry(feed, &sender).await;
    };
    tokio::select! {
        // Dropped events are read again by a client that reconnects with its last event id.
        done = tokio::time::timeout(longest, carried) => drop(done),
        () = place.over() => {}
        // The body is not read any more.
        () = sender.closed() => {}
    }
}

async fn carry(mut feed: Feed, sender: &mpsc::Sender<Bytes>) {
    loop {
        let mut next = std::pin::pin!(feed.next());
        let piece = loop {
            let quiet = Instant::now() + ALIVE;
            tokio::select! {
                // Kept across this loop, so that no piece is lost.
                piece = next.as_mut() => break piece,
                () = tokio::time::sleep_until(quiet) => {
                    if !sent(sender, Bytes::from_static(b": alive\n\n")).await {
                        return;
                    }
                }
            }
        };
        match piece {
            Ok(Some(piece)) => {
                if !sent(sender, written(&piece).into()).await {
                    return;
                }
            }
            Ok(None) => return,
            Err(failure) => {
                tracing::warn!(error = %failure, "stream_ended");
                return;
            }
        }
    }
}

/// Passes bytes to the connection. Returns false if the client did not accept the earlier ones in time.
async fn sent(sender: &mpsc::Sender<Bytes>, bytes: Bytes) -> bool {
    tokio::time::timeout(STALL, sender.send(bytes)).await.is_ok_and(|sent| sent.is_ok())
}

fn written(piece: &FeedPiece) -> String {
    let folded = piece.folded.iter().map(|horizon| frame("folded", None, horizon));
    let event = |event: &Event| frame("event", Some(event.id), event);
    folded.chain(piece.events.iter().map(event)).collect()
}

/// Formats one server-sent event.
fn frame(name: &str, id: Option<EventId>, data: &impl Serialize) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    // JSON contains no unescaped line end. Values read from the board can be serialised.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{id}event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_frame_whatever_its_text_says() {
        let text = "one\ntwo\r\nevent: forged\n\n\u{2028}";
        let framed = frame("event", Some(EventId(7)), &json!({ "summary": text }));
        assert!(framed.starts_with("id: 7\nevent: event\ndata: {"), "{framed}");
        assert_eq!(framed.lines().count(), 4, "{framed}");
        assert!(framed.ends_with("}\n\n"), "{framed}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_cut_off_after_a_while() {
        let (sender, mut receiver) = mpsc::channel(BEHIND);
        assert!(sent(&sender, Bytes::from_static(b"first")).await);
        let begun = Instant::now();
        assert!(!sent(&sender, Bytes::from_static(b"second")).await);
        assert!(begun.elapsed() >= STALL);
        assert_eq!(receiver.recv().await.unwrap(), "first");
        assert!(sent(&sender, Bytes::from_static(b"third")).await, "a reader in time goes on");
    }
}
