//! Links between parents and children.

use serde_json::json;

use super::Board;
use super::charge::Cost;
use crate::actor::Actor;
use crate::authority;
use crate::error::Error;
use crate::id::TaskId;
use crate::quota::Bound;
use crate::store::links;
use crate::task::Task;
use crate::verdict::VerdictKind;
use crate::view::View;

impl Board<'_> {
    /// Makes `child` wait for `parent`. A link that exists is left as it is.
    pub fn link(&mut self, parent: &TaskId, child: &TaskId, actor: &Actor) -> Result<(), Error> {
        let above = self.admit(parent, actor)?;
        let below = self.admit(child, actor)?;
        authority::may_link(actor, &below)?;
        if above.tenant != below.tenant {
            return Err(Error::invalid(
                "parent",
                format!("{parent} and {child} belong to different tenants"),
                "links stay within one tenant",
            ));
        }
        if parent == child {
            return Err(Error::conflict(
                format!("{child} cannot wait for itself"),
                "name the task that is to be done first, then the one that waits for it",
            ));
        }
        if links::is_above(self.conn(), child, parent)? {
            return Err(Error::conflict(
                format!("{child} stands above {parent} already: the link would close a circle"),
                format!("unlink one of the links between them first: `supervisor show {child}`"),
            ));
        }
        if !View::is_open(&below) {
            return Err(Error::conflict(
                format!("{child} is {}: it waits for nothing any more", below.status),
                "link before a task is done",
            ));
        }
        if !above.is_done() && (!View::is_open(&above) || self.is_being_archived(&above)?) {
            return Err(Error::conflict(
                format!("{parent} was archived without being done"),
                "nothing can wait for it; create a new task",
            ));
        }
        if links::insert(self.conn(), parent, child)? {
            self.charge(actor, Cost::one(Bound::Links))?;
            let payload = json!({ "parent": parent, "child": child });
            self.tell(&below, None, "linked", Some(payload), &actor.label())?;
            self.regate(child, &actor.label())?;
        }
        Ok(())
    }

    /// Removes a link; a child that waits for nothing else goes on.
    pub fn unlink(&mut self, parent: &TaskId, child: &TaskId, actor: &Actor) -> Result<(), Error> {
        self.admit(parent, actor)?;
        let below = self.admit(child, actor)?;
        authority::may_link(actor, &below)?;
        if !links::delete(self.conn(), parent, child)? {
            return Err(Error::missing("link", format!("{parent} → {child}")));
        }
        self.charge(actor, Cost::one(Bound::Links))?;
        let payload = json!({ "parent": parent, "child": child });
        self.tell(&below, None, "unlinked", Some(payload), &actor.label())?;
        self.regate(child, &actor.label())
    }

    fn is_being_archived(&self, task: &Task) -> Result<bool, Error> {
        let run = task.current_run_id.map(|run| self.expect_run(run)).transpose()?;
        let verdict = run.and_then(|run| run.verdict).map(|verdict| verdict.kind());
        Ok(verdict == Some(VerdictKind::Archive))
    }
}
