//! Checks if a process listens on the file of a Unix socket, without connecting to it (`proc_pid_net(5)`,
//! `sock_diag(7)`).

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// Type of the request and its reply, and the flag of the request (`netlink(7)`).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
/// The socket's file: the flag that requests it, and the attribute that reports it.
const UDIAG_SHOW_VFS: u32 = 2;
const UNIX_DIAG_VFS: u16 = 1;
/// Sizes in bytes: of the header of a message, of a request, and of a reply before its attributes.
const HEADER: usize = 16;
const ASKED: usize = HEADER + 24;
const SAID: usize = HEADER + 16;
/// Flag in the kernel's list: the socket accepts connections.
const ACCEPTS: u32 = 0x1_0000;

/// Returns true if a process of this network namespace listens on the socket at a path.
pub(crate) fn is_listened_on(path: &Path) -> bool {
    let (Ok(file), Ok(list)) = (std::fs::symlink_metadata(path), File::open("/proc/self/net/unix")) else {
        return false;
    };
    let place = resolved(path);
    let lines = BufReader::new(list).split(b'\n').map_while(Result::ok);
    let mut sockets = lines.filter_map(|line| {
        let line = String::from_utf8(line).ok()?;
        let (socket, name) = listening(&line)?;
        (resolved(Path::new(name)) == place).then_some(socket)
    });
    sockets.any(|socket| is_file_of(socket, file.ino()))
}

/// Returns true if a path leads to the file of this socket.
pub(crate) fn is_at(socket: impl AsFd, path: &Path) -> bool {
    match (rustix::fs::fstat(socket), std::fs::symlink_metadata(path)) {
        (Ok(socket), Ok(file)) => is_file_of(socket.st_ino, file.ino()),
        _ => false,
    }
}

/// Returns the path with all links of its directory resolved.
pub fn resolved(path: &Path) -> PathBuf {
    let directory = path.parent().and_then(|directory| directory.canonicalize().ok());
    match (directory, path.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    }
}

/// Parses a line of the kernel's list: the inode of a listening socket, and the path that it was bound to.
fn listening(line: &str) -> Option<(u64, &str)> {
    let mut rest = line;
    let mut word = || {
        let (word, behind) = rest.trim_start().split_once(' ')?;
        rest = behind;
        Some(word)
    };
    let [_, _, _, flags, _, _, inode] = [word()?, word()?, word()?, word()?, word()?, word()?, word()?];
    let accepts = u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & ACCEPTS != 0);
    (accepts && rest.starts_with('/')).then_some((inode.parse().ok()?, rest))
}

/// Returns true if a socket was bound to the file with this inode. On a kernel without `CONFIG_UNIX_DIAG` the path
/// alone decides.
fn is_file_of(socket: u64, file: u64) -> bool {
    // The kernel reports the lower 32 bits of the inode.
    bound_to(socket).is_none_or(|bound| u64::from(bound) == file & u64::from(u32::MAX))
}

/// Returns the inode of the file that a socket was bound to.
fn bound_to(socket: u64) -> Option<u32> {
    let request = request(u32::try_from(socket).ok()?);
    let link = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )
    .ok()?;
    send(&link, &request, SendFlags::empty()).ok()?;
    let mut reply = [0_u8; 512];
    // The reply is available as soon as the request has been sent.
    let (length, _) = recv(&link, &mut reply, RecvFlags::DONTWAIT).ok()?;
    let reply = reply.get(..length)?;
    if reply.get(4..6)? != SOCK_DIAG_BY_FAMILY.to_ne_bytes() {
        return None;
    }
    attribute(reply.get(SAID..)?, UNIX_DIAG_VFS)
}

/// Returns the first number of an attribute (`struct rtattr`: length, type and value, aligned to four bytes).
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<u32> {
    loop {
        let length = usize::from(u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?);
        if kind == wanted {
            return Some(u32::from_ne_bytes(attributes.get(4..8)?.try_into().ok()?));
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

/// Makes the request for one socket: `struct nlmsghdr`, then `struct unix_diag_req`.
fn request(socket: u32) -> [u8; ASKED] {
    let mut request = [0_u8; ASKED];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        request[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&u32::try_from(ASKED).unwrap_or_default().to_ne_bytes());
    put(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(&NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and port id: there is only one request.
    put(&[0; 8]);
    put(&[u8::try_from(AddressFamily::UNIX.as_raw()).unwrap_or_default(), 0, 0, 0]);
    put(&u32::MAX.to_ne_bytes());
    put(&socket.to_ne_bytes());
    put(&UDIAG_SHOW_VFS.to_ne_bytes());
    // No cookie from an earlier reply.
    put(&[0xff; 8]);
    request
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn who_listens_on_a_file_is_known_and_a_file_that_is_left_is_nobodys() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a socket");
        assert!(!is_listened_on(&path));
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(is_listened_on(&path) && is_at(&listener, &path));
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody connected");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(is_listened_on(&link.join("a socket")));

        std::fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        assert!(!is_listened_on(&path) && !is_at(&listener, &path));
        drop(UnixListener::bind(&path).unwrap());
        assert!(!is_listened_on(&path) && !is_at(&listener, &path), "the name is another file's now");
        drop(listener);
        assert!(!is_listened_on(&dir.path().join("elsewhere")));
    }

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01  4711 /run/a b/sock";
        assert_eq!(listening(line), Some((4711, "/run/a b/sock")));
        for other in [
            "Num       RefCount Protocol Flags    Type St Inode Path",
            "0000000000000000: 00000003 00000000 00000000 0001 03  4711 /run/sock",
            "0000000000000000: 00000002 00000000 00010000 0001 01  4711 @/run/sock",
            "0000000000000000: 00000002 00000000 00010000 0001 01  4711",
            "",
        ] {
            assert_eq!(listening(other), None, "{other}");
        }
    }

    #[test]
    fn the_attribute_that_is_asked_for_is_found_behind_others() {
        let word = |number: u16| number.to_ne_bytes().to_vec();
        let message =
            [word(5), word(6), vec![9, 0, 0, 0], word(12), word(1), 77_u32.to_ne_bytes().to_vec()].concat();
        assert_eq!(attribute(&message, UNIX_DIAG_VFS), Some(77));
        assert_eq!(attribute(&message, 3), None);
        assert_eq!(attribute(&[0, 0, 0, 0], 3), None);
    }
}
