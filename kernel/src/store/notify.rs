//! Queries of subscriptions of chats to tasks.

use rusqlite::{Row, params};

use super::statement::Statement as _;
use super::tx::Tx;
use super::unread::unread;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{TaskId, Tenant};
use crate::model::subscription::{Subscription, SubscriptionKey};

const SUBSCRIPTION: &str = "SELECT s.task_id, s.platform, s.chat_id, s.thread_id, s.user_id, s.notifier_profile, \
    s.created_at, s.last_event_id FROM notify_subs s";

fn read(row: &Row<'_>) -> rusqlite::Result<Subscription> {
    Ok(Subscription {
        key: SubscriptionKey {
            task_id: row.get(0)?,
            platform: row.get(1)?,
            chat_id: row.get(2)?,
            thread_id: row.get(3)?,
        },
        user_id: row.get(4)?,
        notifier_profile: row.get(5)?,
        created_at: row.get(6)?,
        last_event_id: row.get(7)?,
    })
}

impl Tx<'_> {
    /// Inserts a subscription. Returns false and changes nothing if its key exists.
    pub(crate) fn insert_subscription(
        &self,
        key: &SubscriptionKey,
        user: Option<&str>,
        notifier: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.conn.alter(
            "store the subscription",
            "INSERT OR IGNORE INTO notify_subs (task_id, platform, chat_id, thread_id, user_id, notifier_profile, \
               created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![key.task_id, key.platform, key.chat_id, key.thread_id, user, notifier, now],
        )
    }

    /// Replaces the user and the notifier of a subscription, each if it is given.
    pub(crate) fn update_subscription(
        &self,
        key: &SubscriptionKey,
        user: Option<&str>,
        notifier: Option<&str>,
    ) -> Result<(), Error> {
        self.conn.run("change the subscription", "UPDATE notify_subs SET user_id = coalesce(?5, user_id), notifier_profile = coalesce(?6, notifier_profile) \
         WHERE task_id = ?1 AND platform = ?2 AND chat_id = ?3 AND thread_id = ?4", params![key.task_id, key.platform, key.chat_id, key.thread_id, user, notifier])
    }

    pub(super) fn unread_subscriptions(&self) -> Result<Vec<String>, Error> {
        unread(self.conn, "notify_subs", SUBSCRIPTION, read)
    }

    pub(crate) fn find_subscription(&self, key: &SubscriptionKey) -> Result<Option<Subscription>, Error> {
        self.conn.find("read the subscription", &format!(
        "{SUBSCRIPTION} WHERE s.task_id = ?1 AND s.platform = ?2 AND s.chat_id = ?3 AND s.thread_id = ?4"
    ), params![key.task_id, key.platform, key.chat_id, key.thread_id], read)
    }

    /// Returns the subscriptions that can still cause messages: to tasks that are not over, and to first tasks of missions
    /// in which a task is not over. `task` and `tenant` limit the result.
    pub(crate) fn list_subscriptions(
        &self,
        task: Option<&TaskId>,
        tenant: Option<&Tenant>,
    ) -> Result<Vec<Subscription>, Error> {
        self.conn.list(
            "list subscriptions",
            &format!(
                "{SUBSCRIPTION} JOIN tasks t ON t.id = s.task_id \
         WHERE (?1 IS NULL OR s.task_id = ?1) AND (?2 IS NULL OR t.tenant = ?2) \
           AND (t.status NOT IN ('done', 'archived') OR EXISTS \
             (SELECT 1 FROM tasks p WHERE p.mission = t.id AND p.status NOT IN ('done', 'archived'))) \
         ORDER BY s.created_at, s.task_id, s.platform, s.chat_id, s.thread_id"
            ),
            params![task, tenant.map(Tenant::as_str)],
            read,
        )
    }

    pub(crate) fn delete_subscription(&self, key: &SubscriptionKey) -> Result<bool, Error> {
        self.conn.alter("remove the subscription", "DELETE FROM notify_subs WHERE task_id = ?1 AND platform = ?2 AND chat_id = ?3 AND thread_id = ?4", params![key.task_id, key.platform, key.chat_id, key.thread_id])
    }
}
