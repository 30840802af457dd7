//! Finds the Unix user at the other end of a loopback connection. The kernel knows the user of every socket
//! (`sock_diag(7)`).
//!
//! See decision 0171.

use std::net::{IpAddr, SocketAddr};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// Type of the request and of its reply, and flag of a request (netlink(7)).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
/// TCP (`IPPROTO_TCP`).
const PROTOCOL: u8 = 6;
/// Sizes in bytes of the header of a message, of a request and of a reply, header included.
const HEADER: usize = 16;
const ASKED: usize = HEADER + 56;
const SAID: usize = HEADER + 72;
/// Offsets in a reply of the state, of the ports and addresses, of the uid and of the inode.
const STATE: usize = HEADER + 1;
const ENDS: usize = HEADER + 4;
const UID: usize = SAID - 8;
const INODE: usize = SAID - 4;
/// Offset of the ports and addresses in a request, and their length in both.
const ASKED_ENDS: usize = HEADER + 8;
const ENDS_LENGTH: usize = 36;
/// State of a socket that listens (`TCP_LISTEN`).
const LISTENS: u8 = 10;

/// Reason why the Unix user of a peer is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error("the connection comes from {0}, which is not an address of loopback")]
    Elsewhere(IpAddr),
    #[error("the kernel does not report the user of the connection")]
    Unreported,
}

/// Returns the Unix user of the socket `theirs` that is connected to `ours`, both on loopback.
///
/// # Errors
/// The peer is not on loopback, the kernel does not report its user, or the peer has closed its socket, which then has no
/// user any more.
pub fn owner(theirs: SocketAddr, ours: SocketAddr) -> Result<u32, Unknown> {
    if !theirs.ip().is_loopback() {
        return Err(Unknown::Elsewhere(theirs.ip()));
    }
    reported(theirs, ours).ok_or(Unknown::Unreported)
}

fn reported(theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    let request = request(theirs, ours)?;
    let flags = SocketFlags::CLOEXEC;
    let link =
        socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG)).ok()?;
    send(&link, &request, SendFlags::empty()).ok()?;
    let mut reply = [0_u8; 512];
    // The kernel answers within send(2), so the reply can be read at once.
    let (length, _) = recv(&link, &mut reply, RecvFlags::DONTWAIT).ok()?;
    let reply = reply.get(..length)?;
    let is_said = length >= SAID && reply.get(4..6)? == SOCK_DIAG_BY_FAMILY.to_ne_bytes();
    let number = |at: usize| Some(u32::from_ne_bytes(reply.get(at..at + 4)?.try_into().ok()?));
    // Without such a connection, the kernel reports a socket that listens at the address. It may be another user's, so
    // the ports and addresses of the reply are compared.
    let asked = request.get(ASKED_ENDS..ASKED_ENDS + ENDS_LENGTH)?;
    let is_peer = is_said && reply.get(ENDS..ENDS + ENDS_LENGTH)? == asked && *reply.get(STATE)? != LISTENS;
    // A socket that no process has open has the inode 0, and the kernel reports root as its user.
    if !is_peer || number(INODE)? == 0 {
        return None;
    }
    number(UID)
}

/// Makes the request for one socket: `struct nlmsghdr`, then `struct inet_diag_req_v2`.
fn request(theirs: SocketAddr, ours: SocketAddr) -> Option<[u8; ASKED]> {
    let mut request = [0_u8; ASKED];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        request[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&u32::try_from(ASKED).ok()?.to_ne_bytes());
    put(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(&NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and port id: there is only one request.
    put(&[0; 8]);
    let family = match (theirs.ip(), ours.ip()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => AddressFamily::INET,
        (IpAddr::V6(_), IpAddr::V6(_)) => AddressFamily::INET6,
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return None,
    };
    put(&[u8::try_from(family.as_raw()).ok()?, PROTOCOL, 0, 0]);
    put(&u32::MAX.to_ne_bytes());
    put(&theirs.port().to_be_bytes());
    put(&ours.port().to_be_bytes());
    for address in [theirs.ip(), ours.ip()] {
        let mut room = [0_u8; 16];
        match address {
            IpAddr::V4(four) => room[..4].copy_from_slice(&four.octets()),
            IpAddr::V6(six) => room = six.octets(),
        }
        put(&room);
    }
    // Any interface, and no cookie from an earlier reply.
    put(&[0; 4]);
    put(&[0xff; 8]);
    Some(request)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_user_of_an_open_socket_is_known_and_that_of_a_closed_one_is_not() {
        let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        for address in addresses {
            // A host may have no IPv6.
            let Ok(listener) = TcpListener::bind((address, 0)) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (near, theirs) = listener.accept().unwrap();
            let ours = near.local_addr().unwrap();
            let own = nix::unistd::geteuid().as_raw();
            assert_eq!(owner(theirs, ours), Ok(own), "{address}");
            assert_eq!(owner(ours, theirs), Ok(own), "the other way round");
            drop(client);
            assert_eq!(owner(theirs, ours), Err(Unknown::Unreported), "nobody has it open");
        }
        let elsewhere: SocketAddr = "192.0.2.1:80".parse().unwrap();
        assert_eq!(owner(elsewhere, elsewhere), Err(Unknown::Elsewhere(elsewhere.ip())));
    }

    #[test]
    fn a_socket_that_listens_at_the_address_of_a_closed_peer_is_not_the_peer() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (listens, nowhere) = (listener.local_addr().unwrap(), "127.0.0.1:9".parse().unwrap());
        assert_eq!(owner(listens, nowhere), Err(Unknown::Unreported));
    }
}
