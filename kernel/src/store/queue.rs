//! Queries for the tasks that can start. Their cost does not grow with the number of tasks.
//!
//! `INDEXED BY` names the index that bounds the cost. Without statistics, the planner of `SQLite` would prefer a wider index.

use rusqlite::{Row, params};

use super::convert::{StoredTenant, json, text_or_none};
use super::delays::PAUSES;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::candidate::{Candidate, Group, Source};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{Profile, TaskId, Tenant};

const READY: &str = "SELECT t.id, t.assignee, t.tenant, t.priority, t.created_at, t.workspace, t.line, t.pools, t.policy, t.mission, t.consult \
     FROM tasks t INDEXED BY tasks_ready WHERE t.status = 'ready' AND t.assignee IS NOT NULL \
     AND t.tenant = ?1 AND t.assignee = ?2 AND t.line = ?3";

const HEADS: &str = "SELECT t.id, t.assignee, t.tenant, t.priority, t.created_at, t.workspace, t.line, t.pools, t.policy, t.mission, t.consult \
     FROM line_heads h INDEXED BY line_heads_order CROSS JOIN tasks t ON t.id = h.task \
     WHERE h.tenant = ?1 AND h.assignee = ?2 AND ?3 NOT NULL";

/// Tasks in review. A review runs under the policy of the work, so that a worker cannot get wider permissions on its files
/// by naming a reviewer.
const REVIEWS: &str = "SELECT t.id, t.reviewer AS assignee, t.tenant, t.priority, t.created_at, t.workspace, t.line, t.pools, t.mission, t.consult, \
     coalesce(t.policy, (SELECT r.policy FROM task_runs r WHERE r.task_id = t.id AND r.purpose = 'work' \
       ORDER BY r.id DESC LIMIT 1)) AS policy \
     FROM tasks t INDEXED BY tasks_review WHERE t.status = 'review' AND t.reviewer IS NOT NULL \
     AND t.tenant = ?1 AND t.reviewer = ?2 AND ifnull(t.not_before, 0) <= ?3 AND t.unchecked_run IS NULL";

/// Tasks that wait for their check. A check runs under the policy of the work too, so that it has no more permissions than
/// the work.
const CHECKS: &str = "SELECT t.id, ?2 AS assignee, t.tenant, t.priority, t.created_at, t.workspace, t.line, t.pools, t.mission, t.consult, \
     coalesce(t.policy, (SELECT r.policy FROM task_runs r WHERE r.id = t.unchecked_run)) AS policy \
     FROM tasks t INDEXED BY tasks_check WHERE t.status = 'review' AND t.unchecked_run IS NOT NULL \
     AND t.tenant = ?1 AND ifnull(t.not_before, 0) <= ?3";

