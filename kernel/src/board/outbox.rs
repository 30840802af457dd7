//! Outbox: messages to people. A message is written in the transaction of its event, so that no event loses its
//! message, and removed after its delivery.
//!
//! Beyond [`WAITING`] messages of a tenant for a channel, further messages are left out, and a single message reports
//! their number. From [`OF_TASK`] waiting messages about one task on, messages of one kind are merged. No worker can
//! grow the outbox beyond these bounds.
//!
//! See decision 0146.

use super::Board;
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{EventId, LetterId, TaskId, Tenant};
use crate::model::letter::{Address, DeliveryQueue, Letter, LetterState, Letters, Mail, NoticeKind};
use crate::model::limits;
use crate::model::missing::Missing;
use crate::model::state::State;
use crate::model::task::Task;
use crate::model::verdict::Question;
use crate::rules::authority;
use crate::rules::notice;
use crate::store::outbox::NewLetter;

/// Largest number of waiting messages of one tenant for one channel.
const WAITING: u32 = 500;
/// Number of waiting messages about one task to one address from which on messages of one kind are merged.
const OF_TASK: usize = 16;
/// Largest number of dead messages, which are not tried again.
const DEAD: u32 = 1000;
/// Longest stored error, in characters.
const ERROR: usize = 300;

/// Parts of a message beside the state of the task.
#[derive(Clone, Copy)]
struct MessageParts<'a> {
    kind: NoticeKind,
    /// Error of the last run.
    error: Option<&'a str>,
    /// Question of the task's mission, for a message about the mission.
    asked: Option<&'a Question>,
}

/// Returns true if people get a message of this kind about a task.
fn is_news(kind: NoticeKind, task: &Task) -> bool {
    match kind {
        // If a profile reviews the work, its run starts without a person.
        NoticeKind::Review => task.reviewer.is_none(),
        // The person who cancelled the task knows that it is blocked.
        NoticeKind::Blocked => !task.is_cancelled(),
        NoticeKind::Completed
        | NoticeKind::Question
        | NoticeKind::Approval
        | NoticeKind::GaveUp
        | NoticeKind::Crashed
        | NoticeKind::TimedOut
        | NoticeKind::Unreported
        | NoticeKind::LeftOut
        | NoticeKind::Test => true,
    }
}

impl View<'_> {
    /// Returns the waiting messages, counted by address and tenant.
    pub fn delivery_queues(&self) -> Result<Vec<DeliveryQueue>, Error> {
        self.tx.queues()
    }

    /// Returns the first messages of a tenant to an address, at most `limit`, in the order of delivery.
    pub fn letters_of_queue(&self, queue: &DeliveryQueue, limit: u32) -> Result<Vec<Letter>, Error> {
        self.tx.letters_of(queue, limit)
    }

    /// Returns the selected messages, oldest first, as far as the caller may see them.
    pub fn outbox(&self, which: &Letters, actor: &Actor) -> Result<Vec<Letter>, Error> {
        authority::person(actor, "look into the outbox")?;
        let limit = which.limit.min(limits::REPLY_ROWS);
        self.tx.list_letters(&Letters { limit, ..visible_to(which, actor) })
    }

    /// Returns the channels in trouble, as [`Mail::is_in_trouble`] defines it, without reading the messages that only
    /// wait.
    pub fn troubled_channels(&self) -> Result<Vec<String>, Error> {
        self.tx.troubled_channels(Mail::trouble_since(self.now()))
    }

    /// Returns the state of each channel, by the messages of a tenant or of all.
    pub fn mail(&self, tenant: Option<&Tenant>) -> Result<Vec<Mail>, Error> {
        self.tx.mail(tenant)
    }
}

