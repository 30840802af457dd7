//! Identifies callers: operators by the socket and, if workers share their uid, by a key; workers by the token of
//! their run.
//!
//! See decision 0018.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use kernel::{Actor, BoardId, PluginName, Run, RunId, TaskId, Tenant};
use rand::Rng as _;
use sha2::{Digest, Sha256};

use super::confined::{account_of, confined};
use super::members::tenant_of;
use super::work::blocking;
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use host::unix_user::user_by_uid;
use service::{BoardHandle, Service};
use setup::browsers::{Owner, actor};
use setup::roster::Roster;

/// Header with the name of the board.
pub const BOARD_HEADER: &str = "x-supervisor-board";
/// Header with the operator's key.
pub const KEY_HEADER: &str = "x-supervisor-key";
/// Header with the id of a mutation. A repeat with the same id gets the first reply.
pub const REQUEST_HEADER: &str = "x-request-id";

/// Origin of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Operator's socket, with the person behind the peer's uid.
    Operator(Arc<Actor>),
    /// Socket for members of tenants, with the peer's uid.
    Member(u32),
    /// Common socket or port of workers.
    Worker,
    /// Socket of one run.
    Run(BoardId, RunId),
    /// Command line without a daemon, with its uid.
    InProcess(u32),
    /// Dashboard's port, with the Unix user of the browser. Without a session, such a caller cannot reach the API.
    Browser(u32),
    /// Browser with a session.
    Session(Arc<Owner>),
    /// The daemon itself, for a plugin's request.
    Plugin(CallingPlugin),
}

impl Peer {
    /// Returns the run of a run's socket.
    pub(crate) fn run(&self) -> Option<(BoardId, RunId)> {
        match self {
            Peer::Run(board, run) => Some((*board, *run)),
            Peer::Operator(_)
            | Peer::Member(_)
            | Peer::Worker
            | Peer::InProcess(_)
            | Peer::Browser(_)
            | Peer::Session(_)
            | Peer::Plugin(..) => None,
        }
    }
}

/// Plugin that makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallingPlugin {
    pub name: PluginName,
    pub scope: PluginScope,
}

/// Tasks that a plugin's request may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginScope {
    /// Tasks of every tenant, and those without.
    All,
    /// Tasks of one tenant, or those without: the tenant of the worker or the user that called the plugin.
    Of(Option<Tenant>),
}

/// Key that operators present if workers run under the operator's uid.
#[derive(Clone)]
pub struct OperatorKey(String);

impl std::fmt::Debug for OperatorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OperatorKey(…)")
    }
}

impl OperatorKey {
    /// Returns the key of a root; creates it at the first start.
    pub fn ensure(root: &Root) -> Result<Self, Failure> {
        if let Some(key) = Self::load(root)? {
            return Ok(key);
        }
        let mut bytes = [0_u8; 32];
        rand::rng().fill_bytes(&mut bytes);
        let key = hex::encode(bytes);
        let path = root.operator_key();
        let fail = |e: std::io::Error| Failure::file("write the operator's key", &path, &e);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(fail)?;
        file.write_all(key.as_bytes()).and_then(|()| file.sync_all()).map_err(fail)?;
        Ok(OperatorKey(key))
    }

    /// Returns the key, if it exists and this process may read it.
    pub fn load(root: &Root) -> Result<Option<Self>, Failure> {
        let path = root.operator_key();
        match std::fs::read_to_string(&path) {
            Ok(key) if key.len() == 64 => Ok(Some(OperatorKey(key))),
            Ok(_) => Ok(None),
            Err(e)
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied
                ) =>
            {
                Ok(None)
            }
            Err(e) => Err(Failure::file("read the operator's key", &path, &e)),
        }
    }

    /// Returns the key for a header.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn opens(&self, shown: Option<&str>) -> bool {
        // Digests are compared, so that timing reveals nothing about the key.
        shown.is_some_and(|shown| hash_token(shown) == hash_token(&self.0))
    }
}

/// Returns the digest of a token, which is all that is stored of it.
pub fn hash_token(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[derive(Clone, Debug)]
pub struct IdentifiedCaller {
    pub(super) identity: CallerIdentity,
    /// Board of a worker's run, its only one. An operator names a board in each request.
    pub(super) board: Option<Arc<BoardHandle>>,
    pub(super) via: Via,
}

/// Way on which an identified caller comes, as far as it matters for its rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Via {
    /// A socket, or this process.
    Listener,
    Session,
    Plugin(CallingPlugin),
}

