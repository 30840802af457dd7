//! Network that belongs to a run alone, with a loopback interface and nothing else.

use std::io;

use nix::sched::{CloneFlags, unshare};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// `RTM_NEWLINK` (rtnetlink(7)).
const NEW_LINK: u16 = 16;
/// `NLM_F_REQUEST | NLM_F_ACK` (netlink(7)).
const REQUEST_AND_ACK: u16 = 0x1 | 0x4;
/// `NLMSG_ERROR`, which is also the acknowledgement.
const ERROR: u16 = 2;
/// `IFF_UP` (netdevice(7)).
const UP: u32 = 0x1;
/// Index of the loopback interface, the first interface of a network namespace.
const LOOPBACK: i32 = 1;
/// Length of the headers of netlink (16 bytes) and of a link (16 bytes).
const LENGTH: u32 = 32;

/// Failed step of making the loopback interface.
#[derive(Debug, thiserror::Error)]
#[error("make a loopback interface for the run: {step}: {source}")]
pub struct LoopbackError {
    step: &'static str,
    #[source]
    source: io::Error,
}

/// Moves the calling process into a network namespace of its own and brings its loopback interface up.
pub(crate) fn enter() -> Result<(), LoopbackError> {
    let at = |step| move |source: io::Error| LoopbackError { step, source };
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| at("unshare the network")(error.into()))?;
    // Protocol 0 of netlink is routing.
    let link = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .map_err(|error| at("open a netlink socket")(error.into()))?;
    send(&link, &bring_up(), SendFlags::empty()).map_err(|error| at("bring it up")(error.into()))?;
    let mut reply = [0_u8; 256];
    let (length, _) = recv(&link, &mut reply[..], RecvFlags::empty())
        .map_err(|error| at("wait for the kernel's answer")(error.into()))?;
    acknowledged(reply.get(..length).unwrap_or_default()).map_err(at("bring it up"))
}

/// Returns the message that sets the interface's flag: `struct nlmsghdr`, then `struct ifinfomsg`.
fn bring_up() -> Vec<u8> {
    let mut message = Vec::new();
    message.extend(LENGTH.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACK.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes()); // sequence
    message.extend(0_u32.to_ne_bytes()); // port
    message.extend([0_u8; 4]); // family, padding, type
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(UP.to_ne_bytes()); // flags
    message.extend(UP.to_ne_bytes()); // which of them change
    message
}

/// Reads the reply of the kernel: a negative error number, or 0.
fn acknowledged(reply: &[u8]) -> io::Result<()> {
    let kind = reply.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = reply.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, code) {
        (Some(ERROR), Some(0)) => Ok(()),
        (Some(ERROR), Some(code)) => Err(io::Error::from_raw_os_error(-code)),
        _ => Err(io::Error::other("the kernel's answer is not understood")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_the_length_that_it_says() {
        assert_eq!(bring_up().len(), LENGTH as usize);
    }

    #[test]
    fn an_answer_is_an_error_number_or_none() {
        let answer = |code: i32| {
            let mut reply = vec![0_u8; 36];
            reply[4..6].copy_from_slice(&ERROR.to_ne_bytes());
            reply[16..20].copy_from_slice(&code.to_ne_bytes());
            acknowledged(&reply)
        };
        assert!(answer(0).is_ok());
        assert_eq!(answer(-1).unwrap_err().raw_os_error(), Some(1));
        assert!(acknowledged(&[0; 8]).is_err());
    }
}
