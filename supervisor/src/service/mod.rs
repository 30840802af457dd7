//! The boards of one root, open: what every verb works on, in the daemon and offline alike.

mod automation;
mod beside;
pub(crate) mod details;
pub(crate) mod keyboards;
pub(crate) mod leases;
mod looks;
mod out;
mod wholeness;
mod writing;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kernel::{
    Blobs, BoardId, BoardName, Extent, Readers, SharedQuotas, Sweep, Swept, SystemClock, SystemEntropy,
    Tenant, Writer, WriterOptions,
};
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;
use workspace::WorkspaceSpec;

pub(crate) use self::beside::BRIDGE;
use self::keyboards::Keyboards;
use self::leases::ExternalLeases;
use self::looks::Looks;
pub(crate) use self::writing::stopped;
use crate::automation::chat::Desk;
use crate::automation::plugins::Plugins;
use crate::automation::schedules::Schedules;
use crate::browsers::Browsers;
use crate::config::Config;
use crate::config::definitions::Defect;
use crate::failpoint;
use crate::failure::Failure;
use crate::host::examine::examine_host;
use crate::host::uids::Uids;
use crate::paths::{Root, make_dir};
use crate::roster::Roster;

/// The notices that boards send to their daemon. Code that asks a daemon anything else finds it by its own type
/// (`daemon::OwnerLink::of`): the boards know none of these questions.
pub(crate) trait Listener: Any + Debug + Send + Sync {
    /// A commit has changed a board. Waits for nothing.
    fn board_changed(&self, board: &BoardName);

    /// The check of a board beside the service has found a fault. Blocking.
    fn board_damaged(&self, board: BoardName, failure: Failure);
}

/// Whether a process may write to the boards.
#[derive(Clone, Debug)]
pub(crate) enum Mode {
    /// Reads only: no lock is owned.
    Reading,
    /// The process owns the root's lock and writes, but runs no worker.
    Offline,
    /// The daemon: writes, and notifies its owner loop of each commit.
    Daemon(Arc<dyn Listener>),
}

/// One open board.
#[derive(Debug)]
pub(crate) struct BoardHandle {
    id: BoardId,
    name: BoardName,
    writer: Option<Writer>,
    readers: Readers,
    blobs: Blobs,
    external_leases: ExternalLeases,
    keyboards: Keyboards,
    changed: watch::Sender<i64>,
    commits: Arc<AtomicU64>,
    closing: AtomicBool,
    /// Says that the handle is gone. The last field: the others are closed before it.
    gone: watch::Sender<()>,
}

impl BoardHandle {
    /// Whether the board is being taken away: nobody should wait for news of it.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn set_closing(&self, closing: bool) {
        self.closing.store(closing, Ordering::Release);
        self.changed.send_modify(|_| {});
    }

    /// The board's identity.
    pub(crate) fn id(&self) -> BoardId {
        self.id
    }

    pub(crate) fn name(&self) -> &BoardName {
        &self.name
    }

    /// The writer; none in a process that only reads.
    pub(crate) fn writer(&self) -> Result<&Writer, Failure> {
        self.writer.as_ref().ok_or_else(|| Failure::failed("this process opened the board for reading only"))
    }

    /// The pool of read connections.
    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// The leases of its external claims.
    pub(crate) fn external_leases(&self) -> &ExternalLeases {
        &self.external_leases
    }

    /// Who types at the terminals of its runs.
    pub(crate) fn keyboards(&self) -> &Keyboards {
        &self.keyboards
    }

    /// The bytes of its attachments.
    pub(crate) fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Finds the bytes of attachments that no task has any more, beside uploads that are under way. Blocking.
    pub(crate) fn sweep_blobs(&self, extent: &Extent, sweep: Sweep) -> Result<Swept, Failure> {
        let named = || self.readers.with(|view| view.attached(extent));
        self.blobs.sweep(extent, sweep, named).map_err(Failure::from)
    }

    /// A receiver that is woken by each commit, with the last event id.
    pub(crate) fn changes(&self) -> watch::Receiver<i64> {
        self.changed.subscribe()
    }

    /// How many commits this process has made that changed the board: writes share them.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

/// The boards of one root.
#[derive(Debug)]
pub(crate) struct Service {
    root: Root,
    config: Mutex<Arc<Config>>,
    roster: Mutex<Option<Arc<Roster>>>,
    schedules: Mutex<Option<Arc<Schedules>>>,
    plugins: Mutex<Option<Arc<Plugins>>>,
    settings_defect: Mutex<Option<Defect>>,
    mode: Mode,
    quotas: SharedQuotas,
    uids: Uids,
    boards: Mutex<BTreeMap<BoardName, Arc<BoardHandle>>>,
    /// Held while a board is opened, which may take long: what is open already is had meanwhile.
    opening: Mutex<()>,
    refused: Mutex<BTreeMap<BoardName, Failure>>,
    /// Those that are out of service for as long as something is done with them.
    out: Mutex<BTreeSet<BoardName>>,
    /// The verbs that have begun, which come to their ends also when nobody waits for them any more.
    begun: TaskTracker,
    looks: Looks,
    diffs: Looks<Option<Tenant>>,
    chats: Desk,
    browsers: Browsers,
    bridge_trouble: Mutex<Option<String>>,
    /// What is wrong with channels and plugins, by board.
    silent: Mutex<BTreeMap<BoardName, Vec<String>>>,
    mail: Arc<Notify>,
    resting: Mutex<BTreeMap<String, kernel::Timestamp>>,
    news: Arc<Notify>,
}

