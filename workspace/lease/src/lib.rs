//! Leases on directories, for a shim that works in one and for a daemon that removes one.
//!
//! A lease is a locked file, so the kernel releases it when its owner ends. The name of the file is the device and
//! inode of the directory, so two boards cannot work in one directory under two names.

mod identity;
mod lease;
mod lease_error;
pub mod lock;
mod removal_lock;

pub use identity::FileIdentity;
pub use lease::{Lease, sweep};
pub use lease_error::{LeaseError, LeaseHolder};
