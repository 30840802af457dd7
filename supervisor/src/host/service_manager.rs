//! What the service manager is doing with a unit (`systemctl(1)`): the commands of a unit are not told whether it is stopped,
//! restarted, or has crashed.

use std::process::Command;

/// Which service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manager {
    /// The host's.
    System,
    User,
}

/// What is queued or under way for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// It is to be stopped, and stays so.
    Stop,
    /// It is to be stopped and started.
    Restart,
    /// Something else, such as a start.
    Other,
}

impl Manager {
    /// The option of systemctl.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Manager::System => "--system",
            Manager::User => "--user",
        }
    }

    /// The job of a unit; none where it has none, as after a crash. Blocking.
    ///
    /// # Errors
    /// Says why the manager cannot be asked.
    pub(crate) fn job(self, unit: &str) -> Result<Option<Job>, String> {
        let mut command = Command::new("systemctl");
        command.arg(self.option()).args(["list-jobs", "--no-legend", "--plain", "--full"]);
        let output = command.output().map_err(|e| format!("systemctl cannot be run: {e}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("systemctl list-jobs failed: {}", said.trim()));
        }
        Ok(job_of(unit, &String::from_utf8_lossy(&output.stdout)))
    }
}

/// Finds the job of a unit in a list: number, unit, type and state in each line.
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