impl Service {
    /// A service over a root; boards are opened when they are first used.
    pub(crate) fn new(root: Root, config: Config, mode: Mode) -> Self {
        let quotas = SharedQuotas::new(config.quotas());
        Service {
            uids: Uids::of(&root),
            browsers: Browsers::new(&root),
            root,
            quotas,
            config: Mutex::new(Arc::new(config)),
            roster: Mutex::default(),
            schedules: Mutex::default(),
            plugins: Mutex::default(),
            settings_defect: Mutex::default(),
            mode,
            boards: Mutex::default(),
            opening: Mutex::default(),
            refused: Mutex::default(),
            out: Mutex::default(),
            begun: TaskTracker::new(),
            looks: Looks::default(),
            diffs: Looks::default(),
            chats: Desk::default(),
            bridge_trouble: Mutex::default(),
            silent: Mutex::default(),
            mail: Arc::default(),
            resting: Mutex::default(),
            news: Arc::default(),
        }
    }

    /// Rings when a message to people was written, or may be sent in another way than before.
    pub(crate) fn mail(&self) -> &Notify {
        &self.mail
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The users that the tasks of its boards may have.
    pub(crate) fn worker_uids(&self) -> &Uids {
        &self.uids
    }

    /// The limits that the boards go by; they follow the configuration.
    pub(crate) fn quotas(&self) -> SharedQuotas {
        self.quotas.clone()
    }

    /// The configuration as it stands now.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who can work here as things stand: read when it is first asked for, and again when the daemon reloads.
    pub(crate) fn roster(&self) -> Arc<Roster> {
        let mut roster = self.roster.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(roster.get_or_insert_with(|| Arc::new(Roster::load(&self.root))))
    }

    /// The same, on this host: a policy that it cannot enforce starts nothing. A daemon has examined the host when it started;
    /// without one it is examined now. Blocking.
    pub(crate) fn roster_of_host(&self) -> Arc<Roster> {
        if self.daemon().is_some() {
            return self.roster();
        }
        Arc::new(Roster::clone(&self.roster()).on(&examine_host(None).support))
    }

    /// Takes a roster into use.
    pub(crate) fn use_roster(&self, roster: Roster) {
        *self.roster.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(roster));
    }

    /// Takes settings into use, or goes on with those that there are, and remembers why.
    pub(crate) fn use_settings(&self, settings: Result<Config, Defect>) {
        let defect = match settings {
            Ok(config) => {
                self.quotas.set(config.quotas());
                *self.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                self.mail.notify_one();
                self.browsers.changed().notify_one();
                None
            }
            Err(defect) => Some(defect),
        };
        *self.settings_defect.lock().unwrap_or_else(PoisonError::into_inner) = defect;
        self.open_to_members();
    }

