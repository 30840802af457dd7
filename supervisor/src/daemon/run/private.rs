//! The private places of one run: its home, its temporary files, its prompt and the files that it may read.

use std::path::{Path, PathBuf};

use policies::Identity;

use super::environment::Environment;
use super::fault::LaunchError;
use super::stage::Stage;
use crate::paths::make_dir;

/// The private places of one run: a home and a directory for temporary files, its worker's and nobody else's.
#[derive(Debug)]
pub(in crate::daemon) struct Private {
    pub(in crate::daemon) home: PathBuf,
    pub(in crate::daemon) tmp: PathBuf,
    pub(in crate::daemon) prompt: PathBuf,
    pub(in crate::daemon) files: PathBuf,
}

/// Makes the private places of a run and writes its prompt.
pub(in crate::daemon) fn private(
    dir: &Path,
    identity: Option<Identity>,
    prompt: &str,
) -> Result<Private, LaunchError> {
    const STAGE: Stage = Stage::MakeHome;
    let fail = |path: &Path, e: &std::io::Error| {
        let failed = LaunchError::system(STAGE, e);
        LaunchError { error: format!("{}: {}", path.display(), failed.error), ..failed }
    };
    let parent = dir.parent().unwrap_or(dir);
    let refused = |e| LaunchError::refusal(STAGE, Environment::Root, e);
    make_dir(parent, 0o711).map_err(refused)?;
    make_dir(dir, 0o711).map_err(refused)?;
    let places = Private {
        home: dir.join("home"),
        tmp: dir.join("tmp"),
        prompt: dir.join("prompt"),
        files: dir.join("files"),
    };
    for path in [&places.home, &places.tmp] {
        make_dir(path, 0o700).map_err(refused)?;
        give(path, identity).map_err(|e| fail(path, &e))?;
    }
    write_private(&places.prompt, prompt).map_err(|e| fail(&places.prompt, &e))?;
    give(&places.prompt, identity).map_err(|e| fail(&places.prompt, &e))?;
    Ok(places)
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o400);
    options.open(path)?.write_all(text.as_bytes())
}

fn give(path: &Path, identity: Option<Identity>) -> std::io::Result<()> {
    match identity {
        Some(identity) => std::os::unix::fs::lchown(path, Some(identity.uid), Some(identity.gid)),
        None => Ok(()),
    }
}
