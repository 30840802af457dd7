//! Schedules: their definitions and their ticks. A tick and its tasks are created in one transaction.
//!
//! See decision 0143.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Board, SYSTEM};
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{ScheduleName, TaskId};
use crate::model::missing::Missing;
use crate::model::schedule::{
    DueCommand, Overlap, Schedule, ScheduleSpec, ScheduleTick, StuckSchedule, TickOutcome,
};
use crate::model::task::Origin;
use crate::model::verdict::VerdictKind;
use crate::rules::authority;
use crate::rules::template::{in_order, title, validate};
use crate::rules::ticks::{Ticks, jitter};
use crate::store::events::NewEvent;

/// Largest number of schedules decided in one transaction. The others stay due.
const AT_ONCE: u32 = 100;
/// Number of new tasks after which the transaction ends. The other ticks stay due.
const TASKS_AT_ONCE: usize = 1000;
/// Largest number of waiting ticks of one schedule.
const QUEUED: u64 = 1000;
/// Largest number of open tasks that a tick replaces.
const REPLACED: u32 = 1000;
/// Prefix of the idempotency keys of ticks.
pub(super) const KEYS: &str = "schedule:";

impl Board<'_> {
    /// Sets the schedules of the board. Schedules that are neither defined here nor in `kept` are removed. A schedule
    /// with a new timing, or that is no longer paused, starts its ticks now.
    pub fn define_schedules(
        &mut self,
        defined: &[(ScheduleName, ScheduleSpec)],
        kept: &BTreeSet<ScheduleName>,
    ) -> Result<(), Error> {
        let named: BTreeSet<&ScheduleName> = defined.iter().map(|(name, _)| name).chain(kept).collect();
        for gone in self.tx.schedules()?.iter().filter(|schedule| !named.contains(&schedule.name)) {
            self.tx.delete_schedule(&gone.name)?;
        }
        for (name, spec) in defined {
            // A refused schedule, for example with an unknown time zone, stays as it was and does not affect the others.
            if let Err(error @ Error::Storage { .. }) = self.define_schedule(name, spec) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Adds a schedule, or replaces its definition.
    pub fn define_schedule(&mut self, name: &ScheduleName, spec: &ScheduleSpec) -> Result<(), Error> {
        let ticks = validate(name, spec)?;
        let now = self.now();
        let before = self.tx.find_schedule(name)?;
        // A schedule that came with an import has no next tick until it is defined here.
        let is_armed = |before: &Schedule| before.next.is_some() || spec.paused;
        if before.as_ref().is_some_and(|before| before.spec == *spec && is_armed(before)) {
            return Ok(());
        }
        let goes_on = |before: &&Schedule| before.spec.timing == spec.timing && !before.spec.paused;
        let decided = match before.as_ref() {
            Some(before) if goes_on(&before) => before.decided.min(now),
            Some(_) | None => now,
        };
        // No tick is made twice, even if the clock was set back.
        let ahead = before.as_ref().and_then(|before| before.ahead.max(Some(before.decided)));
        let ahead = ahead.filter(|ahead| *ahead > now);
        let next = if spec.paused { None } else { ticks.after(decided) };
        let defined_at = before.map_or(now, |before| before.defined_at);
        self.tx.store_schedule(&Schedule {
            name: name.clone(),
            spec: spec.clone(),
            decided,
            ahead,
            next,
            defined_at,
        })
    }

    /// Records the result of a tick's command. A recorded result stays.
    pub fn settle_command(&mut self, command: &DueCommand, failure: Option<&str>) -> Result<(), Error> {
        let Some(schedule) = self.tx.find_schedule(&command.schedule)? else { return Ok(()) };
        let Some(tick) = self.tx.find_tick(&command.schedule, command.tick)? else { return Ok(()) };
        if tick.outcome != TickOutcome::Due {
            return Ok(());
        }
        let outcome = if failure.is_some() { TickOutcome::Failed } else { TickOutcome::Made };
        let note = failure.map(|text| text.chars().take(1000).collect());
        let tick = ScheduleTick { outcome, note, decided_at: self.now(), ..tick };
        self.tx.settle_tick(&command.schedule, &tick)?;
        self.append_tick_event(&schedule, &tick, SYSTEM)
    }

    /// Makes the tasks of a schedule now, even if earlier tasks are open. The regular ticks are not affected.
    pub fn run_schedule(&mut self, name: &ScheduleName, actor: &Actor) -> Result<ScheduleTick, Error> {
        authority::person(actor, "run a schedule")?;
        let schedule = self.tx.find_schedule(name)?.ok_or_else(|| Error::missing(Missing::Schedule, name))?;
        let ticks = validate(name, &schedule.spec)?;
        let at = self.now();
        let tick = if schedule.spec.command.is_some() {
            self.tick(at, TickOutcome::Due)
        } else {
            let tasks = self.make_tick(&schedule, &ticks, at, actor)?;
            ScheduleTick { tasks, ..self.tick(at, TickOutcome::Made) }
        };
        self.tx.insert_tick(name, &tick)?;
        self.append_tick_event(&schedule, &tick, &actor.label())?;
        Ok(tick)
    }

    /// Decides about the due ticks, and makes the queued ticks whose turn has come. Returns the new tasks.
    pub(super) fn tick_schedules(&mut self) -> Result<Vec<TaskId>, Error> {
        let mut made = Vec::new();
        for schedule in self.tx.due_schedules(self.now(), AT_ONCE)? {
            if made.len() >= TASKS_AT_ONCE {
                break;
            }
            self.decide_schedule(&schedule, &mut made)?;
        }
        for name in self.tx.released_schedules(AT_ONCE)? {
            if made.len() >= TASKS_AT_ONCE {
                break;
            }
            let Some(schedule) = self.tx.find_schedule(&name)? else { continue };
            let Some(queued) = self.tx.oldest_queued(&name)? else { continue };
            let tick = ScheduleTick { decided_at: self.now(), ..self.try_tick(&schedule, queued)? };
            self.tx.settle_tick(&name, &tick)?;
            self.append_tick_event(&schedule, &tick, SYSTEM)?;
            made.extend(tick.tasks);
        }
        Ok(made)
    }

    /// Returns true if a tick was decided while the clock was ahead.
    fn is_made(&self, schedule: &Schedule, at: Timestamp) -> Result<bool, Error> {
        if self.tx.find_tick(&schedule.name, at)?.is_some() {
            return Ok(true);
        }
        // The records of old ticks are removed; their tasks have the tick in their keys.
        let Some(template) = schedule.spec.tasks.first() else { return Ok(false) };
        let key = key(&schedule.name, at, &template.name);
        Ok(self.tx.find_task_by_key(template.task.tenant.as_ref(), &key)?.is_some())
    }

    /// Decides about the due ticks of one schedule.
    fn decide_schedule(&mut self, schedule: &Schedule, made: &mut Vec<TaskId>) -> Result<(), Error> {
        let (name, now) = (&schedule.name, self.now());
        let ticks = match Ticks::parse(&schedule.spec.timing) {
            Ok(ticks) => ticks,
            Err(error) => {
                // The time zone is no longer known. The schedule rests until it is defined again.
                let note = Some(error.to_string());
                let tick = ScheduleTick { note, ..self.tick(now, TickOutcome::Failed) };
                self.tx.insert_tick(name, &tick)?;
                self.append_tick_event(schedule, &tick, SYSTEM)?;
                return self.tx.set_decided(name, schedule.decided, None);
            }
        };
        // Ticks that were decided while the clock was ahead are over once the clock has passed them.
        let passed = schedule.ahead.filter(|ahead| *ahead <= now);
        let mut decided = passed.max(Some(schedule.decided)).unwrap_or_default();
        let due = ticks.due(schedule.spec.missed, decided, now);
        let mut missed = (due.missed, due.more);
        for at in &due.make {
            if schedule.ahead > passed && self.is_made(schedule, *at)? {
                decided = *at;
                continue;
            }
            if made.len() >= TASKS_AT_ONCE {
                return self.tx.set_decided(name, decided, Some(*at));
            }
            // The first tick that is made carries the count of the missed ticks.
            let (missed, more) = std::mem::take(&mut missed);
            let tick = ScheduleTick { missed, more, ..self.decide_tick(schedule, *at)? };
            self.tx.insert_tick(name, &tick)?;
            self.append_tick_event(schedule, &tick, SYSTEM)?;
            made.extend(tick.tasks);
            decided = *at;
        }
        if let Some(through) = due.through {
            decided = decided.max(through);
        }
        if missed.0 > 0 {
            let tick =
                ScheduleTick { missed: missed.0, more: missed.1, ..self.tick(decided, TickOutcome::Missed) };
            self.tx.insert_tick(name, &tick)?;
            self.append_tick_event(schedule, &tick, SYSTEM)?;
        }
        self.tx.set_decided(name, decided, ticks.after(decided))
    }

    /// Decides about a tick of a schedule with a command. Due commands are carried out one after the other.
    fn decide_command(&self, schedule: &Schedule, tick: ScheduleTick) -> Result<ScheduleTick, Error> {
        let waiting = self.tx.count_due(&schedule.name)?;
        let (outcome, note) = match schedule.spec.overlap {
            _ if waiting == 0 => (TickOutcome::Due, None),
            Overlap::Queue if waiting < QUEUED => (TickOutcome::Due, None),
            // The earlier command may be over already. Without this exception, a daemon that dies before it records the
            // end would lose this tick as well.
            Overlap::Skip if waiting == 1 => (TickOutcome::Due, None),
            Overlap::Queue => (TickOutcome::Skipped, Some(format!("{waiting} ticks wait already"))),
            Overlap::Skip | Overlap::Replace => {
                (TickOutcome::Skipped, Some("another tick already waits for the earlier command".to_owned()))
            }
        };
        Ok(ScheduleTick { outcome, note, ..tick })
    }

    /// Decides about one tick.
    fn decide_tick(&mut self, schedule: &Schedule, at: Timestamp) -> Result<ScheduleTick, Error> {
        let name = &schedule.name;
        let tick = self.tick(at, TickOutcome::Made);
        let open = self.tx.open_of_schedule(name, REPLACED)?;
        let queued = self.tx.count_queued(name)?;
        if schedule.spec.command.is_some() {
            return self.decide_command(schedule, tick);
        }
        if open.is_empty() && queued == 0 {
            return self.try_tick(schedule, tick);
        }
        let waits = open.first().map(|task| format!("{task} of an earlier tick is open"));
        match schedule.spec.overlap {
            Overlap::Replace => self.decide_replacing(schedule, tick, &open),
            Overlap::Queue if queued < QUEUED => {
                Ok(ScheduleTick { note: waits, ..self.tick(at, TickOutcome::Queued) })
            }
            Overlap::Queue => {
                let note = Some(format!("{queued} ticks wait already"));
                Ok(ScheduleTick { note, ..self.tick(at, TickOutcome::Skipped) })
            }
            Overlap::Skip => Ok(ScheduleTick { note: waits, ..self.tick(at, TickOutcome::Skipped) }),
        }
    }

    /// Decides about a tick that replaces earlier ticks. The tick waits for runs that are being ended, so that the tasks
    /// of two ticks never run at once.
    fn decide_replacing(
        &mut self,
        schedule: &Schedule,
        tick: ScheduleTick,
        open: &[TaskId],
    ) -> Result<ScheduleTick, Error> {
        let name = &schedule.name;
        for task in open.iter().rev() {
            self.replace_task(task, schedule, tick.tick)?;
        }
        while let Some(queued) = self.tx.oldest_queued(name)? {
            let note = Some("replaced by a later tick".to_owned());
            let outcome = TickOutcome::Skipped;
            let replaced = ScheduleTick { outcome, note, decided_at: self.now(), ..queued };
            self.tx.settle_tick(name, &replaced)?;
            self.append_tick_event(schedule, &replaced, SYSTEM)?;
        }
        match self.tx.open_of_schedule(name, 1)?.first() {
            None => self.try_tick(schedule, tick),
            Some(task) => {
                let note = Some(format!("waits for the run of {task} to end"));
                Ok(ScheduleTick { outcome: TickOutcome::Queued, note, ..tick })
            }
        }
    }

    /// Archives a task of an earlier tick; its run is ended.
    fn replace_task(&mut self, task: &TaskId, schedule: &Schedule, at: Timestamp) -> Result<(), Error> {
        let run = self.expect_task(task)?.current_run_id.map(|run| self.expect_run(run)).transpose()?;
        // An earlier tick has asked for the end already.
        if run.and_then(|run| run.verdict).is_some_and(|verdict| verdict.kind() == VerdictKind::Archive) {
            return Ok(());
        }
        let tick = Ticks::parse(&schedule.spec.timing)
            .map_or_else(|_| String::new(), |ticks| title(" of {date} {time}", &schedule.name, &ticks, at));
        let archived = self.attempt(|board| {
            let system = Actor::system();
            board.comment(task, &format!("REPLACED: the tick{tick} takes its place"), None, &system)?;
            board.archive(task, super::Detach::Unlink, &system).map(drop)
        });
        match archived {
            Err(error @ Error::Storage { .. }) => Err(error),
            // The task is ending on its own.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Makes the tasks of a tick, or records the reason why they were refused.
    fn try_tick(&mut self, schedule: &Schedule, tick: ScheduleTick) -> Result<ScheduleTick, Error> {
        let made = self.attempt(|board| {
            let ticks = validate(&schedule.name, &schedule.spec)?;
            board.make_tick(schedule, &ticks, tick.tick, &Actor::system())
        });
        match made {
            Ok(tasks) => Ok(ScheduleTick { outcome: TickOutcome::Made, tasks, note: None, ..tick }),
            Err(error @ Error::Storage { .. }) => Err(error),
            Err(error) => {
                Ok(ScheduleTick { outcome: TickOutcome::Failed, note: Some(error.to_string()), ..tick })
            }
        }
    }

    /// Makes the tasks of a tick. Their creator is the user who saved the schedule, whoever asks for the tick.
    fn make_tick(
        &mut self,
        schedule: &Schedule,
        ticks: &Ticks,
        at: Timestamp,
        actor: &Actor,
    ) -> Result<Vec<TaskId>, Error> {
        let (name, spec) = (&schedule.name, &schedule.spec);
        let creator = Actor { uid: spec.creator_uid, ..actor.clone() };
        let mut made: Vec<(&str, TaskId)> = Vec::with_capacity(spec.tasks.len());
        let delay = jitter(spec.jitter, name, at);
        for template in in_order(&spec.tasks)? {
            let mut new = template.task.clone();
            new.title = title(&new.title, name, ticks, at);
            let parents = made.iter().filter(|(name, _)| template.after.iter().any(|after| after == name));
            new.parents.extend(parents.map(|(_, id)| id.clone()));
            new.origin = Origin { schedule: Some(name.clone()), tick: Some(at), ..new.origin };
            new.idempotency_key = Some(key(name, at, &template.name));
            new.created_by = new.created_by.or_else(|| Some(format!("{KEYS}{name}")));
            if !delay.is_zero() {
                new.not_before = Some(at.after(delay));
            }
            let created = self.make(new, &creator)?;
            if created.existing {
                let why = format!("the tick of {} has been made: {}", at.as_secs(), created.task.id);
                return Err(Error::conflict(why, "nothing is made twice"));
            }
            made.push((&template.name, created.task.id));
        }
        Ok(made.into_iter().map(|(_, id)| id).collect())
    }

    fn tick(&self, at: Timestamp, outcome: TickOutcome) -> ScheduleTick {
        let (tasks, note, decided_at) = (Vec::new(), None, self.now());
        ScheduleTick { tick: at, outcome, missed: 0, more: false, tasks, note, decided_at }
    }

    fn append_tick_event(&self, schedule: &Schedule, tick: &ScheduleTick, actor: &str) -> Result<(), Error> {
        let payload = json!({
            "schedule": schedule.name, "tick": tick.tick, "outcome": tick.outcome, "tasks": tick.tasks,
            "missed": tick.missed, "more": tick.more, "note": tick.note,
        });
        let tenant = schedule.spec.tasks.first().and_then(|first| first.task.tenant.as_ref());
        self.tx
            .append_event(&NewEvent {
                task: None,
                run: None,
                tenant,
                kind: EventKind::Ticked,
                payload: Some(payload),
                change: None,
                actor,
                now: self.now(),
            })
            .map(drop)
    }
}

/// Returns the idempotency key of a task of a tick.
fn key(schedule: &ScheduleName, at: Timestamp, task: &str) -> String {
    format!("{KEYS}{schedule}:{}:{task}", at.as_micros())
}

impl View<'_> {
    /// Returns the schedules of the board, by name.
    pub fn schedules(&self) -> Result<Vec<Schedule>, Error> {
        self.tx.schedules()
    }

    /// Returns the latest ticks of a schedule, the newest first.
    pub fn ticks(&self, name: &ScheduleName, limit: u32) -> Result<Vec<ScheduleTick>, Error> {
        self.tx.ticks_of(name, limit)
    }

    /// Returns the active schedules whose latest executed tick failed, each with that tick.
    pub fn failed_schedules(&self) -> Result<Vec<(ScheduleName, ScheduleTick)>, Error> {
        self.tx.failed_schedules()
    }

    /// Returns the active schedules whose ticks make nothing, because the tasks of an earlier tick wait for a person.
    pub fn stuck_schedules(&self) -> Result<Vec<StuckSchedule>, Error> {
        self.tx.stuck_schedules()
    }

    /// Returns the number of ticks of a schedule that wait for tasks of earlier ticks.
    pub fn queued_ticks(&self, name: &ScheduleName) -> Result<u64, Error> {
        self.tx.count_queued(name)
    }

    /// Returns the current definition of a schedule.
    pub fn find_schedule(&self, name: &ScheduleName) -> Result<Option<Schedule>, Error> {
        self.tx.find_schedule(name)
    }

    /// Returns the commands that are to be carried out, the oldest tick first.
    pub fn due_commands(&self, limit: u32) -> Result<Vec<DueCommand>, Error> {
        let mut due = Vec::new();
        for (name, tick) in self.tx.due_ticks(limit)? {
            let Some(schedule) = self.tx.find_schedule(&name)? else { continue };
            let creator_uid = schedule.spec.creator_uid;
            let (Some(words), Ok(ticks)) = (schedule.spec.command, Ticks::parse(&schedule.spec.timing))
            else {
                continue;
            };
            let mut words: Vec<String> = words.iter().map(|word| title(word, &name, &ticks, tick)).collect();
            let names_one = words.iter().any(|word| word.starts_with("--jitter"));
            if let Some(jitter) = schedule.spec.jitter.filter(|_| !names_one) {
                words.push(format!("--jitter={}s", jitter.as_secs()));
            }
            due.push(DueCommand { schedule: name, tick, words, creator_uid });
        }
        Ok(due)
    }

    /// Returns the time at which the next tick has to be decided.
    pub(crate) fn next_tick(&self) -> Result<Option<Timestamp>, Error> {
        if !self.tx.released_schedules(1)?.is_empty() {
            return Ok(Some(self.now()));
        }
        self.tx.next_tick()
    }
}
