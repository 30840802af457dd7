//! Installs and removes directories of `plugins.d/` as a whole.

use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use kernel::PluginName;
use tempfile::TempDir;

use base::exit::Code;
use base::failure::Failure;
use base::paths::{Root, make_dir};
use host::remove::remove_retained;
use setup::automation::plugins::{DirectoryUse, STATE, path_of, walk};

/// Limit on each copied file, in bytes: a file may grow during the copy.
const LONGEST: u64 = 16 << 20;

/// Copies the directory of a plugin to a new path. Its state and the write permissions of others are not copied.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let fail = |e: io::Error| Failure::file("copy the plugin to", to, &e);
    std::fs::create_dir(to).map_err(fail)?;
    set_mode(to, 0o755).map_err(fail)?;
    let copied = walk(from, DirectoryUse::Offered, &mut |found| {
        let target = to.join(found.path);
        let Some(mut file) = found.file.as_ref() else {
            std::fs::create_dir(&target)?;
            return set_mode(&target, 0o755);
        };
        let mut made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target)?;
        io::copy(&mut (&mut file).take(LONGEST), &mut made)?;
        let bits = if found.stat.st_mode & 0o111 == 0 { 0o644 } else { 0o755 };
        made.set_permissions(std::fs::Permissions::from_mode(bits))?;
        made.sync_all()
    });
    copied.map_err(|unfit| {
        Failure::usage(format!("{} cannot be a plugin: {unfit}", from.display()))
            .hint("a plugin has files and directories of its own, and no links")
    })
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Copy of a plugin, checked before it is installed. The checked copy itself is installed, so the source cannot
/// change in between.
#[derive(Debug)]
pub struct Staged {
    dir: TempDir,
    name: PluginName,
    path: PathBuf,
}

impl Staged {
    /// Copies a directory to a temporary directory beside the plugins.
    pub fn copy(root: &Root, name: &PluginName, from: &Path) -> Result<Self, Failure> {
        let (dir, path) = (root.plugins_dir(), path_of(root, name));
        make_dir(&dir, 0o755)?;
        let staged = tempfile::Builder::new().prefix(".new-").tempdir_in(&dir);
        let staged = staged.map_err(|e| Failure::file("copy the plugin to", &dir, &e))?;
        let staged = Staged { dir: staged, name: name.clone(), path };
        copy(from, &staged.place())?;
        Ok(staged)
    }

    /// Returns the path of the copy.
    pub fn place(&self) -> PathBuf {
        self.dir.path().join(self.name.as_str())
    }

    /// Installs the copy atomically: a concurrent reader sees the old directory or the new. The state of a replaced
    /// plugin is kept.
    pub fn install(self) -> Result<PathBuf, Failure> {
        let (new, path) = (self.place(), &self.path);
        let fail = |e: io::Error| Failure::file("install the plugin in", path, &e);
        if path.symlink_metadata().is_err() {
            std::fs::rename(&new, path).map_err(fail)?;
            return Ok(self.path);
        }
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(rustix::fs::CWD, &new, rustix::fs::CWD, path, flags)
            .map_err(|e| fail(e.into()))?;
        match std::fs::rename(new.join(STATE), path.join(STATE)) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                let kept = self.dir.keep();
                Err(fail(e).hint(format!("the state of the former one is in {}", kept.display())))
            }
            Ok(()) | Err(_) => Ok(self.path),
        }
    }
}

/// Removes a plugin with its state. The rename comes first, so that files written by calls in progress go as well.
pub fn uninstall(root: &Root, name: &PluginName) -> Result<PathBuf, Failure> {
    let path = path_of(root, name);
    let gone = root.plugins_dir().join(format!(".gone-{name}-{}", std::process::id()));
    match std::fs::rename(&path, &gone) {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(Failure::new(Code::NotFound, format!("there is no plugin `{name}`"))
                .hint("`supervisor plugin list` lists them"));
        }
        Err(e) => return Err(Failure::file("remove", &path, &e)),
    }
    remove_retained(&gone, STATE)
        .map_err(|stays| Failure::failed(format!("failed to remove {}: {stays}", gone.display())))?;
    std::fs::remove_dir_all(&gone).map_err(|e| Failure::file("remove", &gone, &e))?;
    Ok(path)
}
