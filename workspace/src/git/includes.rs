//! Files that the settings of a repository include. An unreadable one is the reason of a refusal.
//!
//! Included files are not granted: a worker that writes `.git/config` in a `dir` workspace could name any file of its
//! user. The same holds for objects that a repository borrows by `objects/info/alternates`.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;

/// Limit on the files that are searched. They only explain a failure, and are not worth more time.
const MOST: usize = 64;
/// Limit on the bytes that are read from each file.
const LONGEST: u64 = 1 << 20;

/// Finds the files that a file of settings includes, directly or through other files, under any condition. Missing
/// files are left out, because git skips them.
///
/// # Errors
/// Returns the first file that this process may not read.
pub(super) fn included(settings: &Path) -> Result<BTreeSet<PathBuf>, PathBuf> {
    let mut files = BTreeSet::new();
    let mut next = vec![settings.to_owned()];
    while let Some(file) = next.pop() {
        if files.len() == MOST || files.contains(&file) {
            continue;
        }
        match text(&file) {
            Ok(text) => next.extend(paths(&text).map(|path| resolved(&file, path))),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(_) => return Err(file),
        }
        files.insert(file);
    }
    files.remove(settings);
    Ok(files)
}

fn text(file: &Path) -> std::io::Result<String> {
    // Without this flag, the open of a FIFO would wait for a writer (fifo(7)).
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    let mut bytes = Vec::new();
    opened.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the paths of `[include]` and `[includeIf …]` as they stand in the file.
fn paths(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut is_include = false;
    text.lines().filter_map(move |line| {
        let mut line = line.trim();
        if let Some((header, rest)) = line.strip_prefix('[').and_then(|line| line.rsplit_once(']')) {
            let name = header.split([' ', '\t', '.']).next().unwrap_or_default();
            is_include = ["include", "includeif"].iter().any(|known| name.eq_ignore_ascii_case(known));
            line = rest.trim();
        }
        let (key, value) = line.split_once('=')?;
        let is_path = is_include && key.trim().eq_ignore_ascii_case("path");
        is_path.then(|| value.trim().trim_matches('"').replace("\\\\", "\\"))
    })
}

fn resolved(file: &Path, path: String) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME"), file.parent()) {
        (Some(rest), Some(home), _) => PathBuf::from(home).join(rest),
        (_, _, Some(directory)) => directory.join(path),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_found_however_they_are_written() {
        let text = "[core]\n\tpath = no\n[include]\n\tpath = a\n# path = no\n[includeIf \"gitdir:/x/\"] path=\"/b c\"\n\
                    [INCLUDE]\n\tPath = ~/d\n[user]\n\tpath = no\n";
        assert_eq!(paths(text).collect::<Vec<_>>(), ["a", "/b c", "~/d"]);
    }

    #[test]
    fn the_file_that_may_not_be_read_is_named_also_behind_another() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("config"), "[include]\n\tpath = missing\n\tpath = other\n").unwrap();
        fs::write(at("other"), "[include]\n\tpath = config\n\tpath = closed\n").unwrap();
        assert_eq!(included(&at("config")), Ok(BTreeSet::from([at("other")])));
        // Read as a file, a directory fails for every user.
        fs::create_dir(at("closed")).unwrap();
        assert_eq!(included(&at("config")), Err(at("closed")));
    }
}
