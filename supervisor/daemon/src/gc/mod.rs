//! Removes leftovers of tasks from the host: only files that this program created, and never files in use.
//!
//! A job process under the worker's uid measures and removes everything in directories that the worker could write.
//! Names are listed before the board is read. So files made later for a new run are not in the list, and each listed
//! name is judged by a state at least as recent as the name.

mod collection;
mod item;
mod logs;
mod removal_checks;
mod runs;
mod scratch;
mod sessions;
mod worktrees;

pub use collection::{Ages, Collection, Cursor};
pub use item::{CollectResult, Item, Kind};
pub use kernel::Sweep;
pub use logs::remove_all as remove_logs;
pub use scratch::{Owner, Scratch, has_scratch, remove_archived};
pub use sessions::{of_profile as sessions_of_profile, of_task as sessions_of_task};
pub use worktrees::remove as remove_worktree;
