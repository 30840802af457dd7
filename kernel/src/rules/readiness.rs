//! Gate of a task that is not started: open parents, else a missing approval, else its time.

use crate::model::clock::Timestamp;
use crate::model::outcome::ApprovalState;
use crate::model::state::Gate;

/// Facts that the gate of a task depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// Number of parents that are not done.
    pub(crate) open_parents: usize,
    /// State of the approval; none for a task that needs no approval.
    pub(crate) approval: Option<ApprovalState>,
    pub(crate) not_before: Option<Timestamp>,
}

/// Returns the gate of a task.
pub(crate) fn gate(waits: Waits, now: Timestamp) -> Gate {
    if waits.open_parents > 0 {
        return Gate::Parents;
    }
    if waits.approval == Some(ApprovalState::Required) {
        return Gate::Approval;
    }
    waits.not_before.filter(|at| *at > now).map_or(Gate::Open, Gate::Until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_before_an_approval_and_that_before_a_time() {
        let now = Timestamp::from_micros(10);
        let later = Some(Timestamp::from_micros(11));
        let all = Waits { open_parents: 1, approval: Some(ApprovalState::Required), not_before: later };
        assert_eq!(gate(all, now), Gate::Parents);
        assert_eq!(gate(Waits { open_parents: 0, ..all }, now), Gate::Approval);
        let granted = Waits { open_parents: 0, approval: Some(ApprovalState::Granted), ..all };
        assert_eq!(gate(granted, now), Gate::Until(Timestamp::from_micros(11)));
        assert_eq!(gate(granted, Timestamp::from_micros(11)), Gate::Open);
    }
}
