//! What may start, in the order in which it should.

use super::view::View;
use crate::model::candidate::{Accounts, Answer, Candidate, Lane};
use crate::model::error::Error;
use crate::model::id::Profile;
use crate::rules::admission::{self, Offer};

impl View<'_> {
    /// Offers the tasks that may start, one after the other, until `answer` says that nothing more can or nothing is
    /// left. The order is that in which they should start: fair turns between tenants (the one with the fewest open runs
    /// first), then priority, then age. A task in review is among them where a profile is to review it, which then is
    /// the candidate's assignee; so is one whose work waits for its check, with `checker` as the assignee. Unassigned tasks and those that somebody holds are not.
    ///
    /// What an answer closes is not read: the cost is that of the lanes there are (pairs of tenant and assignee) and of
    /// the answers, however many tasks wait.
    pub fn offer(
        &self,
        accounts: &Accounts,
        checker: &Profile,
        answer: impl FnMut(&Candidate) -> Answer,
    ) -> Result<(), Error> {
        self.offer_with(self.check_lanes(checker)?, accounts, answer)
    }

    /// Offers the same but for checks, which the supervisor alone runs.
    pub(super) fn offer_outside(
        &self,
        accounts: &Accounts,
        answer: impl FnMut(&Candidate) -> Answer,
    ) -> Result<(), Error> {
        self.offer_with(Vec::new(), accounts, answer)
    }

    fn offer_with(
        &self,
        checks: Vec<Lane>,
        accounts: &Accounts,
        answer: impl FnMut(&Candidate) -> Answer,
    ) -> Result<(), Error> {
        let ready = lanes(|after| self.tx.next_ready_lane(after))?;
        let reviews = lanes(|after| self.tx.next_review_lane(after))?;
        if ready.is_empty() && reviews.is_empty() && checks.is_empty() {
            // Nothing waits: how many runs are open, which may be many that others hold, decides nothing.
            return Ok(());
        }
        let on = Offer {
            holds: self.holds()?,
            ready,
            reviews,
            checks,
            running: self.tx.open_runs_by_tenant()?,
            accounts,
            now: self.now(),
        };
        let now = on.now;
        let mut read = |lane: &Lane, source: &_, after: Option<&Candidate>, limit| {
            self.tx.page_of_candidates(lane, source, after, limit, now)
        };
        admission::offer(on, &mut read, answer)
    }

    /// The tenants with work that waits for its check, each with who runs checks.
    fn check_lanes(&self, checker: &Profile) -> Result<Vec<Lane>, Error> {
        let tenants = self.tx.tenants_with_checks()?;
        Ok(tenants.into_iter().map(|tenant| Lane { tenant, profile: checker.clone() }).collect())
    }
}

/// Reads one row for each lane.
fn lanes(mut next: impl FnMut(Option<&Lane>) -> Result<Option<Lane>, Error>) -> Result<Vec<Lane>, Error> {
    let mut found: Vec<Lane> = Vec::new();
    loop {
        match next(found.last())? {
            Some(lane) => found.push(lane),
            None => return Ok(found),
        }
    }
}
