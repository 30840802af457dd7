//! Creates swarms: small graphs of tasks, each as a whole or not at all.

use serde_json::json;

use super::Board;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::id::{Profile, TaskId};
use crate::model::limits;
use crate::model::swarm::{BLACKBOARD, NewSwarm, Swarm, SwarmWorker};
use crate::model::task::{NewTask, Origin};
use crate::model::verdict::Handoff;
use crate::rules::authority;

/// Largest number of workers of a swarm.
const WORKERS: usize = 100;
/// Longest part of the goal in a title, in characters.
const SHOWN: usize = 80;

impl Board<'_> {
    /// Creates a swarm as a whole: a root task, done at once, whose comments are the blackboard; then the workers, the
    /// verifier and the synthesizer. For a known idempotency key, returns the existing swarm.
    pub fn swarm(&mut self, new: &NewSwarm, actor: &Actor) -> Result<Swarm, Error> {
        authority::person(actor, "start a swarm")?;
        limits::filled("goal", &new.goal, "say what the swarm is to achieve")?;
        // The first entry of the blackboard has the goal, and is a comment.
        limits::bytes("goal", &new.goal, limits::SUMMARY)?;
        if new.workers.is_empty() || new.workers.len() > WORKERS {
            let count = new.workers.len();
            let why = format!("{count} of them: a swarm has 1 to {WORKERS}");
            return Err(Error::invalid("workers", why, "name each with `--worker PROFILE`"));
        }
        let root = self.create(
            NewTask {
                title: format!("Swarm: {}", line(&new.goal)),
                body: Some(format!(
                    "The blackboard of a swarm: done from the start, and open to the comments of all its tasks.\n\n\
                     Goal:\n{}",
                    new.goal
                )),
                idempotency_key: new.idempotency_key.clone(),
                // The root is done at once, which is no news for a subscriber.
                origin: Origin::default(),
                ..new.common()
            },
            actor,
        )?;
        if root.existing {
            return self.known_swarm(&root.task.id);
        }
        let root = root.task.id;
        let handoff = Handoff {
            summary: Some(format!("Goal of the swarm: {}", new.goal)),
            metadata: Some(json!({ "kind": "swarm", "worker_count": new.workers.len() })),
            ..Handoff::default()
        };
        // The root is done at once, so that the workers wait for nothing.
        self.complete(&root, handoff, None, actor)?;
        let protocol = protocol(&root, &new.goal);
        let mut worker_ids = Vec::with_capacity(new.workers.len());
        for worker in &new.workers {
            worker_ids.push(self.member(worker.task(new, &root, &protocol), actor)?);
        }
        let verifier = NewTask {
            parents: worker_ids.clone(),
            body: Some(format!(
                "Check what each worker has handed over, and what is on the blackboard. Complete with the metadata \
                 {{\"gate\": \"pass\"}} when it meets the goal; otherwise block, and say what is missing.{protocol}"
            )),
            ..new.task(&new.verifier, "Verify what the swarm has done")
        };
        let verifier_id = self.member(verifier, actor)?;
        let synthesizer = NewTask {
            parents: vec![verifier_id.clone()],
            body: Some(format!(
                "Combine what the workers handed over and the verifier accepted into one result.{protocol}"
            )),
            ..new.task(&new.synthesizer, "Synthesize what the swarm has done")
        };
        let synthesizer_id = self.member(synthesizer, actor)?;
        // The topology is the first comment of the root, by which a repeat with the same key finds the swarm.
        let swarm = Swarm { root_id: root, worker_ids, verifier_id, synthesizer_id };
        let mut topology = json!(swarm);
        topology["goal"] = new.goal.as_str().into();
        let entry = json!({ "key": "topology", "value": topology });
        self.comment(&swarm.root_id, &format!("{BLACKBOARD}{entry}"), new.created_by.as_deref(), actor)?;
        Ok(swarm)
    }

    fn member(&mut self, task: NewTask, actor: &Actor) -> Result<TaskId, Error> {
        Ok(self.create(task, actor)?.task.id)
    }

    /// Reads the swarm of an existing root task. The root's first comment was written in the same transaction.
    fn known_swarm(&self, root: &TaskId) -> Result<Swarm, Error> {
        let first = self.comments(root)?.into_iter().next();
        first
            .and_then(|comment| serde_json::from_str(comment.body.strip_prefix(BLACKBOARD)?).ok())
            .and_then(|entry: serde_json::Value| serde_json::from_value(entry.get("value")?.clone()).ok())
            .ok_or_else(|| {
                Error::conflict(
                    format!("the idempotency key names {root}, which is not a swarm"),
                    "use another key",
                )
            })
    }
}

impl NewSwarm {
    /// Returns the fields that all tasks of the swarm share.
    fn common(&self) -> NewTask {
        NewTask {
            tenant: self.tenant.clone(),
            priority: self.priority,
            created_by: self.created_by.clone(),
            origin: Origin { channel: self.channel.clone(), ..Origin::default() },
            ..NewTask::default()
        }
    }

