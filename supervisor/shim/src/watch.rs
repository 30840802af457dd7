//! Event loop of the shim, from the start of the worker until none of its processes is left.
//!
//! One thread waits with poll(2) for signals, output, the report of `confine`, messages, typed input and a timer. After
//! each wake-up it checks every source, so an event that comes after the check of its source is handled in the next round.

use std::os::fd::{AsFd as _, BorrowedFd};

use policies::Keeper;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::WaitStatus;

use crate::activity::Activity;
use crate::console::Console;
use crate::deadline::{Ending, Escalation};
use crate::init::Init;
use crate::mailbox::Mailbox;
use crate::output::{Files, Output, OutputTotals};
use crate::record;
use crate::report::{ReportPipe, Start};
use crate::rundir::{
    self, Cause, Concern, ExitRecord, FailedStart, ProcessIdentity, Receipt, Received, RunDir, ShimSpec,
    StartedRecord, StopReason, StopRequest, Straggler, UnkillableRecord, Usage, VERSION, boottime_us,
    slept_us, wall_us,
};
use crate::signals::Signals;
use crate::stuck::Stuck;
use crate::timer::Alarm;
use crate::tree::{Member, Tree};
use crate::worker::Worker;

/// Shortest and longest pause between two KILL rounds, in microseconds; each pause is twice the one before. Rounds are
/// timed because no event announces a process that a round has missed.
const ROUND_US: (u64, u64) = (2_000, 1_000_000);

/// Timing of the KILL rounds, which go on until no process is left.
#[derive(Debug)]
struct KillRounds {
    /// Time of the next round, in microseconds of `CLOCK_BOOTTIME`.
    next_at: u64,
    /// Pause after that round, in microseconds.
    pause: u64,
    /// Detects that the remaining processes no longer end. Each is identified by its pid and its start time.
    stuck: Stuck<(i32, u64)>,
    /// Latest stored record of unkillable processes.
    left: Option<UnkillableRecord>,
}

/// State of a run whose worker has been spawned.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    run: &'a RunDir,
    spec: &'a ShimSpec,
    signals: Signals,
    alarm: Alarm,
    output: Output,
    report: ReportPipe,
    worker: ProcessIdentity,
    tree: Tree,
    ending: Ending,
    rounds: Option<KillRounds>,
    failure: Option<FailedStart>,
    /// Runs that are affected if `confine` ends without a report. The command of the worker has not run then.
    silent: Concern,
    /// Time of the report that the command was executed, in microseconds of `CLOCK_BOOTTIME`.
    started_at: Option<u64>,
    /// Wait status of the worker, once it has ended.
    ended: Option<WaitStatus>,
    /// Number of processes that were killed after the end of the worker.
    lingered: u32,
    /// Holder of the listening socket of the run's proxy.
    keeper: Option<Keeper>,
    /// Messages on their way to the agent.
    mailbox: Option<Mailbox<'a>>,
    /// Terminal of the worker, with its typed input.
    console: Option<Console>,
}

impl<'a> Watch<'a> {
    /// Begins to watch a worker that was just spawned.
    pub(crate) fn new(
        run: &'a RunDir,
        spec: &'a ShimSpec,
        worker: Worker,
        init: Option<Init>,
        signals: Signals,
        alarm: Alarm,
        files: Files,
    ) -> Self {
        let work = spec.cgroup.as_ref().map(|cgroup| cgroup.join("work"));
        Self {
            run,
            spec,
            signals,
            alarm,
            output: Output::new(worker.stdout, worker.stderr, files),
            report: ReportPipe::new(worker.report),
            tree: match worker.channel {
                Some(_) => Tree::new(worker.identity.pid, init, work).with_relay(),
                None => Tree::new(worker.identity.pid, init, work),
            },
            worker: worker.identity,
            // The worker has not done anything yet, so any activity in the first sample is progress.
            ending: Ending::new(spec.deadline_us, spec.grace_ms).with_silence(
                boottime_us(),
                spec.idle_ms,
                Activity { slept_us: slept_us(), ..Activity::default() },
            ),
            rounds: None,
            failure: None,
            silent: Concern::Policy,
            started_at: None,
            ended: None,
            lingered: 0,
            keeper: None,
            mailbox: worker.channel.map(|channel| Mailbox::new(run, channel)),
            console: worker.console,
        }
    }

    /// Adds the holder of the proxy's listening socket, for a run with a proxy.
    pub(crate) fn keeping(self, keeper: Option<Keeper>) -> Self {
        Self { keeper, ..self }
    }

