//! The open boards of one root, on which every verb works, in the daemon and offline alike.

mod automation;
pub mod details;
mod extras;
mod findings;
mod integrity;
mod jobs;
pub mod leases;
pub mod terminal_owner;
mod unavailable;
mod writing;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kernel::{
    Blobs, BoardId, BoardName, Finding, LogAtEnd, Readers, SharedQuotas, Sweep, SweepScope, Swept,
    SystemClock, SystemEntropy, Tenant, WorkspaceSpec, Writer, WriterOptions,
};
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

pub use self::findings::subject as board_subject;
use self::jobs::Jobs;
use self::leases::ExternalLeases;
use self::terminal_owner::TerminalOwners;
pub use self::writing::stopped;
use base::failpoint;
use base::failure::Failure;
use base::paths::{Root, make_dir};
use host::examine::examine_host;
use host::uids::Uids;
use setup::automation::chat::ChatsState;
use setup::automation::plugins::Plugins;
use setup::automation::schedules::Schedules;
use setup::browsers::Browsers;
use setup::config::Config;
use setup::config::definitions::Defect;
use setup::roster::Roster;

/// Notifications from boards to their daemon. Code with other requests to the daemon finds it by its own type
/// (`daemon::OwnerLink::from_service`), so that boards need not know them.
pub trait Listener: Any + Debug + Send + Sync {
    /// Called after a commit that changed a board. Must not wait.
    fn board_changed(&self, board: &BoardName);

    /// Called when the background integrity check of a board has found a fault. Blocking.
    fn board_damaged(&self, board: BoardName, failure: Failure);
}

/// Access of a process to the boards.
#[derive(Clone, Debug)]
pub enum Mode {
    /// Reads only; no lock is owned.
    Reading,
    /// Owns the root's lock and writes, but runs no worker.
    Offline,
    /// The daemon: writes, and notifies its owner loop of each commit.
    Daemon(Arc<dyn Listener>),
}

#[derive(Debug)]
pub struct BoardHandle {
    id: BoardId,
    name: BoardName,
    writer: Option<Writer>,
    readers: Readers,
    blobs: Blobs,
    external_leases: ExternalLeases,
    terminal_owners: TerminalOwners,
    changed: watch::Sender<i64>,
    commits: Arc<AtomicU64>,
    closing: AtomicBool,
    /// Signals that the handle is gone. Last field, because fields are dropped in order and the others must be closed
    /// first.
    gone: watch::Sender<()>,
}

impl BoardHandle {
    /// Returns true if the board is being removed, so that waiting for changes is pointless.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn set_closing(&self, closing: bool) {
        self.closing.store(closing, Ordering::Release);
        self.changed.send_modify(|_| {});
    }

    /// Returns the board's identity.
    pub fn id(&self) -> BoardId {
        self.id
    }

    pub fn name(&self) -> &BoardName {
        &self.name
    }

    /// Returns the writer; an error in a process that only reads.
    pub fn writer(&self) -> Result<&Writer, Failure> {
        self.writer.as_ref().ok_or_else(|| Failure::failed("this process opened the board for reading only"))
    }

    /// Returns the pool of read connections.
    pub fn readers(&self) -> &Readers {
        &self.readers
    }

    /// Returns the leases of its external claims.
    pub fn external_leases(&self) -> &ExternalLeases {
        &self.external_leases
    }

    /// Returns the terminal owners of its runs.
    pub fn terminal_owners(&self) -> &TerminalOwners {
        &self.terminal_owners
    }

    /// Returns the contents of its attachments.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Finds contents of attachments that no task refers to; uploads in progress are excluded. Blocking.
    pub fn sweep_blobs(&self, extent: &SweepScope, sweep: Sweep) -> Result<Swept, Failure> {
        let named = || self.readers.with(|view| view.attached(extent));
        self.blobs.sweep(extent, sweep, named).map_err(Failure::from)
    }

    /// Returns a receiver that is notified of each commit, with the last event id.
    pub fn changes(&self) -> watch::Receiver<i64> {
        self.changed.subscribe()
    }

    /// Returns the number of commits by this process that changed the board. Several writes may share a commit.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

/// The boards of one root.
#[derive(Debug)]
pub struct Service {
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
    /// Held while a board is opened, which may take long. Open boards remain accessible meanwhile.
    opening: Mutex<()>,
    refused: Mutex<BTreeMap<BoardName, Failure>>,
    /// Boards that are temporarily unavailable.
    unavailable: Mutex<BTreeSet<BoardName>>,
    /// Started verbs, which run to their ends even if their callers have gone.
    started_verbs: TaskTracker,
    jobs: Jobs,
    diffs: Jobs<Option<Tenant>>,
    chats: ChatsState,
    browsers: Browsers,
    bridge_trouble: Mutex<Option<String>>,
    /// Problems of channels and plugins, by board.
    delivery_problems: Mutex<BTreeMap<BoardName, Vec<Finding>>>,
    mail: Arc<Notify>,
    paused_channels: Mutex<BTreeMap<String, kernel::Timestamp>>,
    news: Arc<Notify>,
}

