//! Executable files, and the interpreter that the first line of a script names (execve(2)).

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Number of bytes of a script's first line that the kernel reads.
const FIRST_LINE: u64 = 255;

/// Returns true if a path is a regular file with an execute bit of any class. Links are followed.
pub fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Returns the interpreter of a script and its arguments; none for any other file.
pub fn interpreter(script: &Path) -> Option<Vec<String>> {
    let mut head = Vec::new();
    // `O_NONBLOCK`: the file may have become a FIFO meanwhile, and opening a FIFO waits for a writer.
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(script).ok()?;
    file.metadata().ok().filter(|meta| meta.is_file())?;
    file.take(FIRST_LINE).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words: Vec<String> =
        std::str::from_utf8(line).ok()?.split_ascii_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_script_names_its_interpreter_and_a_fifo_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        let table: [(&[u8], Option<&[&str]>); 6] = [
            (b"#!/bin/sh -e\necho", Some(&["/bin/sh", "-e"])),
            (
                b"#! /usr/bin/env -S node --no-warnings\n",
                Some(&["/usr/bin/env", "-S", "node", "--no-warnings"]),
            ),
            (b"#!/bin/sh", Some(&["/bin/sh"])),
            (b"#!\n/bin/sh", None),
            (b"\x7fELF", None),
            (b"#!/\xff", None),
        ];
        for (text, words) in table {
            std::fs::write(&file, text).unwrap();
            let words = words.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
            assert_eq!(interpreter(&file), words, "{}", String::from_utf8_lossy(text));
        }
        assert!(!is_program(&file));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o010)).unwrap();
        assert!(is_program(&file));
        assert!(!is_program(dir.path()), "a directory is no program");
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(!is_program(&fifo));
        assert_eq!(interpreter(&fifo), None);
    }
}
