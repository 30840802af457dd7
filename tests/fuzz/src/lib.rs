//! Fuzzing on stable Rust: a target is a function that reads foreign bytes, and gets changed inputs of its corpus.
//!
//! The corpus is `tests/fuzz/corpus/TARGET/`, one file an input. All of it is read first, then inputs that are made from it: bytes are
//! flipped, cut, repeated and spliced, words exchanged, and what is a tree (JSON, TOML) is changed as one. What an input comes to is
//! a word of the target's own, such as its error; an input that comes to a new one is changed further.
//!
//! Whatever is read, a target
//! * does not panic, and fails none of its own assertions: what parses and is written back parses to the same;
//! * takes no more processor time than 2 seconds, or what [`Target::time`] says;
//! * takes no more memory than a multiple of the input, beside a fixed allowance ([`Target::memory`]).
//!
//! An input that breaks this is made as short as can be in two seconds, written into the corpus and printed. One that ends the process is
//! there when the next one begins.
//!
//! Without more ado a target gets a number of inputs that is always the same, from the same seed. `SUPERVISOR_FUZZ_SECONDS` gives it a
//! time instead, and a seed of its own: `tests/run --fuzz 10m`.
//!
//! ```
//! fuzz::Target::new("example", fuzz::Shape::Text).seed(b"12").check(|input| {
//!     let Ok(text) = str::from_utf8(input) else { return "no text".to_owned() };
//!     text.parse::<u8>().map_or_else(|error| error.to_string(), |_| "a number".to_owned())
//! });
//! ```
//!
//! A fuzzer that follows the coverage of the code needs a build of everything by a sanitizer, which takes minutes for
//! each change. Generators of random values seldom get behind the first check of a format. So the corpus is changed,
//! and the outcome of an input takes the place of coverage.

mod change;
mod corpus;
mod judge;
mod shrink;
mod tree;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

pub use change::Shape;

use change::Changer;
use corpus::Corpus;
use judge::{Bounds, Judge};

/// The most processor time that one input may take, in a build without optimization. A quadratic algorithm takes longer with the longest inputs.
const LONGEST_TIME: Duration = Duration::from_secs(2);
/// Number of mutated inputs for a target without a time limit, unless they take longer than [`SHORT`].
const COUNT: u64 = 4000;
/// Time limit for a target that is given none.
const SHORT: Duration = Duration::from_secs(4);
/// Limit on the inputs kept for further mutations; more would make each of them rarer.
const POOL: usize = 4096;
/// Gives each target a time, in seconds.
const SECONDS: &str = "SUPERVISOR_FUZZ_SECONDS";

/// Parser of foreign bytes under test.
#[derive(Debug)]
#[must_use]
pub struct Target {
    name: &'static str,
    shape: Shape,
    corpus: PathBuf,
    seeds: Vec<Vec<u8>>,
    longest: usize,
    bounds: Bounds,
}

impl Target {
    /// A target whose corpus has this name.
    pub fn new(name: &'static str, shape: Shape) -> Self {
        let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let bounds = Bounds { allowance: 4 << 20, factor: 64, time: LONGEST_TIME };
        Target { name, shape, corpus, seeds: Vec::new(), longest: 32 << 10, bounds }
    }

    /// Adds an input that is kept somewhere else.
    pub fn seed(mut self, input: impl AsRef<[u8]>) -> Self {
        self.seeds.push(input.as_ref().to_vec());
        self
    }

    /// Makes inputs of at most this many bytes; 32 KiB otherwise.
    pub fn longest(self, longest: usize) -> Self {
        Target { longest, ..self }
    }

    /// Bounds the memory of one input: `allowance` bytes, and `factor` bytes for each byte of the input; 4 MiB and 64 otherwise.
    pub fn memory(self, allowance: u64, factor: u64) -> Self {
        Target { bounds: Bounds { allowance, factor, ..self.bounds }, ..self }
    }

    /// Bounds the processor time of one input; 2 seconds otherwise.
    pub fn time(self, time: Duration) -> Self {
        Target { bounds: Bounds { time, ..self.bounds }, ..self }
    }

    /// Keeps its corpus in another directory.
    #[cfg(test)]
    fn corpus_in(self, corpus: PathBuf) -> Self {
        Target { corpus, ..self }
    }

    /// Hands changed inputs to `property`, which returns what an input came to.
    ///
    /// # Panics
    /// With the input and its place in the corpus, where one breaks what is promised.
    pub fn check(self, property: impl FnMut(&[u8]) -> String) {
        let corpus = Corpus::open(self.name, self.corpus);
        let mut judge = Judge::new(self.bounds, corpus.running(), property);
        let mut pool: Vec<Vec<u8>> = Vec::new();
        let mut seen = HashSet::new();
        for input in corpus.inputs().into_iter().chain(self.seeds) {
            match judge.judge(&input) {
                Ok(outcome) => drop(seen.insert(outcome)),
                Err(fault) => panic!("{}", corpus.report(&input, &fault)),
            }
            pool.push(input);
        }
        assert!(!pool.is_empty(), "the target {} has neither a corpus nor a seed", self.name);
        let (start, limit) = limits(self.name);
        let mut rng = StdRng::seed_from_u64(start);
        let mut changer = Changer::new(self.shape, self.longest, &pool);
        let started = Instant::now();
        let mut count = 0;
        while limit.allows(count, started.elapsed()) {
            count += 1;
            let mut input = pool.choose(&mut rng).cloned().unwrap_or_default();
            let other = pool.choose(&mut rng).cloned().unwrap_or_default();
            for _ in 0..rng.random_range(1..=5) {
                changer.change(&mut input, &other, &mut rng);
            }
            match judge.judge(&input) {
                Ok(outcome) => {
                    if seen.insert(outcome) && pool.len() < POOL {
                        changer.learn(&input);
                        pool.push(input);
                    }
                }
                Err(fault) => {
                    let (input, fault) = shrink::shrink(input, fault, &mut judge);
                    panic!("{}", corpus.report(&input, &fault));
                }
            }
        }
        drop(judge);
        corpus.close();
    }
}

/// Condition for the end of a target's test.
enum Limit {
    Count,
    Time(Duration),
}

impl Limit {
    fn allows(&self, count: u64, elapsed: Duration) -> bool {
        match self {
            Limit::Count => count < COUNT && elapsed < SHORT,
            Limit::Time(time) => elapsed < *time,
        }
    }
}

/// The seed of a target, and when it is done.
fn limits(name: &str) -> (u64, Limit) {
    match std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok()) {
        Some(seconds) => (rand::random(), Limit::Time(Duration::from_secs(seconds))),
        None => (
            name.bytes().fold(7, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte))),
            Limit::Count,
        ),
    }
}

#[cfg(test)]
mod tests;