impl Service {
    /// Makes a service for a root; boards are opened on first use.
    pub fn new(root: Root, config: Config, mode: Mode) -> Self {
        let quotas = SharedQuotas::new(config.quotas());
        Service {
            uids: Uids::new(&root),
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
            unavailable: Mutex::default(),
            started_verbs: TaskTracker::new(),
            jobs: Jobs::default(),
            diffs: Jobs::default(),
            chats: ChatsState::default(),
            bridge_trouble: Mutex::default(),
            delivery_problems: Mutex::default(),
            mail: Arc::default(),
            paused_channels: Mutex::default(),
            news: Arc::default(),
        }
    }

    /// Notifies when a message to people was written, or delivery settings changed.
    pub fn mail(&self) -> &Notify {
        &self.mail
    }

    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the uids for the tasks of its boards.
    pub fn worker_uids(&self) -> &Uids {
        &self.uids
    }

    /// Returns the limits of the boards, which follow the configuration.
    pub fn quotas(&self) -> SharedQuotas {
        self.quotas.clone()
    }

    /// Returns the present configuration.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the present roster. The files are read on first use and at a reload.
    pub fn roster(&self) -> Arc<Roster> {
        let mut roster = self.roster.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(roster.get_or_insert_with(|| Arc::new(Roster::load(&self.root))))
    }

    /// Returns the roster for this host, where a policy that the host cannot enforce starts no worker. A daemon
    /// examined the host at its start; without a daemon it is examined now. Blocking.
    pub fn roster_of_host(&self) -> Arc<Roster> {
        if self.daemon().is_some() {
            return self.roster();
        }
        Arc::new(Roster::clone(&self.roster()).on(&examine_host(None).support))
    }

