//! Edits of tasks, and their assignment.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Board, way_on};
use crate::model::actor::{Actor, Label};
use crate::model::commits::{CommitMode, Commits};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{Pool, Profile, TaskId, Tenant};
use crate::model::limits;
use crate::model::outcome::{ApprovalState, BlockKind};
use crate::model::status::Status;
use crate::model::task::{Client, Limits, Task};
use crate::model::task_fields::{Change, PlainField};
use crate::model::workspace::Workspace;
use crate::rules::new_task;
use crate::store::fields::Field;

/// Hint to a value that is empty.
const STAYS: &str = "leave it out, and it stays as it is";

/// Changes of a task. An absent field is not changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edit {
    /// New title, on one line.
    pub title: Option<String>,
    /// New text.
    pub body: Option<String>,
    /// New priority; the highest starts first.
    pub priority: Option<i64>,
    /// New result, for a finished task.
    pub result: Option<String>,
    /// New summary of the last completed run.
    pub summary: Option<String>,
    /// New metadata of the last completed run.
    pub metadata: Option<Value>,
    pub tenant: Option<Tenant>,
    /// New policy of the runs.
    pub policy: Option<String>,
    pub workspace: Option<Workspace>,
    /// New skills of the workers; empty for none.
    pub skills: Option<Vec<String>>,
    /// New check; empty for none.
    pub check: Option<String>,
    /// New number of consecutive failed checks that block the task.
    pub max_checks: Option<u32>,
    /// New handling of uncommitted changes.
    pub commit: Option<CommitMode>,
    /// Change of the pools in which its runs take places.
    pub pools: PoolChange,
    /// Plain fields to set.
    pub limits: Limits,
    /// Plain fields to set.
    pub client: Client,
}

/// Change of the pools that a task names. Pools are removed first, and added afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolChange {
    /// Pools to add.
    pub added: BTreeSet<Pool>,
    /// Pools to remove, which the task must name now.
    pub removed: BTreeSet<Pool>,
    /// True to remove all pools that the task names now.
    pub cleared: bool,
}

impl PoolChange {
    fn is_empty(&self) -> bool {
        *self == PoolChange::default()
    }

    /// Returns the pools of the task after the change.
    fn applied_to(&self, task: &Task) -> Result<BTreeSet<Pool>, Error> {
        if let Some(stranger) = self.removed.difference(&task.pools).next() {
            let named: Vec<&str> = task.pools.iter().map(Pool::as_str).collect();
            let named = if named.is_empty() { "no pool".to_owned() } else { named.join(", ") };
            let why = format!("{} does not name the pool {stranger}; it names {named}", task.id);
            return Err(Error::invalid("pools", why, "leave it out, or name one that the task has"));
        }
        let mut pools = if self.cleared { BTreeSet::new() } else { &task.pools - &self.removed };
        pools.extend(self.added.iter().cloned());
        new_task::pools(&pools)?;
        Ok(pools)
    }
}

impl Edit {
    fn is_empty(&self) -> bool {
        *self == Edit::default()
    }

    /// Returns the plain fields to set.
    fn plain(&self) -> impl Iterator<Item = PlainField<'_>> {
        self.limits.fields().chain(self.client.fields())
    }

    /// Returns true if the edit changes the check.
    fn changes_check(&self) -> bool {
        self.check.is_some() || self.max_checks.is_some()
    }

    /// Returns true if the edit changes the settings of the next run.
    fn changes_runs(&self) -> bool {
        let places = self.tenant.is_some() || self.workspace.is_some();
        let given = self.policy.is_some() || self.skills.is_some();
        let plain = self.plain().any(|field| field.change == Change::Settings);
        places || given || plain || self.commit.is_some() || !self.pools.is_empty()
    }
}

