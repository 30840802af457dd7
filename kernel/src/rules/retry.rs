//! Decides what the end of a run costs its task, and when the task is tried again.

use std::time::Duration;

use crate::model::clock::Timestamp;
use crate::model::id::RunId;
use crate::model::outcome::{
    BlockKind, EX_TEMPFAIL, EndCause, Ending, Fault, OnCleanExit, Outcome, Siblings, StopReason,
};
use crate::model::state::{Gate, Then};
use crate::model::status::WasDone;
use crate::model::verdict::{Destination, Handoff, Verdict};
use crate::rules::backoff::Jitter;
use crate::rules::failure_text::{OUT_OF_MEMORY, by_signal, with_tail, with_trouble};
use crate::rules::recurrence::Recurrence;
use crate::rules::turns::{GoalTurns, TurnPace};

/// Error of a run whose worker exited with 0 and without a verdict.
const UNREPORTED: &str = "the worker exited without complete, block or request-review \
    (a lane whose program does not report says `on_clean_exit = \"complete\"`)";

/// Error of such a run in a lane in which the exit would be a verdict.
const UNFINISHED: &str = "the worker exited without complete, block or request-review";

/// Facts about a task at the end of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    /// Number of counted failures in a row before this end.
    pub(crate) failures: u32,
    pub(crate) max_retries: Option<u32>,
    /// Number of consecutive blocks for the same kind of reason.
    pub(crate) blocks: Recurrence,
    /// Gate of the task, apart from this end.
    pub(crate) gate: Gate,
    /// True if a parent is open, or was open during the run. Only then a dependency block can wait for a task.
    pub(crate) awaits: bool,
    /// Purpose of the run. A retry has the same purpose.
    pub(crate) errand: Errand,
    /// Time at which nothing of the run was left. The pause before the next try counts from it.
    pub(crate) ended_at: Timestamp,
    /// Turns of the worker toward its goal, if it has one.
    pub(crate) goal: Option<GoalTurns>,
    /// Pace of its turns, this turn included.
    pub(crate) pace: TurnPace,
    /// Random part of the pause before the next try.
    pub(crate) jitter: Jitter,
}

/// Purpose of a run, with the data that its end needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    Work,
    Review,
    Check(Checked),
}

/// Data of a check at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Run whose work was checked.
    pub(crate) of: RunId,
    /// Destination of proved work, as the run asked for it.
    pub(crate) proved: Then,
    /// Number of failed checks in a row before this check.
    pub(crate) failed: u32,
    /// Number of failed checks in a row that block the task.
    pub(crate) limit: u32,
}

/// Decision about the end of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) outcome: Outcome,
    pub(crate) then: Then,
    /// Number of counted failures in a row from now on.
    pub(crate) failures: u32,
    /// Pause before the next try, counted from the end of this run.
    pub(crate) pause: Duration,
    /// Time of the next try for a task in review or before its check, if it is later than now.
    pub(crate) review_at: Option<Timestamp>,
    /// Error of the run, if it failed.
    pub(crate) error: Option<String>,
    pub(crate) handoff: Option<Handoff>,
    /// Number of the turn, when another turn follows.
    pub(crate) turn: Option<u32>,
}

impl Decision {
    /// Returns true if the task gave up after too many failures.
    pub(crate) fn gave_up(&self) -> bool {
        self.then == Then::Blocked(BlockKind::GaveUp)
    }

    /// Returns true if the handed-over work waits for its check.
    pub(crate) fn handed_to_check(&self) -> bool {
        matches!(self.outcome, Outcome::Completed | Outcome::ReviewRequested | Outcome::Approved)
            && matches!(self.then, Then::Again(Gate::Check(_)))
    }

    /// Returns the time of the next try, if the task waits for it.
    pub(crate) fn retry_at(&self) -> Option<Timestamp> {
        if let Then::Again(Gate::Until(at)) = self.then {
            return Some(at);
        }
        self.review_at.filter(|_| matches!(self.then, Then::Review | Then::Again(Gate::Check(_))))
    }
}

/// Returns true if an end with this outcome counts as a failure; `lost` depends on its cause.
pub fn counts(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Crashed
        | Outcome::TimedOut
        | Outcome::Stalled
        | Outcome::OutOfMemory
        | Outcome::Unreported
        | Outcome::SpawnFailed => true,
        Outcome::Completed
        | Outcome::Blocked
        | Outcome::ReviewRequested
        | Outcome::Approved
        | Outcome::ChangesRequested
        | Outcome::CheckPassed
        | Outcome::CheckFailed
        | Outcome::Cancelled
        | Outcome::Reclaimed
        | Outcome::Preempted
        | Outcome::RateLimited
        | Outcome::Lost => false,
    }
}

