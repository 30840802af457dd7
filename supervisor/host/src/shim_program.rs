//! Program of the processes of runs: the small program that a release contains, or else this program.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use base::paths::Root;
use sha2::{Digest as _, Sha256};

/// The small program; `build.rs` builds it for a release.
#[cfg(has_shim_program)]
const EMBEDDED: Option<&[u8]> = Some(include_bytes!(env!("SHIM_PROGRAM")));
#[cfg(not(has_shim_program))]
const EMBEDDED: Option<&[u8]> = None;

/// File of this very program, even if an upgrade has replaced it (`proc_pid_exe(5)`).
const OWN: &str = "/proc/self/exe";
/// Start of the file names of installed programs; a part of the digest follows.
const PREFIX: &str = "supervisor-shim-";
/// Mode of an installed program: each worker's user may execute it.
const MODE: u32 = 0o755;
/// Attempts to execute a program that a process which is being started still has open for writing.
const ATTEMPTS: u32 = 100;

/// Program that starts the processes of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShimProgram(PathBuf);

impl ShimProgram {
    /// Returns this very program.
    pub fn own() -> Self {
        ShimProgram(PathBuf::from(OWN))
    }

    /// Installs the small program in a root. Returns this very program if there is no small one, or if the host does not
    /// execute it there.
    pub fn install(root: &Root) -> Self {
        let Some(program) = EMBEDDED else { return Self::own() };
        match install_in(&root.bin(), program) {
            Ok(path) => ShimProgram(path),
            Err(error) => {
                tracing::warn!(%error, "no_shim_program");
                Self::own()
            }
        }
    }

    /// Returns the path of the program. An installed file that was removed since is replaced by this very program, so that
    /// runs still start.
    pub fn path(&self) -> &Path {
        if self.0.exists() { &self.0 } else { Path::new(OWN) }
    }
}

/// Writes a program to a directory, unless it is there already, and removes other ones. A process that was started from a
/// removed program keeps it.
fn install_in(directory: &Path, program: &[u8]) -> io::Result<PathBuf> {
    let digest = hex::encode(&Sha256::digest(program)[..8]);
    let name = format!("{PREFIX}{digest}");
    let path = directory.join(&name);
    if !is_installed(&path, program) {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(program)?;
        file.as_file().set_permissions(Permissions::from_mode(MODE))?;
        // Without the sync, a crash of the host could leave an empty file of that name.
        file.as_file().sync_all()?;
        drop(file.persist(&path)?);
    }
    require_executable(&path)?;
    let is_former = |file: &str| file.starts_with(PREFIX) && file != name;
    for entry in fs::read_dir(directory)?.flatten() {
        if entry.file_name().to_str().is_some_and(is_former) {
            // A file that stays costs its space alone.
            fs::remove_file(entry.path()).ok();
        }
    }
    Ok(path)
}

/// Returns true if the file has exactly these bytes, belongs to this user and lets only this user change it.
fn is_installed(path: &Path, program: &[u8]) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    let is_own = file.metadata().is_ok_and(|meta| {
        meta.is_file() && meta.mode() & 0o7777 == MODE && meta.uid() == rustix::process::geteuid().as_raw()
    });
    let mut bytes = Vec::new();
    is_own && file.read_to_end(&mut bytes).is_ok() && bytes == program
}

fn require_executable(path: &Path) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        let started = Command::new(path).arg(shim::CHECK).env_clear().stdin(Stdio::null()).status();
        match started {
            // A child that another thread has just forked has the file open for writing until it executes its own program.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(error),
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => return Err(io::Error::other(format!("{} ended with {status}", path.display()))),
        }
    }
    Err(io::ErrorKind::ExecutableFileBusy.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that exits with success if its first argument is `__check`.
    const PROGRAM: &[u8] = b"#!/bin/sh\n[ \"$1\" = __check ]\n";

    #[test]
    fn a_program_is_installed_once_and_the_former_one_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("supervisor-shim-0000"), "").unwrap();
        fs::write(dir.path().join("supervisor"), "").unwrap();
        let first = install_in(dir.path(), PROGRAM).unwrap();
        let inode = fs::metadata(&first).unwrap().ino();
        assert_eq!(install_in(dir.path(), PROGRAM).unwrap(), first);
        assert_eq!(fs::metadata(&first).unwrap().ino(), inode);
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["supervisor".into(), first.file_name().unwrap().to_owned()]);
    }

    #[test]
    fn a_program_that_was_changed_or_that_others_may_change_is_installed_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = install_in(dir.path(), PROGRAM).unwrap();
        fs::write(&path, "#!/bin/sh\nexit 0\n").unwrap();
        install_in(dir.path(), PROGRAM).unwrap();
        assert_eq!(fs::read(&path).unwrap(), PROGRAM);
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        install_in(dir.path(), PROGRAM).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, MODE);
    }

    #[test]
    fn this_program_takes_the_place_of_one_that_was_removed() {
        let dir = tempfile::tempdir().unwrap();
        let installed = ShimProgram(install_in(dir.path(), PROGRAM).unwrap());
        assert_eq!(installed.path(), installed.0);
        fs::remove_file(&installed.0).unwrap();
        assert_eq!(installed.path(), ShimProgram::own().path());
    }

    #[test]
    fn a_program_that_does_not_run_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = install_in(dir.path(), b"#!/bin/sh\nexit 3\n").unwrap_err();
        assert!(error.to_string().contains("ended with exit status: 3"), "{error}");
        assert!(install_in(dir.path(), b"no program").is_err());
    }
}
