//! Who calls: an operator by the socket and, where uids are shared, a key; a worker by its run's token.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use axum::http::HeaderMap;
use kernel::{Actor, ActorKind, RunRef};
use rand::Rng as _;
use sha2::{Digest, Sha256};

use crate::exit::Code;
use crate::failure::Failure;
use crate::paths::Root;
use crate::service::BoardHandle;

/// Names the board of a call.
pub(crate) const BOARD_HEADER: &str = "x-supervisor-board";
/// Carries the operator's key.
pub(crate) const KEY_HEADER: &str = "x-supervisor-key";
/// Identifies a mutation: a repeat with the same id gets the first one's reply.
pub(crate) const REQUEST_HEADER: &str = "x-request-id";

/// Where a connection came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The operator's socket, with the person behind the peer's uid.
    Operator(Arc<Actor>),
    /// The workers' socket or port.
    Worker,
    /// The command line itself, working without a daemon, with its uid.
    InProcess(u32),
}

/// The key that an operator shows where workers run under the operator's own uid.
#[derive(Clone)]
pub(crate) struct OperatorKey(String);

impl std::fmt::Debug for OperatorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OperatorKey(…)")
    }
}

impl OperatorKey {
    /// The key of a root, made at the first start.
    pub(crate) fn ensure(root: &Root) -> Result<Self, Failure> {
        if let Some(key) = Self::load(root)? {
            return Ok(key);
        }
        let mut bytes = [0_u8; 32];
        rand::rng().fill_bytes(&mut bytes);
        let key = hex(&bytes);
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

    /// The key, if there is one that this process may read.
    pub(crate) fn load(root: &Root) -> Result<Option<Self>, Failure> {
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

    /// The key as text, for a header.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn opens(&self, shown: Option<&str>) -> bool {
        // Digests are compared, so that the time taken tells nothing of the key.
        shown.is_some_and(|shown| hash_token(shown) == hash_token(&self.0))
    }
}

/// What is stored of a token.
pub(crate) fn hash_token(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
        text
    })
}

/// Decides who a caller is. A bearer token always means a worker, whatever the door.
pub(crate) fn identify(
    peer: &Peer,
    headers: &HeaderMap,
    key: Option<&OperatorKey>,
    board: &Arc<BoardHandle>,
) -> Result<Actor, Failure> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(token) = header("authorization").and_then(|value| value.strip_prefix("Bearer ")) {
        return worker(token, board);
    }
    match peer {
        Peer::InProcess(uid) => Ok(person(*uid)),
        Peer::Worker => {
            Err(Failure::new(Code::NotPermitted, "this socket serves workers, and no run's token was shown")
                .hint("operators use the operator's socket; workers find their token in SUPERVISOR_TOKEN"))
        }
        Peer::Operator(person) => {
            let own = nix::unistd::geteuid();
            let shared = !own.is_root() && person.uid == Some(own.as_raw());
            if shared && !key.is_some_and(|key| key.opens(header(KEY_HEADER))) {
                return Err(Failure::new(
                    Code::NotPermitted,
                    "workers run under this uid too, so the operator's socket asks for the operator's key",
                )
                .hint("use the command line with the same --root: it reads the key from operator.key"));
            }
            Ok(Actor::clone(person))
        }
    }
}

/// The person behind a uid.
pub(crate) fn person(uid: u32) -> Actor {
    let name = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid))
        .ok()
        .flatten()
        .map_or_else(|| format!("uid-{uid}"), |user| user.name);
    Actor { kind: ActorKind::Person, name, uid: Some(uid), run: None, tenant: None }
}

fn worker(token: &str, board: &Arc<BoardHandle>) -> Result<Actor, Failure> {
    let hash = hash_token(token);
    let found = board.readers().with(|view| {
        let Some(run) = view.run_by_token(&hash)? else { return Ok(None) };
        let task = view.task(&run.task_id)?;
        Ok(Some((run, task)))
    })?;
    let Some((run, task)) = found else {
        return Err(Failure::new(
            Code::NotPermitted,
            "this run's token is not valid: the run has ended, was taken back, or belongs to another board",
        )
        .hint("nothing was changed; stop working, the task is in other hands now"));
    };
    Ok(Actor {
        kind: ActorKind::Worker,
        name: run.profile.as_ref().map_or_else(|| "worker".to_owned(), ToString::to_string),
        uid: None,
        run: Some(RunRef { run: run.id, task: run.task_id }),
        tenant: task.and_then(|task| task.tenant),
    })
}
