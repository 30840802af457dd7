//! Looks up users and groups of the host by number or name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::unistd::{Uid, User};
use policies::{GROUPS, USERS};

use setup::config::tenants::UserName;

/// Entry of the user database: the name, the primary group and the home of a uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixUser {
    pub name: String,
    /// Number of the primary group.
    pub gid: u32,
    pub home: PathBuf,
}

/// Returns the user with a number, if the host knows one.
///
/// A static program cannot load the modules of `nsswitch.conf`, which are built for the C library of one host. Such a
/// build knows only the users in `/etc/passwd`.
pub fn user_by_uid(uid: Uid) -> Option<UnixUser> {
    look_up(uid).ok().flatten()
}

/// Returns the user with a number, if the host knows one. Blocking: the user database may be a slow network service.
///
/// # Errors
/// Number of the error of a user database that does not answer.
pub(crate) fn look_up(uid: Uid) -> Result<Option<UnixUser>, Errno> {
    if cfg!(target_feature = "crt-static") {
        return Ok(listed(&text_of(USERS)?, uid));
    }
    let user = entry(User::from_uid(uid))?;
    Ok(user.map(|user| UnixUser { name: user.name, gid: user.gid.as_raw(), home: user.dir }))
}

/// Returns all names of a group: several lines of `/etc/group` may have one number. Blocking, as [`look_up`].
///
/// # Errors
/// Number of the error of a group database that does not answer.
pub(crate) fn group_names(gid: u32) -> Result<Vec<String>, Errno> {
    let text = text_of(GROUPS)?;
    let mut names = listed_names(&String::from_utf8_lossy(&text), gid);
    if !cfg!(target_feature = "crt-static") {
        let group = entry(nix::unistd::Group::from_gid(nix::unistd::Gid::from_raw(gid)))?;
        names.extend(group.map(|group| group.name));
    }
    Ok(names)
}

/// Converts the errors by which `getpwuid_r(3)` says that there is no entry.
fn entry<T>(looked_up: nix::Result<Option<T>>) -> Result<Option<T>, Errno> {
    match looked_up {
        Err(Errno::ENOENT | Errno::ESRCH | Errno::EBADF | Errno::EPERM) => Ok(None),
        looked_up => looked_up,
    }
}

fn text_of(path: &str) -> Result<Vec<u8>, Errno> {
    match std::fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or_default())),
    }
}

/// Returns the names of a group from the text of `/etc/group` (group(5)).
fn listed_names(text: &str, gid: u32) -> Vec<String> {
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(gid)).then(|| name.to_owned())
    };
    text.lines().filter_map(of_line).collect()
}

/// Uid and gid of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login {
    pub uid: u32,
    pub gid: u32,
}

/// Returns true if the host knows a group. A group that is named by number needs no entry.
pub fn is_group(named: &UserName) -> bool {
    let UserName::Name(name) = named else { return true };
    if cfg!(target_feature = "crt-static") {
        let text = std::fs::read_to_string(GROUPS).unwrap_or_default();
        return text.lines().any(|line| line.split(':').next() == Some(name));
    }
    nix::unistd::Group::from_name(name).ok().flatten().is_some()
}

/// Returns the uid and gid of a named user, if the host knows one.
pub fn login(named: &UserName) -> Option<Login> {
    if cfg!(target_feature = "crt-static") {
        return numbers(&std::fs::read(USERS).ok()?, named);
    }
    let user = match named {
        UserName::Name(name) => User::from_name(name),
        UserName::Number(uid) => User::from_uid(Uid::from_raw(*uid)),
    };
    user.ok().flatten().map(|user| Login { uid: user.uid.as_raw(), gid: user.gid.as_raw() })
}

/// Returns the uid and gid of a user from the text of `/etc/passwd`.
fn numbers(text: &[u8], named: &UserName) -> Option<Login> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = str::from_utf8(line).ok()?.split(':');
        let (name, uid, gid) = (fields.next()?, fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        named.means(uid, Some(name)).then_some(Login { uid, gid })
    })
}

/// Returns the groups of a user with their names: the primary group, and the groups that list the user.
pub fn groups(account: &UnixUser, primary: u32) -> Vec<(u32, Option<String>)> {
    if cfg!(target_feature = "crt-static") {
        let text = std::fs::read_to_string(GROUPS).unwrap_or_default();
        return listed_groups(&text, &account.name, primary);
    }
    let name = std::ffi::CString::new(account.name.as_str()).unwrap_or_default();
    let primary_group = nix::unistd::Gid::from_raw(primary);
    let gids = nix::unistd::getgrouplist(&name, primary_group).unwrap_or_else(|_| vec![primary_group]);
    let name_of = |gid| nix::unistd::Group::from_gid(gid).ok().flatten().map(|group| group.name);
    gids.into_iter().map(|gid| (gid.as_raw(), name_of(gid))).collect()
}

/// Returns the groups of a user from the text of `/etc/group` (group(5)).
fn listed_groups(text: &str, user: &str, primary: u32) -> Vec<(u32, Option<String>)> {
    let listed = text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, gid, members) = (fields.next()?, fields.nth(1)?.parse().ok()?, fields.next()?);
        let is_member = gid == primary || members.split(',').any(|member| member == user);
        is_member.then(|| (gid, Some(name.to_owned())))
    });
    let mut groups: Vec<_> = listed.collect();
    if !groups.iter().any(|(gid, _)| *gid == primary) {
        groups.push((primary, None));
    }
    groups
}

/// Returns a user from the text of `/etc/passwd`.
fn listed(text: &[u8], uid: Uid) -> Option<UnixUser> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        let (name, number, gid, home) = (fields.next()?, fields.nth(1)?, fields.next()?, fields.nth(1)?);
        let parsed = |field| str::from_utf8(field).ok()?.parse::<u32>().ok();
        let (number, gid) = (parsed(number)?, parsed(gid)?);
        let name = str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
        (number == uid.as_raw()).then(|| UnixUser {
            name: name.to_owned(),
            gid,
            home: OsStr::from_bytes(home).into(),
        })
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
            assert_eq!(listed(&text, uid), user_by_uid(uid), "{number}");
        }
    }

    #[test]
    fn a_user_has_its_primary_group_and_those_that_name_it() {
        let text = "staff:x:50:ann,bob\nann:x:7:\nother:x:8:zoe\n";
        let found = listed_groups(text, "ann", 7);
        assert_eq!(found, [(50, Some("staff".to_owned())), (7, Some("ann".to_owned()))]);
        assert_eq!(listed_groups(text, "eve", 9), [(9, None)]);
        let root = login(&"root".parse().unwrap()).unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(numbers(&std::fs::read(USERS).unwrap(), &UserName::Number(0)), Some(root));
    }

    #[test]
    fn a_group_has_the_names_of_all_lines_with_its_number() {
        let text = "root:x:0:\nann:x:1000:\ncontainers:x:995:ann\nbad\ndocker:x:995:\n";
        assert_eq!(listed_names(text, 995), ["containers", "docker"]);
        assert!(group_names(0).unwrap().contains(&"root".to_owned()));
    }

    #[test]
    fn a_line_that_is_no_users_is_passed_over() {
        let text = b"# users\n+:::\nann\nann:x:7\n:x:7:7::/nobody:/bin/sh\nbob:x:7:7:Bob:/home/bob:/bin/sh\nlate:x:7:7::/x:/y";
        let bob = listed(text, Uid::from_raw(7)).unwrap();
        assert_eq!((bob.name.as_str(), bob.gid, bob.home), ("bob", 7, "/home/bob".into()));
        assert_eq!(listed(text, Uid::from_raw(8)), None);
    }
}
