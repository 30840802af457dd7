//! Subscriptions of chats to tasks, each with a cursor in the task's events.
//!
//! A subscription starts with the task's first event, so that what happens between `create` and `notify-subscribe` is
//! told as well. When the task is done or archived the subscription is over: it is listed no more, and goes once the end
//! was told.

use serde_json::json;

use super::Board;
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::filter::EventFilter;
use crate::model::id::{EventId, TaskId};
use crate::model::limits;
use crate::model::status::Status;
use crate::model::subscription::{News, Subscription, SubscriptionKey};
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

    /// Returns what a subscription is to be told next, and moves nothing.
    pub fn news(&self, key: &SubscriptionKey, limit: u32) -> Result<News, Error> {
        let subscription = self.tx.find_subscription(key)?.ok_or_else(|| unknown(key))?;
        let since = subscription.last_event_id;
        let filter = EventFilter { since, limit, task: Some(key.task_id.clone()), ..EventFilter::default() };
        let events = self.events(&filter)?;
        let cursor = events.last().map_or(since, |event| event.id);
        Ok(News { events, cursor })
    }
}

impl Board<'_> {
    /// Subscribes a chat to a task. A known key keeps its cursor, and takes a user and a profile that are named anew.
    pub fn subscribe(
        &mut self,
        key: &SubscriptionKey,
        user: Option<&str>,
        notifier: Option<&str>,
        actor: &Actor,
    ) -> Result<Subscription, Error> {
        authority::person(actor, "subscribe a chat to a task")?;
        let task = self.admit(&key.task_id, actor)?;
        for (field, text) in [("platform", &key.platform), ("chat_id", &key.chat_id)] {
            if text.trim().is_empty() {
                return Err(Error::invalid(field, "it is empty", "name one"));
            }
        }
        for (field, text) in [
            ("platform", Some(key.platform.as_str())),
            ("chat_id", Some(&key.chat_id)),
            ("thread_id", Some(&key.thread_id)),
            ("user_id", user),
            ("notifier_profile", notifier),
        ] {
            limits::maybe(field, text, limits::WORD)?;
        }
        if self.tx.insert_subscription(key, user, notifier, self.now())? {
            self.tell(&task, None, EventKind::Subscribed, Some(payload(key)), &actor.label())?;
        } else {
            self.tx.update_subscription(key, user, notifier)?;
        }
        self.tx.find_subscription(key)?.ok_or_else(|| unknown(key))
    }

    /// Ends a subscription.
    pub fn unsubscribe(&mut self, key: &SubscriptionKey, actor: &Actor) -> Result<Subscription, Error> {
        authority::person(actor, "unsubscribe a chat from a task")?;
        let task = self.admit(&key.task_id, actor)?;
        let subscription = self.tx.find_subscription(key)?.ok_or_else(|| unknown(key))?;
        self.tx.delete_subscription(key)?;
        self.tell(&task, None, EventKind::Unsubscribed, Some(payload(key)), &actor.label())?;
        Ok(subscription)
    }

    /// Takes what a subscription is to be told next, at most `limit` events, and moves its cursor past them in the same
    /// transaction. `seen` is where the caller knows the cursor to stand: of two that take at once, one is refused.
    pub fn take_news(&mut self, key: &SubscriptionKey, seen: EventId, limit: u32) -> Result<News, Error> {
        let news = self.news(key, limit)?;
        if !self.tx.advance_subscription(key, seen, news.cursor)? {
            return Err(Error::conflict(
                format!(
                    "another notifier already delivered to {} {} the events of {}",
                    key.platform, key.chat_id, key.task_id
                ),
                "nothing was taken; read the subscription again",
            ));
        }
        let told = self.news(key, 1)?.events.is_empty();
        let task = self.expect_task(&key.task_id)?;
        if told && matches!(task.status, Status::Done | Status::Archived) {
            self.tx.delete_subscription(key)?;
        }
        Ok(news)
    }
}

fn payload(key: &SubscriptionKey) -> serde_json::Value {
    json!({ "platform": key.platform, "chat_id": key.chat_id, "thread_id": key.thread_id })
}

fn unknown(key: &SubscriptionKey) -> Error {
    let thread = if key.thread_id.is_empty() { String::new() } else { format!(", thread {}", key.thread_id) };
    Error::missing("subscription", format!("{} for {} {}{thread}", key.task_id, key.platform, key.chat_id))
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn take(bench: &Bench, key: &SubscriptionKey, seen: EventId) -> Result<News, Error> {
        let key = key.clone();
        bench.call(move |board| board.take_news(&key, seen, 100))
    }

    #[test]
    fn a_subscription_is_told_of_everything_from_the_first_event_on_and_of_nothing_twice() {
        let bench = Bench::new();
        let key = subscribed(&bench);

        let first = take(&bench, &key, EventId(0)).unwrap();
        let second = take(&bench, &key, first.cursor).unwrap();

        let kinds: Vec<&str> = first.events.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["created", "subscribed"]);
        assert_eq!((second.events, second.cursor), (Vec::new(), first.cursor));
    }

    #[test]
    fn of_two_that_take_at_once_one_is_refused_and_nothing_is_lost() {
        let bench = Bench::new();
        let key = subscribed(&bench);

        take(&bench, &key, EventId(0)).unwrap();
        let late = take(&bench, &key, EventId(0)).unwrap_err();

        assert!(matches!(late, Error::Conflict { .. }), "{late}");
        let listed = bench.readers.with(|view| view.subscriptions(None, &alice())).unwrap();
        assert_eq!(listed[0].last_event_id, EventId(2));
    }

    #[test]
    fn the_same_key_is_one_subscription_that_keeps_its_cursor() {
        let bench = Bench::new();
        let key = subscribed(&bench);
        let cursor = take(&bench, &key, EventId(0)).unwrap().cursor;

        let again = bench.call(move |board| board.subscribe(&key, Some("u1"), None, &alice())).unwrap();

        assert_eq!((again.last_event_id, again.user_id.as_deref()), (cursor, Some("u1")));
        assert_eq!(bench.readers.with(|view| view.subscriptions(None, &alice())).unwrap().len(), 1);
        assert_eq!(bench.readers.with(|view| view.last_event()).unwrap(), cursor, "no second event");
    }

    #[test]
    fn a_subscription_ends_with_its_task_and_goes_when_the_end_was_told() {
        let bench = Bench::new();
        let key = subscribed(&bench);
        let id = key.task_id.clone();
        bench.call(move |board| board.complete(&id, crate::Handoff::default(), None, &alice())).unwrap();
        assert!(bench.readers.with(|view| view.subscriptions(None, &alice())).unwrap().is_empty());
        let some = {
            let key = key.clone();
            bench.call(move |board| board.take_news(&key, EventId(0), 1)).unwrap()
        };

        let rest = take(&bench, &key, some.cursor).unwrap();

        assert_eq!(rest.events.last().unwrap().kind, "completed");
        assert!(matches!(take(&bench, &key, rest.cursor), Err(Error::NotFound { .. })), "it is gone");
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
