//! A mount of a file system in user space, whose server is the test.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use nix::mount::{MsFlags, mount};

use super::{User, skip};

/// Mounts one, where this host allows that. Returns the end of its server; `what` names it in the skip.
pub(crate) fn mount_fuse(at: &Path, what: &str) -> Option<File> {
    if User::current() != User::Root {
        skip(&format!("{what}: needs root"));
        return None;
    }
    let Ok(device) = File::options().read(true).write(true).open("/dev/fuse") else {
        skip(&format!("{what}: needs /dev/fuse"));
        return None;
    };
    let options = format!("fd={},rootmode=40755,user_id=0,group_id=0,allow_other", device.as_raw_fd());
    if mount(Some("test"), at, Some("fuse"), MsFlags::empty(), Some(options.as_str())).is_err() {
        skip(&format!("{what}: this host allows no FUSE"));
        return None;
    }
    Some(device)
}
