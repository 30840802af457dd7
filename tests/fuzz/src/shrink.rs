//! Makes an input that has found a fault shorter, as long as it finds a fault of the same kind.

use std::time::{Duration, Instant};

use crate::judge::{Fault, Judge};

/// Time for shrinking an input.
const TIME: Duration = Duration::from_secs(2);

/// Returns the shortest input that was found, with its fault.
pub(crate) fn shrink<F: FnMut(&[u8]) -> String>(
    mut input: Vec<u8>,
    mut fault: Fault,
    judge: &mut Judge<F>,
) -> (Vec<u8>, Fault) {
    let started = Instant::now();
    let mut size = input.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < input.len() {
            if started.elapsed() > TIME {
                return (input, fault);
            }
            let mut shorter = input.clone();
            shorter.drain(at..(at + size).min(input.len()));
            match judge.judge(&shorter) {
                Err(found) if found.is_like(&fault) => (input, fault) = (shorter, found),
                Ok(_) | Err(_) => at += size,
            }
        }
        size /= 2;
    }
    (input, fault)
}
