//! Registers pidfds and timers with the async runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

use base::failpoint;

/// Registers a descriptor for reading.
#[expect(
    deprecated,
    reason = "its successor is an unsafe function because a generic inner type may change its descriptor; an OwnedFd cannot"
)]
pub fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

/// Waits until a descriptor is readable. Cancel-safe: readiness persists.
pub async fn noticed(fd: &AsyncFd<OwnedFd>) -> io::Result<AsyncFdReadyGuard<'_, OwnedFd>> {
    let ready = fd.readable().await?;
    failpoint::pass("reap");
    Ok(ready)
}
