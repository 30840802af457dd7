//! Result of an input: the target's output, or the limit that it exceeded.

use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::corpus::Running;

/// Limits on the memory and the time for an input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) allowance: u64,
    pub(crate) factor: u64,
    pub(crate) time: Duration,
}

impl Bounds {
    fn memory(self, input: &[u8]) -> u64 {
        self.allowance + self.factor * input.len() as u64
    }
}

/// Failure of a target on an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Panicked(String),
    Slow { time: Duration, limit: Duration },
    Greedy { bytes: u64, limit: u64 },
}

impl Fault {
    /// Returns true if another failure is of the same kind.
    pub(crate) fn is_like(&self, other: &Fault) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Panicked(message) => write!(f, "it panicked: {message}"),
            Fault::Slow { time, limit } => {
                write!(f, "it took {time:?} of processor time, more than {limit:?}")
            }
            Fault::Greedy { bytes, limit } => write!(f, "it took {bytes} bytes of memory, more than {limit}"),
        }
    }
}

/// Hands inputs to a target.
pub(crate) struct Judge<F> {
    bounds: Bounds,
    running: Running,
    property: F,
}

impl<F: FnMut(&[u8]) -> String> Judge<F> {
    pub(crate) fn new(bounds: Bounds, running: Running, property: F) -> Self {
        Judge { bounds, running, property }
    }

    /// Hands over one input. What it comes to is without the numbers and the words that are the input's own.
    pub(crate) fn judge(&mut self, input: &[u8]) -> Result<String, Fault> {
        self.running.begin(input);
        let before = processor_time();
        let mut outcome = Ok(String::new());
        let used = allocation_counter::measure(|| {
            outcome = quietly(|| (self.property)(input));
        });
        let time = processor_time().saturating_sub(before);
        let (bytes, limit) = (used.bytes_max, self.bounds.memory(input));
        match outcome {
            Err(message) => Err(Fault::Panicked(message)),
            Ok(_) if time > self.bounds.time => Err(Fault::Slow { time, limit: self.bounds.time }),
            Ok(_) if bytes > limit => Err(Fault::Greedy { bytes, limit }),
            Ok(outcome) => Ok(plain(&outcome)),
        }
    }
}

/// A message without what differs from input to input: digits, and what stands in quotes.
fn plain(message: &str) -> String {
    let parts = message.split(['`', '"', '\'']).step_by(2);
    parts.flat_map(str::chars).filter(|c| c.is_ascii() && !c.is_ascii_digit()).take(200).collect()
}

pub(crate) fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

thread_local! {
    /// Message of the last panic of this thread that was not read yet.
    static SAID: std::cell::RefCell<Option<String>> = const { std::cell::RefCell::new(None) };
}

/// Calls a function; a panic is what it said, and where.
fn quietly<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            let is_ours =
                SAID.with_borrow_mut(|text| text.as_mut().map(|text| *text = panic_text(panic)).is_some());
            if !is_ours {
                usual(panic);
            }
        }));
    });
    SAID.set(Some(String::new()));
    let called = catch_unwind(AssertUnwindSafe(call));
    let panic_text = SAID.take().unwrap_or_default();
    called.map_err(|_| panic_text)
}

fn panic_text(panic: &PanicHookInfo<'_>) -> String {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    format!("{} at {place}", panic.payload_as_str().unwrap_or("no message"))
}
