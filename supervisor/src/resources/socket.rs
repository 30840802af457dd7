//! `GET /events` over a WebSocket: streams events, each message in the form of a page of `events`.

use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use kernel::{EventId, Tenant};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::feed::{self, ALIVE, Feed, OpenFeed, STALL};
use api::{Ask, Socket, Switch, Switching};
use base::failure::Failure;
use verbs::EventPage;

/// Limit on the messages of a client, which has nothing to say: enough for an hour of pongs and pings.
const TALK: u32 = 1000;

/// Accepts a request for a WebSocket.
pub(super) async fn begin(
    ask: &Ask<()>,
    switch: Switch,
    since: Option<EventId>,
    tenant: Option<Tenant>,
) -> Result<Response, Failure> {
    let opened = feed::open(ask, since, tenant).await?;
    let (response, switching) = switch.agree()?;
    // Tracked by its connection: it ends when the client closes it or stops reading.
    tokio::spawn(run(opened, switching));
    Ok(response)
}

async fn run(opened: OpenFeed, switching: Switching) {
    let Some((mut socket, counts)) = switching.socket().await else { return };
    let OpenFeed { feed, stream: place, last, longest } = opened;
    let carried = async {
        let hello = EventPage { events: Vec::new(), cursor: feed.since(), last_event: last, folded: None };
        if send(&mut socket, text(&hello)).await {
            carry(feed, &mut socket).await;
        }
    };
    tokio::select! {
        // Dropped events are read again by a client that reconnects with its last cursor.
        done = tokio::time::timeout(longest, carried) => drop(done),
        () = place.over() => {}
    }
    // A client may have gone without a close frame.
    drop(tokio::time::timeout(STALL, socket.close(None)).await);
    drop(counts);
}

async fn carry(mut feed: Feed, socket: &mut Socket) {
    let mut talk = 0_u32;
    loop {
        let piece = {
            let mut next = std::pin::pin!(feed.next());
            loop {
                let quiet = Instant::now() + ALIVE;
                tokio::select! {
                    // Kept across this loop, so that no piece is lost.
                    piece = next.as_mut() => break piece,
                    // Cancel-safe: an unread message stays in the socket.
                    incoming = socket.next() => {
                        talk = talk.saturating_add(1);
                        let is_over = matches!(incoming, Some(Ok(Message::Close(_)) | Err(_)) | None);
                        // A pong may be waiting in the socket's buffer.
                        if is_over || talk > TALK || !flushed(socket).await {
                            return;
                        }
                    }
                    () = tokio::time::sleep_until(quiet) => if !send(socket, Message::Ping(Bytes::new())).await {
                        return;
                    },
                }
            }
        };
        match piece {
            Ok(Some(piece)) => {
                let (cursor, last_event) = (feed.since(), feed.last());
                let page = EventPage { events: piece.events, cursor, last_event, folded: piece.folded };
                if !send(socket, text(&page)).await {
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

fn text(page: &EventPage) -> Message {
    // Values read from the board can be serialised.
    Message::text(serde_json::to_string(page).unwrap_or_default())
}

/// Writes a message. Returns false if the client did not accept it in time.
async fn send(socket: &mut Socket, message: Message) -> bool {
    tokio::time::timeout(STALL, socket.send(message)).await.is_ok_and(|sent| sent.is_ok())
}

async fn flushed(socket: &mut Socket) -> bool {
    tokio::time::timeout(STALL, socket.flush()).await.is_ok_and(|flushed| flushed.is_ok())
}
