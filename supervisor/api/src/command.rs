//! Command line side of a verb: completes the request with facts that only the client's process knows, prints the
//! reply, and chooses the exit code.
//!
//! [`Verb`] is the side of the daemon, and [`Command`] the side of the terminal. The traits are separate so that the
//! API does not depend on the client.

use crate::Verb;
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
