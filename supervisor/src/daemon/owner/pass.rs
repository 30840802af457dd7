//! What a pass leaves: the tasks that are still ready when it ends, and why each was not started.

use std::collections::BTreeMap;

use kernel::{Filter, Status, TaskId, Waiting};

use super::admission::{Asked, Claim};
use super::dispatcher::Dispatcher;
use super::extent::Extent;
use crate::daemon::run::context::Context;
use crate::daemon::run::key::TaskKey;
use crate::failure::Failure;

/// The most tasks of a board for which a pass gives reasons.
const MOST: u32 = 10_000;

/// Why tasks were not started, as the pass knew it that has ended.
pub(crate) type LeftWaiting = BTreeMap<TaskKey, Waiting>;

/// Says of each ready task why the pass does not start it: what is broken is known to the pass alone, and goes with it.
///
/// A daemon that goes on until it is stopped is asked while it lives.
pub(in crate::daemon) fn left_waiting(
    context: &Context,
    dispatcher: &Dispatcher,
    extent: Extent,
) -> LeftWaiting {
    if extent == Extent::Forever {
        return LeftWaiting::new();
    }
    let service = &context.service;
    let (roster, config) = (service.roster(), service.config());
    let names = service.board_names().unwrap_or_default();
    let of_board = |name: kernel::BoardName| -> Result<Vec<(TaskKey, Waiting)>, Failure> {
        let ready = Filter { statuses: vec![Status::Ready], limit: MOST, ..Filter::default() };
        let tasks = service.board(&name)?.readers().with(|view| view.tasks(&ready))?.tasks;
        let claims = tasks.into_iter().map(|task| {
            let key = TaskKey { board: name.clone(), task: task.id.clone() };
            let who = (task.tenant.clone(), task.assignee.clone());
            Claim::new(key, who, Asked::by(&task), (&roster, &config))
        });
        let told: BTreeMap<TaskId, Waiting> = dispatcher.why(claims.collect());
        Ok(told.into_iter().map(|(task, why)| (TaskKey { board: name.clone(), task }, why)).collect())
    };
    // A board that cannot be read has said so before.
    names.into_iter().filter_map(|name| of_board(name).ok()).flatten().collect()
}
