//! Private places of one run: home, temporary files, prompt, and the files that it may read.

use std::path::{Path, PathBuf};

use policies::Identity;

use super::environment::Environment;
use super::fault::LaunchError;
use super::stage::Stage;
use base::paths::make_dir;

/// Private places of one run: home and temporary files belong to its worker alone.
#[derive(Debug)]
pub(crate) struct Private {
    pub home: PathBuf,
    pub tmp: PathBuf,
    pub prompt: PathBuf,
    pub files: PathBuf,
}

impl Private {
    /// Returns the places in a directory.
    pub(crate) fn at(dir: &Path) -> Self {
        Private {
            home: dir.join("home"),
            tmp: dir.join("tmp"),
            prompt: dir.join("prompt"),
            files: dir.join("files"),
        }
    }

    /// Makes the places, and writes the prompt and the files of the home. All of them are made before the worker owns
    /// them, and before any of its processes runs. `kept` is a path in the home and the directory to which it links,
    /// which outlives the run.
    pub(crate) fn make(
        &self,
        identity: Option<Identity>,
        prompt: &str,
        home_files: &[(PathBuf, String)],
        kept: Option<(&Path, &Path)>,
    ) -> Result<(), LaunchError> {
        const STAGE: Stage = Stage::MakeHome;
        let fail = |path: &Path, e: &std::io::Error| {
            let failed = LaunchError::system(STAGE, e);
            LaunchError { error: format!("{}: {}", path.display(), failed.error), ..failed }
        };
        let dir = self.home.parent().unwrap_or(&self.home);
        let refused = |e| LaunchError::refusal(STAGE, Environment::Root, e);
        make_dir(dir.parent().unwrap_or(dir), 0o711).map_err(refused)?;
        make_dir(dir, 0o711).map_err(refused)?;
        for path in [&self.home, &self.tmp] {
            make_dir(path, 0o700).map_err(refused)?;
        }
        // The worker owns each parent directory from its creation, because it must be able to write beside the file.
        let make_parents = |path: &Path| {
            let mut made = self.home.clone();
            for part in path.parent().unwrap_or(Path::new("")).components() {
                made.push(part);
                make_dir(&made, 0o700).map_err(refused)?;
                give(&made, identity).map_err(|e| fail(&made, &e))?;
            }
            Ok(self.home.join(path))
        };
        if let Some((inside, dir)) = kept {
            let path = make_parents(inside)?;
            std::os::unix::fs::symlink(dir, &path).map_err(|e| fail(&path, &e))?;
            give(&path, identity).map_err(|e| fail(&path, &e))?;
        }
        for (path, text) in home_files {
            let path = make_parents(path)?;
            write_private(&path, text, 0o600).map_err(|e| fail(&path, &e))?;
            give(&path, identity).map_err(|e| fail(&path, &e))?;
        }
        write_private(&self.prompt, prompt, 0o400).map_err(|e| fail(&self.prompt, &e))?;
        // The worker becomes the owner last: until then no other user can reach the files.
        for path in [&self.prompt, &self.tmp, &self.home] {
            give(path, identity).map_err(|e| fail(path, &e))?;
        }
        Ok(())
    }
}

fn write_private(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    options.open(path)?.write_all(text.as_bytes())
}

pub(super) fn give(path: &Path, identity: Option<Identity>) -> std::io::Result<()> {
    match identity {
        Some(identity) => std::os::unix::fs::lchown(path, Some(identity.uid), Some(identity.gid)),
        None => Ok(()),
    }
}