    /// Runs the loop until none of the run's processes is left. Returns the exit record.
    pub(crate) fn until_nothing_is_left(mut self) -> ExitRecord {
        // For a request that was made before the handler was installed, no signal arrives later, so it is read here.
        if self.run.stop_request().is_ok_and(|request| request.is_some()) {
            self.take_stop_request();
        }
        loop {
            self.take_report();
            if self.output.copy() {
                self.ending.written(boottime_us());
            }
            if let Some(keeper) = &mut self.keeper {
                keeper.attend();
            }
            if let Some(console) = &mut self.console {
                console.attend();
            }
            self.pass_messages();
            if self.signals.take_terminate() {
                self.take_stop_request();
            }
            self.signals.clear_child();
            let reaped = self.tree.reap();
            if let Some(status) = reaped.worker {
                // The worker may have reported after the read above. Its end of the pipe is closed now, so this read is
                // complete.
                self.take_report();
                self.ended = Some(status);
                self.kill_from_now();
            }
            // A process that does not descend from the shim can still be in the cgroup.
            if reaped.childless && !self.tree.is_populated() {
                break;
            }
            self.act();
            self.sleep();
        }
        if self.rounds.take().is_some() {
            self.run.clear_unkillable().ok();
        }
        self.into_record()
    }

    /// Carries out the steps that are due: the sample of activity, SIGTERM, the begin of the KILL rounds, one round.
    fn act(&mut self) {
        let now = boottime_us();
        if self.ended.is_none() {
            if self.ending.is_sample_due(now) {
                self.ending.sample(now, Activity::sample(&self.tree, self.run.heartbeat(), slept_us()));
            }
            match self.ending.due(now) {
                Some(Escalation::Terminate) => drop(self.tree.terminate()),
                Some(Escalation::Kill) => self.kill_from_now(),
                None => {}
            }
        }
        let Some(rounds) = self.rounds.as_mut().filter(|rounds| rounds.next_at <= now) else { return };
        rounds.next_at = now.saturating_add(rounds.pause);
        rounds.pause = (rounds.pause * 2).min(ROUND_US.1);
        // Short pauses come first, when most processes are still ending: only later rounds look for stuck ones.
        let is_long = rounds.pause == ROUND_US.1;
        let killed = self.tree.kill();
        if self.ended.is_some() {
            self.lingered = self.lingered.saturating_add(killed);
        }
        if is_long {
            self.tell_unkillable(now);
        }
    }

    /// Stores a record of the processes that outlive SIGKILL, and notifies the daemon. Does nothing if some of them
    /// still end, or if the last record has the same processes.
    fn tell_unkillable(&mut self, now: u64) {
        let members = self.tree.members();
        let Some(rounds) = &mut self.rounds else { return };
        if !rounds.stuck.check(now, members.iter().map(Member::identity).collect()) {
            return;
        }
        let record =
            UnkillableRecord::from_processes(members.into_iter().map(Straggler::from).collect(), now);
        if rounds.left.as_ref().is_some_and(|left| left.is_as(&record)) {
            return;
        }
        // The write fails on a full disk; the next round tries again.
        if self.run.write_unkillable(&record).is_ok() {
            rounds.left = Some(record);
            record::send_event(self.spec, "unkillable");
        }
    }

    /// Passes messages to the agent, and reports new receipts to the log and the daemon. Returns true if there were any.
    fn pass_messages(&mut self) -> bool {
        let Some(mailbox) = &mut self.mailbox else { return false };
        if self.signals.take_message() {
            mailbox.notice_message();
        }
        let news = mailbox.attend();
        for Received { number, receipt } in &news {
            self.output.note(&format!("message {number} {}", receipt_name(*receipt)));
        }
        if !news.is_empty() {
            record::send_event(self.spec, "messages");
        }
        !news.is_empty()
    }

    fn kill_from_now(&mut self) {
        let now = boottime_us();
        let (stuck, unkillable) =
            self.rounds.take().map_or_else(Default::default, |rounds| (rounds.stuck, rounds.left));
        self.rounds = Some(KillRounds { next_at: now, pause: ROUND_US.0, stuck, left: unkillable });
    }

    /// Reads the request to stop and schedules its steps. A SIGTERM without a readable request stops the run with the
    /// grace period of its spec.
    fn take_stop_request(&mut self) {
        let request = self.run.stop_request().ok().flatten().unwrap_or(StopRequest {
            version: VERSION,
            reason: StopReason::Preempted,
            quiet_ms: 0,
            grace_ms: self.spec.grace_ms,
        });
        self.ending.request(boottime_us(), &request);
    }

