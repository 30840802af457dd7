//! The sockets of a daemon that are not one run's: noticed when somebody takes their files away, and put back.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use tokio::io::unix::AsyncFd;

use super::readiness::readable;
use crate::failure::Failure;
use crate::paths::Root;

/// Between two tries where a socket cannot be put back: nothing announces when it can.
const RETRY: Duration = Duration::from_secs(1);

/// Which file each socket of a root is; none for one that is missing, or that has something else in its place.
pub(crate) type Made = [Option<(u64, u64)>; 2];

/// Keeps the sockets of a root where commands and shims look for them, as long as the daemon runs. `made` are the files as they were
/// bound, before anybody could know of them; `open` makes all of them anew.
pub(crate) async fn keep(root: &Root, made: Made, open: impl Fn() -> Result<(), Failure>) -> Infallible {
    let mut known = made;
    let mut told = String::new();
    loop {
        // Before the look: what is removed after that look is reported.
        let watch = Watch::over(root);
        if !is_whole(root, known) {
            match root.create().and_then(|()| open()) {
                Ok(()) => {
                    known = files(root);
                    told.clear();
                    tracing::warn!(sockets = ?paths(root), "sockets_put_back");
                    continue;
                }
                Err(error) if error.to_string() == told => {}
                Err(error) => {
                    tracing::error!(%error, "sockets_not_put_back");
                    told = error.to_string();
                }
            }
        }
        match watch {
            Ok(watch) if is_whole(root, known) && watch.changed().await.is_ok() => {}
            // No event comes for a directory that is not there, or that may not be watched.
            Ok(_) | Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

fn paths(root: &Root) -> [PathBuf; 2] {
    [root.operator_socket(), root.poke_socket()]
}

/// Removes the sockets of a root that is served no longer, but for the operator's where it is still this file of a service manager.
pub(crate) fn remove(root: &Root, managers: Option<(u64, u64)>) {
    let [operator, _] = files(root);
    let stays = |path: &Path| operator.is_some() && operator == managers && *path == root.operator_socket();
    for socket in paths(root).into_iter().chain([root.members_socket()]).filter(|path| !stays(path)) {
        drop(std::fs::remove_file(socket));
    }
}

/// Whether all sockets are there, and are those that were made.
fn is_whole(root: &Root, known: Made) -> bool {
    let now = files(root);
    now == known && !now.contains(&None)
}

/// Looks which file each socket is now.
pub(crate) fn files(root: &Root) -> Made {
    paths(root).map(|path| {
        let meta = std::fs::symlink_metadata(path).ok()?;
        meta.file_type().is_socket().then(|| (meta.dev(), meta.ino()))
    })
}

/// A watch over the directories of the sockets.
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

    /// Waits until something was taken from the directories, or put into them. Cancel-safe.
    async fn changed(&self) -> io::Result<()> {
        self.events.readable().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::RootChoice;

    /// Sockets of a root in a directory, and what makes them anew.
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
            // Beside it and then over it: the inode of a file that is removed first may be used again.
            let beside = dir.path().join("beside");
            replace(&beside);
            // As long as it has another name, no other file gets its inode.
            std::fs::hard_link(&beside, dir.path().join("held")).unwrap();
            std::fs::rename(&beside, root.operator_socket()).unwrap();
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
