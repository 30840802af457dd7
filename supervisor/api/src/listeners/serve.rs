//! A listener: accepts connections within limits, and answers their requests, each step within a time limit.

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

use super::connection_limits::{ConnectionGroup, ConnectionLimit, ConnectionLimits};
use super::connection_table::{Admitted, ConnectionPermit, ConnectionTable};
use super::origin;
use super::request_admission::RequestAdmission;
use super::stream::PeerStream;
use super::timed_stream::TimedStream;
use crate::identity::{Peer, person};
use base::exit::Code;
use base::failpoint;
use base::failure::{Failure, Problem};
use host::accept::{Accept, next_connection};
use host::socket_owner::Unknown;
use service::Service;

/// Time limit for the head of a request, and for an idle connection.
const HEAD: Duration = Duration::from_secs(15);
/// Limit on the buffers of a connection, in bytes, and thereby on a head.
const BUFFER: usize = 64 << 10;
/// Limit on the header fields of a request.
const FIELDS: usize = 64;
/// Time for browsers' responses in progress when the dashboard closes.
const FAREWELL: Duration = Duration::from_secs(2);
/// Interval between two log lines about a group that exceeds a limit.
const NOTED: Duration = Duration::from_mins(1);

/// Kind of callers of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallerKind {
    Operator,
    /// Members of tenants.
    Member,
    Worker,
    /// Browsers, on the dashboard's port.
    Browser,
}

#[derive(Debug)]
pub(super) struct BoundedListener {
    callers: CallerKind,
    pub(super) shared: ListenerContext,
    /// Runtime that serves admitted connections.
    runtime: Handle,
    pub(super) connections: Arc<ConnectionTable>,
    noted: Mutex<HashMap<ConnectionGroup, Instant>>,
    /// Refusals as text, formatted once, because refused connections may come as fast as they can.
    refusals: Mutex<HashMap<ConnectionLimit, Arc<str>>>,
}

/// Router behind the listeners, with its admission control.
#[derive(Clone, Debug)]
pub struct ApiRouter {
    /// Answers requests. Each must carry a [`Peer`] extension.
    pub router: Router,
    /// Limits on requests in progress, for each caller and for all together.
    pub admission: Arc<RequestAdmission>,
}

/// State shared by all listeners.
#[derive(Clone, Debug)]
pub struct ListenerContext {
    /// Router and admission control.
    pub api: ApiRouter,
    /// Boards and configuration.
    pub service: Arc<Service>,
    /// Descriptor limit of this process.
    pub descriptors: u64,
    /// Connections being served.
    pub tasks: TaskTracker,
    /// Ends the service; requests in progress are answered first.
    pub stop: CancellationToken,
}

impl BoundedListener {
    /// Makes a listener without connections.
    pub(super) fn new(callers: CallerKind, shared: &ListenerContext, runtime: Handle) -> Self {
        let (connections, noted, refusals) = (Arc::default(), Mutex::default(), Mutex::default());
        BoundedListener { callers, shared: shared.clone(), runtime, connections, noted, refusals }
    }

    /// Returns the runtime that serves its connections.
    pub(super) fn runtime(&self) -> Handle {
        self.runtime.clone()
    }

    /// Returns the limit on new connections of one run per second.
    pub(super) fn rate(&self) -> u32 {
        self.shared.service.config().api.connections_per_second_per_worker
    }

