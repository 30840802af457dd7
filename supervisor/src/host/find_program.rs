//! The interpreter of scripts, by a search path.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::executable::is_program;

/// Returns the first `python3` of a search path that can be executed.
pub(crate) fn find_python(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .map(|dir| dir.join("python3"))
        .find(|file| file.is_absolute() && is_program(file))
}
