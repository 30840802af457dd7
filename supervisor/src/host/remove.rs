//! The removal of what a run leaves on the host, and why something stays.

use std::path::Path;

use policies::Identity;
use shim::rundir::RunDirError;
use shim::shortage;
use workspace::{Job, Name};

use super::job;

/// Removes the private places of a run that is gone and whose user nobody wrote down: their owner is that user.
pub(crate) fn remove_forgotten(dir: &Path) -> Result<(), Stays> {
    use std::os::unix::fs::MetadataExt as _;
    let own = nix::unistd::geteuid().as_raw();
    let identity = ["home", "tmp"]
        .into_iter()
        .filter_map(|name| std::fs::symlink_metadata(dir.join(name)).ok())
        .find(|meta| meta.is_dir() && meta.uid() != own)
        .map(|meta| Identity { uid: meta.uid(), gid: meta.gid() });
    remove_private(dir, identity)
}

/// Why something of a run that is over has not been removed.
#[derive(Debug)]
pub(crate) struct Stays {
    /// The cause, in words.
    why: String,
    /// Whether the host lacked what the removal takes: then another try may succeed.
    pub(crate) is_shortage: bool,
}

impl std::fmt::Display for Stays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<RunDirError> for Stays {
    fn from(error: RunDirError) -> Self {
        Stays { is_shortage: shortage::is_shortage(&error), why: crate::failure::with_causes(&error) }
    }
}

impl Stays {
    /// It did not come to a try.
    pub(crate) fn because(why: &dyn std::fmt::Display) -> Self {
        Stays { is_shortage: false, why: why.to_string() }
    }

    fn at(path: &Path, error: &std::io::Error) -> Self {
        Stays { is_shortage: shortage::is_shortage(error), why: format!("{}: {error}", path.display()) }
    }
}

/// Removes the private places of a run that is gone.
pub(crate) fn remove_private(dir: &Path, identity: Option<Identity>) -> Result<(), Stays> {
    for name in ["home", "tmp"] {
        let path = dir.join(name);
        // Most workers leave nothing there, and an empty directory can be removed without looking into it.
        if std::fs::remove_dir(&path).is_ok() || !path.exists() {
            continue;
        }
        let Ok(name) = Name::new(name) else { continue };
        let job = Job::RemoveScratch { base: dir.to_owned(), name };
        job::work(identity, Vec::new(), vec![path.clone()], job)
            .map_err(|e| Stays { is_shortage: e.cause == job::Cause::Shortage, why: e.message })?;
        match std::fs::remove_dir(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Stays::at(&path, &e)),
            _ => {}
        }
    }
    // No worker can have put anything in there.
    match std::fs::remove_dir_all(dir.join("files")) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(Stays::at(&dir.join("files"), &e));
        }
        _ => {}
    }
    let prompt = dir.join("prompt");
    match std::fs::remove_file(&prompt) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(Stays::at(&prompt, &e));
        }
        _ => {}
    }
    match std::fs::remove_dir(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Stays::at(dir, &e)),
        _ => Ok(()),
    }
}