impl Board<'_> {
    /// Writes the messages about an event to the subscribers of its task. `error` is the error of the run.
    pub(super) fn tell_subscribers(
        &self,
        id: &TaskId,
        event: EventId,
        kind: EventKind,
        to: Option<State>,
        error: Option<&str>,
    ) -> Result<(), Error> {
        let (notice_kind, of_mission) = (notice::kind_of(kind, to), kind == EventKind::MissionAsked);
        let Some(kind) = notice_kind else { return Ok(()) };
        if !self.tx.has_subscriptions()? {
            return Ok(());
        }
        let task = self.expect_task(id)?;
        let asked = if of_mission { self.mission_question(&task)? } else { None };
        let addresses = if of_mission {
            // A mission at a limit starts no task, so the subscribers of all its tasks wait for the answer.
            self.tx.addresses_of_mission(id)?
        } else {
            let mission = task.lineage.mission.as_deref().filter(|_| kind.needs_somebody());
            self.tx.addresses(id, mission)?
        };
        let parts = MessageParts { kind, error, asked: asked.as_ref() };
        for address in addresses.iter().filter(|_| is_news(kind, &task)) {
            self.write_letter(&task, event, parts, address)?;
        }
        Ok(())
    }

    /// Writes a message about the current state of a task to a new subscriber, if people get messages about this state,
    /// because its event came before the subscription.
    pub(super) fn send_current_state(&self, task: &Task, address: &Address) -> Result<(), Error> {
        let event = self.tx.last_event()?;
        if let Some(asked) = self.mission_question(task)? {
            let parts = MessageParts { kind: NoticeKind::Question, error: None, asked: Some(&asked) };
            self.write_once(task, event, parts, address)?;
        }
        let kind = match self.state_row(&task.id)?.state {
            State::Done => NoticeKind::Completed,
            state @ State::Blocked { .. } if task.block_reason.is_some() => {
                let Some(kind) = notice::kind_of(EventKind::Blocked, Some(state)) else { return Ok(()) };
                kind
            }
            State::Review if task.reviewer.is_none() => NoticeKind::Review,
            State::Triage
            | State::Todo
            | State::Scheduled { .. }
            | State::Ready
            | State::Running { .. }
            | State::Review
            | State::Checking { .. }
            | State::Blocked { .. }
            | State::Archived { .. } => return Ok(()),
        };
        if !is_news(kind, task) {
            return Ok(());
        }
        self.write_once(task, event, MessageParts { kind, error: None, asked: None }, address)
    }

    /// Writes a message unless an equal message already waits, because the same address may also be subscribed to the
    /// mission.
    fn write_once(
        &self,
        task: &Task,
        event: EventId,
        parts: MessageParts<'_>,
        address: &Address,
    ) -> Result<(), Error> {
        let (kind, notice) = notice::notice(parts.kind, task, parts.error, parts.asked);
        let waiting = self.tx.letters_about(&task.id, address)?;
        if waiting.iter().any(|one| one.kind == kind && one.notice == notice) {
            return Ok(());
        }
        self.write_letter(task, event, parts, address)
    }

    fn write_letter(
        &self,
        task: &Task,
        event: EventId,
        parts: MessageParts<'_>,
        address: &Address,
    ) -> Result<(), Error> {
        let (kind, notice) = notice::notice(parts.kind, task, parts.error, parts.asked);
        let tenant = task.tenant.as_ref();
        let letter = NewLetter {
            task: &task.id,
            event,
            tenant,
            address,
            kind,
            notice: &notice,
            events: 1,
            now: self.now(),
        };
        if self.tx.count_letters(tenant, &address.channel)? >= WAITING {
            let before = self.tx.left_out(tenant, address)?;
            return self.replace(before.as_ref(), NewLetter { kind: NoticeKind::LeftOut, ..letter });
        }
        let waiting = self.tx.letters_about(&task.id, address)?;
        let same = waiting.iter().rev().find(|one| one.kind == kind).filter(|_| waiting.len() >= OF_TASK);
        self.replace(same, letter)
    }

    /// Inserts a message, in place of a waiting message if one is given. The new message has another number, so that
    /// the end of a delivery of the old message, which may be in progress, does not remove it.
    fn replace(&self, before: Option<&Letter>, letter: NewLetter<'_>) -> Result<(), Error> {
        let mut events = letter.events;
        if let Some(before) = before {
            events = before.events.saturating_add(1);
            self.tx.delete_letter(before.id)?;
        }
        self.tx.insert_letter(&NewLetter { events, ..letter }).map(drop)
    }

    /// Binds messages to one digest. Until the digest is delivered, a retry sends exactly the same messages.
    pub fn bind_letters(&mut self, ids: &[LetterId]) -> Result<(), Error> {
        let Some(first) = ids.first() else { return Ok(()) };
        ids.iter().try_for_each(|id| self.tx.bind_letter(*id, *first))
    }

    /// Removes delivered messages, and stores `message`, the id under which their service knows them.
    pub fn letters_delivered(&mut self, ids: &[LetterId], message: Option<&str>) -> Result<(), Error> {
        for id in ids {
            let Some(letter) = self.tx.find_letter(*id)? else { continue };
            self.tx.move_subscription(&letter)?;
            if let Some(message) = message {
                self.tx.put_chat_message(&letter, message)?;
            }
            self.tx.delete_letter(*id)?;
        }
        Ok(())
    }

    /// Records that a channel refused messages. `next` is the time of the next try; without it, the messages become
    /// dead, and the oldest dead messages beyond 1000 are removed.
    pub fn letters_failed(
        &mut self,
        ids: &[LetterId],
        error: &str,
        next: Option<Timestamp>,
    ) -> Result<(), Error> {
        let error: String = error.chars().filter(|c| !c.is_control()).take(ERROR).collect();
        let now = self.now();
        for id in ids {
            self.tx.fail_letter(*id, &error, next.unwrap_or(now), now)?;
            if next.is_none() {
                self.tx.bury_letter(*id)?;
            }
        }
        if next.is_none() {
            self.tx.thin_dead_letters(DEAD)?;
        }
        Ok(())
    }

    /// Makes dead and waiting messages due at once, and returns their number.
    pub fn retry_letters(&mut self, which: &Letters, actor: &Actor) -> Result<usize, Error> {
        authority::person(actor, "retry messages")?;
        let which = visible_to(which, actor);
        self.require_letter(&which)?;
        self.tx.revive_letters(&which, self.now())
    }

    /// Deletes a single message, or all selected dead messages, and returns their number.
    pub fn drop_letters(&mut self, which: &Letters, actor: &Actor) -> Result<usize, Error> {
        authority::person(actor, "drop messages")?;
        let mut which = visible_to(which, actor);
        self.require_letter(&which)?;
        if which.id.is_none() {
            which.state = Some(LetterState::Dead);
        }
        self.tx.drop_letters(&which)
    }

    fn require_letter(&self, which: &Letters) -> Result<(), Error> {
        let Some(id) = which.id else { return Ok(()) };
        let letters = self.tx.list_letters(&Letters { limit: 1, ..which.clone() })?;
        if letters.is_empty() { Err(Error::missing(Missing::Message, id)) } else { Ok(()) }
    }
}

/// Narrows a selection to the messages that the caller may see.
fn visible_to(which: &Letters, actor: &Actor) -> Letters {
    let tenant = actor.tenant.clone().or_else(|| which.tenant.clone());
    Letters { tenant, ..which.clone() }
}
