//! Breakers are stored as holds on boards, so that a later daemon knows them and a person can release them.

use kernel::{BoardName, Hold, HoldKind, HoldOn, HoldScope, Timestamp};

use super::super::wait::Wait;
use super::{Backoff, Breaker, OPEN};
use crate::run::environment::Environment;

/// Change of a breaker that a board has to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakerChange {
    /// The breaker is open: its hold is stored, with the reason and the time of the next try.
    Open(HoldOn, String, Timestamp),
    /// The environment or the host works again: the hold of the breaker is removed.
    Closed(HoldOn),
}

impl BreakerChange {
    pub(super) fn open(on: HoldOn, wait: &Wait) -> Self {
        BreakerChange::Open(on, wait.why.clone(), wait.until.unwrap_or(Timestamp::from_micros(0)))
    }
}

impl Environment {
    /// Returns the target of the hold that stores the breaker of this environment.
    pub(super) fn hold(&self) -> HoldOn {
        HoldOn { scope: HoldScope::Environment, name: self.name() }
    }
}

/// Returns the command that releases a breaker.
pub(super) fn release(board: &BoardName, on: &HoldOn) -> String {
    let board = if *board == BoardName::default() { String::new() } else { format!(" --board {board}") };
    let quoted = if on.name.contains(|c: char| c.is_whitespace() || "'\"$&;()<>|`\\*?[#~!{".contains(c)) {
        format!("'{}'", on.name.replace('\'', "'\\''"))
    } else {
        on.name.clone()
    };
    match on.scope {
        HoldScope::Host => format!("supervisor{board} release {}", on.release_arguments()),
        _ => format!("supervisor{board} release --environment {quoted}"),
    }
}

impl Backoff {
    /// Takes the changes that boards have not been asked to store yet.
    pub fn take_changed(&mut self) -> Vec<(BoardName, BreakerChange)> {
        std::mem::take(&mut self.kept)
    }

    /// Adopts the state of the breakers that a board stores. Breakers of an earlier daemon stay open; a breaker whose
    /// hold a person has released is closed. Returns true if any breaker was closed.
    pub fn learn(&mut self, board: &BoardName, holds: &[Hold], now: Timestamp) -> bool {
        let breakers = || holds.iter().filter(|hold| hold.kind == HoldKind::Breaker);
        for hold in breakers() {
            let until = hold.until.unwrap_or(hold.created_at);
            match (hold.scope, Environment::named(&hold.name)) {
                (HoldScope::Host, _) => self.host.learn(board, &hold.on(), &hold.reason, until, now),
                (HoldScope::Environment, Some(environment)) => {
                    let breaker = self.broken.entry(environment).or_insert_with(|| Breaker {
                        wait: Wait::taken_over(hold.reason.clone(), OPEN, until, now),
                        board: board.clone(),
                        is_kept: true,
                        by: None,
                        probe: None,
                    });
                    breaker.is_kept |= breaker.board == *board;
                }
                // A daemon of another release stored a name that this release does not know.
                _ => {}
            }
        }
        let is_there = |on: &HoldOn| breakers().any(|hold| hold.on() == *on);
        let before = self.broken.len();
        self.broken.retain(|environment, breaker| {
            breaker.board != *board || !breaker.is_kept || is_there(&environment.hold())
        });
        let is_released = self.broken.len() < before;
        self.host.release(board, is_there) || is_released
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::testing::{at, key};
    use super::*;
    use crate::run::environment::Needs;

    fn needs() -> Needs {
        Needs::scratch("shell")
    }

    fn failed(backoff: &mut Backoff, times: u32) {
        for n in 0..times {
            backoff.trip(needs().program(), key(n), "no /bin/sh".to_owned(), at(0));
        }
    }

    fn breakage(backoff: &Backoff) -> Option<kernel::Waiting> {
        backoff.breakage(&key(99), needs().all(), &BTreeSet::new())
    }

    fn hold(on: &HoldOn) -> Hold {
        let HoldOn { scope, name } = on.clone();
        serde_json::from_value(serde_json::json!({
            "id": 1, "kind": "breaker", "scope": scope, "name": name, "reason": "no /bin/sh", "placed_by": "system",
            "within": "board", "until": at(600), "created_at": at(0),
        }))
        .unwrap()
    }

    #[test]
    fn after_five_failures_in_a_row_a_breaker_is_kept_and_tried_seldom() {
        let mut backoff = Backoff::default();
        failed(&mut backoff, 4);
        assert_eq!((backoff.take_changed(), backoff.broken()[0].release.clone()), (Vec::new(), None));
        failed(&mut backoff, 1);
        let on = needs().program().hold();
        assert_eq!(on.name, "program:shell/default");
        let open = BreakerChange::Open(on.clone(), "no /bin/sh".to_owned(), at(600));
        assert_eq!(backoff.take_changed(), [(BoardName::default(), open)]);
        assert!(!backoff.expire(at(599)) && backoff.expire(at(600)), "one try after ten minutes");
        let waiting = {
            failed(&mut backoff, 1);
            breakage(&backoff).unwrap()
        };
        let command = "supervisor release --environment program:shell/default";
        assert!(waiting.text.contains(command), "{}", waiting.text);
        assert!(backoff.started(&key(7), needs().all(), at(700), at(700)));
        assert_eq!(backoff.take_changed().last(), Some(&(BoardName::default(), BreakerChange::Closed(on))));
        assert_eq!(breakage(&backoff), None);
    }

    #[test]
    fn a_later_daemon_keeps_what_is_open_until_it_is_released() {
        let mut backoff = Backoff::default();
        let (board, kept) = (BoardName::default(), [hold(&needs().program().hold())]);
        assert!(!backoff.learn(&board, &kept, at(1)));
        assert_eq!(breakage(&backoff).unwrap().until, Some(at(600)));
        backoff.forget();
        assert_eq!(breakage(&backoff), None, "a reload has it tried");
        assert!(!backoff.learn(&"other".parse().unwrap(), &[], at(1)), "another board says nothing of it");
        assert!(backoff.learn(&board, &[], at(1)));
        assert_eq!(backoff.broken().len(), 0);
    }

    #[test]
    fn a_breaker_that_its_board_was_not_seen_to_have_is_not_taken_for_released() {
        let mut backoff = Backoff::default();
        failed(&mut backoff, 5);
        let board = BoardName::default();
        assert!(!backoff.learn(&board, &[], at(1)), "it is being written");
        assert!(!backoff.learn(&board, &[hold(&needs().program().hold())], at(1)));
        assert!(backoff.learn(&board, &[], at(1)));
        assert_eq!(breakage(&backoff), None);
    }
}
