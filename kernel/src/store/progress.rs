//! Counts the moves of missions, and finds the missions that are due for a progress review.

use rusqlite::params;

use super::statement::Statement as _;
use super::tx::Tx;
use super::{missions, tasks};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::task::Task;

/// Condition for missions that may be reviewed: not over, moved since the last review, not held, and without an open
/// review.
const REVIEWABLE: &str = "t.status NOT IN ('done', 'archived') AND m.moved_at IS NOT NULL \
     AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.scope = 'mission' AND h.name = m.name AND h.ended_at IS NULL) \
     AND NOT EXISTS (SELECT 1 FROM proposals p JOIN tasks r ON r.id = p.task_id \
                     WHERE p.subject = m.name AND p.kind = 'progress' AND r.status NOT IN ('done', 'archived'))";

impl Tx<'_> {
    /// Counts a change of a task's status as a move of its mission. A change of a review's task does not count. The time
    /// of the last move is removed once the first task of the mission is done or archived.
    pub(crate) fn note_move(&self, task: &TaskId, now: Timestamp) -> Result<(), Error> {
        self.conn.run(
            "count the mission's moves",
            "UPDATE missions SET moves = moves + 1, moved_at = (\
               SELECT CASE WHEN r.status IN ('done', 'archived') THEN NULL ELSE ?2 END FROM tasks r WHERE r.id = missions.name) \
             WHERE name = (SELECT coalesce(mission, id) FROM tasks WHERE id = ?1) \
               AND NOT EXISTS (SELECT 1 FROM proposals WHERE task_id = ?1 AND kind = 'progress')",
            params![task, now],
        )
    }

    /// Records that a review of a mission begins: the moves so far count as reviewed, and the mission is idle only from
    /// its next move on.
    pub(crate) fn note_review(&self, name: &str) -> Result<(), Error> {
        let sql = "UPDATE missions SET reviewed_moves = moves, moved_at = NULL WHERE name = ?1";
        self.conn.run("note the review of the mission", sql, [name])
    }

    /// Returns the first tasks of at most `limit` missions that have moved at least `moves` times since their last review,
    /// or whose last move was at `since` or earlier. An absent bound selects no mission.
    pub(crate) fn due_reviews(
        &self,
        moves: Option<u64>,
        since: Option<Timestamp>,
        limit: u32,
    ) -> Result<Vec<Task>, Error> {
        let (columns, from) = (tasks::COLUMNS, missions::from_missions());
        let moves = moves.map(|moves| i64::try_from(moves).unwrap_or(i64::MAX));
        let sql = format!(
            "SELECT {columns} {from} WHERE {REVIEWABLE} \
               AND (m.moves - m.reviewed_moves >= ?1 OR m.moved_at <= ?2) LIMIT ?3"
        );
        self.conn.list("list the missions to review", &sql, params![moves, since, limit], tasks::read)
    }

    /// Returns the earliest time of a last move among the missions that may be reviewed.
    pub(crate) fn first_unmoved(&self) -> Result<Option<Timestamp>, Error> {
        let sql = format!(
            "SELECT min(m.moved_at) FROM missions m JOIN tasks t ON t.id = m.name WHERE {REVIEWABLE}"
        );
        self.conn.value("look for missions that stand still", &sql, [])
    }
}
