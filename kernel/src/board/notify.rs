//! Subscriptions of chats to tasks, each with a cursor in the task's events.
//!
//! A new subscription sends the current wait or the result of the task at once, so that no event between `create` and
//! `notify-subscribe` is missed. A subscription stays with its task, but is not listed while it can bring no message: the
//! task is over, and so is the mission of which it is the first task. A task that is brought back sends messages again.

use serde_json::json;

use super::Board;
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::TaskId;
use crate::model::letter::Address;
use crate::model::limits;
use crate::model::missing::Missing;
use crate::model::status::Status;
use crate::model::subscription::{Subscription, SubscriptionKey};
use crate::model::task::Task;
use crate::rules::authority;

impl View<'_> {
    /// Returns the subscriptions that a caller may see, of one task or of all.
    pub fn subscriptions(&self, task: Option<&TaskId>, actor: &Actor) -> Result<Vec<Subscription>, Error> {
        authority::person(actor, "list subscriptions")?;
        if let Some(task) = task {
            self.task_for(task, actor)?;
        }
        self.tx.list_subscriptions(task, actor.tenant.as_ref())
    }
}

impl Board<'_> {
    /// Subscribes a chat to a task. A known key keeps its cursor, and takes over a newly named user and profile.
    pub fn subscribe(
        &mut self,
        key: &SubscriptionKey,
        user: Option<&str>,
        notifier: Option<&str>,
        actor: &Actor,
    ) -> Result<Subscription, Error> {
        let task = self.for_person(&key.task_id, actor, "subscribe a chat to a task")?;
        self.add_subscription(&task, key, user, notifier, &actor.label())
    }

    /// Subscribes the channel that a new task names to it.
    pub(super) fn subscribe_channel(&mut self, task: &Task, actor: &str) -> Result<(), Error> {
        let Some(channel) = &task.origin.channel else { return Ok(()) };
        self.add_subscription(task, &SubscriptionKey::of_channel(&task.id, channel), None, None, actor)
            .map(drop)
    }

    fn add_subscription(
        &mut self,
        task: &Task,
        key: &SubscriptionKey,
        user: Option<&str>,
        notifier: Option<&str>,
        actor: &str,
    ) -> Result<Subscription, Error> {
        limits::filled("platform", &key.platform, "name one")?;
        for (field, text) in [
            ("platform", Some(key.platform.as_str())),
            ("chat_id", Some(&key.chat_id)),
            ("thread_id", Some(&key.thread_id)),
            ("user_id", user),
            ("notifier_profile", notifier),
        ] {
            limits::maybe(field, text, limits::WORD)?;
        }
        let is_new = self.tx.insert_subscription(key, user, notifier, self.now())?;
        if is_new {
            self.append(task, None, EventKind::Subscribed, Some(payload(key)), actor)?;
        } else {
            self.tx.update_subscription(key, user, notifier)?;
        }
        // A caller who subscribes to a finished task wants its result, even for the second time.
        if is_new || matches!(task.status, Status::Done | Status::Archived) {
            self.send_current_state(task, &key.address())?;
        }
        self.tx.find_subscription(key)?.ok_or_else(|| unknown(key))
    }

    /// Removes a subscription.
    pub fn unsubscribe(&mut self, key: &SubscriptionKey, actor: &Actor) -> Result<Subscription, Error> {
        let task = self.for_person(&key.task_id, actor, "unsubscribe a chat from a task")?;
        let subscription = self.tx.find_subscription(key)?.ok_or_else(|| unknown(key))?;
        self.tx.delete_subscription(key)?;
        self.append(&task, None, EventKind::Unsubscribed, Some(payload(key)), &actor.label())?;
        Ok(subscription)
    }
}

impl SubscriptionKey {
    /// Parses `CHANNEL`, `CHANNEL:CHAT` or `CHANNEL:CHAT:THREAD`.
    fn of_channel(task: &TaskId, channel: &str) -> Self {
        let mut parts = channel.splitn(3, ':').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_default();
        SubscriptionKey { task_id: task.clone(), platform: part(), chat_id: part(), thread_id: part() }
    }

    /// Returns the address of its messages.
    pub(super) fn address(&self) -> Address {
        Address {
            channel: self.platform.clone(),
            chat_id: self.chat_id.clone(),
            thread_id: self.thread_id.clone(),
        }
    }
}

fn payload(key: &SubscriptionKey) -> serde_json::Value {
    json!({ "platform": key.platform, "chat_id": key.chat_id, "thread_id": key.thread_id })
}

fn unknown(key: &SubscriptionKey) -> Error {
    let thread = if key.thread_id.is_empty() { String::new() } else { format!(", thread {}", key.thread_id) };
    Error::missing(
        Missing::Subscription,
        format!("{} for {} {}{thread}", key.task_id, key.platform, key.chat_id),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::EventId;
    use crate::testing::{Bench, alice};

    fn key(task: &TaskId) -> SubscriptionKey {
        SubscriptionKey {
            task_id: task.clone(),
            platform: "telegram".to_owned(),
            chat_id: "42".to_owned(),
            thread_id: String::new(),
        }
    }

    fn subscribed(bench: &Bench) -> SubscriptionKey {
        let key = key(&bench.ready());
        let of = key.clone();
        bench.call(move |board| board.subscribe(&of, None, None, &alice())).unwrap();
        key
    }

    #[test]
    fn the_same_key_is_one_subscription_that_keeps_its_cursor() {
        let bench = Bench::new();
        let key = subscribed(&bench);
        let last = bench.readers.with(|view| view.last_event()).unwrap();

        let again = bench.call(move |board| board.subscribe(&key, Some("u1"), None, &alice())).unwrap();

        assert_eq!((again.last_event_id, again.user_id.as_deref()), (EventId(0), Some("u1")));
        assert_eq!(bench.readers.with(|view| view.subscriptions(None, &alice())).unwrap().len(), 1);
        assert_eq!(bench.readers.with(|view| view.last_event()).unwrap(), last, "no second event");
    }

    #[test]
    fn a_subscription_of_a_finished_task_is_not_listed() {
        for end in ["completed", "archived"] {
            let bench = Bench::new();
            let id = subscribed(&bench).task_id;
            bench
                .call(move |board| match end {
                    "completed" => board.complete(&id, crate::Handoff::default(), None, &alice()).map(drop),
                    _ => board.archive(&id, crate::Detach::Refuse, &alice()).map(drop),
                })
                .unwrap();
            assert!(
                bench.readers.with(|view| view.subscriptions(None, &alice())).unwrap().is_empty(),
                "{end}"
            );
        }
    }

    #[test]
    fn a_caller_of_a_tenant_sees_and_makes_subscriptions_of_its_own_only() {
        let bench = Bench::new();
        let key = subscribed(&bench);
        let acme = Actor { tenant: Some("acme".parse().unwrap()), ..alice() };

        let seen = bench.readers.with(|view| view.subscriptions(None, &acme)).unwrap();
        let made = bench.call(move |board| board.subscribe(&key, None, None, &acme));

        assert!(seen.is_empty());
        assert!(matches!(made.unwrap_err(), Error::NotFound { .. }));
    }
}
