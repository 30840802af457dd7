//! The interpreter of scripts, by a search path.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Returns the first `python3` of a search path that can be executed.
pub(crate) fn find_python(path: &OsStr) -> Option<PathBuf> {
    let is_program = |file: &Path| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path)
        .map(|dir| dir.join("python3"))
        .find(|file| file.is_absolute() && is_program(file))
}
