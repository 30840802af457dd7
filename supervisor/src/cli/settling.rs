//! Waits by events until tasks no longer continue by themselves.

use std::collections::VecDeque;

use kernel::{EventId, TaskId};

use super::daemon_watch::DaemonWatch;
use super::outcome;
use super::waits::ReportedReasons;
use crate::client::Client;
use base::failure::Failure;
use verbs::{Events, Show, ShownTask};

/// Time that a request waits at the daemon.
const WAIT_SECONDS: u64 = 30;
/// Longest wait for events while a run is being started.
const START_SECONDS: u64 = 2;

/// Tasks that are waited for.
#[derive(Debug)]
pub(super) struct Settling {
    open: Vec<TaskId>,
    /// Tasks that may have settled since the last look.
    due: VecDeque<TaskId>,
    /// Tasks with a run whose command has not been started.
    starting: Vec<TaskId>,
    events: Events,
    served: DaemonWatch,
    waits: ReportedReasons,
}

impl Settling {
    /// Begins to wait. Each task is checked once at the start.
    pub(super) async fn watch(client: &Client, tasks: &[TaskId]) -> Result<Self, Failure> {
        let events =
            Events { since: newest(client).await?, limit: 1000, wait: WAIT_SECONDS, ..Events::default() };
        let mut open: Vec<TaskId> = Vec::new();
        for task in tasks {
            if !open.contains(task) {
                open.push(task.clone());
            }
        }
        let due = open.iter().cloned().collect();
        Ok(Settling {
            due,
            starting: Vec::new(),
            open,
            events,
            served: DaemonWatch::default(),
            waits: ReportedReasons::default(),
        })
    }

    /// Tasks that have not settled yet.
    pub(super) fn open(&self) -> &[TaskId] {
        &self.open
    }

    /// Returns a task that has settled, with its exit code, among the tasks to check. Does not wait.
    pub(super) async fn settled(&mut self, client: &Client) -> Result<Option<(ShownTask, u8)>, Failure> {
        while let Some(task) = self.due.front().cloned() {
            let shown = client.call(&Show { task_id: Some(task.clone()), ..Show::default() }).await?;
            self.due.pop_front();
            if let Some(code) = outcome::of_task(&shown) {
                self.open.retain(|open| *open != task);
                return Ok(Some((shown, code)));
            }
            self.waits.tell(&shown);
            // An outside worker starts no command.
            let is_ours = shown.task.claim_expires.is_none();
            let is_starting =
                is_ours && shown.runs.iter().any(|run| run.spawned_at.is_none() && run.ended_at.is_none());
            self.starting.extend(is_starting.then_some(task));
        }
        Ok(None)
    }

    /// Warns if no daemon runs and a task is still awaited.
    pub(super) async fn warn_without_daemon(&mut self, client: &Client) {
        if !self.open.is_empty() {
            self.waits.warn_without_daemon(client).await;
        }
    }

    /// Waits for the next task to settle, and returns it with its exit code; none if no tasks are left. Cancel-safe: an
    /// interrupted check is repeated.
    pub(super) async fn next(&mut self, client: &Client) -> Result<Option<(ShownTask, u8)>, Failure> {
        while !self.open.is_empty() {
            if let Some(settled) = self.settled(client).await? {
                return Ok(Some(settled));
            }
            self.served.check(client);
            // No event tells of the progress of a start.
            self.events.wait = if self.starting.is_empty() { WAIT_SECONDS } else { START_SECONDS };
            let page = client.call(&self.events).await?;
            self.events.since = page.cursor;
            let changed = page.events.into_iter().filter_map(|event| event.task_id);
            for task in changed.chain(self.starting.drain(..)) {
                if self.open.contains(&task) && !self.due.contains(&task) {
                    self.due.push_back(task);
                }
            }
        }
        Ok(None)
    }
}

/// Returns the last event of the board.
pub(super) async fn newest(client: &Client) -> Result<EventId, Failure> {
    let newest = Events { since: EventId(i64::MAX), limit: 1, ..Events::default() };
    Ok(client.call(&newest).await?.last_event)
}
