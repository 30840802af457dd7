//! Reports why tasks wait while a command waits for them: one sentence for each task and reason.

use std::collections::BTreeMap;

use kernel::{TaskId, Waiting, WaitingCode};

use crate::client::Client;
use base::cli_context;
use base::terminal::{complain, printable};
use verbs::ShownTask;

/// Limit on the tasks reported. `list --why` shows all.
const MOST: usize = 20;

/// Sentences printed so far.
#[derive(Debug, Default)]
pub(super) struct ReportedReasons {
    /// The last reason of each task.
    reported: BTreeMap<TaskId, WaitingCode>,
    has_warned: bool,
}

impl ReportedReasons {
    /// Reports why a task is not running, unless that was already reported.
    pub(super) fn tell(&mut self, shown: &ShownTask) {
        let Some(why) = &shown.why else { return };
        // These reasons pass in a moment, and a missing daemon is one warning for all tasks.
        let is_brief = matches!(
            why.code,
            WaitingCode::Starting | WaitingCode::Ending | WaitingCode::Turn | WaitingCode::NoDaemon
        );
        let task = &shown.task.id;
        if is_brief || (self.reported.len() == MOST && !self.reported.contains_key(task)) {
            return;
        }
        // Only the code is compared, because the text may contain a time that changes.
        if self.reported.insert(task.clone(), why.code) != Some(why.code) {
            complain(&printable(&sentence(task, shown.task.status, why)));
        }
    }

    /// Warns once if no process runs tasks. The owner of the root does, even if it is `dispatch`.
    pub(super) async fn warn_without_daemon(&mut self, client: &Client) {
        if !self.has_warned && !client.is_served().await {
            self.has_warned = true;
            let root = client.root().dir().display();
            let text = format!("warning: no daemon serves {root}, so nothing runs there: supervisor daemon");
            complain(&cli_context::repeated(&text));
        }
    }
}

fn sentence(task: &TaskId, status: kernel::Status, why: &Waiting) -> String {
    format!("{task} is {status}: {}", upkeep::diagnosis::why::line(why))
}

#[cfg(test)]
mod tests {
    use kernel::Status;

    use super::*;

    #[test]
    fn a_reason_stands_behind_the_status_whatever_it_begins_with() {
        let task = "t_0123abcd".parse().unwrap();
        let of = |status, code, text| sentence(&task, status, &Waiting::new(code, text));
        assert_eq!(
            of(Status::Ready, WaitingCode::Slot, "waits for a slot: 1 of 1 is taken"),
            "t_0123abcd is ready: waits for a slot: 1 of 1 is taken"
        );
        assert_eq!(
            of(Status::Scheduled, WaitingCode::Time, "starts in 57 s"),
            "t_0123abcd is scheduled: starts in 57 s"
        );
    }
}
