//! The subscriptions of chats to tasks.

use rusqlite::{OptionalExtension as _, Row, params};

use super::convert::Step as _;
use super::tx::Tx;
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
    /// Adds a subscription where there is none of its key. Returns whether it did.
    pub(crate) fn insert_subscription(
        &self,
        key: &SubscriptionKey,
        user: Option<&str>,
        notifier: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.conn.prepare_cached(
        "INSERT OR IGNORE INTO notify_subs (task_id, platform, chat_id, thread_id, user_id, notifier_profile, \
           created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .and_then(|mut statement| {
        statement.execute(params![
            key.task_id,
            key.platform,
            key.chat_id,
            key.thread_id,
            user,
            notifier,
            now
        ])
    })
    .step("store the subscription")
    .map(|rows| rows == 1)
    }

    /// Sets what a repeated subscription says anew; what it leaves out stays.
    pub(crate) fn update_subscription(
        &self,
        key: &SubscriptionKey,
        user: Option<&str>,
        notifier: Option<&str>,
    ) -> Result<(), Error> {
        self.conn.prepare_cached(
        "UPDATE notify_subs SET user_id = coalesce(?5, user_id), notifier_profile = coalesce(?6, notifier_profile) \
         WHERE task_id = ?1 AND platform = ?2 AND chat_id = ?3 AND thread_id = ?4",
    )
    .and_then(|mut statement| {
        statement.execute(params![key.task_id, key.platform, key.chat_id, key.thread_id, user, notifier])
    })
    .step("change the subscription")
    .map(drop)
    }

    pub(crate) fn find_subscription(&self, key: &SubscriptionKey) -> Result<Option<Subscription>, Error> {
        self.conn.prepare_cached(&format!(
        "{SUBSCRIPTION} WHERE s.task_id = ?1 AND s.platform = ?2 AND s.chat_id = ?3 AND s.thread_id = ?4"
    ))
    .and_then(|mut statement| {
        statement.query_row(params![key.task_id, key.platform, key.chat_id, key.thread_id], read).optional()
    })
    .step("read the subscription")
    }

    /// Lists subscriptions to tasks that are not over, those of one task or of one tenant where such is given.
    pub(crate) fn list_subscriptions(
        &self,
        task: Option<&TaskId>,
        tenant: Option<&Tenant>,
    ) -> Result<Vec<Subscription>, Error> {
        self.conn
            .prepare_cached(&format!(
                "{SUBSCRIPTION} JOIN tasks t ON t.id = s.task_id \
         WHERE (?1 IS NULL OR s.task_id = ?1) AND (?2 IS NULL OR t.tenant = ?2) \
           AND t.status NOT IN ('done', 'archived') \
         ORDER BY s.created_at, s.task_id, s.platform, s.chat_id, s.thread_id"
            ))
            .and_then(|mut statement| {
                statement.query_map(params![task, tenant.map(Tenant::as_str)], read)?.collect()
            })
            .step("list subscriptions")
    }

    pub(crate) fn delete_subscription(&self, key: &SubscriptionKey) -> Result<bool, Error> {
        self.conn.prepare_cached(
        "DELETE FROM notify_subs WHERE task_id = ?1 AND platform = ?2 AND chat_id = ?3 AND thread_id = ?4",
    )
    .and_then(|mut statement| {
        statement.execute(params![key.task_id, key.platform, key.chat_id, key.thread_id])
    })
    .step("remove the subscription")
    .map(|rows| rows == 1)
    }
}
