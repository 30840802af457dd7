//! The events of a board as they come, for whatever carries them to a reader: each one once, in order, from a cursor on.

use std::time::Duration;

use kernel::{Event, EventFilter, EventId, Horizon, Tenant};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::api::{Ask, Call, OpenStream, Verb as _};
use crate::exit::Code;
use crate::failure::Failure;
use crate::verbs;

/// A sign of life at least this often, so that what lies between sees a connection that is alive.
pub(super) const ALIVE: Duration = Duration::from_secs(15);
/// How long a reader may take nothing before its stream ends.
pub(super) const STALL: Duration = Duration::from_secs(30);
/// The events of one piece at most, and the bytes of their payloads.
const PIECE: u32 = 200;
const PIECE_BYTES: usize = 64 << 10;
/// The pause after a piece: a burst of commits is one read.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a stream lasts at most; its reader opens another one from where it was. That of a tenant's user is shorter,
/// because each request finds out anew whose member a user is.
const LONGEST: Duration = Duration::from_hours(1);
const LONGEST_OF_MEMBER: Duration = Duration::from_mins(10);

/// The events after a cursor.
#[derive(Debug)]
pub(super) struct Feed {
    call: Call,
    tenant: Option<Tenant>,
    since: EventId,
    /// The last event of the board, as of the last look.
    last: EventId,
    news: watch::Receiver<i64>,
    /// The last piece was sent at this time.
    sent: Option<Instant>,
}

/// What a feed has next.
#[derive(Debug)]
pub(super) struct Piece {
    /// The log starts later than where the feed was: events in between were folded.
    pub(super) folded: Option<Horizon>,
    pub(super) events: Vec<Event>,
}

/// A feed with its place among the streams.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) feed: Feed,
    pub(super) place: OpenStream,
    /// The last event of the board.
    pub(super) last: EventId,
    /// How long it may last.
    pub(super) longest: Duration,
}

/// Opens a feed for a caller who may read the events, from an event on; from now on where none is named.
pub(super) async fn open(
    ask: &Ask<()>,
    since: Option<EventId>,
    tenant: Option<Tenant>,
) -> Result<Opened, Failure> {
    let call = ask.admit::<verbs::Events>().await?;
    let mut asked = verbs::Events { tenant, ..verbs::Events::default() };
    let longest = if let Some(own) = call.confined() {
        asked.confine(own)?;
        LONGEST_OF_MEMBER
    } else {
        LONGEST
    };
    if call.service.daemon().is_none() {
        return Err(Failure::new(Code::Unreachable, "no daemon serves this root, and a stream needs one"));
    }
    let place = ask.open_stream()?;
    // Subscribed before the first look, so that nothing falls between.
    let news = call.board()?.changes();
    let last = call.read(|view| view.last_event()).await?;
    // A cursor of another log, such as that of a board which was restored, means nothing here.
    let since = since.filter(|since| *since <= last).unwrap_or(last);
    let feed = Feed { call, tenant: asked.tenant, since, last, news, sent: None };
    Ok(Opened { feed, place, last, longest })
}

impl Feed {
    /// Where it is: what comes next is after this event.
    pub(super) fn since(&self) -> EventId {
        self.since
    }

    /// The last event of the board, whatever the tenant.
    pub(super) fn last(&self) -> EventId {
        self.last
    }

    /// Returns what has happened since the last piece, as soon as something has; none where the board is taken away.
    /// Not cancel-safe: a piece that was read and not returned is lost.
    pub(super) async fn next(&mut self) -> Result<Option<Piece>, Failure> {
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
                // The filter has seen everything up to the last event of the board.
                Some(_) | None => last.max(self.since),
            };
            if folded.is_some() || !found.rows.is_empty() {
                self.sent = Some(Instant::now());
                return Ok(Some(Piece { folded, events: found.rows }));
            }
            if self.call.board()?.is_closing() || self.news.changed().await.is_err() {
                return Ok(None);
            }
        }
    }
}
