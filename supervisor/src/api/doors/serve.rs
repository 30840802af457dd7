//! One door: it receives connections, bounded, and answers what comes over them, each step within its time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::bounds::{Bound, Bounds, Group};
use super::crowd::{Crowd, Entry, Seat};
use super::gate::Gate;
use super::slow::Slow;
use super::stream::{Listener, Stream};
use super::whose;
use crate::api::identity::{Peer, person};
use crate::exit::Code;
use crate::failpoint;
use crate::failure::{Failure, Problem};
use crate::service::Service;

/// How long the head of a request may take, and how long a connection may ask nothing.
const HEAD: Duration = Duration::from_secs(15);
/// What the server keeps of a connection's input and output at most: also the limit of a head.
const BUFFER: usize = 64 << 10;
/// The most header fields of a request.
const FIELDS: usize = 64;
/// How long pages and sessions may take that are on their way to a browser when the dashboard closes.
const FAREWELL: Duration = Duration::from_secs(2);
/// The pause of a door that cannot accept: descriptors run out, and come back when connections go.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// A group that meets a bound is noted at most this often.
const NOTED: Duration = Duration::from_mins(1);

/// Whose door it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Operator,
    /// That of the users of tenants.
    Member,
    Worker,
    /// That of the dashboard.
    Browser,
}

#[derive(Debug)]
pub(super) struct Door {
    side: Side,
    pub(super) shared: Doorway,
    /// Where connections are served that were let in.
    rooms: Handle,
    pub(super) crowd: Arc<Crowd>,
    noted: Mutex<HashMap<Group, Instant>>,
    /// What those hear that are refused: written once, because they may come as fast as they can.
    refusals: Mutex<HashMap<Bound, Arc<str>>>,
}

/// What is behind the doors.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    /// Answers requests. Each must carry a [`Peer`] extension.
    pub(in crate::api) router: Router,
    /// What each run may ask for.
    pub(in crate::api) gate: Arc<Gate>,
}

/// What all doors share.
#[derive(Clone, Debug)]
pub(crate) struct Doorway {
    /// What is behind them.
    pub(crate) front: Front,
    /// The boards and the configuration.
    pub(crate) service: Arc<Service>,
    /// How many descriptors this process may have.
    pub(crate) descriptors: u64,
    /// The connections that are served.
    pub(crate) tasks: TaskTracker,
    /// Ends the service: requests that are under way are answered first.
    pub(crate) stop: CancellationToken,
}

impl Door {
    /// A door without connections.
    pub(super) fn new(side: Side, shared: &Doorway, rooms: Handle) -> Self {
        let (crowd, noted, refusals) = (Arc::default(), Mutex::default(), Mutex::default());
        Door { side, shared: shared.clone(), rooms, crowd, noted, refusals }
    }

    /// Where its connections are served.
    pub(super) fn rooms(&self) -> Handle {
        self.rooms.clone()
    }

    /// The connections that one run may open in a second.
    pub(super) fn rate(&self) -> u32 {
        self.shared.service.config().api.connections_per_second_per_worker
    }

    /// How many connections there may be. Whatever the configuration says, most descriptors are kept for the boards, for
    /// runs, and for the operator.
    pub(super) fn bounds(&self, group: Group) -> Bounds {
        let config = self.shared.service.config();
        let share = |part: u64| usize::try_from(self.shared.descriptors / part).unwrap_or(usize::MAX);
        let api = &config.api;
        let (all, each, rate) = match self.side {
            Side::Operator => (api.operator_connections.min(share(8)), usize::MAX, u32::MAX),
            // A part of their own: nobody of them keeps a worker or an operator out.
            Side::Member => (
                api.connections.min(share(8)),
                api.connections_per_worker,
                api.connections_per_second_per_worker,
            ),
            // A proxy in front of the dashboard brings what all its people have open.
            Side::Browser => {
                let all = api.connections.min(share(8));
                (all, (all / 2).max(1), api.connections_per_second_per_worker)
            }
            Side::Worker => (
                api.connections.min(share(4)),
                api.connections_per_worker,
                api.connections_per_second_per_worker,
            ),
        };
        let run = each.min(all);
        // Nobody of them stays unknown for longer than it takes to read a request.
        let each = if group == Group::Anyone && self.side != Side::Operator { (all / 4).max(1) } else { run };
        Bounds { all, each, run, rate }
    }

