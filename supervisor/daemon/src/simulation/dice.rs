//! Random numbers of a simulation: one seed gives one sequence, independent of library releases.

use std::cell::Cell;

/// A generator (`SplitMix64`, by Sebastiano Vigna).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

thread_local! {
    /// State of [`chance`]. The dispatcher takes a plain function, so the state cannot be passed to it.
    static CHANCE: Cell<u64> = const { Cell::new(0) };
}

fn mixed(state: u64) -> u64 {
    let mut mixed = state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns a number from 0 to 1 of this thread's sequence.
pub(super) fn chance() -> f64 {
    CHANCE.with(|state| {
        state.set(state.get().wrapping_add(STEP));
        f64::from(u32::try_from(mixed(state.get()) >> 32).unwrap_or_default()) / f64::from(u32::MAX)
    })
}

impl Dice {
    /// Starts the sequences of a seed, including the one of [`chance`] on this thread.
    pub(super) fn new(seed: u64) -> Self {
        CHANCE.set(seed);
        Dice(mixed(seed.wrapping_add(STEP)))
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// Returns a number below `bound`, or 0 for a bound of 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.draw() % u64::try_from(bound.max(1)).unwrap_or(1)).unwrap_or_default()
    }

    /// Returns true once in this many times on average.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.below(from.len())) }
    }
}
