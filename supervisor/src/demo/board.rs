//! Board of a demo, used through the client and verbs of all commands.

use std::time::{Duration, Instant};

use kernel::{BoardName, EventId, Profile, Task, TaskId};

use crate::client::Client;
use api::Verb;
use base::failure::Failure;
use base::paths::Root;
use verbs::{Create, Events, List, Show};

/// Time limit of one step on a slow machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The board, and the cursor of its events.
#[derive(Debug)]
pub(super) struct DemoBoard {
    client: Client,
    cursor: EventId,
}

/// Returns the lane of every task of the demo.
pub(super) fn shell() -> Result<Profile, Failure> {
    "shell".parse().map_err(|e| Failure::failed(format!("shell: {e}")))
}

impl DemoBoard {
    /// Opens the default board of a root.
    pub(super) fn new(root: &Root) -> Self {
        DemoBoard { client: Client::new(root.clone(), BoardName::default(), None), cursor: EventId(0) }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) async fn call<V: Verb>(&self, verb: &V) -> Result<V::Reply, Failure> {
        self.client.call(verb).await
    }

    /// Creates a task for the shell lane.
    pub(super) async fn create(&self, title: &str, body: String, task: Create) -> Result<TaskId, Failure> {
        let create = Create { title: title.to_owned(), body: Some(body), assignee: Some(shell()?), ..task };
        Ok(self.call(&create).await?.task.id)
    }

    pub(super) async fn show(&self, id: &TaskId) -> Result<<Show as Verb>::Reply, Failure> {
        self.call(&Show { task_id: Some(id.clone()), ..Show::default() }).await
    }

    /// Reads all tasks after each event, until `look` returns a value.
    pub(super) async fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&[Task]) -> Option<T>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            // The cursor is older than this read, so that a later event ends the wait below.
            let tasks = self.call(&List { archived: true, ..List::default() }).await?.split().0;
            if let Some(found) = look(&tasks) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::failed(format!("{what}: not after {} s", TIMEOUT.as_secs())));
            }
            let events = Events {
                since: self.cursor,
                wait: left.as_secs().clamp(1, 30),
                limit: 1000,
                ..Events::default()
            };
            self.cursor = self.call(&events).await?.cursor;
        }
    }
}

pub(super) fn find<'a>(tasks: &'a [Task], id: &TaskId) -> Option<&'a Task> {
    tasks.iter().find(|task| task.id == *id)
}
