//! Asks the service manager for the pending job of a unit (systemctl(1)). The commands of a unit cannot see by themselves
//! if the unit is stopped, is restarted or has crashed.
//!
//! See decision 0123.

use std::process::Command;

/// Instance of systemd that manages a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// Manager of the host.
    System,
    /// Manager of the user of this process.
    User,
}

/// Job that is queued or in progress for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Stop, without a start afterwards.
    Stop,
    /// Stop, followed by a start.
    Restart,
    /// Another job, such as a start.
    Other,
}

impl Manager {
    /// Returns the option of systemctl.
    pub fn option(self) -> &'static str {
        match self {
            Manager::System => "--system",
            Manager::User => "--user",
        }
    }

    /// Returns the job of a unit; none if it has no job, as after a crash. Blocks.
    ///
    /// # Errors
    /// Reason why the manager cannot be asked.
    pub fn job(self, unit: &str) -> Result<Option<Job>, String> {
        let mut command = Command::new("systemctl");
        command.arg(self.option()).args(["list-jobs", "--no-legend", "--plain", "--full"]);
        let output = command.output().map_err(|e| format!("systemctl cannot be run: {e}"))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(format!("systemctl list-jobs failed: {}", stderr.trim()));
        }
        Ok(job_of(unit, &String::from_utf8_lossy(&output.stdout)))
    }
}

/// Finds the job of a unit in a list with number, unit, type and state on each line.
fn job_of(unit: &str, list: &str) -> Option<Job> {
    let mut jobs = list.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()? == unit).then(|| words.next())?
    });
    jobs.next().map(|kind| match kind {
        "stop" => Job::Stop,
        "restart" | "try-restart" => Job::Restart,
        _ => Job::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_of_a_unit_is_found_among_those_of_others() {
        let list = "  7 other.service       start   waiting\n 12 supervisor.service stop    running\n";
        assert_eq!(job_of("supervisor.service", list), Some(Job::Stop));
        assert_eq!(job_of("other.service", list), Some(Job::Other));
        assert_eq!(job_of("visor.service", list), None);
        assert_eq!(job_of("supervisor.service", ""), None);
        assert_eq!(job_of("a.service", "1 a.service restart running"), Some(Job::Restart));
    }
}
