//! What the command line does with a verb beside sending it: fill in what only this process knows, print the reply, end.

use crate::api::Verb;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::terminal::Screen;

/// Where a tool call of an agent is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// In a process of the caller, with its rights.
    Caller,
    Daemon,
}

/// A verb on the command line: its request is the arguments.
pub(crate) trait Command: Verb {
    /// Fills in what only the caller knows: files to read, the task of the run it stands in.
    fn localize(&mut self, _here: &Invocation) -> Result<(), Failure> {
        Ok(())
    }

    /// Prepares a request that came as a tool call: reads the files that it names, and chooses how much an agent gets to
    /// read where it does not say.
    fn as_tool(&mut self, _side: Side) -> Result<(), Failure> {
        Ok(())
    }

    /// Shows the reply to a person.
    fn show(reply: &Self::Reply, screen: &mut Screen);

    /// What the caller should know beside the reply, which carries it in JSON; it is written to standard error.
    fn warnings(_reply: &Self::Reply) -> &[String] {
        &[]
    }

    /// The exit code of a reply that reports a partial failure; 0 otherwise.
    fn verdict(_reply: &Self::Reply) -> u8 {
        0
    }
}
