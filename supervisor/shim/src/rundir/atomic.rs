//! Writes records atomically: under another name first, which rename(2) then replaces.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;

/// Replaces `directory/name` with `value` as JSON, with mode 0600.
///
/// A reader sees the old record or the new one. The file is not synced to the disk: a power loss ends the boot that the
/// record belongs to, which the next daemon notices by the boot id.
pub fn write_json<T: Serialize>(directory: &Path, name: &str, value: &T) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    let draft = directory.join(format!(".{name}.{}", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(&bytes))
        .and_then(|()| fs::rename(&draft, directory.join(name)));
    if written.is_err() {
        // The first error is returned. If the file stays, this process's next write of the record truncates it.
        fs::remove_file(&draft).ok();
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_replaces_the_one_before_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        write_json(directory.path(), "pid", &1).unwrap();
        write_json(directory.path(), "pid", &2).unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("pid")).unwrap(), "2\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
