//! Targets of tool calls: the daemon's socket, or inside the daemon the verb of the request.

use std::sync::Arc;

use kernel::TaskId;

use crate::client::Client;
use api::command::{AnyCommand, Side};
use api::{AnyReply, Ask};
use base::failure::Failure;
use verbs::{Offered, Tools};

#[derive(Debug)]
pub(super) enum Board {
    /// From a process of the caller. A repeated call keeps its request id, and so runs once.
    Client(Arc<Client>),
    /// From a script of the run. A script has the same rights, but this process reads no file for it, because a script
    /// has less access than its agent.
    Script(Arc<Client>),
    /// From a request to the daemon.
    Ask(Box<Ask>),
}

impl Board {
    /// Calls the verb behind a tool.
    pub(super) async fn call(&self, mut verb: Box<dyn AnyCommand>) -> Result<Box<dyn AnyReply>, Failure> {
        if let Some(own) = self.own_task() {
            verb.default_to_own(own);
        }
        match self {
            Board::Client(client) => {
                if let Err(refusal) = verb.as_tool(Side::Daemon) {
                    if !self.offered().await?.work {
                        return Err(refusal);
                    }
                    verb.as_tool(Side::Caller)?;
                }
                client.call_any(&*verb).await
            }
            Board::Script(client) => {
                verb.as_tool(Side::Daemon)?;
                client.call_any(&*verb).await
            }
            Board::Ask(ask) => {
                verb.as_tool(Side::Daemon)?;
                ask.dispatch_any(verb).await
            }
        }
    }

    /// Returns the verbs and tools offered to the caller.
    pub(super) async fn offered(&self) -> Result<Offered, Failure> {
        let verb = Tools::default();
        match self {
            Board::Client(client) | Board::Script(client) => client.call(&verb).await,
            Board::Ask(ask) => ask.dispatch(verb).await,
        }
    }

    /// True if the caller is the worker of a run.
    pub(super) fn is_of_a_worker(&self) -> bool {
        self.own_task().is_some()
    }

    fn own_task(&self) -> Option<&TaskId> {
        match self {
            Board::Client(client) | Board::Script(client) => client.worker().map(|worker| &worker.task),
            Board::Ask(ask) => ask.own_task(),
        }
    }
}
