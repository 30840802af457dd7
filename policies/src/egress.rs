//! Connects a run to its proxy: a port of the run's own loopback interface, whose listening socket is outside of the
//! run.
//!
//! ```text
//! confine, in the run's network ──listener──► keeper (the shim) ◄──asks── daemon that serves the proxy
//! ```
//!
//! A socket belongs to the network in which it was made, wherever its descriptor goes. So a process that accepts from
//! it knows by construction which run connects, and the run has no other connection to the outside. The keeper has the
//! socket as long as the run lives, and gives it to each daemon that asks. While there is no daemon, connections of the
//! worker wait in the queue of the socket.
//!
//! See decision 0091.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The port on the run's loopback interface. No other process listens in the run's network before the worker starts, so
/// any number would be free; this number is usual for proxies.
pub const PROXY_PORT: u16 = 3128;
/// Limit on the connections of a run that wait to be accepted.
const BACKLOG: i32 = 128;
/// Message that comes with the listening socket.
const LISTENER: u8 = b'l';
/// Message that comes with a socket on which the listening socket is to be sent.
const ASK: u8 = b'a';
/// Limit on the clients that wait for a listening socket: the daemon, and a daemon that has ended meanwhile.
const WAITING: usize = 4;

/// Failed step of handing a listening socket over.
#[derive(Debug, thiserror::Error)]
#[error("hand over the listening socket of the proxy: {step} {}: {source}", .path.display())]
pub struct EgressError {
    step: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Connection over which a run hands its listening socket over.
#[derive(Debug)]
pub(crate) struct Egress {
    keeper: UnixDatagram,
    path: PathBuf,
}

impl Egress {
    /// Connects to a keeper, before the caller is restricted.
    pub(crate) fn to(path: &Path) -> Result<Self, EgressError> {
        let opened = connect(path).map_err(at("connect to", path))?;
        Ok(Self { keeper: opened, path: path.to_owned() })
    }

    /// Listens in the caller's network, and hands the socket over.
    pub(crate) fn hand_over(self) -> Result<(), EgressError> {
        let listen = || -> io::Result<TcpListener> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
            rustix::net::listen(&listener, BACKLOG)?;
            Ok(listener)
        };
        let listener = listen().map_err(at("listen for", &self.path))?;
        send(&self.keeper, LISTENER, listener.as_fd()).map_err(at("send it to", &self.path))
    }
}

/// Holder of the listening socket of a run.
#[derive(Debug)]
pub struct Keeper {
    socket: UnixDatagram,
    listener: Option<OwnedFd>,
    waiting: Vec<OwnedFd>,
}

