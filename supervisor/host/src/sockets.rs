//! Watches the daemon's sockets that belong to no single run, and restores them if their files are removed.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use tokio::io::unix::AsyncFd;

use super::readiness::readable;
use base::failure::Failure;
use base::paths::Root;

/// Interval between tries to restore a socket: no event announces that it has become possible.
const RETRY: Duration = Duration::from_secs(1);

/// Device and inode of each socket file of a root; none for a missing socket or another kind of file.
pub type SocketIdentities = [Option<(u64, u64)>; 2];

/// Keeps the sockets of a root in place while the daemon runs. `made` are the files as bound, before any client could
/// know of them; `open` makes all of them anew.
pub async fn keep(root: &Root, made: SocketIdentities, open: impl Fn() -> Result<(), Failure>) -> Infallible {
    let mut known = made;
    let mut last_error = String::new();
    loop {
        // Before the check, so that a removal after the check is reported.
        let watch = Watch::over(root);
        if !is_whole(root, known) {
            match root.create().and_then(|()| open()) {
                Ok(()) => {
                    known = files(root);
                    last_error.clear();
                    tracing::warn!(sockets = ?paths(root), "sockets_put_back");
                    continue;
                }
                Err(error) if error.to_string() == last_error => {}
                Err(error) => {
                    tracing::error!(%error, "sockets_not_put_back");
                    last_error = error.to_string();
                }
            }
        }
        match watch {
            Ok(watch) if is_whole(root, known) && watch.changed().await.is_ok() => {}
            // A directory that is missing or cannot be watched yields no events.
            Ok(_) | Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

fn paths(root: &Root) -> [PathBuf; 2] {
    [root.operator_socket(), root.shim_event_socket()]
}

/// Removes the sockets of a root that is no longer served, except for the operator's if its file is still `managers`,
/// the service manager's.
pub fn remove(root: &Root, managers: Option<(u64, u64)>) {
    let [operator, _] = files(root);
    let stays = |path: &Path| operator.is_some() && operator == managers && *path == root.operator_socket();
    for socket in paths(root).into_iter().chain([root.members_socket()]).filter(|path| !stays(path)) {
        drop(std::fs::remove_file(socket));
    }
}

/// Returns true if all sockets exist and are the files in `known`.
fn is_whole(root: &Root, known: SocketIdentities) -> bool {
    let now = files(root);
    now == known && !now.contains(&None)
}

/// Returns the present file of each socket.
pub fn files(root: &Root) -> SocketIdentities {
    paths(root).map(|path| {
        let meta = std::fs::symlink_metadata(path).ok()?;
        meta.file_type().is_socket().then(|| (meta.dev(), meta.ino()))
    })
}

/// Watch on the directories of the sockets.
#[derive(Debug)]
struct Watch {
    events: AsyncFd<OwnedFd>,
}

impl Watch {
    fn over(root: &Root) -> io::Result<Self> {
        let events = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let what = WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        for path in paths(root) {
            add_watch(&events, path.parent().unwrap_or(&path), what)?;
        }
        Ok(Watch { events: readable(events)? })
    }

    /// Waits for a removal from the directories or a move into them. Cancel-safe.
    async fn changed(&self) -> io::Result<()> {
        self.events.readable().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::paths::RootChoice;

    /// Makes the sockets of a root in a directory, and the function that makes them anew.
    fn bound(dir: &Path) -> (Root, impl Fn() -> Result<(), Failure> + Send + 'static) {
        let choice = RootChoice { root: Some(dir.into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        root.create().unwrap();
        let bind = {
            let root = root.clone();
            move || {
                for path in paths(&root) {
                    drop(std::fs::remove_file(&path));
                    drop(std::os::unix::net::UnixListener::bind(path).unwrap());
                }
                Ok(())
            }
        };
        bind().unwrap();
        (root, bind)
    }

    #[tokio::test]
    async fn sockets_that_are_taken_away_are_put_back_also_with_their_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (root, bind) = bound(dir.path());
        let (kept, made) = (root.clone(), files(&root));
        let keeper = tokio::spawn(async move { keep(&kept, made, bind).await });
        for taken in [root.operator_socket(), dir.path().join("run")] {
            if taken.is_dir() { std::fs::remove_dir_all(&taken) } else { std::fs::remove_file(&taken) }
                .unwrap();
            while files(&root).contains(&None) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        keeper.abort();
    }

    #[tokio::test]
    async fn what_replaces_a_socket_before_the_first_look_is_not_taken_for_it() {
        for replace in [
            |path: &Path| std::fs::write(path, "somebody's").unwrap(),
            |path: &Path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let (root, bind) = bound(dir.path());
            let made = files(&root);
            // Created beside it and renamed over it: the inode of a removed file may be reused.
            let replacement = dir.path().join("beside");
            replace(&replacement);
            // While this name exists, no other file gets the inode.
            std::fs::hard_link(&replacement, dir.path().join("held")).unwrap();
            std::fs::rename(&replacement, root.operator_socket()).unwrap();
            let theirs = std::fs::metadata(root.operator_socket()).unwrap().ino();
            let kept = root.clone();
            let keeper = tokio::spawn(async move { keep(&kept, made, bind).await });
            while files(&root)[0].is_none_or(|(_, inode)| inode == theirs) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            keeper.abort();
        }
    }
}
