//! External claims, for workers that the supervisor did not start.
//!
//! See decision 0101.

use std::time::Duration;

use serde_json::json;

use super::{Board, Record};
use crate::model::actor::Actor;
use crate::model::candidate::{Accounts, CandidateChoice, Reach};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::hold::Target;
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::run::{Holder, Purpose, Run};
use crate::model::state::{Change, State};
use crate::model::task::Task;
use crate::model::workspace::Workspace;
use crate::rules::authority;
use crate::store::runs::{Lease, NewRun};

/// Task with the run that was opened on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The task, which is `running`.
    pub task: Task,
    pub run: Run,
}

/// New external claim.
#[derive(Clone, Debug)]
pub struct OpenClaim {
    pub task: TaskId,
    /// Workspace that the task names.
    pub workspace: Workspace,
    pub run: RunId,
}

impl OpenClaim {
    /// Returns the task and the run in their current state.
    pub fn read(&self, board: &Board<'_>) -> Result<Claimed, Error> {
        Ok(Claimed { task: board.expect_task(&self.task)?, run: board.expect_run(self.run)? })
    }
}

/// Terms on which an external worker holds a claim.
#[derive(Clone, Copy, Debug)]
pub struct ClaimTerms<'a> {
    /// Lifetime without a heartbeat.
    pub ttl: Duration,
    /// SHA-256 hash of the token with which the worker reports.
    pub token_hash: Option<&'a [u8; 32]>,
}

impl ClaimTerms<'_> {
    /// Returns the terms of a claim without a token.
    pub fn lasting(ttl: Duration) -> Self {
        ClaimTerms { ttl, token_hash: None }
    }
}

impl Board<'_> {
    /// Claims a task for an external worker. The claim expires after its lifetime unless [`Board::heartbeat`] renews it.
    pub fn claim(&mut self, id: &TaskId, terms: &ClaimTerms<'_>, actor: &Actor) -> Result<Claimed, Error> {
        self.open_claim(id, terms, actor)?.read(self)
    }

    /// Claims a task as [`Board::claim`] does. The caller reads the result later, when all that belongs to the claim is
    /// recorded.
    pub fn open_claim(
        &mut self,
        id: &TaskId,
        terms: &ClaimTerms<'_>,
        actor: &Actor,
    ) -> Result<OpenClaim, Error> {
        self.live_run(actor)?;
        let (task, from) = self.task_with_state(id)?;
        authority::may_see(actor, &task)?;
        authority::person(actor, "claim a task")?;
        let ttl = terms.ttl;
        if ttl.is_zero() || ttl > Duration::from_hours(30 * 24) {
            return Err(Error::invalid(
                "ttl",
                "it is not between 1 second and 30 days",
                "name one such as 90s, 15m or 30d",
            ));
        }
        // A claim in the wrong state is refused before anything is written. The id of the run does not exist yet.
        let placeholder = Change::Started { run: RunId(0) };
        crate::rules::transition::next(Some(from.state), placeholder)
            .map_err(|_| claim_refused(&task, &from.state))?;
        let purpose = super::review::purpose(from.state);
        if purpose == Purpose::Review {
            super::review::refuse_author(&task, actor)?;
        }
        if purpose == Purpose::Check {
            return Err(Error::conflict(
                format!("the work on {id} waits for its check, which the supervisor runs"),
                format!("wait for it, or decide yourself: `supervisor complete {id}`"),
            ));
        }
        let profile = task.performer(purpose);
        let (tenant, mission) = (task.tenant.as_ref(), task.mission());
        let target = Target { task: id, profile, tenant, account: None, mission };
        // A hold that is due for a probe lets this run through and takes it as its probe.
        let probes = self.pass_holds(target)?;
        let now = self.now();
        let lock = format!("hand:{}:{}", actor.name, self.draw_mark());
        let lease = Lease { ttl, expires: now.after(ttl), expires_boottime: self.clock.boottime() + ttl };
        let run = self.tx.insert_run(&NewRun {
            holder: Holder::External,
            claim_lock: Some(&lock),
            claim: Some(lease),
            token_hash: terms.token_hash.copied(),
            ..NewRun::by_supervisor(&task, purpose, &self.clock.boot_id(), now)
        })?;
        let payload = json!({ "lock": lock, "expires": lease.expires, "run_id": run });
        let label = actor.label();
        let record = Record::new(EventKind::Claimed, payload, &label).in_run(run);
        self.shift(id, &from, Change::Started { run }, record)?;
        self.begin_probes(&task, run, probes)?;
        Ok(OpenClaim { task: task.id, workspace: task.workspace, run })
    }

    /// Claims the task that a profile should start first, as [`Board::open_claim`] does; none when there is no such task.
    pub fn open_next_claim(
        &mut self,
        profile: &Profile,
        accounts: &Accounts,
        terms: &ClaimTerms<'_>,
        actor: &Actor,
    ) -> Result<Option<OpenClaim>, Error> {
        let mut next = None;
        self.offer_outside(accounts, |candidate| {
            if candidate.assignee != *profile {
                return CandidateChoice::Left(Reach::Profile);
            }
            next = Some(candidate.task.clone());
            CandidateChoice::Left(Reach::Everything)
        })?;
        next.map(|id| self.open_claim(&id, terms, actor)).transpose()
    }

    /// Sets the token with which the worker of an external claim reports. The new token replaces an earlier one.
    pub fn give_token(&mut self, run: RunId, hash: &[u8; 32], actor: &Actor) -> Result<(), Error> {
        authority::person(actor, "give a run a token")?;
        if self.tx.set_token(run, hash)? {
            Ok(())
        } else {
            Err(Error::conflict(
                format!("run {run} has ended, or is not of an external claim"),
                "claim the task again",
            ))
        }
    }

    fn draw_mark(&self) -> String {
        let mut bytes = [0; 8];
        self.entropy.fill(&mut bytes);
        format!("{:016x}", u64::from_le_bytes(bytes))
    }
}

