//! The host's users by their numbers.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use nix::unistd::{Uid, User};

/// The file that has the host's own users (passwd(5)).
const USERS: &str = "/etc/passwd";

/// A user of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) home: PathBuf,
}

/// Returns the user with a number, where the host knows one.
///
/// A static program cannot load what `nsswitch.conf` names, which is built for the library of one host: it knows the users of the
/// file alone.
pub(crate) fn account(uid: Uid) -> Option<Account> {
    if cfg!(target_feature = "crt-static") {
        return listed(&std::fs::read(USERS).ok()?, uid);
    }
    let user = User::from_uid(uid).ok().flatten()?;
    Some(Account { name: user.name, home: user.dir })
}

/// The user in the text of the file.
fn listed(text: &[u8], uid: Uid) -> Option<Account> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        let (name, number, home) = (fields.next()?, fields.nth(1)?, fields.nth(2)?);
        let number: u32 = str::from_utf8(number).ok()?.parse().ok()?;
        let name = str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
        (number == uid.as_raw())
            .then(|| Account { name: name.to_owned(), home: OsStr::from_bytes(home).into() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_and_the_library_know_the_same_users() {
        let text = std::fs::read(USERS).unwrap();
        for number in [0, 1, 65_534] {
            let uid = Uid::from_raw(number);
            assert_eq!(listed(&text, uid), account(uid), "{number}");
        }
    }

    #[test]
    fn a_line_that_is_no_users_is_passed_over() {
        let text = b"# users\n+:::\nann\nann:x:7\n:x:7:7::/nobody:/bin/sh\nbob:x:7:7:Bob:/home/bob:/bin/sh\nlate:x:7:7::/x:/y";
        let bob = listed(text, Uid::from_raw(7)).unwrap();
        assert_eq!((bob.name.as_str(), bob.home), ("bob", "/home/bob".into()));
        assert_eq!(listed(text, Uid::from_raw(8)), None);
    }
}
