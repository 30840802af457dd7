//! Queries of messages that wait for delivery, and of dead messages.

use rusqlite::{Row, params};

use super::convert::{StoredTenant, json, to_json};
use super::statement::Statement as _;
use super::tx::Tx;
use super::unread::unread;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{EventId, LetterId, TaskId, Tenant};
use crate::model::letter::{Address, DeliveryQueue, Letter, Letters, Mail, Notice, NoticeKind};

const LETTER: &str = "SELECT id, task_id, event_id, tenant, channel, chat_id, thread_id, kind, notice, events, state, \
    digest, attempts, due_at, failing_since, last_error, created_at FROM notify_outbox";

/// The first condition is equal to the condition of the index.
const TROUBLED_CHANNELS: &str = "SELECT DISTINCT channel FROM notify_outbox \
    WHERE (state = 'dead' OR failing_since IS NOT NULL) AND (state = 'dead' OR failing_since <= ?1) ORDER BY channel";

/// Message to be written.
#[derive(Clone, Copy)]
pub(crate) struct NewLetter<'a> {
    pub(crate) task: &'a TaskId,
    pub(crate) event: EventId,
    pub(crate) tenant: Option<&'a Tenant>,
    pub(crate) address: &'a Address,
    pub(crate) kind: NoticeKind,
    pub(crate) notice: &'a Notice,
    pub(crate) events: u32,
    pub(crate) now: Timestamp,
}

fn address(row: &Row<'_>) -> rusqlite::Result<Address> {
    Ok(Address {
        channel: row.get("channel")?,
        chat_id: row.get("chat_id")?,
        thread_id: row.get("thread_id")?,
    })
}

