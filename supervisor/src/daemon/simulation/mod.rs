//! A deterministic simulation of a daemon's life, for tests: a real board, the real dispatcher and the real table of proofs, on a
//! simulated host, clock and disk.
//!
//! ```text
//!   dice      one seed, one sequence
//!   bench     the real board in a file in memory: its disk fills, its writer dies
//!   host      shims, workers, run directories; they outlive every daemon
//!   traces    what a daemon sees of a run, for `run/settle.rs`
//!   life      the steps of a run in a daemon, one at a time
//!   desk      a daemon: the real dispatcher, with its queues, timer and errands
//!   people    what persons do, at any time; workers  what workers write, at any time
//!   ledger    what was acknowledged
//!   checks    the invariants after each step; truth  of each `why`; calm  that everything finishes
//!   world     all of these, one step after the other
//!   hazard    what may go wrong
//!   plant     faults that are planted, to see that they are found
//! ```
//!
//! `CONTRIBUTING.md` says how to run it, and decision 133 why it stands here.

mod bench;
mod calm;
mod checks;
mod desk;
mod dice;
mod fault;
mod hazard;
mod host;
mod ledger;
mod life;
mod people;
mod plant;
mod tests;
mod traces;
mod truth;
mod workers;
mod world;