    pub fn use_roster(&self, roster: Roster) {
        *self.roster.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(roster));
    }

    /// Replaces the settings; on a defect the present settings stay and the defect is remembered.
    pub fn use_settings(&self, settings: Result<Config, Defect>) {
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

    /// Opens the socket of tenants' members to every user if any tenant has members, and closes it otherwise.
    /// Membership is checked at each request.
    pub fn open_to_members(&self) {
        let path = self.root.members_socket();
        let mode = if self.config().has_members() { 0o666 } else { 0o600 };
        if self.daemon().is_none() || path.symlink_metadata().is_err() {
            return;
        }
        if let Err(error) = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)) {
            tracing::warn!(path = %path.display(), %error, "members_socket_mode_not_set");
        }
    }

    /// Returns all defects in the files of the configuration.
    pub fn defects(&self) -> Vec<Defect> {
        let settings = self.settings_defect.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (roster, schedules, plugins) = (self.roster(), self.schedules(), self.plugins());
        let config = self.config();
        let of_files = roster.defects().chain(schedules.defects()).chain(plugins.defects());
        let of_files = config.tenants.defects().chain(of_files);
        settings.into_iter().chain(of_files.cloned()).chain(self.chats.defects(&self.root)).collect()
    }

    /// Returns the daemon that serves the boards; none in other processes.
    pub fn daemon(&self) -> Option<&Arc<dyn Listener>> {
        match &self.mode {
            Mode::Daemon(daemon) => Some(daemon),
            Mode::Reading | Mode::Offline => None,
        }
    }

    /// Returns the names of the existing boards, sorted.
    pub fn board_names(&self) -> Result<Vec<BoardName>, Failure> {
        self.root.board_names()
    }

    /// Returns the open boards, sorted by name.
    pub fn served(&self) -> Vec<Arc<BoardHandle>> {
        self.boards.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Returns the workspaces of all tasks on the served boards.
    pub fn workplaces(&self) -> Vec<WorkspaceSpec> {
        let mut places = Vec::new();
        for board in self.served() {
            match board.readers().with(|view| view.workplaces()) {
                Ok(named) => places.extend(named.iter().filter_map(|place| place.spec().cloned())),
                // A failure of one board must not affect the others.
                Err(error) => tracing::warn!(board = %board.name(), %error, "workplaces_not_read"),
            }
        }
        places
    }

    /// Closes every open board and marks it as closed, so that the next daemon may serve it at once. Blocking.
    pub fn close(&self) {
        for board in self.served() {
            board.terminal_owners().drain().into_iter().for_each(|(run, held)| board.record_typed(run, held));
            self.leave(&board);
        }
    }

    /// Ends the writes to a board and marks it as closed, so that the next daemon may serve it at once. Blocking.
    pub fn leave(&self, board: &BoardHandle) {
        let Ok(writer) = board.writer() else { return };
        writer.close();
        if board.readers().require_present().is_ok() {
            integrity::leave(board.name(), &self.root.board(board.name()));
        }
    }

    /// Returns the boards that are not served, with the reasons.
    pub fn refusals(&self) -> BTreeMap<BoardName, Failure> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if any board is not served.
    pub fn refuses_any(&self) -> bool {
        !self.refused.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns a board, and opens it if necessary. The default board is created if it does not exist; other boards
    /// are created by name.
    pub fn board(&self, name: &BoardName) -> Result<Arc<BoardHandle>, Failure> {
        if let Some(board) = self.opened(name)? {
            return Ok(board);
        }
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(board) = self.opened(name)? {
            return Ok(board);
        }
        let board = Arc::new(self.open(name)?);
        let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        // The board may have been withdrawn meanwhile.
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

    /// Returns a board if it is open; an error if it is not served.
    pub fn opened(&self, name: &BoardName) -> Result<Option<Arc<BoardHandle>>, Failure> {
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
                return Err(Failure::new(base::exit::Code::NotFound, format!("there is no board `{name}`"))
                    .hint(format!("make it with: supervisor --board {name} init")));
            }
            make_dir(&self.root.boards(), 0o700)?;
            make_dir(dir, 0o700)?;
        }
        self.open_at(name)
    }

    /// Creates a board if it does not exist, and opens it.
    pub fn create_board(&self, name: &BoardName) -> Result<Arc<BoardHandle>, Failure> {
        if let Some(dir) = self.root.board(name).parent() {
            make_dir(&self.root.boards(), 0o700)?;
            make_dir(dir, 0o700)?;
        }
        self.board(name)
    }

    fn open_at(&self, name: &BoardName) -> Result<BoardHandle, Failure> {
        let path = self.root.board(name);
        let clock = Arc::new(SystemClock);
        let (changed, commits) = (watch::Sender::new(0), Arc::new(AtomicU64::new(0)));
        let (id, writer, readers) = if matches!(self.mode, Mode::Offline) && kernel::is_marked(&path)? {
            // The connection of the writer is the only one that most commands need.
            let writer = Writer::open(&path, self.writing(name, &changed, &commits))?;
            (writer.board_id(), Some(writer), Readers::beside_writer(&path, clock)?)
        } else {
            // Kept open, because the first connection to a board reads its whole write-ahead log.
            let early = Readers::open(&path, clock.clone()).ok();
            let id = kernel::ensure_board(&path, name, clock.as_ref(), &SystemEntropy)?;
            if let Some(daemon) = self.daemon() {
                integrity::check(name, &path, daemon)?;
            }
            let writer = match &self.mode {
                Mode::Reading => None,
                Mode::Offline | Mode::Daemon(_) => {
                    Some(Writer::open(&path, self.writing(name, &changed, &commits))?)
                }
            };
            (id, writer, early.map_or_else(|| Readers::open(&path, clock), Ok)?)
        };
        let blobs = Blobs::of_board(&path);
        let (closing, gone) = (AtomicBool::new(false), watch::Sender::new(()));
        let (name, external_leases, terminal_owners) =
            (name.clone(), ExternalLeases::default(), TerminalOwners::default());
        Ok(BoardHandle {
            id,
            name,
            writer,
            readers,
            blobs,
            external_leases,
            terminal_owners,
            changed,
            commits,
            closing,
            gone,
        })
    }

    /// Returns the options of the writer of a board.
    fn writing(
        &self,
        board: &BoardName,
        changed: &watch::Sender<i64>,
        commits: &Arc<AtomicU64>,
    ) -> WriterOptions {
        let (changed, commits, board) = (changed.clone(), Arc::clone(commits), board.clone());
        let daemon = self.daemon().cloned();
        let log_at_end = if daemon.is_some() { LogAtEnd::Emptied } else { LogAtEnd::LeftIfShort };
        let (mail, news) = (Arc::clone(&self.mail), Arc::clone(&self.news));
        let seen = AtomicI64::new(0);
        let on_commit = move |committed: kernel::Committed| {
            commits.fetch_add(1, Ordering::Relaxed);
            let last = committed.last_letter.get();
            // Only a commit with a new letter wakes the delivery workers.
            if seen.fetch_max(last, Ordering::Relaxed) < last {
                mail.notify_one();
            }
            changed.send_replace(committed.last_event.get());
            news.notify_one();
            if let Some(daemon) = &daemon {
                daemon.board_changed(&board);
            }
        };
        WriterOptions {
            on_commit: Arc::new(on_commit),
            fail_point: kernel::FailPoints::new(failpoint::pass),
            quotas: self.quotas.clone(),
            log_at_end,
            ..WriterOptions::default()
        }
    }
}