impl IdentifiedCaller {
    /// Returns the key under which its requests are counted: its run, or the uid of a tenant's member. None for
    /// operators.
    pub(super) fn counted(&self) -> Option<(BoardId, RunId)> {
        let member = || match &self.identity {
            CallerIdentity::Live(actor) => confined(actor).and(actor.uid).map(account_of),
            CallerIdentity::Ended { .. } => None,
        };
        self.run().or_else(member)
    }

    /// Returns the run whose worker calls.
    pub(super) fn run(&self) -> Option<(BoardId, RunId)> {
        let board = self.board.as_ref()?.id();
        match &self.identity {
            CallerIdentity::Live(actor) => actor.run.as_ref().map(|run| (board, run.run)),
            CallerIdentity::Ended { run, .. } => Some((board, *run)),
        }
    }
}

/// Kind of an identified caller.
#[derive(Clone, Debug)]
pub(super) enum CallerIdentity {
    /// A caller that may act.
    Live(Actor),
    /// The worker of an ended run, which gets stored replies and nothing else.
    Ended {
        run: RunId,
        task: TaskId,
        /// Tenant for which it is still counted.
        tenant: Option<Tenant>,
    },
}

/// Returns the refusal of a token that belongs to no open run.
pub(super) fn token_not_valid() -> Failure {
    Failure::new(
        Code::NotPermitted,
        "this run's token is not valid: the run has ended, was taken back, or belongs to another root",
    )
    .hint("nothing was changed; stop working: the task is no longer yours")
}

/// Identifies a caller before any other part of the request is used: no board is opened, created or named for an
/// unknown caller. A bearer token always means a worker, on any socket.
pub(super) async fn identify(
    service: &Arc<Service>,
    key: Option<&OperatorKey>,
    peer: &Peer,
    headers: &HeaderMap,
) -> Result<IdentifiedCaller, Failure> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    check_host(peer, header("host"))?;
    // A token decides alone: on the operator's socket too, its caller gets a worker's rights and no more.
    if let Some(shown) = headers.get("authorization") {
        let caller = worker(service, peer, bearer(shown)?).await?;
        return same_board(caller, headers);
    }
    let person = match peer {
        Peer::InProcess(uid) => person(*uid),
        Peer::Plugin(plugin) => {
            let tenant = match &plugin.scope {
                PluginScope::All => None,
                PluginScope::Of(tenant) => tenant.clone(),
            };
            Actor { name: format!("plugin:{}", plugin.name), tenant, ..Actor::system() }
        }
        Peer::Member(uid) => Actor { tenant: Some(tenant_of(service, *uid).await?), ..person(*uid) },
        Peer::Session(owner) => of_session(service, owner).await?,
        Peer::Browser(_) => {
            return Err(Failure::new(Code::NoSession, "this request belongs to no session of the dashboard")
                .hint("get a link with: supervisor dashboard"));
        }
        Peer::Worker | Peer::Run(..) => {
            return Err(Failure::new(
                Code::NotPermitted,
                "this socket serves workers, and the request carries no run's token",
            )
            .hint("operators use the operator's socket; workers find their token in SUPERVISOR_TOKEN"));
        }
        Peer::Operator(person) => {
            let euid = nix::unistd::geteuid();
            // Workers that share the operator's uid could open this socket, so the uid alone proves nothing.
            let shared = !euid.is_root() && person.uid == Some(euid.as_raw());
            if shared && !key.is_some_and(|key| key.opens(header(KEY_HEADER))) {
                return Err(Failure::new(
                    Code::NotPermitted,
                    "workers run under this uid too, so the operator's socket requires the operator's key",
                )
                .hint("use the command line with the same --root: it reads the key from operator.key"));
            }
            Actor::clone(person)
        }
    };
    let via = match peer {
        Peer::Session(_) => Via::Session,
        Peer::Plugin(plugin) => Via::Plugin(plugin.clone()),
        Peer::Operator(_)
        | Peer::Member(_)
        | Peer::Worker
        | Peer::Run(..)
        | Peer::InProcess(_)
        | Peer::Browser(_) => Via::Listener,
    };
    Ok(IdentifiedCaller { identity: CallerIdentity::Live(person), board: None, via })
}

/// Returns the person of a browser session. A person who has left a tenant loses the member's session.
async fn of_session(service: &Arc<Service>, owner: &Owner) -> Result<Actor, Failure> {
    if owner.is_member {
        let tenant = match owner.uid {
            Some(uid) => Some(tenant_of(service, uid).await?),
            None => None,
        };
        if tenant.is_none() || owner.tenant != tenant {
            return Err(Failure::new(Code::NoSession, "this session is one of another tenant")
                .hint("get a link with: supervisor dashboard"));
        }
    }
    Ok(actor(owner))
}