/// Decides about the end of a run: by its verdict, else by the reason of its stop, else by its cause.
pub(crate) fn decide(
    verdict: Option<&Verdict>,
    stop: Option<StopReason>,
    ending: &Ending,
    tally: Tally,
    now: Timestamp,
) -> Decision {
    if let Some(verdict) = verdict {
        return by_verdict(verdict, tally);
    }
    match stop {
        Some(reason) => by_stop(reason, ending, tally, now),
        None => by_cause(ending, tally, now),
    }
}

pub(crate) fn plain(outcome: Outcome, then: Then, failures: u32) -> Decision {
    Decision {
        outcome,
        then,
        failures,
        pause: Duration::ZERO,
        review_at: None,
        error: None,
        handoff: None,
        turn: None,
    }
}

/// Returns the decision for an end that counts as no failure.
fn uncounted(outcome: Outcome, then: Then, error: impl Into<String>, tally: Tally) -> Decision {
    Decision { error: Some(error.into()), ..plain(outcome, then, tally.failures) }
}

fn handed_over(outcome: Outcome, then: Then, handoff: &Handoff) -> Decision {
    Decision { handoff: Some(handoff.clone()), ..plain(outcome, then, 0) }
}

fn by_verdict(verdict: &Verdict, tally: Tally) -> Decision {
    match verdict {
        Verdict::Complete(handoff) => handed_over(Outcome::Completed, Then::Done, handoff),
        Verdict::RequestReview(request) => {
            handed_over(Outcome::ReviewRequested, Then::Review, &request.handoff)
        }
        Verdict::Approve => plain(Outcome::Approved, Then::Done, 0),
        Verdict::RequestChanges { .. } => plain(Outcome::ChangesRequested, Then::Again(tally.gate), 0),
        Verdict::Block(blocking) => {
            let then = if blocking.kind == BlockKind::Dependency && tally.awaits {
                Then::Again(tally.gate)
            } else if tally.blocks.with(blocking.kind).is_loop() {
                Then::Triage
            } else {
                Then::Blocked(blocking.kind)
            };
            Decision { error: blocking.reason.clone(), ..plain(Outcome::Blocked, then, tally.failures) }
        }
        Verdict::Archive { handoff: Some(handoff) } => {
            handed_over(Outcome::Completed, Then::Archived(WasDone::Yes), handoff)
        }
        Verdict::Archive { handoff: None } => {
            plain(Outcome::Cancelled, Then::Archived(WasDone::No), tally.failures)
        }
        Verdict::Move { to: Destination::Triage } => plain(Outcome::Reclaimed, Then::Triage, 0),
        Verdict::Move { to: Destination::Queue } => plain(Outcome::Reclaimed, Then::Again(tally.gate), 0),
    }
}

/// Returns the destination of a task that is tried again without a pause.
fn again(tally: Tally) -> Then {
    match tally.errand {
        Errand::Work => Then::Again(tally.gate),
        Errand::Review => Then::Review,
        Errand::Check(checked) => Then::Again(Gate::Check(checked.of)),
    }
}

/// Returns the ending of a run that met a rate limit. The time that the worker reported comes before the time of the
/// lane. Without a report, the exit code of a script that is tried only once is a plain failure and no limit.
pub(crate) fn rate_limited(ending: Ending, reported: Option<Timestamp>, max_retries: Option<u32>) -> Ending {
    if let Some(until) = reported {
        return Ending { cause: EndCause::RateLimited { until }, ..ending };
    }
    let is_tried_once = max_retries.unwrap_or(ending.failure_limit) == 1;
    let is_last_of_script = is_tried_once && ending.siblings == Siblings::Spare;
    match ending.exit_code.filter(|code| is_last_of_script && *code == EX_TEMPFAIL) {
        Some(code) => Ending { cause: EndCause::Exited { code }, ..ending },
        None => ending,
    }
}

fn by_stop(reason: StopReason, ending: &Ending, tally: Tally, now: Timestamp) -> Decision {
    match reason {
        StopReason::Reclaimed => plain(Outcome::Reclaimed, again(tally), 0),
        StopReason::Cancelled => {
            let then = Then::Blocked(BlockKind::NeedsInput);
            uncounted(Outcome::Cancelled, then, "a person cancelled the run", tally)
        }
        StopReason::Preempted | StopReason::Kill => plain(Outcome::Preempted, again(tally), tally.failures),
        StopReason::Stalled => {
            failed(Outcome::Stalled, "it showed no progress and was ended", ending, tally, now)
        }
        StopReason::Verdict => failed(Outcome::Lost, "its verdict is missing", ending, tally, now),
    }
}

