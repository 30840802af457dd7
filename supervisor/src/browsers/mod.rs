//! The browsers that an operator has let in: one-time links, and sessions.
//!
//! ```text
//! supervisor dashboard ─▶ a code, in memory, for 5 minutes, once ─▶ http://127.0.0.1:8470/open#CODE
//! the page posts it     ─▶ a session: a cookie, and a key that the page keeps; on disk are their digests alone
//! each request          ─▶ cookie and key of one session, from the Unix user that has begun it
//! ```
//!
//! A session is that of the person who asked for its link, or of one tenant. It ends 12 hours after its last request, 7 days after it began, when it
//! is revoked, or when the browser gets another one.

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
pub(crate) use self::code::{LIFETIME as CODE_LIFETIME, Offer};
use self::file::Kept;
pub(crate) use self::session::{Owner, Session, SessionId};
use crate::exit::Code;
use crate::failure::Failure;
use crate::paths::Root;

/// The most sessions of one owner: the one that was used least lately ends.
const EACH: usize = 16;
/// The most sessions in all.
const ALL: usize = 256;
/// How many may ask at once for the dashboard to listen; more wait. Each waits for its answer, and an operator asks one at a time.
const OPENINGS: usize = 16;
/// How much later the file may say that a session was used.
const NOTED: Duration = Duration::from_mins(5);

/// What asks the dashboard to listen, and hears where, or why it does not.
pub(crate) type Opening = oneshot::Sender<Result<String, Failure>>;

/// The links and sessions of one root.
#[derive(Debug)]
pub(crate) struct Browsers {
    path: PathBuf,
    state: Mutex<State>,
    /// Held while the file is written, and not while requests look at the sessions.
    writing: Mutex<()>,
    door: Mutex<Option<mpsc::Sender<Opening>>>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    codes: Codes,
    kept: Kept,
    /// When the file was last written.
    written: Option<Instant>,
}

/// What a browser gets that has shown a code.
pub(crate) struct Begun {
    /// The value of its cookie.
    pub(crate) cookie: String,
    /// What the page shows with each request.
    pub(crate) key: String,
    pub(crate) session: Arc<Session>,
}

/// Why a browser does not get a session.
#[derive(Debug)]
pub(crate) enum NotBegun {
    /// The code is nobody's: it was used, is too old, or was made by another daemon.
    Unknown,
    /// The code is for another Unix user.
    OfAnother,
    /// The browser has a session of somebody else, and the person has not said that it is to end.
    Occupied(Owner),
    /// It cannot be kept.
    Failed(Failure),
}

/// A secret that is hard to guess, as text for a header or a link.
fn secret() -> String {
    let mut bytes = [0_u8; 32];
    rand::rng().fill_bytes(&mut bytes);
    hex::encode(bytes)
}

/// What is kept of a secret. Digests are compared, so that the time taken tells nothing of it.
fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

impl Browsers {
    /// Those of a root. Nothing is read before [`Browsers::load`].
    pub(crate) fn new(root: &Root) -> Self {
        let (state, writing, door) = (Mutex::default(), Mutex::default(), Mutex::default());
        Browsers { path: root.browser_sessions(), state, writing, door, changed: Notify::new() }
    }

    /// Takes over the sessions that an earlier daemon has kept. A file that cannot be read is one without sessions. Blocking.
    pub(crate) fn load(&self) {
        match file::read(&self.path) {
            Ok(kept) => self.state().kept = kept,
            Err(failure) => tracing::warn!(error = %failure, "browser_sessions_not_read"),
        }
    }

