//! Reads of a board for the commands, the daemon and the board's own writes. All reads of a view have the same
//! snapshot of the database.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blobs::{Blobs, SweepScope};
use crate::model::actor::Actor;
use crate::model::budget::{DayUse, PayerKind};
use crate::model::card::CardCounts;
use crate::model::clock::{Clock, Timestamp};
use crate::model::clock_set::ClockSet;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::filter::{EventFilter, Excerpt, Filter, Page};
use crate::model::hold::Hold;
use crate::model::id::{
    AttachmentId, BoardId, BoardName, CommentId, Digest, EventId, Profile, RunId, TaskId, Tenant,
};
use crate::model::limits::{self, ReplyCapacity};
use crate::model::message::Message;
use crate::model::missing::Missing;
use crate::model::note::{Attachment, Comment, Event};
use crate::model::outcome::{Egress, Ending};
use crate::model::request::Request;
use crate::model::run::Run;
use crate::model::state::Gate;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::workspace::Workspace;
use crate::rules::readiness::{Waits, gate};
use crate::rules::{implied_verdict, uncommitted};
use crate::store::tx::Tx;
use crate::transfer::export::{Exported, Portion};

/// Reads of a board at one consistent moment.
pub struct View<'a> {
    pub(crate) tx: &'a Tx<'a>,
    pub(crate) clock: &'a dyn Clock,
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}

/// Figures of a board or of one tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Number of tasks in each status; an absent status has none.
    pub by_status: BTreeMap<Status, i64>,
    /// Number of tasks by assignee and status: the first [`limits::REPLY_ROWS`] names.
    pub by_assignee: BTreeMap<String, BTreeMap<Status, i64>>,
    /// Notes about parts that are incomplete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// Use of tenants, profiles and accounts on this calendar day of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_today: Vec<DayUse>,
    /// Use of tenants, profiles and accounts on all recorded days; `day` is the first of these days.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<DayUse>,
    /// Time since the oldest ready task changed, in seconds.
    pub oldest_ready_age_seconds: Option<i64>,
    /// Time of this answer.
    pub now: Timestamp,
}

/// Name that tasks are assigned to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assignee {
    pub name: String,
    /// Number of tasks in each status.
    pub counts: BTreeMap<Status, i64>,
}