    /// Receives connections until it is stopped; requests that are under way are answered first.
    pub(super) async fn attend(self: Arc<Self>, listener: impl Listener, stop: CancellationToken) {
        loop {
            let accepted = tokio::select! {
                // Cancel-safe: a connection that is not accepted stays in the backlog.
                accepted = listener.accept() => accepted,
                () = stop.cancelled() => return,
            };
            match accepted {
                Ok(stream) => self.receive(stream),
                Err(error) => {
                    tracing::warn!(%error, door = ?self.side, "not_accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn receive<S: Stream>(&self, stream: S) {
        let (mut group, uid) = stream.group();
        let browser = if self.side == Side::Browser { stream.owner() } else { None };
        if let Some(user) = browser {
            group = Group::User(user);
        }
        let (seat, met) = match self.crowd.enter(group, self.bounds(group), Instant::now()) {
            Entry::In(seat, met) => (seat, met),
            Entry::Full(bound) => {
                self.note(group, bound);
                stream.say(self.refusal(bound).as_bytes());
                return;
            }
        };
        if let Some(bound) = met {
            self.note(group, bound);
        }
        let peer = match self.side {
            Side::Operator => Peer::Operator(Arc::new(person(uid))),
            Side::Member => Peer::Member(uid),
            Side::Worker => Peer::Worker,
            Side::Browser => Peer::Browser(browser),
        };
        self.serve(stream, seat, peer);
    }

    /// Serves a connection that has been let in.
    pub(super) fn serve<S: Stream>(&self, stream: S, seat: Seat, peer: Peer) {
        // A connection that cannot change the runtime has gone.
        let Ok(stream) = stream.leave() else { return };
        let (front, stop) = (self.shared.front.clone(), self.shared.stop.clone());
        let served = async move {
            if let Ok(stream) = S::enter(stream) {
                converse(stream, seat, peer, front, stop).await;
            }
        };
        self.shared.tasks.spawn_on(served, &self.rooms);
    }

    fn refusal(&self, bound: Bound) -> Arc<str> {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        // There are as many as bounds in the configuration, which may be loaded anew.
        Arc::clone(refusals.entry(bound).or_insert_with(|| refusal(&bound.to_string()).into()))
    }

    /// Notes that a bound was met: in the log, and with the runs whose it is.
    pub(super) fn note(&self, group: Group, bound: Bound) {
        let now = Instant::now();
        {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.retain(|_, at| now.duration_since(*at) < NOTED);
            if noted.insert(group, now).is_some() {
                return;
            }
        }
        tracing::warn!(door = ?self.side, peer = ?group, %bound, "throttled");
        if self.side != Side::Worker {
            return;
        }
        let boards = self.shared.service.served();
        if let Group::Run(id, run) = group {
            let board = boards.iter().find(|board| board.id() == id);
            if let Some(board) = board {
                super::gate::note(board, run, bound.key());
            }
            return;
        }
        // Tracked by nobody: it reads and submits, and is done.
        drop(tokio::task::spawn_blocking(move || {
            for board in boards {
                let runs = board.readers().with(|view| view.open_runs()).unwrap_or_default();
                for run in runs.into_iter().filter(|run| whose::is_of(group, run)) {
                    super::gate::note(&board, run.id, bound.key());
                }
            }
        }));
    }
}

/// Answers what comes over a connection until it ends, has to give way, or is cut off.
async fn converse(stream: impl Stream, seat: Seat, peer: Peer, front: Front, stop: CancellationToken) {
    let handed = seat.clone();
    let is_browser = matches!(peer, Peer::Browser(_));
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        request.extensions_mut().insert(handed.clone());
        let (seat, front) = (handed.clone(), front.clone());
        async move {
            failpoint::pass("answer");
            // Until then nothing more is read from this connection either.
            if let Some(until) = seat.run().and_then(|run| front.gate.rests_until(run)) {
                tokio::time::sleep_until(until.into()).await;
            }
            front.router.oneshot(request).await
        }
    });
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .max_headers(FIELDS)
        .serve_connection(TokioIo::new(Slow::new(stream)), service)
        // For readers of events that ask for a WebSocket.
        .with_upgrades();
    tokio::select! {
        // What the other side did wrong, or slowly, is its own affair: the connection is over.
        ended = Pin::new(&mut connection) => drop(ended),
        () = seat.told_to_leave() => {
            let Some(parts) = connection.into_parts() else { return };
            let stream = parts.io.into_inner().into_inner();
            stream.say(refusal("others need the connection, and it was not used").as_bytes());
        }
        // Nobody is answered who has not asked yet.
        () = stop.cancelled() => if seat.is_busy() {
            Pin::new(&mut connection).graceful_shutdown();
            drop(connection.await);
        } else if is_browser {
            // Who ends the last session has asked outside of the API, and is answered.
            Pin::new(&mut connection).graceful_shutdown();
            drop(tokio::time::timeout(FAREWELL, connection).await);
        }
    }
}

/// The refusal of a connection, before anything was read from it.
fn refusal(why: &str) -> String {
    let failure = Failure::new(Code::Throttled, why)
        .hint("close connections that are not used, and try again in a moment");
    let body = serde_json::to_string(&Problem::from(&failure)).unwrap_or_default();
    format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
