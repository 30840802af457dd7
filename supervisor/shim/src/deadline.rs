//! Times at which the worker gets TERM and KILL, merged from the deadline, the limit on a lack of progress and every
//! request to stop. Pure.

use crate::activity::Activity;
use crate::rundir::{Cause, StopReason, StopRequest, VERSION};
use crate::silence::Silence;

/// Action that is due for the worker now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escalation {
    /// TERM, then CONT, to the whole tree.
    Terminate,
    /// KILL to the whole tree, until it is gone.
    Kill,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Schedule {
    cause: Cause,
    terminate_at: u64,
    kill_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    Nothing,
    Terminated,
    Killed,
}

/// End of a run that is due or requested; times are microseconds of `CLOCK_BOOTTIME`.
#[derive(Debug)]
pub(crate) struct Ending {
    schedule: Option<Schedule>,
    silence: Option<Silence>,
    grace_ms: u64,
    done: Done,
}

impl Ending {
    /// Starts with the deadline, if there is one.
    pub(crate) fn new(deadline_us: Option<u64>, grace_ms: u64) -> Self {
        let schedule = deadline_us.map(|at| Schedule {
            cause: Cause::Deadline,
            terminate_at: at,
            kill_at: at.saturating_add(micros(grace_ms)),
        });
        Self { schedule, silence: None, grace_ms, done: Done::Nothing }
    }

    /// Adds a limit on the time without progress, which counts from `now` on.
    pub(crate) fn with_silence(self, now: u64, limit_ms: Option<u64>, seen: Activity) -> Self {
        let silence = limit_ms.map(|limit| Silence::new(now, micros(limit), seen));
        Self { silence, ..self }
    }

    /// Records that the worker has written something.
    pub(crate) fn written(&mut self, now: u64) {
        if let Some(silence) = &mut self.silence {
            silence.written(now);
        }
    }

    /// Returns true if a sample of the worker's activity is due.
    pub(crate) fn is_sample_due(&self, now: u64) -> bool {
        self.done == Done::Nothing
            && self.silence.as_ref().is_some_and(|silence| silence.next_sample_at() <= now)
    }

    /// Passes a sample on to the measurement of silence, if the run has a limit on silence.
    pub(crate) fn sample(&mut self, now: u64, seen: Activity) {
        if let Some(silence) = &mut self.silence {
            silence.sample(now, seen);
        }
    }

    /// Takes a request to stop that is read at `now`.
    ///
    /// Each step happens at the earliest requested time: a later request can only be more urgent.
    pub(crate) fn request(&mut self, now: u64, request: &StopRequest) {
        let terminate_at = now.saturating_add(micros(request.quiet_ms));
        let kill_at = terminate_at.saturating_add(micros(request.grace_ms));
        let cause = Cause::Stopped { reason: request.reason };
        match &mut self.schedule {
            None => self.schedule = Some(Schedule { cause, terminate_at, kill_at }),
            Some(schedule) => {
                if self.done == Done::Nothing && terminate_at < schedule.terminate_at {
                    schedule.terminate_at = terminate_at;
                    schedule.cause = cause;
                }
                schedule.kill_at = schedule.kill_at.min(kill_at);
            }
        }
    }

    /// Returns the time at which [`Ending::due`] must be called next; none if nothing is ever due.
    pub(crate) fn next_at(&self) -> Option<u64> {
        let schedule = self.schedule.as_ref();
        match self.done {
            Done::Nothing => {
                let silent = self.silence.as_ref().map(Silence::next_sample_at);
                schedule.map(|schedule| schedule.terminate_at).into_iter().chain(silent).min()
            }
            Done::Terminated => schedule.map(|schedule| schedule.kill_at),
            Done::Killed => None,
        }
    }

    /// Returns the step that is due at `now`, and counts it as done.
    pub(crate) fn due(&mut self, now: u64) -> Option<Escalation> {
        if self.next_at()? > now {
            return None;
        }
        let is_silent = self.silence.as_ref().is_some_and(|silence| silence.ends_at() <= now);
        if self.done == Done::Nothing && is_silent {
            let (reason, quiet_ms, grace_ms) = (StopReason::Stalled, 0, self.grace_ms);
            self.request(now, &StopRequest { version: VERSION, reason, quiet_ms, grace_ms });
        }
        if self.done == Done::Nothing && self.schedule.as_ref().is_none_or(|due| due.terminate_at > now) {
            // Only a sample was due.
            return None;
        }
        let (done, step) = match self.done {
            Done::Nothing => (Done::Terminated, Escalation::Terminate),
            Done::Terminated | Done::Killed => (Done::Killed, Escalation::Kill),
        };
        self.done = done;
        Some(step)
    }

