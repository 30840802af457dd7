//! Deterministic simulation of a daemon's life, for tests: a real board, the real dispatcher and the real table of
//! proofs, on a simulated host, clock and disk.
//!
//! ```text
//!   dice      one seed, one sequence
//!   bench     the real board in a file in memory: its disk fills, its writer dies
//!   host      shims, workers, run directories; they outlive every daemon
//!   traces    the traces of a run as a daemon sees them, for `run/proof.rs`
//!   life      the steps of a run in a daemon, one at a time
//!   daemon    a daemon: the real dispatcher, with its queues, timer and errands
//!   people    actions of people, at any time; workers  writes of workers, at any time
//!   ledger    acknowledged facts
//!   checks    the invariants after each step; truth  each `why` is true; calm  everything finishes
//!   world     all of these, one step after the other
//!   hazard    kinds of injected faults
//!   plant     planted faults, to test that they are found
//! ```
//!
//! See `CONTRIBUTING.md` for running it, and decision 0133 for its place in this directory.

mod bench;
mod calm;
mod checks;
mod daemon;
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
