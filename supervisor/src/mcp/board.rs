//! Targets of tool calls: the socket of the daemon, or within the daemon the router.

use std::sync::Arc;

use kernel::TaskId;

use crate::client::Client;
use api::command::{AnyCommand, ToolProcess};
use api::{AnyReply, Ask};
use base::failure::Failure;
use verbs::{Offered, Tools};

/// Target of tool calls, by their origin.
#[derive(Debug)]
pub(super) enum ToolBoard {
    /// From a process of the caller. A repeated call keeps its request id, so it takes effect once.
    Client(Arc<Client>),
    /// From a script of the run. A script has the same rights on the board. This process reads no files for it, because a
    /// script may read fewer files than its agent.
    Script(Arc<Client>),
    /// From a request to the daemon.
    Ask(Box<Ask>),
}

impl ToolBoard {
    /// Calls the verb behind a tool.
    pub(super) async fn call(&self, mut verb: Box<dyn AnyCommand>) -> Result<Box<dyn AnyReply>, Failure> {
        if let Some(own) = self.own_task() {
            verb.default_to_own(own);
        }
        match self {
            ToolBoard::Client(client) => {
                if let Err(refusal) = verb.as_tool(ToolProcess::Daemon) {
                    if !self.offered().await?.work {
                        return Err(refusal);
                    }
                    verb.as_tool(ToolProcess::Caller)?;
                }
                client.call_any(&*verb).await
            }
            ToolBoard::Script(client) => {
                verb.as_tool(ToolProcess::Daemon)?;
                client.call_any(&*verb).await
            }
            ToolBoard::Ask(ask) => {
                verb.as_tool(ToolProcess::Daemon)?;
                ask.dispatch_any(verb).await
            }
        }
    }

    /// Returns the verbs and tools offered to the caller.
    pub(super) async fn offered(&self) -> Result<Offered, Failure> {
        let verb = Tools::default();
        match self {
            ToolBoard::Client(client) | ToolBoard::Script(client) => client.call(&verb).await,
            ToolBoard::Ask(ask) => ask.dispatch(verb).await,
        }
    }

    /// Returns true if the caller is the worker of a run.
    pub(super) fn is_of_a_worker(&self) -> bool {
        self.own_task().is_some()
    }

    fn own_task(&self) -> Option<&TaskId> {
        match self {
            ToolBoard::Client(client) | ToolBoard::Script(client) => {
                client.worker().map(|worker| &worker.task)
            }
            ToolBoard::Ask(ask) => ask.own_task(),
        }
    }
}
