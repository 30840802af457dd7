//! Listeners of all runs: opened before a run begins, kept at the path that its worker knows, and removed with the
//! run.
//!
//! Each run has a directory of its own, which its view of the file system hides from other workers. Without such
//! views, the mode closes it to workers with other uids. A live worker reaches a new socket in the same directory, so
//! a run keeps its access when another daemon takes over.
//!
//! See decision 0047.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::{BoardId, RunId};
use policies::Identity;
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init, remove_watch};
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::bind::bind_unix;
use super::runtime::WorkersRuntime;
use super::serve::{BoundedListener, CallerKind, ListenerContext};
use base::failure::Failure;
use base::paths::{RUN_SOCKET, Root, make_dir};
use host::readiness::readable;

/// Number of connections of a run that may wait to be accepted. Further ones fail with `EAGAIN`, or block in
/// connect(2).
const BACKLOG: i32 = 128;
/// Interval between tries to restore a socket.
const RETRY: Duration = Duration::from_secs(1);

/// Run listeners of one daemon.
#[derive(Debug)]
pub struct RunListeners {
    root: Root,
    listener: Arc<BoundedListener>,
    acceptor: Handle,
    /// Cancelled once connections may be accepted.
    accepting: CancellationToken,
    open: Mutex<HashMap<ListenerOwner, OpenListener>>,
    watch: Option<AsyncFd<OwnedFd>>,
}

/// Run that owns a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ListenerOwner {
    board: BoardId,
    run: RunId,
}

#[derive(Debug)]
struct OpenListener {
    socket: SocketFile,
    file: (u64, u64),
    watched: Option<i32>,
    close: CancellationToken,
}

/// Path, mode and group of a listener.
#[derive(Clone, Debug)]
struct SocketFile {
    path: PathBuf,
    mode: u32,
    group: Option<u32>,
}

impl RunListeners {
    /// Makes the set without listeners. Its listeners accept no connection before [`RunListeners::begin`].
    pub fn new(root: &Root, shared: &ListenerContext, workers: &WorkersRuntime) -> Result<Self, Failure> {
        let Some((acceptor, runtime)) = workers.handles() else {
            return Err(Failure::failed("the threads of the workers' sockets have ended"));
        };
        let listener = Arc::new(BoundedListener::new(CallerKind::Worker, shared, runtime.clone()));
        let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(io::Error::from);
        let watch = watch.and_then(readable).inspect_err(|error| tracing::warn!(%error, "doors_not_watched"));
        Ok(RunListeners {
            root: root.clone(),
            listener,
            acceptor: acceptor.clone(),
            accepting: CancellationToken::new(),
            open: Mutex::default(),
            watch: watch.ok(),
        })
    }

    /// Returns the runtime that serves workers' connections.
    pub(super) fn runtime(&self) -> Handle {
        self.listener.runtime()
    }

    /// Serves a loopback port, where runs are distinguished by their tokens alone.
    pub(super) fn serve_loopback(&self, listener: std::net::TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let _entered = self.acceptor.enter();
        let (listener, stop) = (TcpListener::from_std(listener)?, self.listener.shared.stop.clone());
        let served = Arc::clone(&self.listener).accept_all(listener, stop);
        self.listener.shared.tasks.spawn_on(served, &self.acceptor);
        Ok(())
    }

    /// Accepts connections from now on.
    pub fn begin(&self) {
        self.accepting.cancel();
    }

    /// Opens the listener of a run for a worker of this user. Returns the path of the socket. Blocking.
    pub fn open(&self, board: BoardId, run: RunId, identity: Option<Identity>) -> Result<PathBuf, Failure> {
        let socket = self.root.run_socket(board, run);
        // The directory stays the daemon's, so that the worker cannot change or replace its contents.
        let (mode, group) = match identity {
            Some(identity) => (0o710, Some(identity.gid)),
            None => (0o700, None),
        };
        make_dir(&self.root.run_socket_directories(), 0o711)?;
        let file = SocketFile { path: socket.clone(), mode, group };
        self.listen(&mut self.lock(), ListenerOwner { board, run }, file)?;
        Ok(socket)
    }

    /// Reopens the listener of a run that an earlier daemon started, in the directory that its worker knows. Blocking.
    pub fn reopen(&self, board: BoardId, run: RunId) -> Result<(), Failure> {
        let socket = self.root.run_socket(board, run);
        let dir = socket.parent().unwrap_or(&socket);
        let meta = std::fs::metadata(dir).map_err(|e| Failure::file("look at", dir, &e))?;
        let (mode, group) = (meta.permissions().mode() & 0o777, Some(meta.gid()));
        self.listen(&mut self.lock(), ListenerOwner { board, run }, SocketFile { path: socket, mode, group })
    }

    /// Removes the listener of a run without live processes. Blocking.
    pub fn close(&self, board: BoardId, run: RunId) {
        let mut open = self.lock();
        if let Some(listener) = open.remove(&ListenerOwner { board, run }) {
            listener.close.cancel();
            self.unwatch(&listener);
        }
        // Under the lock, so that `put_back` cannot restore it.
        remove(&self.root.run_socket(board, run));
    }

