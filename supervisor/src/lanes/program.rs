//! The program of a lane on this host: where it is found, and what runs it where it is a script.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The longest first line of a script that the kernel reads (execve(2)).
const FIRST_LINE: u64 = 255;

/// Finds a program as execvp(3) does: a word with a slash is a path, any other is looked for in these directories.
pub(crate) fn find(program: &str, dirs: &[PathBuf]) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_program(path));
    }
    dirs.iter().filter(|dir| dir.is_absolute()).map(|dir| dir.join(program)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The interpreter that the first line of a script names; behind `env` the program that this looks for.
pub(crate) fn interpreter(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(FIRST_LINE).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let first = words.next()?;
    if !first.ends_with("/env") {
        return Some(first.to_owned());
    }
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
}

/// The directory that a lane has to name as `install`, so that it has a program: the one with its `bin`, where it lies in one.
pub(crate) fn install_of(program: &Path) -> Option<PathBuf> {
    // A link in a directory of programs leads to where the program and all that it needs is.
    let dir = program.parent()?;
    if dir.ends_with("bin") { dir.parent().map(Path::to_owned) } else { Some(dir.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_the_system_finds_it_with_what_runs_it() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        std::fs::create_dir_all(bin.join("agent")).unwrap();
        let script = bin.join("script");
        std::fs::write(&script, "#!/usr/bin/env -S node --no-warnings\nx").unwrap();
        let dirs = [PathBuf::from("relative"), bin.clone()];
        assert_eq!(find("script", &dirs), None, "it is not executable");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("script", &dirs), Some(script.clone()));
        assert_eq!(find(script.to_str().unwrap(), &[]), Some(script.clone()));
        assert_eq!(find("agent", &dirs), None, "it is a directory");
        assert_eq!(interpreter(&script).as_deref(), Some("node"));
        std::fs::write(&script, "#!/bin/sh -e\n").unwrap();
        assert_eq!(interpreter(&script).as_deref(), Some("/bin/sh"));
        std::fs::write(&script, "\x7fELF").unwrap();
        assert_eq!(interpreter(&script), None);
        assert_eq!(install_of(&script).as_deref(), Some(dir.path()));
    }
}