impl Board<'_> {
    /// Assigns a task to a profile, or to none. Resets its failures. A running task is refused, unless its run is
    /// ending already.
    #[expect(clippy::needless_pass_by_value, reason = "a caller builds it for this call only")]
    pub fn assign(&mut self, id: &TaskId, assignee: Option<Profile>, actor: &Actor) -> Result<Task, Error> {
        let task = self.for_director(id, actor, "assign a task")?;
        if task.assignee == assignee {
            return Ok(task);
        }
        if let Some(run) = self.live_run(actor)? {
            self.delegates_onward(&run.task_id, &run, assignee.as_ref())?;
        }
        if let (Some(approver), Some(name)) = (&task.approval.approver, &assignee)
            && Label::parse(approver).name == name.as_str()
        {
            return Err(Error::conflict(
                format!("{name} is the approver of {id}, and nobody may approve their own work"),
                "assign it to somebody else",
            ));
        }
        let run = task.current_run_id.map(|run| self.expect_run(run)).transpose()?;
        if let Some(run) = run.filter(|run| run.stop_reason.is_none()) {
            return Err(Error::conflict(
                format!(
                    "{id} is running as {} (run {})",
                    run.profile.map_or_else(|| "nobody".to_owned(), String::from),
                    run.id
                ),
                format!("take it back first: `supervisor reassign {id} <profile> --reclaim`"),
            ));
        }
        self.set(id, &Field::Assignee(assignee.as_ref()))?;
        // Notes about the former assignee do not apply to the new one.
        self.set(id, &Field::Nonspawnable(None))?;
        self.forget_failures(id)?;
        let payload = json!({ "assignee": assignee, "from": task.assignee });
        self.append(&task, None, EventKind::Assigned, payload, &actor.label())?;
        self.expect_task(id)
    }

    /// Changes the fields of a task.
    pub fn edit(&mut self, id: &TaskId, edit: &Edit, actor: &Actor) -> Result<Task, Error> {
        let task = self.for_person(id, actor, "edit a task")?;
        if let Some(fixed) = edit.plain().find(|field| field.change == Change::Fixed) {
            return Err(Error::invalid(fixed.name, "it is set at creation alone", "leave it out"));
        }
        if edit.is_empty() {
            return Err(Error::invalid(
                "edit",
                format!("nothing to change is given for {id}"),
                "name what to change, such as `--title` or `--body`",
            ));
        }
        let fields: &mut Vec<&'static str> = &mut Vec::new();
        // A granted approval covers the task as it was then, so its text and the settings of its runs must not change
        // afterwards.
        if (edit.title.is_some() || edit.body.is_some() || edit.changes_runs() || edit.changes_check())
            && task.approval.state == Some(ApprovalState::Granted)
            && !matches!(task.status, Status::Done | Status::Archived)
        {
            return Err(crate::rules::proposal::approved_as_it_is(id));
        }
        if edit.changes_check() && self.tx.proposal(id)?.is_some() {
            // The result of a proposal would be applied before its check has run, and again after a failed check.
            return Err(Error::conflict(
                format!("{id} makes a proposal, which is validated when it is returned"),
                "leave out the check: the tasks that come of it can have one",
            ));
        }
        self.edit_run_settings(&task, edit, fields)?;
        self.edit_check(&task, edit.check.as_deref(), edit.max_checks, fields)?;
        if let Some(title) = &edit.title {
            limits::title(title)?;
            self.change(id, "title", &Field::Title(title), fields)?;
        }
        if let Some(body) = &edit.body {
            limits::bytes("body", body, limits::BODY)?;
            self.change(id, "body", &Field::Body(Some(body)), fields)?;
        }
        self.edit_plain(id, edit, Change::Free, fields)?;
        if let Some(result) = &edit.result {
            limits::bytes("result", result, limits::SUMMARY)?;
            // An archived task that was done keeps its completion time.
            if task.completed_at.is_none() {
                return Err(Error::conflict(
                    format!("{id} is {}: only a task that is done has a result", task.status),
                    match (task.status, task.block_kind) {
                        (Status::Archived, _) | (Status::Blocked, Some(BlockKind::Approval)) => {
                            way_on(id, task.status, task.block_kind)
                        }
                        _ => format!("end it with one: `supervisor complete {id} --result …`"),
                    },
                ));
            }
            self.change(id, "result", &Field::Result(Some(result)), fields)?;
        }
        if edit.summary.is_some() || edit.metadata.is_some() {
            limits::maybe("summary", edit.summary.as_deref(), limits::SUMMARY)?;
            limits::metadata(edit.metadata.as_ref())?;
            let run = self.last_completed_run(id)?.ok_or_else(|| {
                Error::conflict(format!("{id} has no completed run"), "complete it with a summary instead")
            })?;
            self.tx.edit_handoff(run.id, edit.summary.as_deref(), edit.metadata.as_ref())?;
            fields.push("summary");
        }
        // The priority has an event of its own, so `fields` does not contain it.
        if !fields.is_empty() {
            let payload =
                json!({ "fields": fields, "result_len": edit.result.as_ref().map_or(0, String::len) });
            self.append(&task, None, EventKind::Edited, payload, &actor.label())?;
        }
        if let Some(priority) = edit.priority.filter(|priority| *priority != task.priority) {
            self.set(id, &Field::Priority(priority))?;
            let payload = json!({ "priority": priority });
            self.append(&task, None, EventKind::Reprioritized, payload, &actor.label())?;
        }
        self.expect_task(id)
    }

    /// Changes the settings of future runs. Refuses a task with an open run, and a finished task.
    fn edit_run_settings(
        &self,
        task: &Task,
        edit: &Edit,
        fields: &mut Vec<&'static str>,
    ) -> Result<(), Error> {
        if !edit.changes_runs() {
            return Ok(());
        }
        let id = &task.id;
        if task.current_run_id.is_some() || matches!(task.status, Status::Done | Status::Archived) {
            return Err(Error::conflict(
                format!("{id} is {}: what its runs are given cannot be changed", task.status),
                match task.current_run_id {
                    Some(_) => {
                        format!("take it back first (`supervisor reclaim {id}`), or create a new task")
                    }
                    None => way_on(id, task.status, task.block_kind),
                },
            ));
        }
        // Earlier runs have left files in the workspace, under the tenant's user id.
        let moves = edit.tenant.is_some() || edit.workspace.is_some();
        if moves && !self.runs(id)?.is_empty() {
            return Err(Error::conflict(
                format!("{id} has had runs: what they left is in its workspace and with its tenant"),
                "create a new task there",
            ));
        }
        if let Some(tenant) = &edit.tenant {
            self.may_move(task, tenant)?;
            self.change(id, "tenant", &Field::Tenant(tenant.as_str()), fields)?;
        }
        self.edit_plain(id, edit, Change::Settings, fields)?;
        if let Some(policy) = &edit.policy {
            require_filled("policy", policy)?;
            self.change(id, "policy", &Field::Policy(policy), fields)?;
        }
        if let Some(workspace) = &edit.workspace {
            require_filled("workspace", workspace.as_str())?;
            self.change(id, "workspace", &Field::Workspace(workspace), fields)?;
        }
        self.edit_commits(task, edit, fields)?;
        if let Some(skills) = &edit.skills {
            new_task::list("skills", skills)?;
            self.change(id, "skills", &Field::Skills(skills), fields)?;
        }
        if !edit.pools.is_empty() {
            self.change(id, "pools", &Field::Pools(&edit.pools.applied_to(task)?), fields)?;
        }
        Ok(())
    }

    /// Changes the plain fields that may change at such a time.
    fn edit_plain(
        &self,
        id: &TaskId,
        edit: &Edit,
        change: Change,
        fields: &mut Vec<&'static str>,
    ) -> Result<(), Error> {
        for field in edit.plain().filter(|field| field.change == change) {
            new_task::plain(field, STAYS, "give a time above zero, such as 30m")?;
            self.change(id, field.name, &Field::Plain(field), fields)?;
        }
        Ok(())
    }

    /// Changes the handling of uncommitted changes. A task that no longer works in a worktree loses its setting.
    fn edit_commits(&self, task: &Task, edit: &Edit, fields: &mut Vec<&'static str>) -> Result<(), Error> {
        let workspace = edit.workspace.as_ref().unwrap_or(&task.workspace);
        if edit.commit.is_some() {
            new_task::commits(Commits { mode: edit.commit }, workspace)?;
            self.change(&task.id, "commit", &Field::Commit(edit.commit), fields)?;
        } else if task.commits.mode.is_some() && !new_task::is_worktree(workspace) {
            self.change(&task.id, "commit", &Field::Commit(None), fields)?;
        }
        Ok(())
    }

    /// Sets a field and adds its name to the list for the event.
    pub(super) fn change(
        &self,
        id: &TaskId,
        name: &'static str,
        field: &Field<'_>,
        fields: &mut Vec<&'static str>,
    ) -> Result<(), Error> {
        fields.push(name);
        self.set(id, field)
    }

    /// Refuses another tenant for a task that has links, or whose idempotency key that tenant uses for another task.
    fn may_move(&self, task: &Task, tenant: &Tenant) -> Result<(), Error> {
        let id = &task.id;
        if task.tenant.as_ref() == Some(tenant) {
            return Ok(());
        }
        if !self.parents(id)?.is_empty() || !self.children(id)?.is_empty() {
            return Err(Error::conflict(
                format!("{id} has parents or children, and links stay within one tenant"),
                format!("unlink them first: `supervisor show {id}`"),
            ));
        }
        if let Some(key) = &task.idempotency_key
            && self.tx.find_task_by_key(Some(tenant), key)?.is_some()
        {
            return Err(Error::conflict(
                format!("the tenant {tenant} has a task with the idempotency key of {id}"),
                "create a new task there, with another key",
            ));
        }
        Ok(())
    }
}