    /// Returns the limits on connections. Whatever the configuration says, most descriptors are reserved for boards,
    /// runs and operators.
    pub(super) fn bounds(&self, group: ConnectionGroup) -> ConnectionLimits {
        let config = self.shared.service.config();
        let share = |part: u64| usize::try_from(self.shared.descriptors / part).unwrap_or(usize::MAX);
        let api = &config.api;
        let (all, each, rate) = match self.callers {
            CallerKind::Operator => (api.operator_connections.min(share(8)), usize::MAX, u32::MAX),
            // A separate share, so that members cannot exclude workers or operators.
            CallerKind::Member => (
                api.connections.min(share(8)),
                api.connections_per_worker,
                api.connections_per_second_per_worker,
            ),
            // A reverse proxy in front of the dashboard opens the connections of all its users.
            CallerKind::Browser => {
                let all = api.connections.min(share(8));
                (all, (all / 2).max(1), api.connections_per_second_per_worker)
            }
            CallerKind::Worker => (
                api.connections.min(share(4)),
                api.connections_per_worker,
                api.connections_per_second_per_worker,
            ),
        };
        let run = each.min(all);
        // Unidentified connections are short-lived: reading a request identifies the caller.
        let each = if group == ConnectionGroup::Anyone && self.callers != CallerKind::Operator {
            (all / 4).max(1)
        } else {
            run
        };
        ConnectionLimits { all, each, run, rate }
    }

    /// Accepts connections until it is stopped; requests in progress are answered first.
    pub(super) async fn accept_all(
        self: Arc<Self>,
        listener: impl Accept<Stream: PeerStream>,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                // Cancel-safe: a connection that is not accepted stays in the backlog.
                stream = next_connection(&listener, &self.callers) => self.receive(stream),
                () = stop.cancelled() => return,
            }
        }
    }

    fn receive<S: PeerStream>(&self, stream: S) {
        let peer = match self.peer(&stream) {
            Ok(peer) => peer,
            Err(unknown) => {
                self.refuse_unknown(&stream, unknown);
                return;
            }
        };
        let group = if let Peer::Browser(user) = peer { ConnectionGroup::User(user) } else { stream.group() };
        let (permit, met) = match self.connections.admit(group, self.bounds(group), Instant::now()) {
            Admitted::In(permit, met) => (permit, met),
            Admitted::Full(bound) => {
                self.note(group, bound);
                stream.write_now(self.refusal(bound).as_bytes());
                return;
            }
        };
        if let Some(bound) = met {
            self.note(group, bound);
        }
        self.serve(stream, permit, peer);
    }

    /// Returns the origin of a connection. A worker is identified by the token in each request; each other side
    /// requires a known user.
    fn peer<S: PeerStream>(&self, stream: &S) -> Result<Peer, Unknown> {
        Ok(match self.callers {
            CallerKind::Operator => Peer::Operator(Arc::new(person(stream.user()?))),
            CallerKind::Member => Peer::Member(stream.user()?),
            CallerKind::Worker => Peer::Worker,
            CallerKind::Browser => Peer::Browser(stream.user()?),
        })
    }

    /// Refuses a connection of an unknown user.
    fn refuse_unknown<S: PeerStream>(&self, stream: &S, unknown: Unknown) {
        let hint = match unknown {
            Unknown::Elsewhere(_) => {
                "connect from 127.0.0.1 or [::1] of this host; a tunnel or a reverse proxy does so for other hosts"
            }
            Unknown::Unreported => {
                "keep the connection open; if every connection is refused, the kernel lacks sock_diag(7): modprobe tcp_diag"
            }
        };
        if self.is_news(ConnectionGroup::Anyone) {
            tracing::warn!(listener = ?self.callers, error = %unknown, "unknown_peer");
        }
        let failure = Failure::new(Code::NotPermitted, unknown.to_string()).hint(hint);
        stream.write_now(response(&failure).as_bytes());
    }

    /// Serves an admitted connection.
    pub(super) fn serve<S: PeerStream>(&self, stream: S, permit: ConnectionPermit, peer: Peer) {
        // A connection that cannot change the runtime is gone.
        let Ok(stream) = stream.detach() else { return };
        let (api, stop) = (self.shared.api.clone(), self.shared.stop.clone());
        let served = async move {
            if let Ok(stream) = S::attach(stream) {
                converse(stream, permit, peer, api, stop).await;
            }
        };
        self.shared.tasks.spawn_on(served, &self.runtime);
    }

    fn refusal(&self, bound: ConnectionLimit) -> Arc<str> {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        // There are as many entries as limits in the configuration, which may be reloaded.
        Arc::clone(refusals.entry(bound).or_insert_with(|| refusal(&bound.to_string()).into()))
    }

    /// Returns true if no line about a group has been logged for a while.
    fn is_news(&self, group: ConnectionGroup) -> bool {
        let now = Instant::now();
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.retain(|_, at| now.duration_since(*at) < NOTED);
        noted.insert(group, now).is_none()
    }

    /// Records an exceeded limit: in the log, and for the runs that it concerns.
    pub(super) fn note(&self, group: ConnectionGroup, bound: ConnectionLimit) {
        if !self.is_news(group) {
            return;
        }
        tracing::warn!(listener = ?self.callers, peer = ?group, %bound, "throttled");
        if self.callers != CallerKind::Worker {
            return;
        }
        let boards = self.shared.service.served();
        if let ConnectionGroup::Run(id, run) = group {
            let board = boards.iter().find(|board| board.id() == id);
            if let Some(board) = board {
                super::request_admission::note(board, run, bound.key());
            }
            return;
        }
        // Not tracked: the task only reads and submits.
        drop(tokio::task::spawn_blocking(move || {
            for board in boards {
                let runs = board.readers().with(|view| view.open_runs()).unwrap_or_default();
                for run in runs.into_iter().filter(|run| origin::is_of(group, run)) {
                    super::request_admission::note(&board, run.id, bound.key());
                }
            }
        }));
    }
}

