//! Makes the directories of a root with their modes, and checks that sockets and workers can use them.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt, PermissionsExt};
use std::path::Path;

use kernel::{BoardId, RunId};

use super::Root;
use crate::failure::Failure;

/// Length of the longest path, in bytes, that fits a `sockaddr_un` with its terminating zero (`unix(7)`).
const SOCKET_PATH_LIMIT: usize = 107;
/// Mode of the directories above a root that are made with it: who may write to one of them may replace the root.
const PARENT: u32 = 0o755;
/// Run number with the most digits that must fit a socket path. Runs are numbered from 1 on each board.
const DIGITS: RunId = RunId(999_999_999);

impl Root {
    /// Makes the directories with their modes. Existing directories keep their owner.
    pub fn create(&self) -> Result<(), Failure> {
        for dir in [&self.state, &self.runtime] {
            // An existing directory keeps its mode, which its owner chose; `check_reachable` reports a mode that
            // cannot work.
            if !dir.is_dir() {
                make_dir(dir, 0o711)?;
            }
        }
        make_dir(&self.run_socket_directories(), 0o711)?;
        // A missing directory cannot be hidden from workers, so it is made. If it cannot be made, it holds no
        // settings to hide.
        if !self.config.is_dir() {
            drop(make_dir(&self.config, 0o755));
        }
        for (name, mode) in [
            ("boards", 0o700),
            ("runs", 0o700),
            ("logs", 0o700),
            ("leases", 0o700),
            ("kept", 0o700),
            ("workspaces", 0o711),
            ("homes", 0o711),
            ("sessions", 0o711),
            ("bin", 0o711),
        ] {
            make_dir(&self.state.join(name), mode)?;
        }
        Ok(())
    }

    /// Returns the root with real paths: policies grant paths, and the target of a link could be replaced.
    pub fn canonical(&self) -> Result<Self, Failure> {
        let real =
            |dir: &Path| dir.canonicalize().map_err(|e| Failure::file("resolve the directory", dir, &e));
        let config = if self.config.exists() { real(&self.config)? } else { self.config.clone() };
        Ok(Root { state: real(&self.state)?, runtime: real(&self.runtime)?, config })
    }

    /// Refuses a root with socket paths that are too long, or, as root, with directories that workers of other uids
    /// cannot traverse.
    pub fn check_reachable(&self) -> Result<(), Failure> {
        let socket = self.run_socket(BoardId(uuid::Uuid::nil()), DIGITS);
        let length = socket.as_os_str().len();
        if length > SOCKET_PATH_LIMIT {
            return Err(Failure::usage(format!(
                "the root is too deep: the socket path {} has {length} bytes, and Linux allows {SOCKET_PATH_LIMIT}",
                socket.display()
            ))
            .hint("choose a shorter directory with --root DIR"));
        }
        if !nix::unistd::geteuid().is_root() {
            return Ok(());
        }
        for dir in self.state.ancestors().chain(self.runtime.ancestors()) {
            let Ok(meta) = std::fs::metadata(dir) else { continue };
            if meta.permissions().mode() & 0o001 == 0 {
                return Err(Failure::usage(format!(
                    "workers run as other users and cannot reach the root {}: {} is closed to them (mode {:04o}, uid {})",
                    self.state.display(),
                    dir.display(),
                    meta.permissions().mode() & 0o7777,
                    meta.uid()
                ))
                .hint(format!("chmod o+x {}, or choose another root with --root DIR", dir.display())));
            }
        }
        Ok(())
    }
}

/// Makes a directory, and its parents, with `mode`. An existing directory with a more open mode is restricted to
/// `mode`.
pub fn make_dir(dir: &Path, mode: u32) -> Result<(), Failure> {
    let fail = |e: std::io::Error| {
        let failure = Failure::file("make the directory", dir, &e);
        if failure.hint.is_some() { failure } else { failure.hint("choose another root with --root DIR") }
    };
    let closed = |meta: &std::fs::Metadata| meta.permissions().mode() & 0o777 & !mode == 0;
    if std::fs::metadata(dir).is_ok_and(|meta| meta.is_dir() && closed(&meta)) {
        return Ok(());
    }
    // The mode applies from the start: a file opened or made in it before a later chmod would stay accessible.
    let create = || DirBuilder::new().mode(mode).create(dir);
    let outcome = match (create(), dir.parent()) {
        (Err(e), Some(parent)) if e.kind() == std::io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(PARENT).create(parent).map_err(fail)?;
            create()
        }
        (outcome, _) => outcome,
    };
    let is_new = outcome.is_ok();
    match outcome {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists || !dir.is_dir() => return Err(fail(e)),
        Ok(()) | Err(_) => {}
    }
    let now = std::fs::metadata(dir).map_err(fail)?;
    // The umask may have removed bits of the mode.
    if !closed(&now) || (is_new && now.permissions().mode() & 0o777 != mode) {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(mode)).map_err(fail)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::RootChoice;
    use super::*;

    #[test]
    fn a_root_too_deep_for_a_socket_is_refused_with_its_length() {
        let choice =
            RootChoice { root: Some(format!("/{}", "d".repeat(120)).into()), ..RootChoice::default() };
        let failure = choice.resolve(|_| None).unwrap().check_reachable().unwrap_err();
        assert!(failure.message.contains("107"), "{failure}");
        assert!(failure.hint.is_some());
    }

    #[test]
    fn a_root_that_workers_cannot_go_through_is_refused_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let root = dir.path().join("r");
        let choice = RootChoice { root: Some(root.clone()), ..RootChoice::default() };
        let resolved = choice.resolve(|_| None).unwrap();
        resolved.create().unwrap();
        resolved.check_reachable().unwrap();
        for closed in [root.clone(), root.join("run")] {
            let open = std::fs::metadata(&closed).unwrap().permissions();
            std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
            // Workers of an ordinary user share that user's uid.
            let is_root = nix::unistd::geteuid().is_root();
            match resolved.check_reachable() {
                Ok(()) => assert!(!is_root, "{} is closed", closed.display()),
                Err(failure) => {
                    assert!(failure.message.contains(&closed.display().to_string()), "{failure}");
                    assert!(failure.hint.is_some_and(|hint| hint.contains("chmod o+x")));
                }
            }
            std::fs::set_permissions(&closed, open).unwrap();
        }
    }
}
