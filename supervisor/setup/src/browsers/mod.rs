//! Browser access for operators and members of tenants: one-time links, and sessions.
//!
//! ```text
//! supervisor dashboard ─▶ a code, in memory, for 5 minutes, once ─▶ http://127.0.0.1:8470/open#CODE
//! the page posts it     ─▶ a session: a cookie, and a key that the page keeps; only their digests are on the disk
//! each request          ─▶ cookie and key of one session, from the Unix user that began it
//! ```
//!
//! A session belongs to the person who asked for its link, or to one tenant. The session ends 12 hours after its last
//! request, 7 days after its start, when it is revoked, or when the browser gets another session.
//!
//! See decision 0171.

mod code;
mod file;
mod session;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Actor, Clock as _, SystemClock, Timestamp};
use rand::Rng as _;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, mpsc, oneshot};

use self::code::Codes;
pub use self::code::{Follower, LIFETIME as CODE_LIFETIME, Offer};
use self::file::StoredSessions;
use self::session::Digests;
pub use self::session::{Owner, Session, SessionId};
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;

/// Limit on the sessions of one owner. At the limit, a new session ends the least recently used one.
const EACH: usize = 16;
/// Limit on all sessions.
const ALL: usize = 256;
/// Limit on pending requests to open the dashboard's listener; further callers wait. An operator makes one request at
/// a time.
const OPENINGS: usize = 16;
/// Longest delay with which the file records the use of a session.
const NOTED: Duration = Duration::from_mins(5);

/// Request to open the dashboard's listener; the reply is its address or the reason for a failure.
pub type Opening = oneshot::Sender<Result<String, Failure>>;

/// Links and sessions of one root.
#[derive(Debug)]
pub struct Browsers {
    path: PathBuf,
    state: Mutex<State>,
    /// Lock for writes of the file, which are slow. Requests look up sessions without it.
    writing: Mutex<()>,
    listener: Mutex<Option<mpsc::Sender<Opening>>>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    codes: Codes,
    stored: StoredSessions,
    /// Time of the last write of the file.
    written: Option<Instant>,
}

/// Credentials for a browser that presented a valid code.
#[expect(missing_debug_implementations, reason = "it holds a secret, which no log may show")]
pub struct NewSession {
    pub cookie: String,
    /// Key that the page sends with each request.
    pub key: String,
    pub session: Arc<Session>,
}

/// Reason why a browser gets no session.
#[derive(Debug)]
pub enum SessionRefusal {
    /// The code is unknown: it was used, has expired, or another daemon made it.
    Unknown,
    /// The code is for another Unix user.
    OfAnother,
    /// The browser has a session of another owner, and the person has not agreed to end it.
    Occupied(Owner),
    /// The session cannot be stored.
    Failed(Failure),
}

/// Returns a random secret of 256 bits in hexadecimal, for a header or a link.
fn secret() -> String {
    let mut bytes = [0_u8; 32];
    rand::rng().fill_bytes(&mut bytes);
    hex::encode(bytes)
}

/// Returns the digest of a secret. Comparing digests reveals nothing about the secret through timing.
fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

impl Browsers {
    /// Makes the state for a root. [`Browsers::load`] reads the file.
    pub fn new(root: &Root) -> Self {
        let (state, writing, listener) = (Mutex::default(), Mutex::default(), Mutex::default());
        Browsers { path: root.browser_sessions(), state, writing, listener, changed: Notify::new() }
    }

    /// Loads the sessions that an earlier daemon stored. An unreadable file counts as empty. Blocking.
    pub fn load(&self) {
        match file::read(&self.path) {
            Ok(kept) => self.state().stored = kept,
            Err(failure) => tracing::warn!(error = %failure, "browser_sessions_not_read"),
        }
    }

