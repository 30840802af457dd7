//! Removes the files of a run that has ended, and reports the files that stay, with the reasons.

use std::path::Path;

use policies::Identity;
use shim::rundir::RunDirError;
use shim::shortage;
use workspace::{Job, Name};

use super::job;
use super::worker_user::job_user;

/// Removes the private directories of an ended run whose user was not recorded. The user is the owner of its home or of its
/// temporary directory.
pub fn remove_forgotten(dir: &Path) -> Result<(), Leftover> {
    use std::os::unix::fs::MetadataExt as _;
    let daemon_uid = nix::unistd::geteuid().as_raw();
    let identity = ["home", "tmp"]
        .into_iter()
        .filter_map(|name| std::fs::symlink_metadata(dir.join(name)).ok())
        .find(|meta| meta.is_dir() && meta.uid() != daemon_uid)
        .map(|meta| job_user(meta.uid()));
    remove_private(dir, identity)
}

/// Removes a directory in which another user may have stored anything.
///
/// # Errors
/// Reason why the directory stays. A missing directory is no error.
pub fn remove_retained(dir: &Path, name: &str) -> Result<(), Leftover> {
    use std::os::unix::fs::MetadataExt as _;
    let daemon_uid = nix::unistd::geteuid().as_raw();
    let meta = std::fs::symlink_metadata(dir.join(name)).ok();
    let of_another = meta.filter(|meta| meta.is_dir() && meta.uid() != daemon_uid);
    remove_place(dir, name, of_another.map(|meta| job_user(meta.uid())))
}

/// Reason why files of an ended run were not removed.
#[derive(Debug)]
pub struct Leftover {
    /// Cause, in words.
    why: String,
    /// True if the host lacked resources, so that another try may succeed.
    pub is_shortage: bool,
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<RunDirError> for Leftover {
    fn from(error: RunDirError) -> Self {
        Leftover::from_error(&error)
    }
}

impl Leftover {
    /// Makes the reason from an error.
    pub fn from_error(error: &(dyn std::error::Error + 'static)) -> Self {
        Leftover { is_shortage: shortage::is_shortage(error), why: base::failure::with_causes(error) }
    }

    /// Makes the reason for a removal that was not tried.
    pub fn because(why: &dyn std::fmt::Display) -> Self {
        Leftover { is_shortage: false, why: why.to_string() }
    }

    fn at(path: &Path, error: &std::io::Error) -> Self {
        Leftover { is_shortage: shortage::is_shortage(error), why: format!("{}: {error}", path.display()) }
    }
}

/// Limit on the entries that are removed in this process. A job process removes more.
const FEW: usize = 16;
/// Limit on a file that is removed in this process, in bytes. A file system may take long to free the space of a larger
/// one.
const SMALL: u64 = 256 * 1024;

/// Removes a directory with at most [`FEW`] small files. Returns true if the directory was removed.
fn remove_few(dir: &Path) -> bool {
    if std::fs::remove_dir(dir).is_ok() {
        return true;
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return false };
    let entries: Vec<_> = entries.take(FEW + 1).collect();
    let is_small =
        |entry: &std::fs::DirEntry| entry.metadata().is_ok_and(|meta| !meta.is_dir() && meta.len() <= SMALL);
    let files: Vec<_> =
        entries.iter().filter_map(|entry| entry.as_ref().ok().filter(|e| is_small(e))).collect();
    files.len() == entries.len()
        && entries.len() <= FEW
        && files.iter().all(|file| std::fs::remove_file(file.path()).is_ok())
        && std::fs::remove_dir(dir).is_ok()
}

/// Name of the file with the certificates that a run with brokers trusts, in its private directory.
pub const AUTHORITIES: &str = "authorities.pem";

/// Removes the private directories of an ended run. If one of them stays, the others are removed nevertheless.
///
/// # Errors
/// Reason why the first of them stays.
pub fn remove_private(dir: &Path, identity: Option<Identity>) -> Result<(), Leftover> {
    let of_worker = ["home", "tmp"].map(|name| remove_place(dir, name, identity));
    // Workers cannot write to these, so they are removed in this process.
    let [files, prompt, authorities] = ["files", "prompt", AUTHORITIES].map(|name| dir.join(name));
    let private_dirs = [
        unless_gone(&files, std::fs::remove_dir_all),
        unless_gone(&prompt, std::fs::remove_file),
        unless_gone(&authorities, std::fs::remove_file),
    ];
    of_worker.into_iter().chain(private_dirs).collect::<Result<(), Leftover>>()?;
    unless_gone(dir, std::fs::remove_dir)
}

fn remove_place(dir: &Path, name: &str, identity: Option<Identity>) -> Result<(), Leftover> {
    let path = dir.join(name);
    // Most workers leave only the few files that the run was given, which this process can remove.
    if remove_few(&path) || !path.exists() {
        return Ok(());
    }
    let Ok(name) = Name::new(name) else { return Ok(()) };
    let job = Job::RemoveScratch { base: dir.to_owned(), name };
    job::work(identity, Vec::new(), vec![path.clone()], job)
        .map_err(|e| Leftover { is_shortage: e.cause.is_lack(), why: e.message })?;
    unless_gone(&path, std::fs::remove_dir)
}

fn unless_gone<'a>(path: &'a Path, remove: fn(&'a Path) -> std::io::Result<()>) -> Result<(), Leftover> {
    match remove(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Leftover::at(path, &e)),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_small_files_need_no_process_and_all_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| {
            let place = dir.path().join(name);
            std::fs::create_dir(&place).unwrap();
            std::fs::write(place.join(".profile"), "PATH=/bin").unwrap();
            place
        };
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(&elsewhere, "kept").unwrap();
        let few = place("few");
        std::os::unix::fs::symlink(&elsewhere, few.join("link")).unwrap();
        assert!(remove_few(&few) && !few.exists() && elsewhere.exists());

        let (nested, large, many) = (place("nested"), place("large"), place("many"));
        std::fs::create_dir(nested.join("more")).unwrap();
        std::fs::File::create(large.join("file")).unwrap().set_len(SMALL + 1).unwrap();
        for number in 0..FEW {
            std::fs::write(many.join(number.to_string()), "").unwrap();
        }
        for left in [nested, large, many] {
            assert!(!remove_few(&left) && left.join(".profile").exists(), "{}", left.display());
        }
    }

    #[test]
    fn what_stays_of_one_place_keeps_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        // This needs a job process, which a test cannot provide.
        std::fs::create_dir_all(path("home/nested")).unwrap();
        for name in ["tmp", "files"] {
            std::fs::create_dir(path(name)).unwrap();
            std::fs::write(path(name).join("login"), "secret").unwrap();
        }
        std::fs::write(path("prompt"), "secret").unwrap();
        std::fs::write(path(AUTHORITIES), "certificates").unwrap();
        assert!(remove_private(dir.path(), None).is_err());
        for name in ["tmp", "files", "prompt", AUTHORITIES] {
            assert!(!path(name).exists(), "{name}");
        }
    }
}
