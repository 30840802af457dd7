//! Queries of proposals: the tasks that make them, and their subjects.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Row, params};

use super::convert::{json, to_json};
use super::statement::Statement as _;
use super::tasks;
use super::tx::Tx;
use super::unread::unread;
use crate::model::error::Error;
use crate::model::id::{Profile, TaskId};
use crate::model::proposal::{Proposal, ProposalKind, ProposedProfile};
use crate::model::task::Task;

fn read(row: &Row<'_>) -> rusqlite::Result<Proposal> {
    let staff: String = row.get("staff")?;
    let wrong = |error: serde_json::Error| {
        rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error))
    };
    let staff: BTreeMap<Profile, String> = serde_json::from_str(&staff).map_err(wrong)?;
    let taken = json(row, "taken")?.unwrap_or_default();
    let (task, kind, subject) = (row.get("task_id")?, row.get("kind")?, row.get("subject")?);
    Ok(Proposal { task, kind, subject, staff, taken })
}

impl Tx<'_> {
    /// Returns the proposal that a task makes.
    pub(crate) fn proposal(&self, task: &TaskId) -> Result<Option<Proposal>, Error> {
        let sql = "SELECT task_id, kind, subject, staff, taken FROM proposals WHERE task_id = ?1";
        self.conn.find("read the proposal", sql, [task], read)
    }

    /// Returns the open task that makes a proposal of a kind for a subject, if there is one.
    pub(crate) fn open_proposal(
        &self,
        subject: &TaskId,
        kind: ProposalKind,
    ) -> Result<Option<TaskId>, Error> {
        let sql = "SELECT p.task_id FROM proposals p JOIN tasks t ON t.id = p.task_id \
                   WHERE p.subject = ?1 AND p.kind = ?2 AND t.status NOT IN ('done', 'archived') LIMIT 1";
        self.conn.find("look for the proposal", sql, params![subject, kind], |row| row.get(0))
    }

    /// Returns at most `limit` ready tasks without an assignee for which no routing was asked, except tasks of the
    /// missions in `without`.
    pub(crate) fn unrouted(&self, without: &BTreeSet<String>, limit: u32) -> Result<Vec<Task>, Error> {
        let (columns, from) = (tasks::COLUMNS, tasks::FROM);
        let sql = format!(
            "SELECT {columns} {from} WHERE t.status = 'ready' AND t.assignee IS NULL \
               AND NOT EXISTS (SELECT 1 FROM proposals p WHERE p.subject = t.id AND p.kind = 'route') \
               AND NOT EXISTS (SELECT 1 FROM proposals p WHERE p.task_id = t.id) \
               AND coalesce(t.mission, t.id) NOT IN (SELECT value FROM json_each(?2)) LIMIT ?1"
        );
        let without = serde_json::json!(without).to_string();
        self.conn.list("list the tasks without assignee", &sql, params![limit, without], tasks::read)
    }

    /// Stores the proposal that a task makes.
    pub(crate) fn put_proposal(&self, new: &Proposal) -> Result<(), Error> {
        let Proposal { task, kind, subject, staff, taken } = new;
        let sql = "INSERT INTO proposals (task_id, kind, subject, staff, taken) VALUES (?1, ?2, ?3, ?4, ?5)";
        let params = params![task, kind, subject, to_json(staff)?, to_json(taken)?];
        self.conn.run("store the proposal", sql, params)
    }

    /// Returns the proposals whose tasks are not over.
    pub(crate) fn open_proposals(&self) -> Result<Vec<Proposal>, Error> {
        let sql = "SELECT p.task_id, p.kind, p.subject, p.staff, p.taken FROM proposals p JOIN tasks t ON t.id = p.task_id \
                   WHERE t.status NOT IN ('done', 'archived') ORDER BY p.task_id";
        self.conn.list("list the open proposals", sql, [], read)
    }

    pub(super) fn unread_proposals(&self) -> Result<Vec<String>, Error> {
        let whole = |row: &Row<'_>| {
            read(row)?;
            json::<Vec<ProposedProfile>>(row, "profiles")
        };
        let sql = "SELECT task_id, kind, subject, staff, taken, profiles FROM proposals";
        unread(self.conn, "proposals", sql, whole)
    }

    /// Stores the profiles that a proposal may name.
    pub(crate) fn set_staff(&self, task: &TaskId, staff: &BTreeMap<Profile, String>) -> Result<(), Error> {
        let sql = "UPDATE proposals SET staff = ?2 WHERE task_id = ?1";
        self.conn.run("store whom the proposal may name", sql, params![task, to_json(staff)?])
    }

    /// Stores the profiles that a proposal asks for.
    pub(crate) fn put_proposed_profiles(
        &self,
        task: &TaskId,
        profiles: &[ProposedProfile],
    ) -> Result<(), Error> {
        let sql = "UPDATE proposals SET profiles = ?2 WHERE task_id = ?1";
        self.conn.run("store the proposed profiles", sql, params![task, to_json(&profiles)?])
    }

    /// Returns the profiles that proposals for a subject ask for.
    pub(crate) fn proposed_profiles(&self, subject: &TaskId) -> Result<Vec<ProposedProfile>, Error> {
        let sql = "SELECT p.profiles FROM proposals p WHERE p.subject = ?1 AND p.profiles <> '[]' ORDER BY p.task_id";
        let read = |row: &Row<'_>| json::<Vec<ProposedProfile>>(row, "profiles");
        let found: Vec<Option<Vec<_>>> =
            self.conn.list("list the proposed profiles", sql, [subject], read)?;
        Ok(found.into_iter().flatten().flatten().collect())
    }
}
