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
//! `lifetime` puts them together, and `watchdog` tells the service manager that all of it moves. `host` gives
//! them access to the host. Processes are watched with pidfds. A task becomes claimable again only after `finish_run`,
//! which is called only with proof that nothing of the run is left (`run/proof.rs`).

pub mod gc;
mod lifetime;
mod owner;
mod run;
#[cfg(test)]
mod simulation;
mod watchdog;

pub use lifetime::run;
pub use owner::admission::{ClaimInputs, Claimant, StartClaim};
pub use owner::backoff::Broken;
pub use owner::board::REPLY_AGE;
pub use owner::capacity::Capacity;
pub use owner::event::Event;
pub use owner::link::OwnerLink;
pub use owner::mode::DaemonMode;
pub use owner::scan::scan;
pub use owner::snapshot::{PoolUse, Snapshot, UnadmittedTask};
pub use owner::stopping::{StopMode, StopPlan};
pub use owner::why::{Performer, ask as ask_why, left_open, merged};
pub use run::claimed::{Search, search as search_claimed};
pub use run::diff::{DiffRequest, Work, diff as diff_of_runs};
pub use run::environment::RosterAndConfig;
pub use run::external::provide as provide_external;
pub use run::files::{path_of, provide};
pub use run::key::TaskKey;
pub use run::live::{LiveRun, Phase};
pub use run::problems;
pub use run::provision::Provision;
pub use run::usable::{Presence, check as check_workspace};
