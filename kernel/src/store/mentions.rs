//! Queries of tasks that were made for mentions in comments.

use rusqlite::params;

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::error::Error;
use crate::model::id::{CommentId, Profile, TaskId};

impl Tx<'_> {
    /// Returns the task that was made for a mention.
    pub(crate) fn mention(&self, comment: CommentId, profile: &Profile) -> Result<Option<TaskId>, Error> {
        let sql = "SELECT task_id FROM mentions WHERE comment_id = ?1 AND profile = ?2";
        self.conn.find("look for the mention", sql, params![comment.0, profile], |row| row.get(0))
    }

    /// Stores the task that was made for a mention.
    pub(crate) fn put_mention(
        &self,
        comment: CommentId,
        profile: &Profile,
        task: &TaskId,
    ) -> Result<(), Error> {
        let sql = "INSERT INTO mentions (comment_id, profile, task_id) VALUES (?1, ?2, ?3)";
        self.conn.run("store the mention", sql, params![comment.0, profile, task])
    }
}
