//! Breakers: holds that the daemon places after repeated failures. The board stores them for the next daemon.
//!
//! See decision 0129.

use super::{Board, SYSTEM};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::hold::{Hold, HoldKind, HoldOn, NewHold, Within};
use crate::model::limits;
use crate::store::holds::By;

impl Board<'_> {
    /// Opens a breaker, or sets the reason and the time of the next try of an open one. It ends with
    /// [`Self::close_breaker`] or with a release by a person. A long reason is cut. The breaker is durable when the write
    /// is committed.
    pub fn open_breaker(&mut self, on: &HoldOn, why: &str, until: Timestamp) -> Result<Hold, Error> {
        let reason = why[..why.floor_char_boundary(limits::WORD)].to_owned();
        let new = NewHold { kind: HoldKind::Breaker, reason, until: Some(until) };
        self.place_hold(on, &new, By { label: SYSTEM, within: &Within::Board, run: None })
    }

    /// Closes the breaker of a target that works again. Does nothing if the target has none.
    pub fn close_breaker(&mut self, on: &HoldOn) -> Result<(), Error> {
        for hold in self.holds()? {
            if hold.kind == HoldKind::Breaker && hold.on() == *on {
                self.end_hold(&hold, "it works again", None, SYSTEM)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, alice};
    use crate::{HoldKind, HoldOn, HoldScope, Timestamp};

    fn on(name: &str) -> HoldOn {
        HoldOn { scope: HoldScope::Environment, name: name.to_owned() }
    }

    fn at(bench: &Bench, seconds: u64) -> Timestamp {
        crate::Clock::now(&*bench.clock).after(std::time::Duration::from_secs(seconds))
    }

    #[test]
    fn a_breaker_is_one_hold_that_is_renewed_and_keeps_nothing_from_starting_here() {
        let bench = Bench::new();
        let task = bench.ready();
        for (why, seconds) in [("no /bin/agent", 600), ("still none", 1200)] {
            let until = at(&bench, seconds);
            bench.call(move |board| board.open_breaker(&on("program:agent/default"), why, until)).unwrap();
        }
        let holds = bench.readers.with(|view| view.holds()).unwrap();
        let reasons: Vec<_> = holds.iter().map(|hold| (hold.kind, hold.reason.as_str())).collect();
        assert_eq!(reasons, [(HoldKind::Breaker, "still none")]);
        assert_eq!(holds[0].release_arguments(), "--environment program:agent/default");
        bench.start(&task);

        bench.call(|board| board.close_breaker(&on("another"))).unwrap();
        assert_eq!(bench.readers.with(|view| view.holds()).unwrap().len(), 1);
        bench.call(|board| board.close_breaker(&on("program:agent/default"))).unwrap();
        assert_eq!(bench.readers.with(|view| view.holds()).unwrap().len(), 0);
    }

    #[test]
    fn a_person_releases_a_breaker_and_time_does_not() {
        let bench = Bench::new();
        let host = HoldOn::host(Some(&"acme".parse().unwrap()));
        let (opened, until) = (host.clone(), at(&bench, 60));
        bench.call(move |board| board.open_breaker(&opened, &"x".repeat(9000), until)).unwrap();
        bench.clock.advance(std::time::Duration::from_hours(1));
        bench.wake();
        let holds = bench.readers.with(|view| view.holds()).unwrap();
        assert_eq!((holds.len(), holds[0].reason.len()), (1, crate::limits::WORD));
        let released = bench.call(move |board| board.release(&host, None, &alice())).unwrap();
        assert_eq!(released[0].release_arguments(), "--host-of acme");
        assert_eq!(bench.readers.with(|view| view.holds()).unwrap().len(), 0);
    }
}
