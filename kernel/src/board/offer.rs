//! Offers the tasks that may start, in the order in which they should.

use super::view::View;
use crate::model::candidate::{Accounts, Candidate, CandidateChoice, Group};
use crate::model::error::Error;
use crate::model::id::Profile;
use crate::rules::admission::{self, Offer};

impl View<'_> {
    /// Offers the tasks that may start, one after the other, until `answer` ends the pass or no task is left.
    ///
    /// The order is fair between tenants (the tenant with the fewest open runs first), then by priority, then by age. A
    /// task in review is offered if a profile has to review it, with the reviewer as the assignee. Work that waits for
    /// its check is offered with `checker` as the assignee. Unassigned tasks and tasks under a hold are left out.
    ///
    /// Queues that an answer closes are not read. The cost is in the number of groups (pairs of tenant and assignee) and
    /// of answers, however many tasks wait.
    pub fn offer(
        &self,
        accounts: &Accounts,
        checker: &Profile,
        answer: impl FnMut(&Candidate) -> CandidateChoice,
    ) -> Result<(), Error> {
        self.offer_with(self.check_groups(checker)?, accounts, answer)
    }

    /// Offers the same tasks without checks, which the supervisor alone runs.
    pub(super) fn offer_outside(
        &self,
        accounts: &Accounts,
        answer: impl FnMut(&Candidate) -> CandidateChoice,
    ) -> Result<(), Error> {
        self.offer_with(Vec::new(), accounts, answer)
    }

    fn offer_with(
        &self,
        checks: Vec<Group>,
        accounts: &Accounts,
        answer: impl FnMut(&Candidate) -> CandidateChoice,
    ) -> Result<(), Error> {
        let ready = groups(|after| self.tx.next_ready_group(after))?;
        let reviews = groups(|after| self.tx.next_review_group(after))?;
        if ready.is_empty() && reviews.is_empty() && checks.is_empty() {
            // Without waiting tasks, the number of open runs is not needed, and counting many runs of external workers
            // is saved.
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
        let mut read = |group: &Group, source: &_, after: Option<&Candidate>, limit| {
            self.tx.page_of_candidates(group, source, after, limit, now)
        };
        admission::offer(on, &mut read, answer)
    }

    /// Returns the tenants with work that waits for its check, each with the profile that runs checks.
    fn check_groups(&self, checker: &Profile) -> Result<Vec<Group>, Error> {
        let tenants = self.tx.tenants_with_checks()?;
        Ok(tenants.into_iter().map(|tenant| Group { tenant, profile: checker.clone() }).collect())
    }
}

/// Reads one row for each group.
fn groups(mut next: impl FnMut(Option<&Group>) -> Result<Option<Group>, Error>) -> Result<Vec<Group>, Error> {
    let mut groups: Vec<Group> = Vec::new();
    loop {
        match next(groups.last())? {
            Some(group) => groups.push(group),
            None => return Ok(groups),
        }
    }
}