fn claim_refused(task: &Task, state: &State) -> Error {
    match (state, &task.claim_lock) {
        (State::Running { run, .. }, Some(lock)) => Error::conflict(
            format!("cannot claim {}: status=running lock={lock} (run {run})", task.id),
            "wait for that run to end, or reclaim it",
        ),
        _ => super::illegal(&task.id, *state, Change::Started { run: RunId(0) }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use crate::board::view::View;
    use crate::store::tx::Database;
    use crate::testing::{Bench, alice, checker, titled};
    use crate::{Accounts, CandidateChoice, ClaimTerms, Clock, Reach, Status};

    #[test]
    fn a_clock_that_is_set_ends_no_claim_and_has_nobody_wake_before_one_ends() {
        let bench = Bench::new();
        let task = bench.ready();
        let of = task.clone();
        bench
            .call(move |board| board.claim(&of, &ClaimTerms::lasting(Duration::from_mins(5)), &alice()))
            .unwrap();
        let now = || Clock::now(&*bench.clock);
        for day in [Duration::from_hours(24), Duration::ZERO] {
            bench.clock.set(crate::Timestamp::from_secs(1_700_000_000).after(day));
            assert_eq!(
                bench.next_wake(),
                Some(now().after(Duration::from_mins(5))),
                "a wake that ends nothing is asked for again"
            );
            assert!(bench.wake().is_empty());
        }
        bench.clock.advance(Duration::from_mins(5));
        assert_eq!(bench.next_wake(), Some(now()));
        assert_eq!((bench.wake(), bench.next_wake()), (vec![task.clone()], None));
        assert_eq!(bench.task(&task).status, Status::Ready);
    }

    #[test]
    fn what_a_look_reads_does_not_grow_with_the_claims_that_others_hold() {
        let bench = Bench::new();
        bench
            .call(|board| {
                for _ in 0..1500 {
                    let id = board.create(titled("claimed"), &alice())?.task.id;
                    board.claim(&id, &ClaimTerms::lasting(Duration::from_mins(5)), &alice())?;
                }
                Ok(())
            })
            .unwrap();
        let reader = Database::reader(&bench.path).unwrap();
        let steps = Arc::new(AtomicU64::new(0));
        reader.count_steps(Arc::clone(&steps));
        let tx = reader.read().unwrap();
        let view = View { tx: &tx, clock: &*bench.clock };

        assert_eq!(view.next_wake().unwrap(), Some(Clock::now(&*bench.clock).after(Duration::from_mins(5))));
        view.offer(&Accounts::new(), &checker(), |_| CandidateChoice::Left(Reach::Everything)).unwrap();

        // A step is a thousand operations of the database.
        assert!(steps.load(Ordering::Relaxed) <= 1, "{steps:?}");
    }

    #[test]
    fn a_claim_of_another_boot_ends_at_once() {
        let bench = Bench::new();
        let task = bench.ready();
        let of = task.clone();
        bench
            .call(move |board| board.claim(&of, &ClaimTerms::lasting(Duration::from_mins(5)), &alice()))
            .unwrap();
        bench.clock.reboot("boot-2");
        assert!(bench.next_wake().is_some_and(|at| at <= Clock::now(&*bench.clock)));
        assert_eq!((bench.wake(), bench.next_wake()), (vec![task], None));
    }
}
