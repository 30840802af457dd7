//! Feed of a board's events, for any transport: each event once, in order, from a cursor on.
//!
//! The feed subscribes to commits before it reads the last event, so no event is missed. The board is the buffer: the
//! next piece is read when the reader has room. The pause after a piece makes a burst of commits one read.

use std::time::Duration;

use kernel::{Event, EventFilter, EventId, Horizon, Tenant};
use tokio::sync::watch;
use tokio::time::Instant;

use api::{Ask, Call, OpenStream, Verb as _};
use base::exit::Code;
use base::failure::Failure;

/// Longest silence before a sign of life, which keeps proxies from closing the connection.
pub(super) const ALIVE: Duration = Duration::from_secs(15);
/// Time for which a client may accept nothing before its stream ends.
pub(super) const STALL: Duration = Duration::from_secs(30);
/// Limits on a piece: its events, and the bytes of their payloads.
const PIECE: u32 = 200;
const PIECE_BYTES: usize = 64 << 10;
/// Pause after a piece, so that a burst of commits needs one read.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest life of a stream; its client opens another one from its cursor. The limit is shorter for a user of a tenant,
/// because membership is checked at each request.
const LONGEST: Duration = Duration::from_hours(1);
const LONGEST_OF_MEMBER: Duration = Duration::from_mins(10);

/// Events after a cursor.
#[derive(Debug)]
pub(super) struct Feed {
    call: Call,
    tenant: Option<Tenant>,
    since: EventId,
    /// Last event of the board at the last read.
    last: EventId,
    news: watch::Receiver<i64>,
    /// Time of the last piece.
    sent: Option<Instant>,
}

/// Events since the last piece of a feed.
#[derive(Debug)]
pub(super) struct FeedPiece {
    /// Horizon of the log, if events after the cursor have been folded.
    pub(super) folded: Option<Horizon>,
    pub(super) events: Vec<Event>,
}

/// A feed with its place among the streams.
#[derive(Debug)]
pub(super) struct OpenFeed {
    pub(super) feed: Feed,
    pub(super) stream: OpenStream,
    /// Last event of the board.
    pub(super) last: EventId,
    /// Longest life of the stream.
    pub(super) longest: Duration,
}

/// Opens a feed for a caller who may read events. Starts after `since`, or now.
pub(super) async fn open(
    ask: &Ask<()>,
    since: Option<EventId>,
    tenant: Option<Tenant>,
) -> Result<OpenFeed, Failure> {
    let call = ask.admit::<verbs::Events>().await?;
    let mut asked = verbs::Events { tenant, ..verbs::Events::default() };
    let longest = if let Some(tenant) = call.confined() {
        asked.confine(tenant)?;
        LONGEST_OF_MEMBER
    } else {
        LONGEST
    };
    if call.service.daemon().is_none() {
        return Err(Failure::new(Code::Unreachable, "no daemon serves this root, and a stream needs one"));
    }
    let place = ask.open_stream()?;
    // Subscribed before the first read, so that no event is missed in between.
    let news = call.board()?.changes();
    let last = call.read(|view| view.last_event()).await?;
    // A cursor beyond the last event belongs to another log, such as a restored board's.
    let since = since.filter(|since| *since <= last).unwrap_or(last);
    let feed = Feed { call, tenant: asked.tenant, since, last, news, sent: None };
    Ok(OpenFeed { feed, stream: place, last, longest })
}

impl Feed {
    /// Returns its cursor: the next event comes after it.
    pub(super) fn since(&self) -> EventId {
        self.since
    }

    /// Returns the last event of the board, for any tenant.
    pub(super) fn last(&self) -> EventId {
        self.last
    }

    /// Waits for events after the last piece, and returns them. None if the board is removed. Not cancel-safe: a piece
    /// that was read and not returned is lost.
    pub(super) async fn next(&mut self) -> Result<Option<FeedPiece>, Failure> {
        if let Some(sent) = self.sent {
            tokio::time::sleep_until(sent + PAUSE).await;
        }
        loop {
            self.news.mark_unchanged();
            let filter = EventFilter {
                since: self.since,
                limit: PIECE,
                tenant: self.tenant.clone(),
                bytes: PIECE_BYTES,
                ..EventFilter::default()
            };
            let read = move |view: &kernel::View<'_>| {
                Ok((view.some_events(&filter)?, view.last_event()?, view.horizon()?))
            };
            let (found, last, horizon) = self.call.read(read).await?;
            self.last = last;
            let folded = horizon.filter(|horizon| self.since < horizon.through);
            self.since = match found.rows.last() {
                Some(event) if found.more => event.id,
                // The filter has seen everything up to the board's last event.
                Some(_) | None => last.max(self.since),
            };
            if folded.is_some() || !found.rows.is_empty() {
                self.sent = Some(Instant::now());
                return Ok(Some(FeedPiece { folded, events: found.rows }));
            }
            if self.call.board()?.is_closing() || self.news.changed().await.is_err() {
                return Ok(None);
            }
        }
    }
}
