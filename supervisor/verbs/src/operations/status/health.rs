//! Health of the service: the exit code of `status`, and the few words of its reason.
//!
//! See decision 0119.

use kernel::Counted;
use serde::{Deserialize, Serialize};

use super::StatusReport;
use daemon::problems;

/// State of the service. The exit codes equal those of `systemctl status` where both have the same meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// The daemon runs, without a defect.
    #[default]
    Healthy,
    /// The daemon runs, and a defect keeps it from a part of its work.
    Degraded,
    /// No daemon answers.
    NotRunning,
}

impl Health {
    /// The exit code of `status`.
    pub(super) fn exit(self) -> u8 {
        match self {
            Health::Healthy => 0,
            Health::Degraded => 1,
            Health::NotRunning => 3,
        }
    }
}

/// State of the service, and its defects, each in a few words.
pub(super) fn assess(report: &StatusReport) -> (Health, Vec<String>) {
    let mut troubles = Vec::new();
    let mut add = |is_so: bool, text: &str| {
        if is_so {
            troubles.push(text.to_owned());
        }
    };
    if let Some(daemon) = &report.daemon {
        add(daemon.paused.is_some(), "nothing is started");
        add(daemon.stopping.is_some(), "it is stopping");
    }
    for board in report.board_troubles.keys() {
        add(true, &format!("nothing is written to the board {board}"));
    }
    let defects = Counted(report.defects.len() as u64, "file");
    add(!report.defects.is_empty(), &format!("{defects} of the configuration cannot be used"));
    for broken in &report.broken {
        add(true, &format!("{} does not work", broken.what));
    }
    for failed in &report.failed_schedules {
        add(true, &format!("the latest tick of the schedule {} failed", failed.schedule));
    }
    for stuck in &report.stuck_schedules {
        add(
            true,
            &format!("the schedule {} makes nothing: {} waits for a person", stuck.schedule, stuck.task),
        );
    }
    let channels = report.failing_channels.iter().filter(|mail| mail.is_in_trouble(report.now));
    let channels = channels.map(|mail| &mail.channel);
    troubles.extend(problems::of_messages(channels, report.paused_plugins.iter()));
    troubles.extend(problems::of_host(report.unheld_policies.keys(), report.unheard.keys()));
    troubles.extend(problems::of_runs(report.workers.iter().map(|worker| worker.run.phase)));
    let health = match (&report.daemon, troubles.is_empty()) {
        (None, _) => Health::NotRunning,
        (Some(_), true) => Health::Healthy,
        (Some(_), false) => Health::Degraded,
    };
    (health, troubles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_named_and_its_reason_stands_beside_it() {
        let report = serde_json::json!({
            "root": "/srv", "board": "default", "counts": {}, "now": 0, "workers": [], "waiting": [],
            "waiting_more": 0, "defects": [], "unheld_policies": {}, "broken": [],
            "daemon": {
                "pid": 1, "version": "1.2.3", "uptime_seconds": 1, "memory_bytes": null, "slots": 1,
                "paused": "the disk is full: a; b", "stopping": null, "wakeups": 1, "commits": 1
            },
        });
        let (health, troubles) = assess(&serde_json::from_value(report).unwrap());
        assert_eq!((health, troubles), (Health::Degraded, vec!["nothing is started".to_owned()]));
    }
}
