//! Result of a pass: the tasks still ready at its end, each with the reason.

use std::collections::BTreeMap;

use kernel::{Filter, Status, TaskId, Waiting};

use super::admission::{ClaimInputs, Claimant, StartClaim};
use super::dispatcher::Dispatcher;
use super::mode::DaemonMode;
use crate::run::environment::RosterAndConfig;
use crate::run::key::TaskKey;
use base::failure::Failure;
use service::Service;

/// Limit on the tasks of one board for which a pass gives reasons.
const MOST: u32 = 10_000;

/// Reasons why tasks were not started, as known to the pass that has ended.
pub(crate) type LeftWaiting = BTreeMap<TaskKey, Waiting>;

/// Returns for each ready task the reason why the pass does not start it. Only the pass knows of the failures, and they
/// are lost with it.
///
/// A daemon that runs until it is stopped answers such questions while it lives, and returns nothing here.
pub(crate) fn left_waiting(service: &Service, dispatcher: &Dispatcher, mode: DaemonMode) -> LeftWaiting {
    if mode == DaemonMode::Forever {
        return LeftWaiting::new();
    }
    let (roster, config) = (service.roster(), service.config());
    let names = service.board_names().unwrap_or_default();
    let of_board = |name: kernel::BoardName| -> Result<Vec<(TaskKey, Waiting)>, Failure> {
        let ready = Filter { statuses: vec![Status::Ready], limit: MOST, ..Filter::default() };
        let tasks = service.board(&name)?.readers().with(|view| view.tasks(&ready))?.tasks;
        let claims = tasks.into_iter().map(|task| {
            let key = TaskKey { board: name.clone(), task: task.id.clone() };
            let claimant = Claimant { tenant: task.tenant.clone(), profile: task.assignee.clone() };
            StartClaim::new(
                key,
                claimant,
                ClaimInputs::by(&task),
                RosterAndConfig { roster: &roster, config: &config },
            )
        });
        let reasons: BTreeMap<TaskId, Waiting> = dispatcher.why(claims.collect());
        Ok(reasons.into_iter().map(|(task, why)| (TaskKey { board: name.clone(), task }, why)).collect())
    };
    // An unreadable board was reported before.
    names.into_iter().filter_map(|name| of_board(name).ok()).flatten().collect()
}
