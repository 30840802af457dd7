//! Files with the names of users and groups that a run sees: the host's files, with a name for the run's own user and
//! group if the host has none.
//!
//! Programs such as `whoami`, `ssh`, `git` and Python's `getpass` look up their own user and fail without an entry.

use std::path::Path;

use crate::run_context::Identity;

/// Name of the run's user and group if the host has no name for them.
const NAME: &str = "worker";

/// Path of the host's list of users (passwd(5)).
pub const USERS: &str = "/etc/passwd";
/// Path of the host's list of groups (group(5)).
pub const GROUPS: &str = "/etc/group";

/// File of the host that the view replaces, with its new text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub(crate) at: &'static Path,
    pub(crate) text: Vec<u8>,
}

/// Returns the files that must be replaced so that this user and group have names.
pub(crate) fn replaced(identity: Identity, home: &Path) -> Vec<Replaced> {
    let Identity { uid, gid } = identity;
    let user = format!("{NAME}:x:{uid}:{gid}:a worker of the supervisor:{}:/bin/sh\n", home.display());
    let files = [(USERS, uid, user), (GROUPS, gid, format!("{NAME}:x:{gid}:\n"))];
    let replaced = files.into_iter().filter_map(|(path, id, line)| {
        let text = std::fs::read(path).ok()?;
        Some(Replaced { at: Path::new(path), text: with_entry(text, id, &line)? })
    });
    replaced.collect()
}

/// Returns the text with a line for an id added; none if the text has a line for it.
fn with_entry(mut text: Vec<u8>, id: u32, line: &str) -> Option<Vec<u8>> {
    let has = |line: &[u8]| {
        let third = line.split(|byte| *byte == b':').nth(2);
        third.and_then(|word| std::str::from_utf8(word).ok()?.parse::<u32>().ok()) == Some(id)
    };
    if text.split(|byte| *byte == b'\n').any(has) {
        return None;
    }
    if text.last().is_some_and(|byte| *byte != b'\n') {
        text.push(b'\n');
    }
    text.extend(line.as_bytes());
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_without_an_entry_gets_one_and_another_keeps_its_own() {
        let text = || b"root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh".to_vec();
        assert_eq!(with_entry(text(), 1000, "w\n"), None);
        let made = with_entry(text(), 100, "w:x:100\n").unwrap();
        assert!(made.ends_with(b"/bin/sh\nw:x:100\n"), "{}", String::from_utf8_lossy(&made));
    }
}