fn require_filled(field: &'static str, text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Err(Error::invalid(field, "it is empty", STAYS));
    }
    limits::bytes(field, text, limits::WORD)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::{Bench, alice, titled};
    use crate::{Detach, EndCause, Handoff, NewTask};

    fn edit(bench: &Bench, id: &TaskId, edit: Edit) -> Result<Task, Error> {
        let id = id.clone();
        bench.call(move |board| board.edit(&id, &edit, &alice()))
    }

    fn settings() -> Edit {
        Edit {
            tenant: Some("acme".parse().unwrap()),
            limits: Limits { max_runtime: Some(Duration::from_mins(5)), ..Limits::default() },
            policy: Some("strict".to_owned()),
            workspace: Some(Workspace::stored("dir:/srv")),
            skills: Some(vec!["git".to_owned()]),
            ..Edit::default()
        }
    }

    #[test]
    fn before_a_run_a_person_changes_all_that_the_run_is_given() {
        let bench = Bench::new();
        let task = edit(&bench, &bench.ready(), settings()).unwrap();
        assert_eq!(task.tenant, Some("acme".parse().unwrap()));
        assert_eq!((task.policy.as_deref(), task.workspace.as_str()), (Some("strict"), "dir:/srv"));
        assert_eq!(
            (task.limits.max_runtime, task.skills),
            (Some(Duration::from_mins(5)), vec!["git".to_owned()])
        );
        bench.check();
    }

    #[test]
    fn pools_of_a_task_that_waits_come_and_go_and_those_that_it_does_not_name_are_refused() {
        let bench = Bench::new();
        let id = bench.ready();
        let pools =
            |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<BTreeSet<Pool>>();
        let change = |added: &[&str], removed: &[&str], cleared: bool| {
            let change = PoolChange { added: pools(added), removed: pools(removed), cleared };
            edit(&bench, &id, Edit { pools: change, ..Edit::default() }).map(|task| task.pools)
        };
        assert_eq!(change(&["gpu", "licence"], &[], false).unwrap(), pools(&["gpu", "licence"]));
        bench.check();
        assert_eq!(change(&["disk"], &["gpu"], false).unwrap(), pools(&["disk", "licence"]));
        let refused = change(&[], &["gpu"], false).unwrap_err().to_string();
        assert!(refused.contains("does not name the pool gpu; it names disk, licence"), "{refused}");
        let many: Vec<String> = (0..=limits::POOLS).map(|n| format!("p{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(change(&many, &[], false).unwrap_err().to_string().contains("the limit is"));
        assert_eq!(change(&["gpu"], &[], true).unwrap(), pools(&["gpu"]));
        bench.check();
        assert_eq!(change(&[], &[], true).unwrap(), pools(&[]));
        bench.check();
        bench.start(&id);
        assert!(
            matches!(change(&["gpu"], &[], false), Err(Error::Conflict { .. })),
            "its run has its places"
        );
        bench.check();
    }

    #[test]
    fn only_a_task_that_is_done_has_a_result() {
        let bench = Bench::new();
        let id = bench.ready();
        let with = |text: &str| Edit {
            title: Some("another".to_owned()),
            result: Some(text.to_owned()),
            ..Edit::default()
        };
        let refused = edit(&bench, &id, with("early")).unwrap_err();
        assert!(matches!(&refused, Error::Conflict { .. }), "{refused}");
        assert!(
            refused.hint().unwrap().contains(&format!("supervisor complete {id} --result")),
            "{refused:?}"
        );
        let task = bench.readers.with(|view| view.task(&id)).unwrap().unwrap();
        assert_eq!((task.title.as_str(), task.result), ("work", None), "nothing of it is changed");
        let of = id.clone();
        bench.call(move |board| board.complete(&of, Handoff::default(), None, &alice())).unwrap();
        assert_eq!(edit(&bench, &id, with("late")).unwrap().result.as_deref(), Some("late"));
        let of = id.clone();
        bench.call(move |board| board.archive(&of, Detach::Refuse, &alice())).unwrap();
        assert_eq!(edit(&bench, &id, with("later")).unwrap().result.as_deref(), Some("later"));
    }

    #[test]
    fn an_edit_of_nothing_is_refused() {
        let bench = Bench::new();
        let refused = edit(&bench, &bench.ready(), Edit::default()).unwrap_err();
        assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
    }

    #[test]
    fn what_a_live_run_has_and_what_an_ended_one_has_left_is_not_changed() {
        let bench = Bench::new();
        let id = bench.ready();
        let run = bench.start(&id);
        assert!(matches!(edit(&bench, &id, settings()), Err(Error::Conflict { .. })));
        bench.finish(run, EndCause::Exited { code: 1 });
        assert!(matches!(edit(&bench, &id, settings()), Err(Error::Conflict { .. })), "it has a workspace");
        let limits = Limits { max_runtime: Some(Duration::from_secs(7)), ..Limits::default() };
        let limit = Edit { limits, ..Edit::default() };
        assert_eq!(edit(&bench, &id, limit).unwrap().limits.max_runtime, Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_task_that_is_linked_stays_with_its_tenant() {
        let bench = Bench::new();
        let parent = bench.ready();
        let child = bench.child_of(&[&parent]);
        for id in [parent, child] {
            let refused = edit(&bench, &id, settings()).unwrap_err();
            assert!(refused.to_string().contains("links stay within one tenant"), "{refused}");
        }
    }

    #[test]
    fn two_tasks_of_one_tenant_never_share_an_idempotency_key() {
        let bench = Bench::new();
        let keyed = |tenant: Option<&str>| NewTask {
            idempotency_key: Some("k".to_owned()),
            tenant: tenant.map(|name| name.parse().unwrap()),
            ..titled("x")
        };
        bench.create(keyed(Some("acme")));
        let other = bench.create(keyed(None)).id;
        assert!(matches!(edit(&bench, &other, settings()), Err(Error::Conflict { .. })));
    }
}
