//! Verifies that the tasks exist which a worker claims to have created, so that no handoff lists invented tasks.

use super::Board;
use crate::model::actor::{Actor, ActorKind};
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::limits;
use crate::model::verdict::Handoff;

/// Key of a handoff's metadata that lists the tasks made by the worker.
const KEY: &str = "created_cards";

impl Board<'_> {
    /// Refuses a worker's handoff that lists tasks which its task has not made.
    pub(super) fn require_made(&self, handoff: &Handoff, actor: &Actor) -> Result<(), Error> {
        let Some(own) = actor.run.as_ref().filter(|_| actor.kind == ActorKind::Worker) else { return Ok(()) };
        let Some(named) = handoff.metadata.as_ref().and_then(|metadata| metadata.get(KEY)) else {
            return Ok(());
        };
        let Some(named) = named.as_array().filter(|named| named.len() <= limits::CARDS) else {
            let most = limits::CARDS;
            return Err(refused(
                format!("it is not a list of at most {most} ids of tasks"),
                own.task.as_str(),
            ));
        };
        for name in named {
            let id: Option<TaskId> = name.as_str().and_then(|name| name.parse().ok());
            let task = id.as_ref().map(|id| self.task(id)).transpose()?.flatten();
            // A task of another tenant does not exist for a worker.
            let Some(task) = task.filter(|task| task.tenant == actor.tenant) else {
                let name: String = name.to_string().chars().take(80).collect();
                return Err(refused(format!("there is no task {name}"), own.task.as_str()));
            };
            if task.creator_task.as_ref() != Some(&own.task) {
                return Err(refused(format!("{} was not made by {}", task.id, own.task), own.task.as_str()));
            }
        }
        Ok(())
    }
}

fn refused(reason: String, own: &str) -> Error {
    let hint = format!(
        "nothing was recorded and the run goes on: create the tasks with `supervisor create`, or leave them out and complete {own} again"
    );
    Error::invalid(KEY, reason, hint)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{Bench, alice, titled};
    use crate::{Actor, Handoff};

    #[test]
    fn a_worker_hands_over_only_tasks_that_it_has_made_and_goes_on_after_a_refusal() {
        let bench = Bench::new();
        let (id, other) = (bench.ready(), bench.ready());
        let run = bench.start(&id);
        let bob = Actor::worker("bob", run, id.clone(), None);
        let maker = bob.clone();
        let made = bench.call(move |board| board.create(titled("child"), &maker)).unwrap().task.id;
        let complete = |cards: serde_json::Value, actor: &Actor| {
            let (id, actor) = (id.clone(), actor.clone());
            let metadata = Some(json!({ "created_cards": cards }));
            let handoff = Handoff { metadata, ..Handoff::default() };
            bench.call(move |board| board.complete(&id, handoff, None, &actor))
        };
        for (cards, told) in [
            (json!(["t_00000000"]), "there is no task"),
            (json!([made, "nonsense"]), "there is no task"),
            (json!([other]), "was not made by"),
            (json!("all of them"), "not a list"),
        ] {
            let refused = complete(cards, &bob).unwrap_err();
            assert!(refused.to_string().contains(told), "{refused}");
            assert!(refused.hint().unwrap().contains("the run goes on"), "{refused:?}");
            assert_eq!(bench.readers.with(|view| view.expect_run(run)).unwrap().verdict, None);
        }
        complete(json!([made]), &bob).unwrap();
        bench.check();
        let plain = bench.ready();
        let metadata = Some(json!({ "created_cards": ["t_00000000"] }));
        let handoff = Handoff { metadata, ..Handoff::default() };
        bench.call(move |board| board.complete(&plain, handoff, None, &alice())).unwrap();
    }
}
