//! `assign` at the command line: for one task, or for all that a filter selects.

use kernel::Status;

use super::matching::{Selection, selection};
use crate::client::Client;
use crate::output::Output;
use api::Verb as _;
use api::command::Command as _;
use base::failure::Failure;
use verbs::{Assign, Bulk, Matching, TaskResult};

/// The default statuses of the filter: tasks whose next run may have another assignee.
const OF: [Status; 6] =
    [Status::Triage, Status::Todo, Status::Scheduled, Status::Ready, Status::Review, Status::Blocked];

pub(super) async fn run(client: &Client, mut verb: Assign, output: Output) -> Result<u8, Failure> {
    if let Some(to) = verb.to.take() {
        verb.profile = Some(to);
    }
    let ids = match selection(client, &verb.matching, Assign::NAME, &OF, output).await? {
        Selection::Ids => return super::call(client, verb, output).await,
        Selection::Nothing => return Ok(0),
        Selection::Tasks(ids) => ids,
    };
    let (mut all, mut warnings) = (Bulk { results: Vec::new() }, Vec::new());
    for id in ids {
        let mut one = Assign { task_id: Some(id.clone()), matching: Matching::default(), ..verb.clone() };
        one.localize(client.here())?;
        let done = client.call(&one).await.map(|assigned| {
            warnings.extend(assigned.warnings);
            assigned.task.status
        });
        all.results.push(TaskResult::from_result(id, done));
    }
    // Obstacles of the assignee are the same for all tasks.
    warnings.sort();
    warnings.dedup();
    output.warn(&warnings);
    if output.json() {
        output.value(&all)?;
    } else {
        let mut screen = output.screen();
        all.show("Assigned", &mut screen);
        output.text(&screen.into_text())?;
    }
    Ok(all.verdict())
}