    /// Opens the socket of the users of tenants to every user where a tenant has any, and closes it where none has. Who connects is
    /// asked at each request.
    pub(crate) fn open_to_members(&self) {
        let path = self.root.members_socket();
        let mode = if self.config().has_members() { 0o666 } else { 0o600 };
        if self.daemon().is_none() || path.symlink_metadata().is_err() {
            return;
        }
        if let Err(error) = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)) {
            tracing::warn!(path = %path.display(), %error, "members_socket_mode_not_set");
        }
    }

    /// What is wrong with the files of the configuration.
    pub(crate) fn defects(&self) -> Vec<Defect> {
        let settings = self.settings_defect.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (roster, schedules, plugins) = (self.roster(), self.schedules(), self.plugins());
        let config = self.config();
        let of_files = roster.defects().chain(schedules.defects()).chain(plugins.defects());
        let of_files = config.tenants.defects().chain(of_files);
        settings.into_iter().chain(of_files.cloned()).chain(self.chats.defects(&self.root)).collect()
    }

    /// The daemon that serves the boards; none outside of it.
    pub(crate) fn daemon(&self) -> Option<&Arc<dyn Listener>> {
        match &self.mode {
            Mode::Daemon(daemon) => Some(daemon),
            Mode::Reading | Mode::Offline => None,
        }
    }

    /// The boards that exist, by name.
    pub(crate) fn board_names(&self) -> Result<Vec<BoardName>, Failure> {
        self.root.board_names()
    }

    /// The boards that are open, by name.
    pub(crate) fn served(&self) -> Vec<Arc<BoardHandle>> {
        self.boards.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Where the tasks of all boards that are served work.
    pub(crate) fn workplaces(&self) -> Vec<WorkspaceSpec> {
        let mut places = Vec::new();
        for board in self.served() {
            match board.readers().with(|view| view.workplaces()) {
                Ok(named) => {
                    places.extend(named.iter().filter_map(|text| text.parse::<WorkspaceSpec>().ok()));
                }
                // The trouble of one board is not that of the others.
                Err(error) => tracing::warn!(board = %board.name(), %error, "workplaces_not_read"),
            }
        }
        places
    }

    /// Closes every board that is open, and marks it as closed: the next daemon may serve it at once. Blocking.
    pub(crate) fn close(&self) {
        for board in self.served() {
            board.keyboards().drain().into_iter().for_each(|(run, held)| board.record_typed(run, held));
            let Ok(writer) = board.writer() else { continue };
            writer.close();
            if board.readers().require_present().is_ok() {
                wholeness::leave(board.name(), &self.root.board(board.name()));
            }
        }
    }

    /// The boards that are not served, each with the reason.
    pub(crate) fn refusals(&self) -> BTreeMap<BoardName, Failure> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there is a board that is not served.
    pub(crate) fn refuses_any(&self) -> bool {
        !self.refused.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Opens a board, or returns it open. The default board is made where no board ever was; others are made by name.
    pub(crate) fn board(&self, name: &BoardName) -> Result<Arc<BoardHandle>, Failure> {
        if let Some(board) = self.opened(name)? {
            return Ok(board);
        }
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(board) = self.opened(name)? {
            return Ok(board);
        }
        let board = Arc::new(self.open(name)?);
        let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have been withdrawn meanwhile.
        if let Some(failure) = self.refused.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Err(failure.clone());
        }
        boards.insert(name.clone(), Arc::clone(&board));
        drop(boards);
        if self.daemon().is_some() {
            self.automate(&board);
        }
        Ok(board)
    }

    /// The board as far as it is open; why not, where it is not served.
    pub(crate) fn opened(&self, name: &BoardName) -> Result<Option<Arc<BoardHandle>>, Failure> {
        let boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(board) = boards.get(name) {
            return Ok(Some(Arc::clone(board)));
        }
        match self.refused.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            Some(failure) => Err(failure.clone()),
            None => Ok(None),
        }
    }

    fn open(&self, name: &BoardName) -> Result<BoardHandle, Failure> {
        let path = self.root.board(name);
        if let Some(dir) = path.parent() {
            if !dir.is_dir() && name != &BoardName::default() {
                return Err(Failure::new(crate::exit::Code::NotFound, format!("there is no board `{name}`"))
                    .hint(format!("make it with: supervisor --board {name} init")));
            }
            make_dir(&self.root.boards(), 0o700)?;
            make_dir(dir, 0o700)?;
        }
        self.open_at(name)
    }

    /// Makes a board where there is none, and opens it.
    pub(crate) fn create_board(&self, name: &BoardName) -> Result<Arc<BoardHandle>, Failure> {
        if let Some(dir) = self.root.board(name).parent() {
            make_dir(&self.root.boards(), 0o700)?;
            make_dir(dir, 0o700)?;
        }
        self.board(name)
    }

    fn open_at(&self, name: &BoardName) -> Result<BoardHandle, Failure> {
        let path = self.root.board(name);
        let clock = Arc::new(SystemClock);
        // Kept open: opening a board anew reads its whole log first.
        let early = Readers::open(&path, clock.clone()).ok();
        let id = kernel::ensure_board(&path, name, clock.as_ref(), &SystemEntropy)?;
        if let Some(daemon) = self.daemon() {
            wholeness::check(name, &path, daemon)?;
        }
        let changed = watch::Sender::new(0);
        let commits = Arc::new(AtomicU64::new(0));
        let writer = match &self.mode {
            Mode::Reading => None,
            Mode::Offline | Mode::Daemon(_) => {
                let changed = changed.clone();
                let commits = Arc::clone(&commits);
                let daemon = self.daemon().cloned();
                let board = name.clone();
                let (mail, news) = (Arc::clone(&self.mail), Arc::clone(&self.news));
                let seen = AtomicI64::new(0);
                let on_commit = move |committed: kernel::Committed| {
                    commits.fetch_add(1, Ordering::Relaxed);
                    let last = committed.last_letter.get();
                    if seen.fetch_max(last, Ordering::Relaxed) < last {
                        mail.notify_one();
                    }
                    changed.send_replace(committed.last_event.get());
                    news.notify_one();
                    if let Some(daemon) = &daemon {
                        daemon.board_changed(&board);
                    }
                };
                let options = WriterOptions {
                    on_commit: Arc::new(on_commit),
                    fail_point: kernel::FailPoints::new(failpoint::pass),
                    quotas: self.quotas.clone(),
                    ..WriterOptions::default()
                };
                Some(Writer::open(&path, options)?)
            }
        };
        let readers = match early {
            Some(early) => early,
            None => Readers::open(&path, clock)?,
        };
        let blobs = Blobs::beside(&path);
        let (closing, gone) = (AtomicBool::new(false), watch::Sender::new(()));
        let (name, external_leases, keyboards) =
            (name.clone(), ExternalLeases::default(), Keyboards::default());
        Ok(BoardHandle {
            id,
            name,
            writer,
            readers,
            blobs,
            external_leases,
            keyboards,
            changed,
            commits,
            closing,
            gone,
        })
    }
}