/// Returns the token in an `Authorization` header. The scheme is case-insensitive (RFC 9110, section 11.1).
fn bearer(shown: &HeaderValue) -> Result<&str, Failure> {
    let parts = shown.to_str().ok().and_then(|text| text.trim().split_once(' '));
    match parts {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        Some(_) | None => {
            Err(Failure::new(Code::NotPermitted, "the Authorization header holds no bearer token").hint(
                "send `Authorization: Bearer $SUPERVISOR_TOKEN`, or no such header on the operator's socket",
            ))
        }
    }
}

/// Returns the person with a uid.
pub fn person(uid: u32) -> Actor {
    let name =
        user_by_uid(nix::unistd::Uid::from_raw(uid)).map_or_else(|| format!("uid-{uid}"), |user| user.name);
    Actor { uid: Some(uid), ..Actor::person(name) }
}

/// Returns the worker with a token, by searching the runs of all served boards, or of the socket's board.
async fn worker(service: &Arc<Service>, peer: &Peer, token: &str) -> Result<IdentifiedCaller, Failure> {
    let hash = hash_token(token);
    let mut boards = service.served();
    let owner = peer.run();
    boards.retain(|board| owner.is_none_or(|(own, _)| board.id() == own));
    let roster = service.roster();
    let caller = blocking("the token was not looked up", move || {
        for board in boards {
            if let Some(who) = of_run(&board, &hash, &roster)? {
                return Ok(Some(IdentifiedCaller { identity: who, board: Some(board), via: Via::Listener }));
            }
        }
        Ok::<_, Failure>(None)
    })
    .await?;
    match caller? {
        Some(caller) if owner.is_none() || caller.run() == owner => return Ok(caller),
        // The answer does not reveal that another run has this token.
        Some(_) => return Err(token_not_valid()),
        None => {}
    }
    if service.refuses_any() {
        return Err(Failure::new(
            Code::TryAgain,
            "this run's token is unknown, and not every board is being served",
        )
        .hint("try again in a moment"));
    }
    Err(token_not_valid())
}

fn of_run(board: &BoardHandle, hash: &[u8; 32], roster: &Roster) -> Result<Option<CallerIdentity>, Failure> {
    let identity = board.readers().with(|view| {
        let tenant = |run: &Run| view.task(&run.task_id).map(|task| task.and_then(|task| task.tenant));
        if let Some(run) = view.run_by_token(hash)? {
            let tenant = tenant(&run)?;
            return Ok(Some(CallerIdentity::Live(speaker(run, tenant, roster))));
        }
        let Some(run) = view.run_by_past_token(hash)? else { return Ok(None) };
        Ok(Some(CallerIdentity::Ended { tenant: tenant(&run)?, run: run.id, task: run.task_id }))
    })?;
    Ok(identity)
}

fn speaker(run: Run, tenant: Option<Tenant>, roster: &Roster) -> Actor {
    let role = run.profile.as_ref().map(|profile| roster.role(profile)).unwrap_or_default();
    let name = run.profile.as_ref().map_or_else(|| "worker".to_owned(), ToString::to_string);
    Actor { role, ..Actor::worker(name, run.id, run.task_id, tenant) }
}

/// Refuses a worker that names another board than its own, without revealing if that board exists.
fn same_board(caller: IdentifiedCaller, headers: &HeaderMap) -> Result<IdentifiedCaller, Failure> {
    let run_board = caller.board.as_ref().map(|board| board.name().as_str().as_bytes());
    match headers.get(BOARD_HEADER) {
        Some(named) if Some(named.as_bytes()) != run_board => {
            Err(Failure::new(Code::NotPermitted, "a run's token is valid only for the run's own board")
                .hint(format!("leave {BOARD_HEADER} and --board out: the token names the board")))
        }
        Some(_) | None => Ok(caller),
    }
}

/// Refuses foreign host names on the loopback port: a browser under DNS rebinding sends one.
fn check_host(peer: &Peer, host: Option<&str>) -> Result<(), Failure> {
    let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    match (peer, name) {
        (Peer::Worker | Peer::Run(..), Some(name))
            if !matches!(name, "localhost" | "127.0.0.1" | "supervisor") =>
        {
            Err(Failure::new(Code::NotPermitted, format!("this API is not served under the name {name}"))
                .hint("call it as `localhost`"))
        }
        _ => Ok(()),
    }
}