/// Answers the requests of a connection until it ends, is evicted or is cut off.
async fn converse(
    stream: impl PeerStream,
    permit: ConnectionPermit,
    peer: Peer,
    api: ApiRouter,
    stop: CancellationToken,
) {
    let handed = permit.clone();
    let is_browser = matches!(peer, Peer::Browser(_));
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        request.extensions_mut().insert(handed.clone());
        let (permit, api) = (handed.clone(), api.clone());
        async move {
            failpoint::pass("answer");
            // While a run is paused, no further input is read from this connection either.
            if let Some(until) = permit.run().and_then(|run| api.admission.rests_until(run)) {
                tokio::time::sleep_until(until.into()).await;
            }
            api.router.oneshot(request).await
        }
    });
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .max_headers(FIELDS)
        .serve_connection(TokioIo::new(TimedStream::new(stream)), service)
        // For event streams over WebSocket.
        .with_upgrades();
    tokio::select! {
        // An error of the peer ends the connection; nothing needs to be done.
        ended = Pin::new(&mut connection) => drop(ended),
        () = permit.evicted() => {
            let Some(parts) = connection.into_parts() else { return };
            let stream = parts.io.into_inner().into_inner();
            stream.write_now(refusal("others need the connection, and it was not used").as_bytes());
        }
        // A connection without a request gets no response at the daemon's stop.
        () = stop.cancelled() => if permit.is_busy() {
            Pin::new(&mut connection).graceful_shutdown();
            drop(connection.await);
        } else if is_browser {
            // The request that ended the last session is answered too.
            Pin::new(&mut connection).graceful_shutdown();
            drop(tokio::time::timeout(FAREWELL, connection).await);
        }
    }
}

/// Returns the refusal of a connection, sent before any input is read.
fn refusal(why: &str) -> String {
    let failure = Failure::new(Code::Throttled, why)
        .hint("close connections that are not used, and try again in a moment");
    response(&failure)
}

/// Returns the whole response of a connection that is refused before any input is read.
fn response(failure: &Failure) -> String {
    let body = serde_json::to_string(&Problem::from(failure)).unwrap_or_default();
    let status = hyper::StatusCode::from_u16(failure.code.http()).unwrap_or(hyper::StatusCode::FORBIDDEN);
    let again = if failure.code == Code::Throttled { "retry-after: 1\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\n{again}\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
