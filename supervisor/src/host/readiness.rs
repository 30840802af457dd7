//! File descriptors that the runtime waits on: pidfds and timers.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor for reading.
#[expect(
    deprecated,
    reason = "its successor is an unsafe function because a generic inner type may change its descriptor; an OwnedFd cannot"
)]
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}
