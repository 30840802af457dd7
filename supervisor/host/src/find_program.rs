//! Finds the interpreter of Python scripts.

use std::ffi::OsStr;
use std::path::PathBuf;

use base::executable::is_program;

/// Returns the first executable `python3` in a search path.
pub fn find_python(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .map(|dir| dir.join("python3"))
        .find(|file| file.is_absolute() && is_program(file))
}