/// Declares reads that are single queries of the store. Each is named after its result.
macro_rules! reads {
    ($($(#[$doc:meta])* $read:ident: $query:ident($($given:ident: $type:ty),*) -> $found:ty;)+) => {
        impl View<'_> {
            $($(#[$doc])* pub fn $read(&self $(, $given: $type)*) -> Result<$found, Error> {
                self.tx.$query($($given),*)
            })+
        }
    };
}

reads! {
    /// Returns the board's identity.
    board_id: board_id() -> BoardId;
    /// Returns the board's name.
    board_name: board_name() -> BoardName;
    /// Returns the latest correction of stored times after the clock was set back.
    clock_set: clock_set() -> Option<ClockSet>;
    /// Returns a task, if it exists.
    task: find_task(id: &TaskId) -> Option<Task>;
    /// Returns the first tasks, at most `limit`, whose ids begin with this id; of one tenant only, if one is named. A task with
    /// exactly this id is included.
    tasks_beginning: ids_from(beginning: &TaskId, tenant: Option<&Tenant>, limit: u32) -> Vec<TaskId>;
    /// Returns true if a task has this id, or had it before it was deleted.
    has_had: is_task_id_reserved(id: &TaskId) -> bool;
    /// Returns the workspaces other than scratch that unarchived tasks name, each once.
    workplaces: workspaces_in_use() -> Vec<Workspace>;
    /// Returns at most `limit` archived tasks with a worktree, ordered by id, after a given id.
    archived_worktrees: archived_worktrees(after: &str, limit: u32) -> Vec<Task>;
    /// Returns the row numbers of at most `limit` replies that were stored before a time, and the total size of these
    /// replies in bytes.
    old_replies: replies_before(before: Timestamp, limit: u32) -> (Vec<i64>, u64);
    /// Returns the number of ledger rows from before a calendar day, such as `2026-11-23`.
    ledger_before: count_ledger_before(day: &str) -> u64;
    /// Returns the stored reply to a request, as JSON, if the request was answered before.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the caller has used the id for another request.
    stored_reply: stored_reply(request: &Request) -> Option<String>;
    /// Returns the parents of a task.
    parents: parents(id: &TaskId) -> Vec<TaskId>;
    /// Returns the parents of a task that are not done.
    open_parents: open_parents(id: &TaskId) -> Vec<TaskId>;
    /// Returns the children of a task.
    children: children(id: &TaskId) -> Vec<TaskId>;
    /// Returns the titles of these tasks, as far as they exist, with one query.
    titles: titles(tasks: &[&TaskId]) -> BTreeMap<TaskId, String>;
    /// Returns the card figures of these tasks, in their order, with one query.
    card_counts: card_counts(tasks: &[&TaskId]) -> Vec<CardCounts>;
    /// Returns the comments of a task, oldest first.
    comments: comments_of(id: &TaskId) -> Vec<Comment>;
    /// Returns the messages to a run that its agent has not received, in the order in which they were sent.
    queued_messages: queued_messages(run: RunId) -> Vec<Message>;
    /// Returns a message to a run, if it exists.
    message: find_message(run: RunId, number: u32) -> Option<Message>;
    /// Returns the latest messages to the runs of a task, oldest first, at most `limit`, each with the first part of its
    /// text.
    messages: last_messages(id: &TaskId, limit: u32) -> Vec<Message>;
    /// Returns the attachments of a task, oldest first.
    attachments: attachments_of(id: &TaskId) -> Vec<Attachment>;
    /// Returns an attachment, if it exists.
    attachment: find_attachment(id: AttachmentId) -> Option<Attachment>;
    /// Returns all attachments of the board.
    all_attachments: all_attachments() -> Vec<Attachment>;
    /// Returns the runs of a task, oldest first.
    runs: runs_of(id: &TaskId) -> Vec<Run>;
    /// Returns the time since which a task has its status; none if the event was folded.
    status_since: last_change(id: &TaskId) -> Option<Timestamp>;
    /// Returns the number of runs of a task.
    attempts: count_runs(id: &TaskId) -> u64;
    /// Returns the end of a task's latest run; none while the run is open, and for a task without runs.
    last_run_ended: last_run_ended(id: &TaskId) -> Option<Timestamp>;
    /// Returns a run, if it exists.
    run: find_run(id: RunId) -> Option<Run>;
    /// Returns the open run whose token has this SHA-256 hash.
    run_by_token: run_by_token(hash: &[u8; 32]) -> Option<Run>;
    /// Returns the run whose token has this SHA-256 hash, open or ended. An ended run may only get a stored reply.
    run_by_past_token: run_by_past_token(hash: &[u8; 32]) -> Option<Run>;
    /// Returns all open runs, oldest first.
    open_runs: open_runs() -> Vec<Run>;
    /// Returns all open runs, each with the use that its agent has reported so far.
    open_runs_with_spent: open_runs_with_spent() -> Vec<Run>;
    /// Returns the open runs of the supervisor that have to be ended.
    runs_to_stop: runs_to_stop() -> Vec<Run>;
    /// Returns events, oldest first, at most as many as the filter allows. `more` is true if there are further events.
    some_events: list_events(filter: &EventFilter) -> Excerpt<Event>;
    /// Returns the worker's latest heartbeat note of a run, if it is among the latest events of the task.
    last_note: last_note(task: &TaskId, run: RunId) -> Option<String>;
    /// Returns the first tenants with tasks whose names begin with a text, ordered by name.
    tenants_from: tenants_from(beginning: &str, limit: u32) -> Vec<String>;
    /// Returns the id of the last event; zero if there is none.
    last_event: last_event() -> EventId;
    /// Returns the number of ready tasks with an assignee.
    ready_count: count_ready() -> u64;
    /// Returns the holds that have not ended, oldest first.
    holds: live_holds() -> Vec<Hold>;
    /// Returns the traffic through the proxy of a run so far, if it has a proxy.
    egress: egress_of(run: RunId) -> Option<Egress>;
    /// Returns the run that completed a task last.
    last_completed_run: last_completed_run(id: &TaskId) -> Option<Run>;
}

impl View<'_> {
    /// Writes the whole board as JSON Lines, with its attachments and with `details` for human readers.
    pub fn export(
        &self,
        blobs: &Blobs,
        details: Option<serde_json::Value>,
        out: &mut dyn std::io::Write,
    ) -> Result<Exported, Error> {
        crate::transfer::export::export(self.tx, blobs, &Portion::Board(details), out)
    }

    /// Returns a task.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it does not exist.
    pub fn expect_task(&self, id: &TaskId) -> Result<Task, Error> {
        self.task(id)?.ok_or_else(|| Error::missing(Missing::Task, id))
    }

    /// Returns the directories that unarchived tasks name as their workspaces.
    pub fn directories_in_use(&self) -> Result<Vec<String>, Error> {
        let places = self.workplaces()?;
        let directories = places.iter().filter_map(|place| place.as_str().strip_prefix("dir:"));
        Ok(directories.map(str::to_owned).collect())
    }

    /// Returns a page of the tasks that a filter selects.
    pub fn tasks(&self, filter: &Filter) -> Result<Page, Error> {
        let (tasks, next) = self.tx.page_of_tasks(filter)?;
        Ok(Page { tasks, next })
    }

    /// Returns the latest comments of a task, or the latest before a given comment, oldest first: at most
    /// [`limits::REPLY_ROWS`]. The newest comments have their whole text, as far as the reply to this caller has space.
    pub fn thread(
        &self,
        id: &TaskId,
        before: Option<CommentId>,
        actor: &Actor,
    ) -> Result<Excerpt<Comment>, Error> {
        self.tx.some_comments(id, before, ReplyCapacity::for_actor(actor))
    }

    /// Returns the latest runs of a task, oldest first: at most [`limits::REPLY_ROWS`]. The newest runs have all their
    /// texts, as far as the reply to this caller has space.
    pub fn history(&self, id: &TaskId, actor: &Actor) -> Result<Excerpt<Run>, Error> {
        self.tx.latest_runs(id, ReplyCapacity::for_actor(actor))
    }

    /// Returns the runs of a task after a given run, oldest first: at most `limit` and at most [`limits::REPLY_ROWS`].
    /// The first runs have all their texts, as far as the reply to this caller has space.
    pub fn history_after(
        &self,
        id: &TaskId,
        after: RunId,
        limit: u32,
        actor: &Actor,
    ) -> Result<Excerpt<Run>, Error> {
        self.tx.runs_after(id, after, limit.min(limits::REPLY_ROWS), ReplyCapacity::for_actor(actor))
    }

    /// Returns the parents of a task, up to the limit on parents.
    pub fn some_parents(&self, id: &TaskId) -> Result<Excerpt<TaskId>, Error> {
        Ok(Excerpt::from_rows(self.parents(id)?, limits::PARENTS))
    }

    /// Returns the children of a task, up to the limit on children.
    pub fn some_children(&self, id: &TaskId) -> Result<Excerpt<TaskId>, Error> {
        Ok(Excerpt::from_rows(self.children(id)?, limits::CHILDREN))
    }

    /// Returns the digests of the board's attachments: of all attachments, or only those among the given digests.
    pub fn attached(&self, scope: &SweepScope) -> Result<BTreeSet<Digest>, Error> {
        match scope {
            SweepScope::All => self.tx.attached_digests(),
            SweepScope::Only(digests) => {
                let mut held = BTreeSet::new();
                for digest in digests {
                    if self.tx.is_attached(digest)? {
                        held.insert(digest.clone());
                    }
                }
                Ok(held)
            }
        }
    }

    /// Returns a run.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it does not exist.
    pub fn expect_run(&self, id: RunId) -> Result<Run, Error> {
        self.run(id)?.ok_or_else(|| Error::missing(Missing::Run, id))
    }

    /// Returns events, oldest first.
    pub fn events(&self, filter: &EventFilter) -> Result<Vec<Event>, Error> {
        self.some_events(filter).map(|part| part.rows)
    }

    /// Returns true if it was recorded that SIGKILL does not end processes of this open run.
    pub fn is_unkillable(&self, run: RunId) -> Result<bool, Error> {
        let filter = EventFilter {
            task: Some(self.expect_run(run)?.task_id),
            kinds: vec![EventKind::Unkillable.to_string()],
            newest_first: true,
            limit: 1,
            ..EventFilter::default()
        };
        // A task has at most one open run, so its newest event of this kind is enough.
        Ok(self.events(&filter)?.iter().any(|event| event.run_id == Some(run)))
    }

    /// Returns true if an open run hands its work over by this ending.
    pub fn hands_over(&self, run: RunId, ending: &Ending) -> Result<bool, Error> {
        let run = self.expect_run(run)?;
        if run.ended_at.is_some() {
            return Ok(false);
        }
        let task = self.expect_task(&run.task_id)?;
        let has_check = task.check.command.as_ref().map(drop);
        let goal = implied_verdict::proof(&task.goal, has_check, task.goal_turns);
        Ok(uncommitted::hands_over(&implied_verdict::with_verdict(run, ending, goal), ending))
    }

    /// Refuses unknown kinds of events. On a board that was imported from another program, the further kinds of its events
    /// are known as well.
    pub fn require_event_kinds(&self, kinds: &[String]) -> Result<(), Error> {
        for kind in kinds {
            if kind.parse::<EventKind>().is_ok() || self.tx.has_events_of(kind)? {
                continue;
            }
            let kinds: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
            let shown: String = kind.chars().take(80).collect();
            let hint = format!("the kinds are: {}", kinds.join(", "));
            return Err(Error::invalid("kind", format!("no event has the kind `{shown}`"), hint));
        }
        Ok(())
    }

    /// Returns up to `limit` tasks, ready or in review, whose profile is not in `known` and was not recorded as unknown
    /// yet. Only tasks that have changed since a time are searched. Each task is returned with its profile and the time
    /// of its change.
    pub fn unknown_assignees(
        &self,
        known: &[String],
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<(TaskId, Profile, Timestamp)>, Error> {
        let known = serde_json::Value::from(known.to_vec()).to_string();
        self.tx.unknown_assignees(&known, since, limit)
    }

    /// Returns the next time at which [`crate::Board::wake_due`] has work.
    pub fn next_wake(&self) -> Result<Option<Timestamp>, Error> {
        let boot_id = self.clock.boot_id();
        let due = self.tx.next_due_time(&boot_id)?;
        let review = self.tx.next_review_time(self.now())?;
        let hold = self.tx.next_hold_end(self.now())?;
        let boottime = i64::try_from(self.clock.boottime().as_micros()).unwrap_or(i64::MAX);
        // Claims and delays end by the clock since boot. Their times on the real-time clock are computed anew for each
        // call, because they move when the real-time clock is set.
        let since_boot =
            |due: i64| Timestamp::from_micros(self.now().as_micros().saturating_add(due - boottime));
        let expiry = self.tx.next_claim_expiry(&boot_id)?.map(since_boot);
        let delay = self.tx.next_delay(&boot_id, self.now())?.map(since_boot);
        let tick = self.next_tick()?;
        let request = self.tx.next_approval_end()?;
        let moments = [due, expiry, review, hold, delay, tick, request];
        Ok(moments.into_iter().flatten().min())
    }

    /// Returns the figures of a board, or of one tenant. For a tenant, this reads all tasks of the tenant.
    pub fn stats(&self, tenant: Option<&Tenant>) -> Result<Stats, Error> {
        let now = self.clock.now();
        let oldest_ready = match tenant {
            Some(tenant) => self.tx.oldest_ready_of(tenant)?,
            None => self.tx.oldest_ready()?,
        };
        let most = usize::try_from(limits::REPLY_ROWS).unwrap_or(usize::MAX);
        let mut named = self.assignees_of(tenant, "", most.saturating_add(1))?;
        let more = named.len() > most;
        let (mut used_today, mut used) = self.day_uses()?;
        if let Some(tenant) = tenant {
            let is_own =
                |day: &DayUse| day.payer.scope == PayerKind::Tenant && day.payer.name == tenant.as_str();
            used_today.retain(is_own);
            used.retain(is_own);
        }
        named.truncate(most);
        Ok(Stats {
            by_status: self.tasks_by_status(tenant, None)?,
            by_assignee: named.into_iter().map(|line| (line.name, line.counts)).collect(),
            used_today,
            used,
            more: more.then(|| "by_assignee".to_owned()).into_iter().collect(),
            oldest_ready_age_seconds: oldest_ready
                .map(|at| i64::try_from(now.since(at).as_secs()).unwrap_or(i64::MAX)),
            now,
        })
    }

    /// Returns the number of tasks in each status: of the whole board, or only of the named tenant and assignee. A status
    /// without tasks is absent.
    pub fn tasks_by_status(
        &self,
        tenant: Option<&Tenant>,
        assignee: Option<&Profile>,
    ) -> Result<BTreeMap<Status, i64>, Error> {
        Ok(self.tx.count_by_status(tenant, assignee)?.into_iter().collect())
    }

    /// Returns up to `names` assignee names, in order, after a given name.
    pub fn assignees(&self, after: &str, names: usize) -> Result<Vec<Assignee>, Error> {
        self.assignees_of(None, after, names)
    }

    fn assignees_of(
        &self,
        tenant: Option<&Tenant>,
        after: &str,
        names: usize,
    ) -> Result<Vec<Assignee>, Error> {
        let mut by_name: BTreeMap<String, BTreeMap<Status, i64>> = BTreeMap::new();
        for (name, status, count) in self.tx.count_by_assignee(tenant, after, names)? {
            *by_name.entry(name).or_default().entry(status).or_default() += count;
        }
        Ok(by_name.into_iter().map(|(name, counts)| Assignee { name, counts }).collect())
    }

    /// Returns the files that a run of a task may read: attachments of the task, and artifacts of its parents.
    pub fn files_of_run(&self, id: &TaskId) -> Result<Vec<Attachment>, Error> {
        let mut files = self.attachments(id)?;
        for parent in self.parents(id)? {
            let artifacts = self.artifacts(&self.expect_task(&parent)?)?;
            files.extend(artifacts.into_iter().filter_map(|(_, file)| file));
        }
        Ok(files)
    }

    /// Returns the declared artifacts of a task, each with the attachment that was stored for it.
    pub fn artifacts(&self, task: &Task) -> Result<Vec<(String, Option<Attachment>)>, Error> {
        if task.artifacts.is_empty() {
            return Ok(Vec::new());
        }
        let files = self.attachments(&task.id)?;
        // Earlier attempts may have handed over a file with the same path. The last file is used.
        let kept = |path: &String| files.iter().rfind(|file| file.artifact.as_ref() == Some(path)).cloned();
        Ok(task.artifacts.iter().map(|path| (path.clone(), kept(path))).collect())
    }

    /// Returns the first gate that keeps a task from starting: open parents, else a missing approval, else its time.
    pub(crate) fn gate(&self, id: &TaskId, not_before: Option<Timestamp>) -> Result<Gate, Error> {
        let waits = Waits {
            open_parents: self.open_parents(id)?.len(),
            approval: self.tx.approval_of(id)?,
            not_before,
        };
        Ok(gate(waits, self.now()))
    }

    /// Returns the board's time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
