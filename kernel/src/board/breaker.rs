//! Breakers: what the daemon has found not to work several times in a row, kept so that the next daemon knows it.

use super::{Board, SYSTEM};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::hold::{Hold, HoldKind, HoldOn, NewHold, Within};
use crate::model::limits;
use crate::store::holds::By;

impl Board<'_> {
    /// Opens a breaker, or says when an open one is tried again. Durable when it returns; ended by [`Self::close_breaker`], and by a
    /// person's release.
    pub fn open_breaker(&mut self, on: &HoldOn, why: &str, until: Timestamp) -> Result<Hold, Error> {
        let reason = why[..why.floor_char_boundary(limits::WORD)].to_owned();
        let new = NewHold { kind: HoldKind::Breaker, reason, until: Some(until) };
        self.place(on, &new, By { label: SYSTEM, within: &Within::Board, run: None })
    }

    /// Closes a breaker: what it is on works again. One that is not open stays so.
    pub fn close_breaker(&mut self, on: &HoldOn) -> Result<(), Error> {
        for hold in self.holds()? {
            if hold.kind == HoldKind::Breaker && hold.on() == *on {
                self.end_hold(&hold, "it works again", None, SYSTEM)?;
            }
        }
        Ok(())
    }
}