impl Keeper {
    /// Waits at a path for a listening socket, and for clients that ask for it. The directory must be closed to the
    /// run.
    ///
    /// # Errors
    /// Fails if the socket cannot be made.
    pub fn bind(path: &Path) -> Result<Self, EgressError> {
        let bind = || {
            let (_dir, short) = short(path)?;
            let socket = UnixDatagram::bind(short)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = bind().map_err(at("bind", path))?;
        Ok(Self { socket, listener: None, waiting: Vec::new() })
    }

    /// Takes pending messages, and gives the listening socket to the clients that ask for it. Never blocks.
    pub fn attend(&mut self) {
        while let Ok(Some((word, fd))) = receive(&self.socket) {
            match word {
                LISTENER if self.listener.is_none() => self.listener = Some(fd),
                ASK if self.waiting.len() < WAITING => self.waiting.push(fd),
                _ => {}
            }
        }
        let Some(listener) = &self.listener else { return };
        for asker in self.waiting.drain(..) {
            // A client that has ended needs no socket.
            drop(send(&asker, LISTENER, listener.as_fd()));
        }
    }
}

impl AsFd for Keeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Asks the keeper at a path for a listening socket. The returned stream becomes readable when there is an answer, for
/// [`receive_listener`], or when the keeper has ended.
///
/// # Errors
/// `NotFound` or `ConnectionRefused` if there is no keeper: not yet, or no longer.
pub fn ask_keeper(path: &Path) -> io::Result<UnixStream> {
    let keeper = connect(path)?;
    let (keeper_end, other) = UnixStream::pair()?;
    keeper_end.set_nonblocking(true)?;
    keeper.set_nonblocking(true)?;
    send(&keeper, ASK, other.as_fd())?;
    Ok(keeper_end)
}

/// Takes the listening socket out of a reply, without blocking. None if the keeper has ended without a reply.
///
/// # Errors
/// `WouldBlock` if there is no reply yet.
pub fn receive_listener(answer: impl AsFd) -> io::Result<Option<TcpListener>> {
    let Some((_, fd)) = receive(answer)? else { return Ok(None) };
    let listener = TcpListener::from(fd);
    listener.set_nonblocking(true)?;
    Ok(Some(listener))
}

/// Returns a short path to the same file, because the path of a socket has at most 107 bytes. It is valid while the
/// directory is open.
fn short(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let dir = open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
    Ok((dir, short))
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let (_dir, short) = short(path)?;
    let socket = UnixDatagram::unbound()?;
    socket.connect(short)?;
    Ok(socket)
}

fn send(socket: impl AsFd, word: u8, fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let fds = [fd];
    with.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(socket, &[IoSlice::new(&[word])], &mut with, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message with its descriptor; none if the other side has ended, or has sent none.
fn receive(socket: impl AsFd) -> io::Result<Option<(u8, OwnedFd)>> {
    let (mut word, mut space) = ([0_u8], [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))]);
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(socket, &mut [IoSliceMut::new(&mut word)], &mut with, flags)?;
    let fd = with.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(fd.map(|fd| (word[0], fd)))
}

fn at(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> EgressError + use<> {
    let path = path.to_owned();
    move |source| EgressError { step, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::TcpStream;

    #[test]
    fn who_asks_gets_the_listening_socket_before_and_after_it_is_there_and_again() {
        let dir = tempfile::tempdir().unwrap();
        // Longer than the path of a socket may be.
        let deep = dir.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("keeper");
        assert_eq!(ask_keeper(&path).unwrap_err().kind(), ErrorKind::NotFound);
        let mut keeper = Keeper::bind(&path).unwrap();

        let early = ask_keeper(&path).unwrap();
        keeper.attend();
        assert_eq!(receive_listener(&early).unwrap_err().kind(), ErrorKind::WouldBlock);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        send(connect(&path).unwrap(), LISTENER, listener.as_fd()).unwrap();
        drop(listener);
        keeper.attend();

        for answer in [early, ask_keeper(&path).unwrap()] {
            keeper.attend();
            let listener = receive_listener(&answer).unwrap().unwrap();
            assert_eq!(listener.local_addr().unwrap(), address);
            assert!(rustix::io::fcntl_getfd(&listener).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
            drop(listener);
            TcpStream::connect(address).unwrap();
        }
    }

    #[test]
    fn a_second_listening_socket_replaces_none_and_the_end_of_a_keeper_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keeper");
        let mut keeper = Keeper::bind(&path).unwrap();
        let [first, second] = [0, 0].map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap());
        for listener in [&first, &second] {
            send(connect(&path).unwrap(), LISTENER, listener.as_fd()).unwrap();
        }
        let answer = ask_keeper(&path).unwrap();
        keeper.attend();
        let kept = receive_listener(&answer).unwrap().unwrap();
        assert_eq!(kept.local_addr().unwrap(), first.local_addr().unwrap());

        let late = ask_keeper(&path).unwrap();
        drop(keeper);
        assert!(receive_listener(&late).unwrap().is_none());
        assert_eq!(ask_keeper(&path).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }

    #[test]
    fn only_so_many_wait_for_a_listening_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keeper");
        let mut keeper = Keeper::bind(&path).unwrap();
        let mut ask = || {
            let answer = ask_keeper(&path).unwrap();
            keeper.attend();
            answer
        };
        let waiting: Vec<UnixStream> = (0..WAITING).map(|_| ask()).collect();
        assert!(receive_listener(ask()).unwrap().is_none(), "it is sent away");
        for answer in waiting {
            assert_eq!(receive_listener(&answer).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    }
}