    /// Returns the receiver of requests to open the dashboard's listener.
    pub fn attend(&self) -> mpsc::Receiver<Opening> {
        let (sender, receiver) = mpsc::channel(OPENINGS);
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Opens the dashboard's listener. Returns its address.
    pub async fn listen(&self) -> Result<String, Failure> {
        let absent = || {
            Failure::new(Code::Unreachable, "this process serves no dashboard")
                .hint("start a daemon with: supervisor daemon")
        };
        let listener =
            self.listener.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(absent)?;
        let (reply, answer) = oneshot::channel();
        listener.send(reply).await.map_err(|_| absent())?;
        answer.await.map_err(|_| absent())?
    }

    /// Notifies when the need for a listener may have changed.
    pub fn changed(&self) -> &Notify {
        &self.changed
    }

    /// Makes a one-time code.
    pub fn offer(&self, offer: Offer) -> Result<String, Failure> {
        let code = self.state().codes.add(offer, Instant::now())?;
        self.changed.notify_one();
        Ok(code)
    }

    /// Invalidates a code that its caller has not received.
    pub fn retract(&self, code: &str) {
        self.state().codes.take(code);
        self.changed.notify_one();
    }

    /// Begins a session for a browser that presents a code. `browser` is the Unix user of the browser, `before` its present
    /// session. A session of another owner is ended only if `replaces` is true, because a foreign page could have the
    /// browser present a code of its own. Blocks.
    pub fn begin(
        &self,
        code: &str,
        browser: u32,
        before: Option<&Session>,
        replaces: bool,
    ) -> Result<NewSession, SessionRefusal> {
        let now = SystemClock.now();
        let mut state = self.state();
        let offer = state.codes.find(code, Instant::now()).ok_or(SessionRefusal::Unknown)?;
        match offer.follower {
            Follower::Only(user) if user != browser => return Err(SessionRefusal::OfAnother),
            Follower::Only(_) | Follower::Any => {}
        }
        if let Some(before) = before.filter(|before| before.owner != offer.owner && !replaces) {
            return Err(SessionRefusal::Occupied(before.owner.clone()));
        }
        state.stored.expire(now);
        if state.stored.sessions.len() >= ALL && !offer.owner.is_member {
            // Users of tenants cannot block an operator: their least recently used session ends.
            state.stored.end_last(|owner| owner.is_member);
        }
        if state.stored.sessions.len() >= ALL {
            let full = format!("{ALL} browsers have sessions, the most that there may be");
            let full = Failure::new(Code::Throttled, full);
            return Err(SessionRefusal::Failed(full.hint("end some: supervisor dashboard revoke --all")));
        }
        let owner = offer.owner.clone();
        state.codes.take(code);
        if let Some(before) = before {
            state.stored.end(|session| session.id == before.id);
        }
        state.stored.make_room(&owner, EACH);
        let (cookie, key) = (secret(), secret());
        let digests = Digests { cookie: digest(&cookie), key: digest(&key) };
        let session = Session::begin(owner, browser, digests, now);
        let session = Arc::new(session);
        state.stored.sessions.push(Arc::clone(&session));
        // The lock is released before the write, which is slow. If the write fails, the session is ended again.
        drop(state);
        if let Err(failure) = self.write() {
            self.state().stored.end(|one| one.id == session.id);
            return Err(SessionRefusal::Failed(failure));
        }
        self.changed.notify_one();
        Ok(NewSession { cookie, key, session })
    }

    /// Returns the live session of a cookie, if the Unix user `browser` began it.
    pub fn by_cookie(&self, cookie: &str, browser: u32) -> Option<Arc<Session>> {
        let (digest, now) = (digest(cookie), SystemClock.now());
        let state = self.state();
        let of_owner = |session: &&Arc<Session>| {
            session.cookie == digest && session.browser == browser && !session.is_over(now)
        };
        state.stored.sessions.iter().find(of_owner).cloned()
    }

    /// Records the use of a session. Returns false and records nothing if the key is not the session's.
    pub fn used(session: &Session, key: &str) -> bool {
        if session.key != digest(key) {
            return false;
        }
        session.touch(SystemClock.now());
        true
    }

    /// Returns true if the file should be updated with the latest uses, by a call of [`Browsers::note`]. Of several
    /// callers, the first gets true and the others false.
    pub fn is_due(&self) -> bool {
        let mut state = self.state();
        let is_due = state.written.is_none_or(|at| at.elapsed() > NOTED);
        if is_due {
            state.written = Some(Instant::now());
        }
        is_due
    }

    /// Returns the name of the cookie. Each root has its own, so that daemons on one host do not overwrite each
    /// other's cookies.
    pub fn cookie_name(&self) -> String {
        self.state().stored.cookie_name.clone()
    }

    /// Returns the live sessions, the latest first.
    pub fn sessions(&self) -> Vec<Arc<Session>> {
        let now = SystemClock.now();
        let mut state = self.state();
        state.stored.expire(now);
        let mut sessions = state.stored.sessions.clone();
        drop(state);
        sessions.reverse();
        sessions
    }

    /// Ends the sessions that match, with their streams. Returns their ids. Blocking.
    pub fn revoke(&self, which: impl Fn(&Session) -> bool) -> Result<Vec<SessionId>, Failure> {
        let ended = self.state().stored.end(which);
        self.changed.notify_one();
        self.write()?;
        Ok(ended)
    }

    /// Removes the unused links of the owners that match.
    pub fn withdraw(&self, is_of_owner: impl Fn(&Owner) -> bool) {
        self.state().codes.forget(is_of_owner);
        self.changed.notify_one();
    }

    /// Removes expired links and sessions. Returns the time until the next one expires; none if none is left.
    /// Blocking.
    pub fn tidy(&self) -> Option<Duration> {
        let now = SystemClock.now();
        let is_less = self.state().stored.expire(now);
        if is_less {
            self.note();
        }
        let mut state = self.state();
        let codes = state.codes.tidy(Instant::now());
        let sessions = state.stored.sessions.iter().map(|session| session.left(now)).min();
        [codes, sessions].into_iter().flatten().min()
    }

    /// Writes the file a last time if there are sessions. Blocking.
    pub fn leave(&self) {
        if !self.state().stored.sessions.is_empty() {
            self.note();
        }
    }

    /// Writes the file, and logs a failure. Blocking.
    pub fn note(&self) {
        if let Err(failure) = self.write() {
            tracing::warn!(error = %failure, "browser_sessions_not_written");
        }
    }

    fn write(&self) -> Result<(), Failure> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let text = self.state().stored.text();
        file::write(&self.path, &text)?;
        self.state().written = Some(Instant::now());
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the actor of a session for the API.
pub fn actor(owner: &Owner) -> Actor {
    Actor { uid: owner.uid, tenant: owner.tenant.clone(), ..Actor::person(owner.name.clone()) }
}

/// Returns the latest possible end of a session that just began.
pub fn ends(session: &Session) -> Timestamp {
    session.began.after(session::AGE)
}
