//! Creates tasks.

use serde_json::json;

use super::charge::Cost;
use super::{Board, schedules};
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::fleet;
use crate::model::id::{Pool, TaskId, Tenant};
use crate::model::missing::Missing;
use crate::model::outcome::BlockKind;
use crate::model::quota::Bound;
use crate::model::state::{Change, Gate, State};
use crate::model::task::{NewTask, Task};
use crate::rules::authority;
use crate::rules::links;
use crate::rules::new_task;
use crate::rules::readiness::{Waits, gate};
use crate::rules::transition::next;
use crate::store::events::NewEvent;
use crate::store::tasks::Birth;

/// Result of creating a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Created {
    /// The new task, or the task that the idempotency key already names.
    pub task: Task,
    /// True if the idempotency key already named the task, so that nothing was made.
    pub existing: bool,
}

impl Board<'_> {
    /// Creates a task. For a known idempotency key, returns the existing task.
    pub fn create(&mut self, new: NewTask, actor: &Actor) -> Result<Created, Error> {
        refuse_key(
            &new,
            fleet::KEYS,
            "those of fleets",
            "`supervisor dispatch-fleet` makes the tasks of a fleet",
        )?;
        refuse_key(&new, schedules::KEYS, "those of schedules", "`supervisor schedules run` makes a tick")?;
        self.make(new, actor)
    }

    /// Creates a task, also with a key of a fleet or a schedule.
    pub(super) fn make(&mut self, mut new: NewTask, actor: &Actor) -> Result<Created, Error> {
        let run = self.live_run(actor)?;
        let creating_task = run.as_ref().map(|run| self.expect_task(&run.task_id)).transpose()?;
        // The rules come first: they limit the task by its maker and fill in its tenant. Only then is the key looked up.
        let maker = run.as_ref().zip(creating_task.as_ref());
        let missions = creating_task.as_ref().map_or(Ok(self.quotas.mission), |own| self.limits_of(own))?;
        let creator_task = authority::bound_new_task(actor, maker, &mut new, &missions)?;
        new_task::validate(&new)?;
        let is_allowed = self.apply_gate(&mut new)?;
        super::approval::validate(&new, actor)?;
        new.tenant = self.tenant_of(&new, actor)?;
        if let Some(key) = &new.idempotency_key
            && let Some(task) = self.tx.find_task_by_key(new.tenant.as_ref(), key)?
        {
            return Ok(Created { task, existing: true });
        }
        // A repeat with a known key costs nothing, so limits and charges come after the lookup.
        match maker {
            Some((run, own)) => self.join_mission(own, run, new.assignee.as_ref())?,
            None => self.join_named_mission(&mut new, actor)?,
        }
        self.charge(actor, cost(&new))?;
        let run = run.as_ref().map(|run| run.id);
        let gate = self.gate_of(&new)?;
        let change = Change::Created { initial: new.initial_state, gate };
        let state =
            next(None, change).map_err(|error| Error::conflict(error.to_string(), "leave out `triage`"))?;
        let id = self.draw_id()?;
        let now = self.now();
        // A worker acts for the creator of its own task.
        let creator_uid = match &creator_task {
            Some(own) => self.expect_task(own)?.creator_uid,
            None => actor.uid,
        };
        let created_by = new.created_by.clone().unwrap_or_else(|| actor.name.clone());
        let birth = Birth {
            id: &id,
            state,
            tenant: new.tenant.as_ref(),
            created_by: &created_by,
            creator_uid,
            creator_task: creator_task.as_ref(),
            creator_run: run,
            now,
        };
        self.tx.insert_task(&new, &birth)?;
        for parent in &new.parents {
            self.require_room_beneath(parent)?;
            self.tx.insert_link(parent, &id)?;
        }
        let payload = json!({
            "assignee": new.assignee, "status": state.status(), "parents": new.parents, "tenant": new.tenant,
            "branch_name": new.branch, "skills": new.skills, "goal_mode": new.goal.mode, "by": created_by,
        });
        self.tx.append_event(&NewEvent {
            task: Some(&id),
            run,
            tenant: new.tenant.as_ref(),
            kind: EventKind::Created,
            payload: Some(payload),
            change: Some(change),
            actor: &actor.label(),
            now,
        })?;
        self.tx.note_move(&id, now)?;
        if state == (State::Blocked { kind: BlockKind::Approval }) {
            self.ask_for_approval(&id, &actor.label())?;
        }
        if let Some(class) = is_allowed {
            self.record_allowed(&self.expect_task(&id)?, None, &class)?;
        }
        let task = self.expect_task(&id)?;
        self.subscribe_channel(&task, &actor.label())?;
        Ok(Created { task, existing: false })
    }

    /// Returns the tenant of a new task: its own, else the tenant of its parents. All must be equal.
    fn tenant_of(&self, new: &NewTask, actor: &Actor) -> Result<Option<Tenant>, Error> {
        let mut tenant: Option<Option<Tenant>> = new.tenant.clone().map(Some);
        let limited = actor.kind == crate::model::actor::ActorKind::Worker || actor.tenant.is_some();
        if limited {
            tenant = Some(new.tenant.clone());
        }
        for parent in &new.parents {
            let parent = self.task(parent)?.ok_or_else(|| Error::missing(Missing::Parent, parent))?;
            authority::may_see(actor, &parent)?;
            match &tenant {
                None => tenant = Some(parent.tenant),
                Some(tenant) if *tenant == parent.tenant => {}
                Some(_) => {
                    return Err(links::other_tenant(&parent.id));
                }
            }
        }
        Ok(tenant.flatten())
    }

    fn gate_of(&self, new: &NewTask) -> Result<Gate, Error> {
        let mut open_parents = 0;
        for parent in &new.parents {
            let parent = self.expect_task(parent)?;
            self.require_awaitable(&parent)?;
            open_parents += usize::from(!parent.is_done());
        }
        Ok(gate(Waits { open_parents, approval: new.approval.state, not_before: new.not_before }, self.now()))
    }

    /// Draws an id that no task has or had.
    fn draw_id(&self) -> Result<TaskId, Error> {
        for _ in 0..64 {
            let mut bytes = [0; 4];
            self.entropy.fill(&mut bytes);
            let id = TaskId::from_number(u32::from_le_bytes(bytes));
            if self.tx.reserve_task_id(&id)? {
                return Ok(id);
            }
        }
        Err(Error::conflict("no free task id was found in 64 attempts", "try again, or start another board"))
    }
}

fn cost(new: &NewTask) -> Cost {
    Cost::one(Bound::Creates)
        .text([new.title.as_str(), new.workspace()])
        .text(new.body.iter().chain(&new.notes).map(String::as_str))
        .text(new.words().map(|(_, word)| word))
        .text(new.skills.iter().chain(&new.artifacts).map(String::as_str))
        .text(new.pools.iter().map(Pool::as_str))
        .links(new.parents.len())
}

/// Refuses a key with a prefix that only the board may use: such a task would be taken for a task of a fleet or a
/// schedule.
fn refuse_key(new: &NewTask, keys: &str, field_owner: &str, instead: &str) -> Result<(), Error> {
    if !new.idempotency_key.as_ref().is_some_and(|key| key.starts_with(keys)) {
        return Ok(());
    }
    let why = format!("keys that begin with `{keys}` are {field_owner}");
    Err(Error::invalid("idempotency_key", why, format!("use another key; {instead}")))
}
