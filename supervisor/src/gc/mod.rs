//! What tasks leave on the host, and how it is removed: only what this program created, and nothing that is in use.
//!
//! Whatever lies in a directory that a worker could write is measured and removed by a job process under that worker's uid.
//! Names are listed before the board is read: what was made for a run after that is not among them, and the state of
//! each one that is listed is at least as new as its name.

mod collection;
mod item;
mod logs;
mod places;
mod runs;
mod scratch;
mod sessions;
mod worktrees;

pub(crate) use collection::{Ages, Collection, Cursor};
pub(crate) use item::{Fate, Item, Kind};
pub(crate) use kernel::Sweep;
pub(crate) use logs::remove_all as remove_logs;
pub(crate) use scratch::{Owner, Scratch, has_scratch, remove_archived};
pub(crate) use sessions::{of_profile as sessions_of_profile, of_task as sessions_of_task};
pub(crate) use worktrees::remove as remove_worktree;