impl Tx<'_> {
    /// Returns up to `limit` ready consults after a given consult, oldest first.
    pub(crate) fn ready_consults(
        &self,
        after: Option<&Candidate>,
        limit: usize,
    ) -> Result<Vec<Candidate>, Error> {
        let (created_at, id) =
            after.map_or((i64::MIN, ""), |last| (last.created_at.as_micros(), last.task.as_str()));
        self.conn.list(
            "look for questions",
            "SELECT t.id, t.assignee, t.tenant, t.priority, t.created_at, t.workspace, t.line, t.pools, t.policy, t.mission, t.consult \
             FROM tasks t INDEXED BY tasks_consults WHERE t.consult IS NOT NULL AND t.status = 'ready' \
               AND t.assignee IS NOT NULL AND (t.created_at, t.id) > (?1, ?2) ORDER BY t.created_at, t.id LIMIT ?3",
            params![created_at, id, i64::try_from(limit).unwrap_or(i64::MAX)],
            candidate,
        )
    }

    /// Returns the next group with ready tasks after `after`, or the first group.
    pub(crate) fn next_ready_group(&self, after: Option<&Group>) -> Result<Option<Group>, Error> {
        self.conn.find(
            "look for ready tasks",
            "SELECT tenant, assignee FROM tasks INDEXED BY tasks_ready WHERE status = 'ready' AND assignee IS NOT NULL \
             AND (tenant, assignee) > (?1, ?2) ORDER BY tenant, assignee LIMIT 1",
            place_of(after),
            group,
        )
    }

    /// Returns up to `limit` candidates of a group after `after`.
    pub(crate) fn page_of_candidates(
        &self,
        group: &Group,
        source: &Source,
        after: Option<&Candidate>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Candidate>, Error> {
        let (from, order, place) = match source {
            Source::Line(name) => (READY, ["t.priority", "t.created_at", "t.id"], name.as_str()),
            Source::Heads => (HEADS, ["h.priority", "h.created_at", "h.task"], ""),
            Source::Reviews => (REVIEWS, ["t.priority", "t.created_at", "t.id"], ""),
            Source::Checks => (CHECKS, ["t.priority", "t.created_at", "t.id"], ""),
        };
        let [priority, created, id] = order;
        // The rows after a candidate are two ranges of the index, because the order descends in the first column and
        // ascends in the others. Each range mentions all parameters, since SQLite refuses unused ones.
        let ranges: &[&str] = match after {
            None => &["?4 IS NULL AND ?5 IS NULL AND ?6 IS NULL"],
            Some(_) => &["{p} = ?4 AND ({c}, {i}) > (?5, ?6)", "{p} < ?4 AND ?5 NOT NULL AND ?6 NOT NULL"],
        };
        let mut candidates = Vec::new();
        for range in ranges {
            let remaining = i64::try_from(limit.saturating_sub(candidates.len())).unwrap_or(i64::MAX);
            if remaining == 0 {
                break;
            }
            let range = range.replace("{p}", priority).replace("{c}", created).replace("{i}", id);
            let sql = format!("{from} AND {range} ORDER BY {priority} DESC, {created}, {id} LIMIT ?7");
            let after = (after.map(|a| a.priority), after.map(|a| a.created_at), after.map(|a| &a.task));
            // The third parameter is the time for reviews and checks, and the name for a line.
            let third: &dyn rusqlite::ToSql = match source {
                Source::Reviews | Source::Checks => &now,
                Source::Line(_) | Source::Heads => &place,
            };
            let tenant = StoredTenant(group.tenant.as_ref());
            let params = params![tenant, group.profile, third, after.0, after.1, after.2, remaining];
            candidates.extend(self.conn.list::<_, Vec<_>>("list what may start", &sql, params, candidate)?);
        }
        Ok(candidates)
    }

    /// Returns the ready tasks and tasks in review that changed since `since` and whose assignee or reviewer is not in
    /// `known`, a JSON list, unless this is already recorded on the task.
    pub(crate) fn unknown_assignees(
        &self,
        known: &str,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<(TaskId, Profile, Timestamp)>, Error> {
        let mut unknown = Vec::new();
        for (status, whose) in [("ready", "assignee"), ("review", "reviewer")] {
            let sql = format!(
                "SELECT id, {whose}, updated_at FROM tasks INDEXED BY tasks_updated WHERE status = '{status}' \
                 AND updated_at >= ?1 AND nonspawnable IS NULL AND (status = 'ready' OR unchecked_run IS NULL) \
                 AND {whose} NOT NULL AND {whose} NOT IN (SELECT value FROM json_each(?2)) ORDER BY updated_at, id LIMIT ?3"
            );
            let params = params![since, known, i64::try_from(limit).unwrap_or(i64::MAX)];
            let found: Vec<(TaskId, Profile, Timestamp)> =
                self.conn.list("list tasks that nothing can run", &sql, params, |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })?;
            unknown.extend(found);
        }
        unknown.sort_by(|one, other| (one.2, &one.0).cmp(&(other.2, &other.0)));
        unknown.truncate(limit);
        Ok(unknown)
    }

    /// Returns the next group of tenant and reviewer with tasks in review after `after`, or the first group.
    pub(crate) fn next_review_group(&self, after: Option<&Group>) -> Result<Option<Group>, Error> {
        self.conn.find(
            "look for tasks in review",
            "SELECT tenant, reviewer FROM tasks INDEXED BY tasks_review WHERE status = 'review' \
             AND reviewer IS NOT NULL AND unchecked_run IS NULL AND (tenant, reviewer) > (?1, ?2) ORDER BY tenant, reviewer LIMIT 1",
            place_of(after),
            group,
        )
    }

    /// Returns the tenants with work that waits for its check.
    pub(crate) fn tenants_with_checks(&self) -> Result<Vec<Option<Tenant>>, Error> {
        self.conn.list(
            "look for work to check",
            "SELECT DISTINCT tenant FROM tasks INDEXED BY tasks_check WHERE status = 'review' \
             AND unchecked_run IS NOT NULL ORDER BY tenant",
            [],
            |row| text_or_none(row, 0),
        )
    }

    /// Returns the time of the next review or check that waits for a time.
    pub(crate) fn next_review_time(&self, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        let reviews = "SELECT min(not_before) FROM tasks INDEXED BY tasks_review \
             WHERE status = 'review' AND reviewer IS NOT NULL AND not_before > ?1";
        let checks = "SELECT min(not_before) FROM tasks INDEXED BY tasks_check \
             WHERE status = 'review' AND unchecked_run IS NOT NULL AND not_before > ?1";
        let read = |sql| self.conn.value::<Option<Timestamp>>("read the next review", sql, [now]);
        Ok(read(reviews)?.into_iter().chain(read(checks)?).min())
    }

    /// Returns the number of open runs of each tenant.
    pub(crate) fn open_runs_by_tenant(&self) -> Result<Vec<(Option<Tenant>, u32)>, Error> {
        self.conn.list(
            "count open runs",
            "SELECT tenant, count(*) FROM task_runs WHERE ended_at IS NULL GROUP BY tenant",
            [],
            |row| Ok((text_or_none(row, "tenant")?, row.get(1)?)),
        )
    }

    /// Returns scheduled tasks that are due on the real-time clock. A task whose pause is stored as time since this boot is
    /// left out, because only that clock ends the pause.
    pub(crate) fn due_tasks(&self, now: Timestamp, boot_id: &str, limit: u32) -> Result<Vec<TaskId>, Error> {
        let sql = format!(
            "SELECT id FROM tasks INDEXED BY tasks_due WHERE status = 'scheduled' AND not_before <= ?1 \
             AND NOT {PAUSES} ORDER BY not_before LIMIT ?3"
        );
        self.conn.list("list due tasks", &sql, params![now, boot_id, limit], |row| row.get(0))
    }

    /// Returns the time at which the next scheduled task is due, by the rule of [`Self::due_tasks`].
    pub(crate) fn next_due_time(&self, boot_id: &str) -> Result<Option<Timestamp>, Error> {
        let sql = format!(
            "SELECT not_before FROM tasks INDEXED BY tasks_due WHERE status = 'scheduled' AND ?1 NOT NULL \
             AND NOT {PAUSES} ORDER BY not_before LIMIT 1"
        );
        self.conn.find("read the next due time", &sql, params![0, boot_id], |row| row.get(0))
    }

    pub(crate) fn oldest_ready_of(&self, tenant: &Tenant) -> Result<Option<Timestamp>, Error> {
        self.conn.value(
            "look for a tenant's oldest ready task",
            "SELECT min(updated_at) FROM tasks WHERE tenant = ?1 AND status = 'ready'",
            [tenant.as_str()],
        )
    }

    pub(crate) fn oldest_ready(&self) -> Result<Option<Timestamp>, Error> {
        self.conn.value(
            "look for the oldest ready task",
            "SELECT min(updated_at) FROM tasks INDEXED BY tasks_updated WHERE status = 'ready'",
            [],
        )
    }
}

/// Returns the values after which the next group is searched. Without a group these are empty values, which sort before the
/// first group because no profile has an empty name.
fn place_of(after: Option<&Group>) -> (StoredTenant<'_>, &str) {
    let tenant = after.and_then(|group| group.tenant.as_ref());
    (StoredTenant(tenant), after.map_or("", |group| group.profile.as_str()))
}

fn group(row: &Row<'_>) -> rusqlite::Result<Group> {
    Ok(Group { tenant: text_or_none(row, 0)?, profile: row.get(1)? })
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    Ok(Candidate {
        task: row.get("id")?,
        assignee: row.get("assignee")?,
        tenant: text_or_none(row, "tenant")?,
        priority: row.get("priority")?,
        created_at: row.get("created_at")?,
        workspace: row.get("workspace")?,
        line: row.get("line")?,
        pools: json(row, "pools")?.unwrap_or_default(),
        policy: row.get("policy")?,
        mission: row.get("mission")?,
        consult: row.get("consult")?,
    })
}