    fn task(&self, profile: &Profile, title: &str) -> NewTask {
        NewTask { title: title.to_owned(), assignee: Some(profile.clone()), ..self.common() }
    }
}

impl SwarmWorker {
    fn task(&self, swarm: &NewSwarm, root: &TaskId, protocol: &str) -> NewTask {
        let part = self.title.as_deref().unwrap_or(&swarm.goal);
        NewTask {
            parents: vec![root.clone()],
            body: Some(format!("{part}{protocol}")),
            skills: self.skills.clone(),
            ..swarm.task(&self.profile, &line(part))
        }
    }
}

/// Returns the part of a member's text that describes the swarm.
fn protocol(root: &TaskId, goal: &str) -> String {
    format!(
        "\n\n## The swarm\n\
         - Goal: {goal}\n\
         - Blackboard: the comments on {root} that begin with `{BLACKBOARD}` and go on with \
         {{\"key\": …, \"value\": …}}; a later entry of a key replaces an earlier one.\n\
         - Hand over facts as metadata when you complete.\n"
    )
}

/// Returns the first line of a text, cut for a title.
fn line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut shown: String = line.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().count() > SHOWN {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, alice};
    use crate::{Filter, Status};

    fn new(key: Option<&str>) -> NewSwarm {
        let worker = |name: &str, title: Option<&str>| SwarmWorker {
            profile: name.parse().unwrap(),
            title: title.map(str::to_owned),
            skills: Vec::new(),
        };
        NewSwarm {
            goal: "compare\nthe two".to_owned(),
            workers: vec![worker("ann", None), worker("ann", Some("the second"))],
            verifier: "vera".parse().unwrap(),
            synthesizer: "sid".parse().unwrap(),
            tenant: Some("acme".parse().unwrap()),
            priority: 3,
            created_by: None,
            idempotency_key: key.map(str::to_owned),
            channel: None,
        }
    }

    fn make(bench: &Bench, new: NewSwarm) -> Result<Swarm, Error> {
        bench.call(move |board| board.swarm(&new, &alice()))
    }

    #[test]
    fn workers_may_start_at_once_and_the_others_wait_for_each_other() {
        let bench = Bench::new();

        let swarm = make(&bench, new(None)).unwrap();

        bench
            .readers
            .with(|view| {
                let task = |id| view.expect_task(id).unwrap();
                assert_eq!(task(&swarm.root_id).status, Status::Done);
                assert_eq!(task(&swarm.root_id).title, "Swarm: compare");
                let titles: Vec<String> = swarm.worker_ids.iter().map(|id| task(id).title).collect();
                assert_eq!(titles, ["compare", "the second"]);
                for worker in &swarm.worker_ids {
                    assert_eq!(task(worker).status, Status::Ready);
                    assert_eq!((task(worker).priority, task(worker).tenant), (3, new(None).tenant));
                }
                let mut parents = view.parents(&swarm.verifier_id)?;
                parents.sort();
                let mut workers = swarm.worker_ids.clone();
                workers.sort();
                assert_eq!(parents, workers);
                assert_eq!(view.parents(&swarm.synthesizer_id)?, std::slice::from_ref(&swarm.verifier_id));
                let entry = view.comments(&swarm.root_id)?.remove(0).body;
                let entry: serde_json::Value =
                    serde_json::from_str(entry.strip_prefix("[swarm:blackboard] ").unwrap()).unwrap();
                assert_eq!(entry["key"], "topology");
                assert_eq!(entry["value"]["verifier_id"], json!(swarm.verifier_id));
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn the_same_key_names_the_same_swarm() {
        let bench = Bench::new();
        let first = make(&bench, new(Some("k"))).unwrap();

        let again = make(&bench, new(Some("k"))).unwrap();

        assert_eq!(again, first);
        assert_eq!(bench.readers.with(|view| view.tasks(&Filter::default())).unwrap().tasks.len(), 5);
    }

    #[test]
    fn a_key_of_a_task_that_is_no_swarm_is_refused() {
        let bench = Bench::new();
        bench.create(NewTask {
            title: "x".to_owned(),
            idempotency_key: Some("k".to_owned()),
            tenant: new(None).tenant,
            ..NewTask::default()
        });

        let refused = make(&bench, new(Some("k"))).unwrap_err();

        assert!(refused.to_string().contains("not a swarm"), "{refused}");
    }

    #[test]
    fn a_swarm_that_cannot_be_made_whole_is_not_made_at_all() {
        let bench = Bench::new();
        let mut broken = new(None);
        // The root and the first worker are created before this worker is refused.
        broken.workers[1].skills = vec!["s".repeat(limits::WORD + 1)];

        make(&bench, broken).unwrap_err();

        assert!(bench.readers.with(|view| view.tasks(&Filter::default())).unwrap().tasks.is_empty());
    }
}