    /// Removes the sockets of runs that are over. Blocking.
    pub fn sweep(&self) {
        let open = self.lock();
        let kept: Vec<&Path> = open.values().filter_map(|listener| listener.socket.path.parent()).collect();
        let Ok(entries) = std::fs::read_dir(self.root.run_socket_directories()) else { return };
        for entry in entries.flatten().filter(|entry| !kept.contains(&entry.path().as_path())) {
            remove(&entry.path().join(RUN_SOCKET));
        }
    }

    /// Restores sockets whose files were removed. Never returns.
    pub async fn keep(&self) -> Infallible {
        let mut told = String::new();
        loop {
            match self.put_back() {
                Ok(()) => {
                    told.clear();
                    self.changed().await;
                    continue;
                }
                Err(error) if error.to_string() == told => {}
                Err(error) => {
                    tracing::error!(%error, "doors_not_put_back");
                    told = error.to_string();
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Makes every socket anew whose file is no longer the one made here.
    pub fn put_back(&self) -> Result<(), Failure> {
        let mut open = self.lock();
        let lost = open.iter().filter(|(_, listener)| file(&listener.socket.path) != Some(listener.file));
        let lost: Vec<(ListenerOwner, SocketFile)> =
            lost.map(|(key, listener)| (*key, listener.socket.clone())).collect();
        for (key, socket) in lost {
            tracing::warn!(socket = %socket.path.display(), "door_put_back");
            make_dir(&self.root.run_socket_directories(), 0o711)?;
            self.listen(&mut open, key, socket)?;
        }
        Ok(())
    }

    /// Opens a listener, in place of an earlier one with this key.
    fn listen(
        &self,
        open: &mut HashMap<ListenerOwner, OpenListener>,
        key: ListenerOwner,
        socket: SocketFile,
    ) -> Result<(), Failure> {
        let dir = socket.path.parent().unwrap_or(&socket.path);
        make_dir(dir, socket.mode)?;
        if socket.group.is_some() {
            std::os::unix::fs::lchown(dir, None, socket.group)
                .map_err(|e| Failure::file("give the group", dir, &e))?;
        }
        let mode = std::fs::Permissions::from_mode(socket.mode);
        std::fs::set_permissions(dir, mode).map_err(|e| Failure::file("set the mode of", dir, &e))?;
        // Watched before the socket is bound, so that no removal of the file is missed.
        let watched = self.watch.as_ref().and_then(|watch| {
            let what = WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF;
            let added = add_watch(watch, dir, what);
            added.inspect_err(|error| tracing::warn!(%error, dir = %dir.display(), "door_not_watched")).ok()
        });
        let failed = |e: io::Error| Failure::file("serve the socket", &socket.path, &e);
        let listener = bind_unix(&socket.path, 0o666)?;
        rustix::net::listen(&listener, BACKLOG).map_err(|e| failed(e.into()))?;
        listener.set_nonblocking(true).map_err(failed)?;
        let file = file(&socket.path).unwrap_or_default();
        let close = self.listener.shared.stop.child_token();
        {
            let _entered = self.acceptor.enter();
            let listener = UnixListener::from_std(listener).map_err(failed)?;
            let (bounded, accepting, stop) =
                (Arc::clone(&self.listener), self.accepting.clone(), close.clone());
            let served = async move {
                tokio::select! {
                    // Connections wait in the backlog until the daemon is ready.
                    () = accepting.cancelled() => {}
                    () = stop.cancelled() => return,
                }
                bounded.accept_run(listener, key.board, key.run, stop).await;
            };
            self.listener.shared.tasks.spawn_on(served, &self.acceptor);
        }
        // The former listener ends only once the new one is in place.
        let former = open.insert(key, OpenListener { socket, file, watched, close });
        if let Some(former) = former {
            former.close.cancel();
        }
        Ok(())
    }

    /// Waits for a change in the directory of a listener.
    async fn changed(&self) {
        let Some(watch) = &self.watch else { return std::future::pending().await };
        match watch.readable().await {
            Ok(mut guard) => {
                let mut events = [0_u8; 4096];
                // The contents of the events do not matter: every socket is checked.
                while rustix::io::read(watch, &mut events).is_ok_and(|length| length > 0) {}
                guard.clear_ready();
            }
            Err(error) => {
                tracing::warn!(%error, "doors_not_watched");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    fn unwatch(&self, listener: &OpenListener) {
        if let (Some(watch), Some(watched)) = (&self.watch, listener.watched) {
            // The directory may be gone, and the watch with it.
            remove_watch(watch, watched).ok();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ListenerOwner, OpenListener>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a socket and its directory.
fn remove(socket: &Path) {
    let dir = socket.parent().unwrap_or(socket);
    for removed in [std::fs::remove_file(socket), std::fs::remove_dir(dir)] {
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(dir = %dir.display(), %error, "door_not_removed");
            }
            _ => {}
        }
    }
}

fn file(socket: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::symlink_metadata(socket).ok()?;
    Some((meta.dev(), meta.ino()))
}