fn tenant(row: &Row<'_>) -> rusqlite::Result<Option<Tenant>> {
    let text: String = row.get("tenant")?;
    Ok(text.parse().ok())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Letter> {
    Ok(Letter {
        id: row.get("id")?,
        task_id: row.get("task_id")?,
        event_id: row.get("event_id")?,
        tenant: tenant(row)?,
        address: address(row)?,
        kind: row.get("kind")?,
        notice: json(row, "notice")?.ok_or(rusqlite::Error::InvalidQuery)?,
        events: row.get("events")?,
        state: row.get("state")?,
        digest: row.get("digest")?,
        attempts: row.get("attempts")?,
        due_at: row.get("due_at")?,
        failing_since: row.get("failing_since")?,
        last_error: row.get("last_error")?,
        created_at: row.get("created_at")?,
    })
}

/// Condition of a selection of messages, from the first parameter on.
const MEANT: &str = "(?1 IS NULL OR id = ?1) AND (?2 IS NULL OR channel = ?2) AND (?3 IS NULL OR state = ?3) \
    AND (?4 IS NULL OR tenant = ?4)";

impl Tx<'_> {
    pub(super) fn unread_letters(&self) -> Result<Vec<String>, Error> {
        unread(self.conn, "notify_outbox", LETTER, read)
    }

    /// Returns true if there is any subscription.
    pub(crate) fn has_subscriptions(&self) -> Result<bool, Error> {
        self.conn.value("look for subscriptions", "SELECT EXISTS (SELECT 1 FROM notify_subs)", [])
    }

    /// Returns the addresses that are subscribed to a task, or to its mission if `mission` names it.
    pub(crate) fn addresses(&self, task: &TaskId, mission: Option<&str>) -> Result<Vec<Address>, Error> {
        let sql = "SELECT DISTINCT platform AS channel, chat_id, thread_id FROM notify_subs \
                   WHERE task_id = ?1 OR task_id = ?2 ORDER BY 1, 2, 3";
        self.conn.list("read the subscriptions", sql, params![task, mission], address)
    }

    /// Returns the addresses that are subscribed to the first task of a mission, or to one of its unfinished tasks.
    pub(crate) fn addresses_of_mission(&self, first: &TaskId) -> Result<Vec<Address>, Error> {
        let sql = "SELECT DISTINCT s.platform AS channel, s.chat_id, s.thread_id FROM notify_subs s \
                   JOIN tasks t ON t.id = s.task_id \
                   WHERE (t.id = ?1 OR (t.mission = ?1 AND t.status NOT IN ('done', 'archived'))) AND t.tenant IS (SELECT tenant FROM tasks WHERE id = ?1) \
                   ORDER BY 1, 2, 3";
        self.conn.list("read the subscriptions of the mission", sql, [first], address)
    }

    pub(crate) fn insert_letter(&self, letter: &NewLetter<'_>) -> Result<LetterId, Error> {
        let NewLetter { task, event, tenant, address, kind, notice, events, now } = letter;
        let Address { channel, chat_id, thread_id } = address;
        let number = self.conn.insert(
            "store the message",
            "INSERT INTO notify_outbox (task_id, event_id, tenant, channel, chat_id, thread_id, kind, notice, events, \
               due_at, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)",
            params![
                task,
                event,
                StoredTenant(*tenant),
                channel,
                chat_id,
                thread_id,
                kind,
                to_json(notice)?,
                events,
                now
            ],
        )?;
        Ok(LetterId(number))
    }

    /// Returns the number of a tenant's messages that wait for a channel.
    pub(crate) fn count_letters(&self, tenant: Option<&Tenant>, channel: &str) -> Result<u32, Error> {
        let sql =
            "SELECT count(*) FROM notify_outbox WHERE state = 'waiting' AND channel = ?1 AND tenant = ?2";
        self.conn.value("count the messages", sql, params![channel, StoredTenant(tenant)])
    }

    /// Returns the messages about a task that wait for an address and belong to no digest, oldest first.
    pub(crate) fn letters_about(&self, task: &TaskId, address: &Address) -> Result<Vec<Letter>, Error> {
        let sql = format!(
            "{LETTER} WHERE state = 'waiting' AND channel = ?1 AND chat_id = ?2 AND thread_id = ?3 AND task_id = ?4 \
             AND digest IS NULL ORDER BY id"
        );
        let params = params![address.channel, address.chat_id, address.thread_id, task];
        self.conn.list("read the messages of the task", &sql, params, read)
    }

    /// Returns the waiting message that counts the messages left out.
    pub(crate) fn left_out(
        &self,
        tenant: Option<&Tenant>,
        address: &Address,
    ) -> Result<Option<Letter>, Error> {
        let sql = format!(
            "{LETTER} WHERE state = 'waiting' AND channel = ?1 AND chat_id = ?2 AND thread_id = ?3 AND tenant = ?4 \
             AND kind = 'left_out' AND digest IS NULL ORDER BY id DESC LIMIT 1"
        );
        let params = params![address.channel, address.chat_id, address.thread_id, StoredTenant(tenant)];
        self.conn.find("read what was left out", &sql, params, read)
    }

    /// Returns the number of the last message; zero if there is none.
    pub(crate) fn last_letter(&self) -> Result<LetterId, Error> {
        self.conn.value("read the last message", "SELECT ifnull(max(id), 0) FROM notify_outbox", [])
    }

    pub(crate) fn delete_letter(&self, id: LetterId) -> Result<bool, Error> {
        self.conn.alter("remove the message", "DELETE FROM notify_outbox WHERE id = ?1", [id])
    }

    pub(crate) fn find_letter(&self, id: LetterId) -> Result<Option<Letter>, Error> {
        self.conn.find("read the message", &format!("{LETTER} WHERE id = ?1"), [id], read)
    }

    /// Returns the waiting messages by address and tenant, with the time of the first message of each group.
    pub(crate) fn queues(&self) -> Result<Vec<DeliveryQueue>, Error> {
        // The other columns are from the row with the least id (sqlite.org/lang_select.html, "Bare columns").
        let sql = "SELECT channel, chat_id, thread_id, tenant, due_at, min(id), count(*) AS waiting FROM notify_outbox \
                   WHERE state = 'waiting' GROUP BY channel, chat_id, thread_id, tenant ORDER BY due_at";
        self.conn.list("read what waits to be sent", sql, [], |row| {
            Ok(DeliveryQueue {
                address: address(row)?,
                tenant: tenant(row)?,
                due_at: row.get("due_at")?,
                waiting: row.get("waiting")?,
            })
        })
    }

    /// Returns the first messages of a tenant to an address, at most `limit`, in the order of delivery.
    pub(crate) fn letters_of(&self, queue: &DeliveryQueue, limit: u32) -> Result<Vec<Letter>, Error> {
        let sql = format!(
            "{LETTER} WHERE state = 'waiting' AND channel = ?1 AND chat_id = ?2 AND thread_id = ?3 AND tenant = ?4 \
             ORDER BY id LIMIT ?5"
        );
        let Address { channel, chat_id, thread_id } = &queue.address;
        let params = params![channel, chat_id, thread_id, StoredTenant(queue.tenant.as_ref()), limit];
        self.conn.list("read the messages to be sent", &sql, params, read)
    }

    pub(crate) fn list_letters(&self, which: &Letters) -> Result<Vec<Letter>, Error> {
        let sql = format!("{LETTER} WHERE {MEANT} ORDER BY id LIMIT ?5");
        let Letters { id, channel, state, tenant, limit } = which;
        let params = params![id, channel, state, tenant.as_ref().map(Tenant::as_str), limit];
        self.conn.list("list the messages", &sql, params, read)
    }

    /// Binds a message to the digest that it is sent in.
    pub(crate) fn bind_letter(&self, id: LetterId, digest: LetterId) -> Result<(), Error> {
        let sql = "UPDATE notify_outbox SET digest = ?2 WHERE id = ?1";
        self.conn.run("keep the digest", sql, params![id, digest])
    }

    /// Stores a failed delivery. Returns false if the message is gone.
    pub(crate) fn fail_letter(
        &self,
        id: LetterId,
        error: &str,
        due_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let sql = "UPDATE notify_outbox SET attempts = attempts + 1, due_at = ?2, last_error = ?3, \
                   failing_since = coalesce(failing_since, ?4) WHERE id = ?1";
        self.conn.alter("keep the failure", sql, params![id, due_at, error, now])
    }

    /// Marks a message as dead.
    pub(crate) fn bury_letter(&self, id: LetterId) -> Result<bool, Error> {
        let sql = "UPDATE notify_outbox SET state = 'dead', digest = NULL WHERE id = ?1";
        self.conn.alter("give the message up", sql, [id])
    }

    /// Removes the oldest dead messages beyond `keep`.
    pub(crate) fn thin_dead_letters(&self, keep: u32) -> Result<usize, Error> {
        let sql = "DELETE FROM notify_outbox WHERE id IN (SELECT id FROM notify_outbox WHERE state = 'dead' \
                   ORDER BY id DESC LIMIT -1 OFFSET ?1)";
        self.conn.count("remove old messages", sql, [keep])
    }

    /// Lets messages be tried again now.
    pub(crate) fn revive_letters(&self, which: &Letters, now: Timestamp) -> Result<usize, Error> {
        let sql = format!(
            "UPDATE notify_outbox SET state = 'waiting', attempts = 0, failing_since = NULL, due_at = ?5 WHERE {MEANT}"
        );
        let Letters { id, channel, state, tenant, .. } = which;
        let params = params![id, channel, state, tenant.as_ref().map(Tenant::as_str), now];
        self.conn.count("let the messages be tried again", &sql, params)
    }

    pub(crate) fn drop_letters(&self, which: &Letters) -> Result<usize, Error> {
        let sql = format!("DELETE FROM notify_outbox WHERE {MEANT}");
        let Letters { id, channel, state, tenant, .. } = which;
        let params = params![id, channel, state, tenant.as_ref().map(Tenant::as_str)];
        self.conn.count("drop the messages", &sql, params)
    }

    /// Moves the position of a subscription to an event that was delivered.
    pub(crate) fn move_subscription(&self, letter: &Letter) -> Result<(), Error> {
        let Address { channel, chat_id, thread_id } = &letter.address;
        let sql = "UPDATE notify_subs SET last_event_id = max(last_event_id, ?5) \
                   WHERE task_id = ?1 AND platform = ?2 AND chat_id = ?3 AND thread_id = ?4";
        let params = params![letter.task_id, channel, chat_id, thread_id, letter.event_id];
        self.conn.run("move the subscription on", sql, params)
    }

    /// Returns the channels that have dead messages, or that have refused messages since `since` or longer.
    pub(crate) fn troubled_channels(&self, since: Timestamp) -> Result<Vec<String>, Error> {
        self.conn.list("list the channels in trouble", TROUBLED_CHANNELS, [since], |row| row.get("channel"))
    }

    /// Returns the totals of each channel, of one tenant if named.
    pub(crate) fn mail(&self, tenant: Option<&Tenant>) -> Result<Vec<Mail>, Error> {
        let sql = "SELECT channel, sum(state = 'waiting') AS waiting, sum(state = 'dead') AS dead, \
                   min(failing_since) AS failing_since, (SELECT o.last_error FROM notify_outbox o \
                     WHERE o.channel = m.channel AND (?1 IS NULL OR o.tenant = ?1) AND o.last_error IS NOT NULL \
                     ORDER BY o.id DESC LIMIT 1) AS last_error \
                   FROM notify_outbox m WHERE (?1 IS NULL OR tenant = ?1) GROUP BY channel ORDER BY channel";
        self.conn.list("sum up the messages", sql, [tenant.map(Tenant::as_str)], |row| {
            Ok(Mail {
                channel: row.get("channel")?,
                waiting: row.get("waiting")?,
                dead: row.get("dead")?,
                failing_since: row.get("failing_since")?,
                last_error: row.get("last_error")?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn channels_in_trouble_are_found_without_a_look_at_the_messages_that_wait() {
        let bench = Bench::new();
        let conn = rusqlite::Connection::open(&bench.path).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {TROUBLED_CHANNELS}");
        let mut statement = conn.prepare(&sql).unwrap();
        let plan = statement.query_map([0], |row| row.get::<_, String>("detail")).unwrap();
        let plan: Vec<String> = plan.collect::<Result<_, _>>().unwrap();
        assert_eq!(plan, ["SCAN notify_outbox USING COVERING INDEX notify_outbox_failing"]);
    }
}