fn by_cause(ending: &Ending, tally: Tally, now: Timestamp) -> Decision {
    let failed = |outcome, error: &str| failed(outcome, error, ending, tally, now);
    match &ending.cause {
        EndCause::Exited { code: 0 } if tally.errand == Errand::Review => {
            failed(Outcome::Unreported, "the reviewer exited without approve or request-changes")
        }
        EndCause::Exited { code: 0 } => match &ending.result_policy {
            OnCleanExit::Complete { summary } => Decision {
                handoff: Some(Handoff { summary: summary.clone(), ..Handoff::default() }),
                ..plain(Outcome::Completed, Then::Done, 0)
            },
            OnCleanExit::ToolsRefused { .. } => {
                failed(Outcome::Unreported, &with_trouble(UNFINISHED, ending))
            }
            // `implied_verdict` has turned an exit with this policy into a verdict.
            OnCleanExit::Review { .. } | OnCleanExit::TurnEnded { .. } | OnCleanExit::Unreported => {
                match tally.goal.filter(|_| matches!(ending.result_policy, OnCleanExit::TurnEnded { .. })) {
                    Some(goal) => next_turn(tally, goal, now),
                    None => failed(Outcome::Unreported, &with_trouble(UNREPORTED, ending)),
                }
            }
        },
        EndCause::Exited { code } => {
            failed(Outcome::Crashed, &with_tail(format!("exit code {code}"), ending))
        }
        EndCause::Signaled { signal } => {
            failed(Outcome::Crashed, &with_tail(by_signal(*signal, ending), ending))
        }
        EndCause::TimedOut => failed(Outcome::TimedOut, "it ran longer than its limit"),
        EndCause::OutOfMemory => failed(Outcome::OutOfMemory, OUT_OF_MEMORY),
        EndCause::SpawnFailed { step, error, fault: Fault::Task } => {
            failed(Outcome::SpawnFailed, &format!("{step}: {error}"))
        }
        EndCause::SpawnFailed { step, error, fault: Fault::Definition } => Decision {
            pause: Duration::ZERO,
            review_at: None,
            then: Then::Blocked(BlockKind::GaveUp),
            ..failed(Outcome::SpawnFailed, &format!("{step}: {error}"))
        },
        // Every such run fails in the same way, so the environment counts the failure, and the dispatcher waits for it.
        EndCause::SpawnFailed { step, error, fault: Fault::Environment } => {
            uncounted(Outcome::SpawnFailed, again(tally), format!("{step}: {error}"), tally)
        }
        EndCause::ShimKilled => failed(
            Outcome::Lost,
            "its shim was killed, or its record was removed: how the worker ended is not known",
        ),
        EndCause::LostReboot => uncounted(Outcome::Lost, again(tally), "the host went down", tally),
        EndCause::NeverStarted => {
            uncounted(Outcome::Reclaimed, again(tally), "it was claimed and never started", tally)
        }
        EndCause::RateLimited { until } => Decision {
            error: Some(with_trouble("its service refused requests for a while", ending)),
            review_at: Some(*until).filter(|_| tally.errand == Errand::Review),
            ..plain(Outcome::RateLimited, later(tally, *until, now), tally.failures)
        },
        // A hold keeps the task and its siblings until the next try, or until a person releases it.
        EndCause::NotLoggedIn { .. } => {
            let error = with_trouble("its service did not accept its login", ending);
            uncounted(Outcome::SpawnFailed, again(tally), error, tally)
        }
        EndCause::SessionGone => {
            let error = with_trouble("its session is gone, so the next run begins a new one", ending);
            uncounted(Outcome::SpawnFailed, again(tally), error, tally)
        }
        // `implied_verdict` has turned this cause into a verdict.
        EndCause::OwnLimit(limit) => failed(Outcome::Unreported, &format!("it reached its limit on {limit}")),
        EndCause::Stopped(reason) => by_stop(*reason, ending, tally, now),
    }
}

/// Decides about a turn that has not reached the goal: another turn follows. The turn is no failure, and resets earlier
/// failures only if it took long enough to have done some work.
fn next_turn(tally: Tally, goal: GoalTurns, now: Timestamp) -> Decision {
    let error =
        format!("turn {} of {} ended without a verdict: the next turn follows", goal.turn(), goal.limit);
    let (pause, then) = after_turn(tally, now);
    let failures = if tally.pace.is_earnest { 0 } else { tally.failures };
    Decision {
        pause,
        error: Some(error),
        turn: Some(goal.turn()),
        ..plain(Outcome::Unreported, then, failures)
    }
}

