//! Command of a process that has restricted itself: the last step between a plan and the program that works under it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::process::Command;

use crate::apply::ApplyError;
use crate::plan::Plan;
use crate::report::Report;

/// Command of a process under an applied plan.
pub struct Confined {
    /// Report of the restrictions, which the command inherits.
    pub report: Report,
    /// Command with its arguments and its whole environment. To stay confined without a further process, execute it by
    /// `std::os::unix::process::CommandExt::exec`, which looks the program up in the `PATH` of that environment and gives it
    /// default signal handling.
    pub command: Command,
}

/// Names the program alone: the environment may have secrets.
impl fmt::Debug for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Confined")
            .field("report", &self.report)
            .field("command", &self.command.get_program())
            .finish()
    }
}

impl Plan {
    /// Restricts the calling single-threaded process as [`Plan::apply`] does, and returns the command to execute in it. The
    /// command has the variables of `env` and the secrets of the policy, and no others; a secret replaces a variable with its
    /// name.
    ///
    /// # Errors
    /// As [`Plan::apply`].
    pub fn confine<V: AsRef<OsStr>>(
        mut self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        env: impl IntoIterator<Item = (String, V)>,
    ) -> Result<Confined, ApplyError> {
        let secrets: Vec<(String, OsString)> = self.take_secrets().into_iter().collect();
        let report = self.apply()?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(env).envs(secrets);
        Ok(Confined { report, command })
    }
}