    fn take_report(&mut self) {
        match self.report.read() {
            Some(Start::Executed(report)) => {
                let started_at_us = boottime_us();
                self.started_at = Some(started_at_us);
                let record = StartedRecord {
                    version: VERSION,
                    worker: self.worker.clone(),
                    started_at_us,
                    report: *report,
                };
                // A run whose record could not be written goes on: the exit record has the start time as well.
                self.run.write_started(&record).ok();
                record::send_event(self.spec, "started");
            }
            Some(Start::Failed(failure)) => self.failure = Some(failure),
            // The kernel has read the program file of `confine`, so its loading has failed for lack of memory or
            // descriptors of the host.
            Some(Start::NotLoaded) => self.silent = Concern::Host,
            Some(Start::Silent) | None => {}
        }
    }

    /// Waits until a source has an event or the next step is due.
    fn sleep(&mut self) {
        let next = match (&self.rounds, self.ended.is_none().then(|| self.ending.next_at()).flatten()) {
            (Some(rounds), Some(at)) => Some(rounds.next_at.min(at)),
            (Some(rounds), None) => Some(rounds.next_at),
            (None, at) => at,
        };
        // If the timer cannot be set, the loop wakes up every second instead.
        let timeout = if self.alarm.set(next).is_ok() { None } else { Some(ONE_SECOND) };
        let fds = self.signals.fds();
        let output = self.output.fds();
        let all: Vec<BorrowedFd<'_>> = fds
            .into_iter()
            .chain([self.alarm.as_fd()])
            .chain(output)
            .chain(self.report.fd())
            .chain(self.keeper.as_ref().map(|keeper| keeper.as_fd()))
            .chain(self.mailbox.as_ref().and_then(Mailbox::source))
            .chain(self.console.as_ref().and_then(Console::source))
            .collect();
        let mut polled: Vec<PollFd<'_>> =
            all.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let sinks =
            [self.mailbox.as_ref().and_then(Mailbox::sink), self.console.as_ref().and_then(Console::sink)];
        polled.extend(sinks.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
        // A signal interrupts poll with EINTR; its handler has written to a pipe that the next round reads.
        poll(&mut polled, timeout.as_ref()).ok();
        drop(polled);
        drop(all);
        self.alarm.clear();
    }

    fn into_record(mut self) -> ExitRecord {
        // Each pass that returns true has new receipts. Receipts are finite, so the loop ends.
        while self.pass_messages() {}
        let OutputTotals { stdout_tail, stderr_tail, stdout } = self.output.finish();
        let code = self.ended.and_then(WaitStatus::exit_status);
        let signal = self.ended.and_then(WaitStatus::terminating_signal);
        let core_dumped = self.ended.and_then(|status| self.tree.core_dumped(status));
        let cause = self.cause();
        let is_own_end = matches!(cause, Cause::Exited) && code != Some(0);
        let is_spawned = !matches!(cause, Cause::SpawnFailed(_));
        ExitRecord {
            version: VERSION,
            cause,
            code: code.filter(|_| is_spawned),
            signal: signal.filter(|_| is_spawned),
            core_dumped: core_dumped.filter(|_| is_spawned),
            oom: self.tree.oom_kills().map(|kills| kills > 0 && is_own_end),
            stdout_tail,
            stderr_tail,
            stdout: is_spawned.then_some(stdout),
            usage: Usage { memory_peak_bytes: self.tree.memory_peak(), ..record::usage() },
            started_at_us: self.started_at,
            ended_at_us: boottime_us(),
            ended_at_wall_us: Some(wall_us()),
            survivors: 0,
            lingered: self.lingered,
        }
    }

    fn cause(&self) -> Cause {
        if let Some(failure) = self.failure.clone() {
            return Cause::SpawnFailed(failure);
        }
        if let Some(cause) = self.ending.cause() {
            return cause.clone();
        }
        if self.started_at.is_some() {
            return Cause::Exited;
        }
        let how = self.ended.map_or_else(|| "vanished".to_owned(), |status| format!("ended with {status:?}"));
        Cause::SpawnFailed(FailedStart {
            step: rundir::Step::Confine,
            error: format!("{how} before it reported"),
            errno: None,
            concern: self.silent,
        })
    }
}

/// Returns the state of a message for the line of the log about it.
fn receipt_name(receipt: Receipt) -> &'static str {
    match receipt {
        Receipt::Written => "is in the input of the agent",
        Receipt::Confirmed => "was taken up by the agent",
        Receipt::Unread => "was not read by the agent before it ended",
        Receipt::Refused => "was refused by the agent",
        Receipt::Closed => "came after the end of the conversation",
    }
}

const ONE_SECOND: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
