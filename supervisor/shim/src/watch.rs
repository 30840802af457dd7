//! The shim's one loop: signals, output, report and timer, from the worker's start until nothing of it is left.

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

/// Between two KILL rounds, from the first time to the longest. A process that a round missed makes no event.
const ROUND_US: (u64, u64) = (2_000, 1_000_000);

/// KILL rounds that go on until nothing is left.
#[derive(Debug)]
struct KillRounds {
    next_at: u64,
    pause: u64,
    /// Watches the processes left for ends, each by its pid and the time of its start.
    stuck: Stuck<(i32, u64)>,
    /// The last record of unkillable processes.
    left: Option<UnkillableRecord>,
}

/// The state of a run that has begun.
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
    /// Whom it concerns if `confine` ends without a word; nothing of the worker's own has run then.
    silent: Concern,
    started_at: Option<u64>,
    ended: Option<WaitStatus>,
    lingered: u32,
    /// Has the listening socket of the run's proxy.
    keeper: Option<Keeper>,
    /// Passes on messages to the agent.
    mailbox: Option<Mailbox<'a>>,
    /// The terminal of the worker, with its typed input.
    console: Option<Console>,
}

impl<'a> Watch<'a> {
    /// Takes over a worker that was just spawned.
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
            // Nothing has been done yet, so all that a first look finds is progress.
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

    /// Keeps the listening socket of the run's proxy too, where it has one.
    pub(crate) fn keeping(self, keeper: Option<Keeper>) -> Self {
        Self { keeper, ..self }
    }

    /// Sees the run to its end: returns when none of its processes is left.
    pub(crate) fn until_nothing_is_left(mut self) -> ExitRecord {
        // A request from before the handler was there came without a signal that could be seen.
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
                // The pipe is closed now, so this reads all that confine had to say.
                self.take_report();
                self.ended = Some(status);
                self.kill_from_now();
            }
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

    /// Does all due actions.
    fn act(&mut self) {
        let now = boottime_us();
        if self.ended.is_none() {
            if self.ending.wants_look(now) {
                self.ending.looked(now, Activity::sample(&self.tree, self.run.heartbeat(), slept_us()));
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
        let is_long = rounds.pause == ROUND_US.1;
        let killed = self.tree.kill();
        if self.ended.is_some() {
            self.lingered = self.lingered.saturating_add(killed);
        }
        if is_long {
            self.tell_unkillable(now);
        }
    }

    /// Records the processes that outlive SIGKILL, and wakes the daemon, where they are stuck and differ from the last record.
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
        // A full disk has no room for it; the next round tries again.
        if self.run.write_unkillable(&record).is_ok() {
            rounds.left = Some(record);
            record::send_event(self.spec, "unkillable");
        }
    }

    /// Passes on messages, and tells the daemon and the log what became of them. False when there was nothing to tell.
    fn pass_messages(&mut self) -> bool {
        let Some(mailbox) = &mut self.mailbox else { return false };
        if self.signals.take_message() {
            mailbox.look();
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

    /// Reads how the run is to be ended. SIGTERM without a request that can be read ends it with the spec's grace.
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
                // Without it the run goes on; the exit record carries the time as well.
                self.run.write_started(&record).ok();
                record::send_event(self.spec, "started");
            }
            Some(Start::Failed(failure)) => self.failure = Some(failure),
            // Its code was read, so what could not be loaded is what it needs beside that: for lack of descriptors or memory.
            Some(Start::NotLoaded) => self.silent = Concern::Host,
            Some(Start::Silent) | None => {}
        }
    }

    /// Waits until something happens or is due.
    fn sleep(&mut self) {
        let next = match (&self.rounds, self.ended.is_none().then(|| self.ending.next_at()).flatten()) {
            (Some(rounds), Some(at)) => Some(rounds.next_at.min(at)),
            (Some(rounds), None) => Some(rounds.next_at),
            (None, at) => at,
        };
        // A timer that could not be set leaves the loop without its alarm: then it looks every second.
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
        // EINTR is a signal, whose handler has written to its pipe.
        poll(&mut polled, timeout.as_ref()).ok();
        drop(polled);
        drop(all);
        self.alarm.clear();
    }

    fn into_record(mut self) -> ExitRecord {
        // Each tells something new of a message, so there is an end.
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

/// Returns the line of the log about a message.
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
