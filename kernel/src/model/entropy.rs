//! Randomness for a board: an injected source.

use std::sync::Mutex;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Source of randomness.
pub trait Entropy: Send + Sync {
    /// Fills the buffer with random bytes.
    fn fill(&self, buffer: &mut [u8]);
}

/// Randomness of the operating system, through a generator that the system seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        rand::rng().fill_bytes(buffer);
    }
}

/// Reproducible sequence for tests.
#[derive(Debug)]
pub struct SeededEntropy {
    generator: Mutex<StdRng>,
}

impl SeededEntropy {
    /// Creates the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { generator: Mutex::new(StdRng::seed_from_u64(seed)) }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        let mut generator = self.generator.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        generator.fill_bytes(buffer);
    }
}