    /// Returns the reason for which the worker was asked to end; none if it was not asked.
    pub(crate) fn cause(&self) -> Option<&Cause> {
        (self.done > Done::Nothing).then_some(self.schedule.as_ref()?).map(|schedule| &schedule.cause)
    }
}

fn micros(milliseconds: u64) -> u64 {
    milliseconds.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(reason: StopReason, quiet_ms: u64, grace_ms: u64) -> StopRequest {
        StopRequest { version: 1, reason, quiet_ms, grace_ms }
    }

    #[test]
    fn a_deadline_terminates_then_kills_after_the_grace() {
        let mut ending = Ending::new(Some(1_000), 5);
        assert_eq!((ending.due(999), ending.next_at()), (None, Some(1_000)));
        assert_eq!((ending.due(1_000), ending.next_at()), (Some(Escalation::Terminate), Some(6_000)));
        assert_eq!((ending.due(6_000), ending.next_at()), (Some(Escalation::Kill), None));
        assert_eq!(ending.cause(), Some(&Cause::Deadline));
    }

    #[test]
    fn a_worker_that_writes_nothing_for_too_long_is_ended_and_one_that_writes_is_not() {
        let mut ending = Ending::new(Some(50_000), 5).with_silence(0, Some(10), Activity::default());
        ending.written(9_000);
        assert_eq!(
            (ending.is_sample_due(2_499), ending.is_sample_due(2_500), ending.due(2_500)),
            (false, true, None)
        );
        ending.sample(18_998, Activity::default());
        assert_eq!((ending.due(18_999), ending.next_at()), (None, Some(19_000)));
        ending.sample(19_000, Activity::default());
        assert_eq!((ending.due(19_000), ending.next_at()), (Some(Escalation::Terminate), Some(24_000)));
        ending.written(19_001);
        assert_eq!(ending.due(24_000), Some(Escalation::Kill));
        assert_eq!(ending.cause(), Some(&Cause::Stopped { reason: StopReason::Stalled }));
        let mut ending = Ending::new(Some(5_000), 5).with_silence(0, Some(10), Activity::default());
        assert_eq!(ending.due(5_000), Some(Escalation::Terminate));
        assert_eq!(ending.cause(), Some(&Cause::Deadline), "what comes first counts");
    }

    #[test]
    fn a_run_without_deadline_and_request_never_ends() {
        let mut ending = Ending::new(None, 5);
        assert_eq!((ending.next_at(), ending.due(u64::MAX), ending.cause()), (None, None, None));
    }

    #[test]
    fn a_verdict_leaves_time_and_a_worker_that_uses_it_ends_by_itself() {
        let mut ending = Ending::new(None, 5);
        ending.request(0, &stop(StopReason::Verdict, 10_000, 5_000));
        assert_eq!((ending.due(9_999_999), ending.cause()), (None, None));
        assert_eq!(ending.next_at(), Some(10_000_000));
    }

    #[test]
    fn a_later_request_may_be_more_urgent() {
        let mut ending = Ending::new(None, 5);
        ending.request(0, &stop(StopReason::Verdict, 10_000, 5_000));
        ending.request(1, &stop(StopReason::Kill, 0, 0));
        assert_eq!((ending.due(1), ending.due(1)), (Some(Escalation::Terminate), Some(Escalation::Kill)));
        assert_eq!(ending.cause(), Some(&Cause::Stopped { reason: StopReason::Kill }));
    }

    #[test]
    fn a_later_request_is_never_less_urgent() {
        let mut ending = Ending::new(Some(2_000), 1);
        ending.request(1, &stop(StopReason::Cancelled, 0, 1));
        assert_eq!(ending.due(1), Some(Escalation::Terminate));
        ending.request(2, &stop(StopReason::Verdict, 10_000, 10_000));
        assert_eq!(ending.next_at(), Some(1_001));
        assert_eq!(ending.cause(), Some(&Cause::Stopped { reason: StopReason::Cancelled }));
    }

    #[test]
    fn a_kill_shortens_the_grace_of_a_stop_that_runs() {
        let mut ending = Ending::new(None, 1);
        ending.request(0, &stop(StopReason::Preempted, 0, 60_000));
        assert_eq!(ending.due(0), Some(Escalation::Terminate));
        ending.request(5, &stop(StopReason::Kill, 0, 0));
        assert_eq!(ending.due(5), Some(Escalation::Kill));
        assert_eq!(ending.cause(), Some(&Cause::Stopped { reason: StopReason::Preempted }));
    }

    #[test]
    fn a_deadline_that_comes_before_the_end_of_the_quiet_time_keeps_its_place() {
        let mut ending = Ending::new(Some(1_000), 1);
        ending.request(0, &stop(StopReason::Verdict, 10_000, 5_000));
        assert_eq!(ending.due(1_000), Some(Escalation::Terminate));
        assert_eq!(ending.cause(), Some(&Cause::Deadline));
    }
}
