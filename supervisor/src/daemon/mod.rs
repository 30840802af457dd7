//! The daemon: one owner loop that decides, and tracked tasks that act.
//!
//! ```text
//!   commits ─┐
//!   exits  ──┤→ Event → Dispatcher::decide → Action → run_task (claim, prepare, spawn, watch, finish)
//!   timer  ──┤                                     → read a board, stop a run, arm the timer
//!   signals ─┘
//! ```
//!
//! Its two rooms: `owner` names `run`, but not the other way round (`tests/house.rs`). `simulation` tests both:
//!
//! ```text
//!   owner   the owner loop, and the rules by which it decides
//!     ↓
//!   run     the life of one run, from the claim to the end by proof
//! ```
//!
//! `lifetime` puts them together, and `watchdog` tells the service manager that all of it moves. `crate::host` gives
//! them access to the host. Processes are watched with pidfds. A task becomes claimable again only after `finish_run`,
//! which is called only with proof that nothing of the run is left (`run/settle.rs`).

mod lifetime;
mod owner;
mod run;
#[cfg(test)]
mod simulation;
mod watchdog;

pub(crate) use lifetime::run;
pub(crate) use owner::admission::{Asked, Claim};
pub(crate) use owner::backoff::Broken;
pub(crate) use owner::board::REPLY_AGE;
pub(crate) use owner::event::Event;
pub(crate) use owner::extent::Extent;
pub(crate) use owner::link::OwnerLink;
pub(crate) use owner::look::look;
pub(crate) use owner::room::Room;
pub(crate) use owner::snapshot::{PoolUse, Snapshot, Waiting};
pub(crate) use owner::stopping::{StopMode, StopPlan};
pub(crate) use owner::why::{Performer, ask as ask_why, left_open, merged};
pub(crate) use run::claimed::{Search, search as search_claimed};
pub(crate) use run::diff::{Wanted, Work, diff as diff_of_runs};
pub(crate) use run::external::provide as provide_external;
pub(crate) use run::files::{place_of, provide};
pub(crate) use run::key::TaskKey;
pub(crate) use run::live::{LiveRun, Phase};
pub(crate) use run::provision::Provision;
pub(crate) use run::troubles;
pub(crate) use run::usable::{Presence, check as check_workspace};
