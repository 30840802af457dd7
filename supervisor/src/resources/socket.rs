//! `GET /events` over a WebSocket: the events as they come, each message in the form of a page of `events`.

use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use kernel::{EventId, Tenant};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::feed::{self, ALIVE, Feed, Opened, STALL};
use crate::api::{Ask, Socket, Switch, Switching};
use crate::failure::Failure;
use crate::verbs::EventPage;

/// The messages that a reader may send, who has nothing to say: an hour of answers to pings, and of its own.
const TALK: u32 = 1000;

/// Answers a request that asks for a WebSocket.
pub(super) async fn begin(
    ask: &Ask<()>,
    switch: Switch,
    since: Option<EventId>,
    tenant: Option<Tenant>,
) -> Result<Response, Failure> {
    let opened = feed::open(ask, since, tenant).await?;
    let (response, switching) = switch.agree()?;
    // Tracked by its connection: it ends when the client closes it or reads nothing.
    tokio::spawn(run(opened, switching));
    Ok(response)
}

async fn run(opened: Opened, switching: Switching) {
    let Some((mut socket, counts)) = switching.socket().await else { return };
    let Opened { feed, place, last, longest } = opened;
    let carried = async {
        let hello = EventPage { events: Vec::new(), cursor: feed.since(), last_event: last, folded: None };
        if said(&mut socket, text(&hello)).await {
            carry(feed, &mut socket).await;
        }
    };
    tokio::select! {
        // What is dropped on the way is read again by the reader that comes back with the last cursor.
        done = tokio::time::timeout(longest, carried) => drop(done),
        () = place.over() => {}
    }
    // A client that has gone needs no farewell.
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
                    // Kept over the turns of this loop, so that no piece is lost.
                    piece = next.as_mut() => break piece,
                    // Cancel-safe: what is not taken stays in the socket.
                    heard = socket.next() => {
                        talk = talk.saturating_add(1);
                        let is_over = matches!(heard, Some(Ok(Message::Close(_)) | Err(_)) | None);
                        // The answer to a ping waits in the socket.
                        if is_over || talk > TALK || !flushed(socket).await {
                            return;
                        }
                    }
                    () = tokio::time::sleep_until(quiet) => if !said(socket, Message::Ping(Bytes::new())).await {
                        return;
                    },
                }
            }
        };
        match piece {
            Ok(Some(piece)) => {
                let (cursor, last_event) = (feed.since(), feed.last());
                let page = EventPage { events: piece.events, cursor, last_event, folded: piece.folded };
                if !said(socket, text(&page)).await {
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
    // What is read from the board can be written.
    Message::text(serde_json::to_string(page).unwrap_or_default())
}

/// Writes a message. Returns whether the reader has taken it in time.
async fn said(socket: &mut Socket, message: Message) -> bool {
    tokio::time::timeout(STALL, socket.send(message)).await.is_ok_and(|sent| sent.is_ok())
}

async fn flushed(socket: &mut Socket) -> bool {
    tokio::time::timeout(STALL, socket.flush()).await.is_ok_and(|flushed| flushed.is_ok())
}
