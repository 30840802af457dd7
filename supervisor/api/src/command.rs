//! Command line side of a verb: completes the request with facts that only the client's process knows, prints the
//! reply, and chooses the exit code.
//!
//! [`Verb`] is the side of the daemon, and [`Command`] the side of the terminal. The traits are separate so that the
//! API does not depend on the client.

use crate::Verb;
use crate::call::any::record;
use crate::call::{AnyReply, AnyVerb, Unfit};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::Screen;

/// Process that prepares an agent's tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolProcess {
    /// A process of the caller, with the caller's rights.
    Caller,
    Daemon,
}

/// A verb as a command: its arguments are the request.
pub trait Command: Verb {
    /// Completes the request with facts that only the caller's process knows: the contents of named files, and the task of
    /// its own run.
    fn localize(&mut self, _here: &Invocation) -> Result<(), Failure> {
        Ok(())
    }

    /// Prepares a request that came as a tool call: reads the files that it names, and sets a limit on the size of the
    /// reply if the request has none.
    fn as_tool(&mut self, _side: ToolProcess) -> Result<(), Failure> {
        Ok(())
    }

    /// Prints the reply for a person.
    fn show(reply: &Self::Reply, screen: &mut Screen);

    /// Returns warnings that accompany the reply. They go to standard error; in JSON the reply contains them.
    fn warnings(_reply: &Self::Reply) -> &[String] {
        &[]
    }

    /// Returns the exit code for a reply that reports a partial failure; 0 otherwise.
    fn verdict(_reply: &Self::Reply) -> u8 {
        0
    }
}

/// A command without its type.
pub trait AnyCommand: AnyVerb {
    /// [`Command::localize`].
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure>;
    /// [`Command::as_tool`].
    fn as_tool(&mut self, side: ToolProcess) -> Result<(), Failure>;
    /// Returns the functions for its replies.
    fn replies(&self) -> Replies;
}

impl<V: Command> AnyCommand for V {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        Command::localize(self, here)
    }

    fn as_tool(&mut self, side: ToolProcess) -> Result<(), Failure> {
        Command::as_tool(self, side)
    }

    fn replies(&self) -> Replies {
        Replies::of::<V>()
    }
}

/// Parses a request of a command.
pub fn request<V: Command>(json: &[u8]) -> Result<Box<dyn AnyCommand>, Unfit> {
    record::<V>(json).map(|verb| Box::new(verb) as Box<dyn AnyCommand>)
}

/// A reply that owns all that it holds.
pub type Reply = dyn AnyReply;

/// Functions for the replies of a command. A reply of another verb fails.
#[derive(Clone, Copy, Debug)]
pub struct Replies {
    /// [`Command::show`].
    pub show: fn(&Reply, &mut Screen) -> Result<(), Failure>,
    /// [`Command::warnings`].
    pub warnings: fn(&Reply) -> Result<&[String], Failure>,
    /// [`Command::verdict`].
    pub verdict: fn(&Reply) -> Result<u8, Failure>,
}

impl Replies {
    /// Returns the functions of a command.
    pub fn of<V: Command>() -> Self {
        Replies {
            show: |reply, screen| reply.as_typed().map(|reply| V::show(reply, screen)),
            warnings: |reply| reply.as_typed().map(V::warnings),
            verdict: |reply| reply.as_typed().map(V::verdict),
        }
    }
}