    /// Receives those who ask for the dashboard to listen.
    pub(crate) fn attend(&self) -> mpsc::Receiver<Opening> {
        let (sender, receiver) = mpsc::channel(OPENINGS);
        *self.door.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Has the dashboard listen, and returns its address.
    pub(crate) async fn listen(&self) -> Result<String, Failure> {
        let absent = || {
            Failure::new(Code::Unreachable, "this process serves no dashboard")
                .hint("start a daemon with: supervisor daemon")
        };
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(absent)?;
        let (reply, answer) = oneshot::channel();
        door.send(reply).await.map_err(|_| absent())?;
        answer.await.map_err(|_| absent())?
    }

    /// Rings when what is to be served may be something else than before.
    pub(crate) fn changed(&self) -> &Notify {
        &self.changed
    }

    /// Makes a one-time code.
    pub(crate) fn offer(&self, offer: Offer) -> Result<String, Failure> {
        let code = self.state().codes.add(offer, Instant::now())?;
        self.changed.notify_one();
        Ok(code)
    }

    /// Takes back a code that nobody was given.
    pub(crate) fn retract(&self, code: &str) {
        self.state().codes.take(code);
        self.changed.notify_one();
    }

    /// Begins a session for a browser that shows a code. `before` is the session that it had; another person's has to be given up
    /// with `replaces`, because a page of somebody else's can bring a code of its own. Blocking.
    pub(crate) fn begin(
        &self,
        code: &str,
        browser: Option<u32>,
        (before, replaces): (Option<&Session>, bool),
    ) -> Result<Begun, NotBegun> {
        let now = SystemClock.now();
        let mut state = self.state();
        let offer = state.codes.find(code, Instant::now()).ok_or(NotBegun::Unknown)?;
        if offer.browser.is_some() && browser.is_some() && offer.browser != browser {
            return Err(NotBegun::OfAnother);
        }
        if let Some(before) = before.filter(|before| before.owner != offer.owner && !replaces) {
            return Err(NotBegun::Occupied(before.owner.clone()));
        }
        state.kept.expire(now);
        if state.kept.sessions.len() >= ALL && !offer.owner.is_member {
            // The users of tenants keep no operator out.
            state.kept.end_last(|owner| owner.is_member);
        }
        if state.kept.sessions.len() >= ALL {
            let full = format!("{ALL} browsers have sessions, the most that there may be");
            let full = Failure::new(Code::Throttled, full);
            return Err(NotBegun::Failed(full.hint("end some: supervisor dashboard revoke --all")));
        }
        let owner = offer.owner.clone();
        state.codes.take(code);
        if let Some(before) = before {
            state.kept.end(|session| session.id == before.id);
        }
        state.kept.make_room(&owner, EACH);
        let (cookie, key) = (secret(), secret());
        let session = Session::begin(owner, browser, (digest(&cookie), digest(&key)), now);
        let session = Arc::new(session);
        state.kept.sessions.push(Arc::clone(&session));
        drop(state);
        if let Err(failure) = self.write() {
            self.state().kept.end(|one| one.id == session.id);
            return Err(NotBegun::Failed(failure));
        }
        self.changed.notify_one();
        Ok(Begun { cookie, key, session })
    }

    /// The session whose cookie a browser shows, where it comes from the Unix user that has begun it.
    pub(crate) fn by_cookie(&self, cookie: &str, browser: Option<u32>) -> Option<Arc<Session>> {
        let (digest, now) = (digest(cookie), SystemClock.now());
        let state = self.state();
        let own = |session: &&Arc<Session>| {
            session.cookie == digest && session.browser == browser && !session.is_over(now)
        };
        state.kept.sessions.iter().find(own).cloned()
    }

    /// Notes that a session was used, if it is so with this key too.
    pub(crate) fn used(session: &Session, key: &str) -> bool {
        if session.key != digest(key) {
            return false;
        }
        session.touch(SystemClock.now());
        true
    }

    /// Whether the file should say anew when sessions were used. It is asked before each [`Browsers::note`], and true for one caller alone.
    pub(crate) fn is_due(&self) -> bool {
        let mut state = self.state();
        let is_due = state.written.is_none_or(|at| at.elapsed() > NOTED);
        if is_due {
            state.written = Some(Instant::now());
        }
        is_due
    }

    /// The name of the cookie: one of this root, so that daemons of one host do not overwrite each other's.
    pub(crate) fn cookie_name(&self) -> String {
        self.state().kept.cookie_name.clone()
    }

    /// The sessions that live, the last begun first.
    pub(crate) fn sessions(&self) -> Vec<Arc<Session>> {
        let now = SystemClock.now();
        let mut state = self.state();
        state.kept.expire(now);
        let mut sessions = state.kept.sessions.clone();
        drop(state);
        sessions.reverse();
        sessions
    }

    /// Ends sessions, and their streams with them. Returns which. Blocking.
    pub(crate) fn revoke(&self, which: impl Fn(&Session) -> bool) -> Result<Vec<SessionId>, Failure> {
        let ended = self.state().kept.end(which);
        self.changed.notify_one();
        self.write()?;
        Ok(ended)
    }

    /// Forgets the links that an owner has not followed.
    pub(crate) fn withdraw(&self, whose: impl Fn(&Owner) -> bool) {
        self.state().codes.forget(whose);
        self.changed.notify_one();
    }

    /// Ends what is too old, and returns how long the first of the rest lasts; none where nothing is left. Blocking.
    pub(crate) fn tidy(&self) -> Option<Duration> {
        let now = SystemClock.now();
        let is_less = self.state().kept.expire(now);
        if is_less {
            self.note();
        }
        let mut state = self.state();
        let codes = state.codes.tidy(Instant::now());
        let sessions = state.kept.sessions.iter().map(|session| session.left(now)).min();
        [codes, sessions].into_iter().flatten().min()
    }

    /// Writes the file a last time, where there is something in it. Blocking.
    pub(crate) fn leave(&self) {
        if !self.state().kept.sessions.is_empty() {
            self.note();
        }
    }

    /// Writes the file where nobody waits for it. Blocking.
    pub(crate) fn note(&self) {
        if let Err(failure) = self.write() {
            tracing::warn!(error = %failure, "browser_sessions_not_written");
        }
    }

    fn write(&self) -> Result<(), Failure> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let text = self.state().kept.text();
        file::write(&self.path, &text)?;
        self.state().written = Some(Instant::now());
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who a session is for, as the API knows them.
pub(crate) fn actor(owner: &Owner) -> Actor {
    Actor { uid: owner.uid, tenant: owner.tenant.clone(), ..Actor::person(owner.name.clone()) }
}

/// When a session that began then ends at the latest.
pub(crate) fn ends(session: &Session) -> Timestamp {
    session.began.after(session::AGE)
}