/// Returns the pause after a turn that has proved nothing, and the destination of its task.
pub(crate) fn after_turn(tally: Tally, now: Timestamp) -> (Duration, Then) {
    after_pause(tally.jitter.pause(tally.pace.hasty), tally, now)
}

/// Returns the pause before the work goes on, and the destination of the task.
pub(crate) fn after_pause(pause: Duration, tally: Tally, now: Timestamp) -> (Duration, Then) {
    (pause, later(Tally { errand: Errand::Work, ..tally }, tally.ended_at.after(pause), now))
}

/// Decides about a run whose result is refused: as for a run without a report.
pub(crate) fn refused(error: &str, ending: &Ending, tally: Tally, now: Timestamp) -> Decision {
    failed(Outcome::Unreported, error, ending, tally, now)
}

fn failed(outcome: Outcome, error: &str, ending: &Ending, tally: Tally, now: Timestamp) -> Decision {
    let failures = tally.failures.saturating_add(1);
    let limit = tally.max_retries.unwrap_or(ending.failure_limit);
    let pause = tally.jitter.pause(failures);
    let at = tally.ended_at.after(pause);
    let then = if failures >= limit { Then::Blocked(BlockKind::GaveUp) } else { later(tally, at, now) };
    let error = match &ending.denied {
        Some(denied) => format!("{error}; {}", denied.text),
        None => error.to_owned(),
    };
    let looks_again = matches!(then, Then::Review | Then::Again(Gate::Check(_)));
    let review_at = (looks_again && at > now).then_some(at);
    Decision { error: Some(error), pause, review_at, ..plain(outcome, then, failures) }
}

/// Returns the destination for a try at `at`. Open parents take precedence. A review or a check keeps its purpose.
fn later(tally: Tally, at: Timestamp, now: Timestamp) -> Then {
    if tally.errand != Errand::Work {
        return again(tally);
    }
    Then::Again(match tally.gate {
        Gate::Parents | Gate::Review | Gate::Check(_) | Gate::Approval => tally.gate,
        Gate::Until(until) => Gate::Until(until.max(at)),
        Gate::Open if at > now => Gate::Until(at),
        Gate::Open => Gate::Open,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::outcome::Denied;
    use crate::model::verdict::Blocking;

    const NOW: Timestamp = Timestamp::from_secs(100);

    fn tally() -> Tally {
        Tally {
            failures: 1,
            max_retries: None,
            blocks: Recurrence::default(),
            gate: Gate::Open,
            awaits: false,
            errand: Errand::Work,
            ended_at: NOW,
            goal: None,
            pace: TurnPace::default(),
            jitter: Jitter::NONE,
        }
    }

    fn exited() -> Ending {
        Ending::new(EndCause::Exited { code: 1 })
    }

    fn at(seconds: i64) -> Gate {
        Gate::Until(Timestamp::from_secs(seconds))
    }

    #[test]
    fn a_verdict_counts_before_a_stop_and_a_stop_before_what_ended_the_run() {
        let stopped = Ending::new(EndCause::Stopped(StopReason::Preempted));
        for (verdict, stop, ending, outcome, failures) in [
            (Some(Verdict::Approve), Some(StopReason::Kill), exited(), Outcome::Approved, 0),
            (None, Some(StopReason::Reclaimed), exited(), Outcome::Reclaimed, 0),
            (None, None, stopped, Outcome::Preempted, 1),
            (None, None, exited(), Outcome::Crashed, 2),
        ] {
            let decision = decide(verdict.as_ref(), stop, &ending, tally(), NOW);
            assert_eq!((decision.outcome, decision.failures), (outcome, failures));
        }
    }

    #[test]
    fn only_a_dependency_waits_for_tasks_and_the_third_block_of_a_kind_goes_to_triage() {
        let thrice = Recurrence { kind: Some(BlockKind::NeedsInput), count: 2 };
        for (kind, awaits, blocks, then) in [
            (BlockKind::Dependency, true, Recurrence::default(), Then::Again(Gate::Parents)),
            (BlockKind::Dependency, false, Recurrence::default(), Then::Blocked(BlockKind::Dependency)),
            (BlockKind::NeedsInput, true, Recurrence::default(), Then::Blocked(BlockKind::NeedsInput)),
            (BlockKind::NeedsInput, true, thrice, Then::Triage),
        ] {
            let verdict = Verdict::Block(Blocking { kind, ..Blocking::default() });
            let tally = Tally { awaits, blocks, gate: Gate::Parents, ..tally() };
            assert_eq!(decide(Some(&verdict), None, &exited(), tally, NOW).then, then, "{kind} {awaits}");
        }
    }

    #[test]
    fn a_failure_is_tried_again_after_its_pause_and_where_the_task_waits_anyway() {
        let review = Tally { errand: Errand::Review, ..tally() };
        for (tally, now, then, review_at) in [
            (tally(), NOW, Then::Again(at(101)), None),
            (Tally { failures: 0, ..tally() }, NOW, Then::Again(Gate::Open), None),
            (tally(), Timestamp::from_secs(150), Then::Again(Gate::Open), None),
            (Tally { gate: at(500), ..tally() }, NOW, Then::Again(at(500)), None),
            (Tally { gate: at(100), ..tally() }, NOW, Then::Again(at(101)), None),
            (Tally { gate: Gate::Parents, ..tally() }, NOW, Then::Again(Gate::Parents), None),
            (review, NOW, Then::Review, Some(Timestamp::from_secs(101))),
            (review, Timestamp::from_secs(101), Then::Review, None),
            (Tally { failures: 3, ..tally() }, NOW, Then::Again(at(104)), None),
            (Tally { failures: 4, ..tally() }, NOW, Then::Blocked(BlockKind::GaveUp), None),
            (Tally { max_retries: Some(2), ..tally() }, NOW, Then::Blocked(BlockKind::GaveUp), None),
            (Tally { failures: 3, jitter: Jitter::MOST, ..tally() }, NOW, Then::Again(at(105)), None),
        ] {
            let decision = decide(None, None, &exited(), tally, now);
            assert_eq!((decision.then, decision.review_at), (then, review_at), "{tally:?}");
            assert_eq!(decision.gave_up(), then == Then::Blocked(BlockKind::GaveUp));
        }
    }

    #[test]
    fn a_rate_limit_ends_at_its_time_also_for_a_review() {
        let until = Timestamp::from_secs(900);
        let ending = Ending::new(EndCause::RateLimited { until });
        let work = decide(None, None, &ending, tally(), NOW);
        assert_eq!((work.then, work.review_at, work.failures), (Then::Again(at(900)), None, 1));
        let review = decide(None, None, &ending, Tally { errand: Errand::Review, ..tally() }, NOW);
        assert_eq!((review.then, review.review_at, review.failures), (Then::Review, Some(until), 1));
    }

    #[test]
    fn an_error_says_what_the_sandbox_denied() {
        let denied = Denied { policy: "p".into(), act: "a".into(), line: None, text: "it denied".into() };
        let ending =
            Ending { stderr_tail: Some("first\nlast\n".to_owned()), denied: Some(denied), ..exited() };
        let error = decide(None, None, &ending, tally(), NOW).error.unwrap();
        assert_eq!(error, "exit code 1: last; it denied");
    }

    #[test]
    fn a_turn_that_ends_is_a_failure_unless_the_worker_has_a_goal() {
        let result_policy = OnCleanExit::TurnEnded { summary: None };
        let ending = Ending { result_policy, ..Ending::new(EndCause::Exited { code: 0 }) };
        let failed = decide(None, None, &ending, tally(), NOW);
        assert_eq!((failed.outcome, failed.failures, failed.turn), (Outcome::Unreported, 2, None));
        let goal = Some(GoalTurns { taken: 2, limit: 5 });
        let next = decide(None, None, &ending, Tally { goal, ..tally() }, NOW);
        assert_eq!((next.outcome, next.then), (Outcome::Unreported, Then::Again(Gate::Open)));
        assert_eq!(next.failures, 1, "it is no success");
        assert_eq!(
            (next.turn, next.error.as_deref()),
            (Some(3), Some("turn 3 of 5 ended without a verdict: the next turn follows"))
        );
    }

    #[test]
    fn a_reviewer_that_says_nothing_completes_nothing() {
        let result_policy = OnCleanExit::Complete { summary: None };
        let ending = Ending { result_policy, ..Ending::new(EndCause::Exited { code: 0 }) };
        assert_eq!(decide(None, None, &ending, tally(), NOW).outcome, Outcome::Completed);
        let review = decide(None, None, &ending, Tally { errand: Errand::Review, ..tally() }, NOW);
        assert_eq!((review.outcome, review.then), (Outcome::Unreported, Then::Review));
        for cause in [EndCause::LostReboot, EndCause::NeverStarted] {
            let again =
                decide(None, None, &Ending::new(cause), Tally { errand: Errand::Review, ..tally() }, NOW);
            assert_eq!((again.then, again.failures), (Then::Review, 1));
        }
    }
}
