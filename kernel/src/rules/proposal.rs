//! Proposals: parses the result of a proposal's run, or refuses it with a reason.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::proposed::{Proposed, Review};
use super::proposed_profiles::with_proposed;
use super::template::in_order;
use crate::model::error::Error;
use crate::model::id::{Profile, TaskId};
use crate::model::limits;
use crate::model::outcome::ApprovalState;
use crate::model::proposal::{Proposal, ProposalKind, ProposedProfile, ReviewAnswer};
use crate::model::schedule::TemplateTask;
use crate::model::status::Status;
use crate::model::task::{NewTask, Task};
use crate::model::verdict::Handoff;

/// Largest number of tasks in a proposal.
const TASKS: usize = 50;
/// Name of the refused field in an error.
const FIELD: &str = "metadata";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Specification {
    title: Option<String>,
    body: String,
    assignee: Option<Profile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Division {
    tasks: Vec<ProposedTask>,
    title: Option<String>,
    body: Option<String>,
    assignee: Option<Profile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Planned {
    tasks: Vec<ProposedTask>,
    title: Option<String>,
    body: Option<String>,
    assignee: Option<Profile>,
    #[serde(default)]
    profiles: Vec<ProposedProfile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProposedTask {
    name: String,
    title: String,
    body: String,
    assignee: Option<Profile>,
    #[serde(default)]
    after: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reviewed {
    answer: ReviewAnswer,
    reason: String,
    #[serde(default)]
    drop: Vec<TaskId>,
    #[serde(default)]
    tasks: Vec<ProposedTask>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Routing {
    assignee: Profile,
}

impl ProposalKind {
    /// Returns an example of the JSON that a run of this kind returns.
    pub(crate) fn shape(self) -> &'static str {
        match self {
            ProposalKind::Specify => {
                r#"{"title": "one line", "body": "what to do, what is given, how to tell that it is done", "assignee": "a profile"}"#
            }
            ProposalKind::Decompose => {
                r#"{"tasks": [{"name": "a", "title": "one line", "body": "what to do", "assignee": "a profile", "after": []}], "body": "what is left to do when they are done", "assignee": "a profile"}"#
            }
            ProposalKind::Plan => {
                r#"{"tasks": [{"name": "a", "title": "one line", "body": "what to do", "assignee": "a profile", "after": []}], "body": "what is left to do when they are done", "assignee": "a profile", "profiles": [{"name": "a-new-one", "description": "what it is for, in one line", "prompt": "what its workers read before their tasks"}]}"#
            }
            ProposalKind::Route => r#"{"assignee": "a profile"}"#,
            ProposalKind::Progress => {
                r#"{"answer": "continue, replan or stop", "reason": "why", "drop": ["t_0123abcd"], "tasks": [{"name": "a", "title": "one line", "body": "what to do", "assignee": "a profile", "after": []}]}"#
            }
        }
    }

    /// Returns the instructions for a run of this kind.
    pub(crate) fn order(self) -> &'static str {
        match self {
            ProposalKind::Specify => {
                "Specify the task below so that a worker who knows nothing else can do it. `title` and `assignee` may be left out."
            }
            ProposalKind::Decompose => {
                "Divide the task below into tasks. `after` names those that have to be done before. The task itself waits for all of them; \
                 `title`, `body` and `assignee` are what it says then, and may be left out. Without any task (`\"tasks\": []`) it needs a `body`."
            }
            ProposalKind::Plan => {
                "Plan the mission below: the tasks that reach its goal. `after` names those that have to be done before. The mission's first task \
                 waits for all of them; `title`, `body` and `assignee` are what it says then, and may be left out. Name the profiles that there are \
                 wherever one fits. Only where none does, `profiles` asks for a new one: its tasks wait until a person has made it."
            }
            ProposalKind::Route => "Choose the profile for the task below.",
            ProposalKind::Progress => {
                "Review the mission below by its facts: does it come to its goal? `continue` changes nothing. `stop` pauses it and asks a person. \
                 `replan` drops tasks that have not started (`drop`) and makes others (`tasks`), whose `after` may also name tasks of the mission by \
                 their ids; `drop` and `tasks` go with no other answer."
            }
        }
    }

    /// Returns the verb in the title of the task.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            ProposalKind::Specify => "Specify",
            ProposalKind::Decompose => "Decompose",
            ProposalKind::Plan => "Plan",
            ProposalKind::Route => "Route",
            ProposalKind::Progress => "Review the progress of",
        }
    }

    /// Returns true if a proposal of this kind can be applied to a task in this status.
    pub(crate) fn applies_to(self, subject: &Task) -> bool {
        let is_queued = matches!(subject.status, Status::Todo | Status::Scheduled | Status::Ready);
        match self {
            ProposalKind::Specify | ProposalKind::Decompose => subject.status == Status::Triage,
            ProposalKind::Plan => is_queued || subject.status == Status::Triage,
            ProposalKind::Route => is_queued && subject.assignee.is_none(),
            ProposalKind::Progress => !matches!(subject.status, Status::Done | Status::Archived),
        }
    }
}

/// Returns the refusal to change the work of a task that was approved.
pub(crate) fn approved_as_it_is(id: &TaskId) -> Error {
    Error::conflict(format!("{id} was approved as it is"), "create a new task that asks for another approval")
}

/// Refuses to ask for a proposal that could not be applied to its task.
pub(crate) fn may_ask(kind: ProposalKind, subject: &Task) -> Result<(), Error> {
    let id = &subject.id;
    if subject.approval.state == Some(ApprovalState::Granted)
        && !matches!(kind, ProposalKind::Route | ProposalKind::Progress)
    {
        return Err(approved_as_it_is(id));
    }
    // The parts would do without approval what the task needs an approval for.
    if subject.approval.state.is_some() && matches!(kind, ProposalKind::Decompose | ProposalKind::Plan) {
        return Err(Error::conflict(
            format!("{id} asks for an approval, which applies to it alone"),
            "create the tasks yourself, each with the approval that it needs",
        ));
    }
    if kind.applies_to(subject) {
        return Ok(());
    }
    let status = subject.status;
    let (why, hint) = match kind {
        ProposalKind::Specify | ProposalKind::Decompose => (
            format!("{id} is {status}, not in triage"),
            "create an idea that describes it: `supervisor create '…' --triage`".to_owned(),
        ),
        ProposalKind::Plan => (
            format!("{id} is {status}: its tasks can be planned before it starts"),
            "create another mission".to_owned(),
        ),
        ProposalKind::Progress => {
            (format!("the mission of {id} is over: {id} is {status}"), "create another mission".to_owned())
        }
        ProposalKind::Route => (
            format!(
                "{id} is {status} and {}",
                subject.assignee.as_ref().map_or("unassigned", Profile::as_str)
            ),
            "assign it yourself".to_owned(),
        ),
    };
    Err(Error::conflict(why, hint))
}

/// Parses the result of a run, or refuses it with a reason.
pub(crate) fn read(proposal: &Proposal, handoff: &Handoff) -> Result<Proposed, Error> {
    let kind = proposal.kind;
    let refuse = |why: String| refused(kind, why);
    let value = returned(handoff).ok_or_else(|| refuse("no JSON object was returned".to_owned()))?;
    let proposed = match kind {
        ProposalKind::Specify => {
            let Specification { title, body, assignee } = parse(kind, value)?;
            Proposed { title, body: Some(body), assignee, ..Proposed::default() }
        }
        ProposalKind::Decompose => {
            let Division { tasks, title, body, assignee } = parse(kind, value)?;
            Proposed { title, body, assignee, tasks: parts(kind, tasks)?, ..Proposed::default() }
        }
        ProposalKind::Plan => {
            let Planned { tasks, title, body, assignee, profiles } = parse(kind, value)?;
            Proposed { title, body, assignee, tasks: parts(kind, tasks)?, profiles, review: None }
        }
        ProposalKind::Progress => reviewed(parse(kind, value)?)?,
        ProposalKind::Route => {
            let Routing { assignee } = parse(kind, value)?;
            Proposed { assignee: Some(assignee), ..Proposed::default() }
        }
    };
    let is_graph = matches!(kind, ProposalKind::Decompose | ProposalKind::Plan);
    if proposed.tasks.is_empty() && proposed.body.is_none() && is_graph {
        return Err(refuse("there is neither a task nor a body".to_owned()));
    }
    let staff = with_proposed(proposal, &proposed).map_err(|error| refuse(error.to_string()))?;
    within(&proposed, &staff).map_err(|error| refuse(error.to_string()))?;
    Ok(proposed)
}

/// Returns the refusal of a run's result.
pub(crate) fn refused(kind: ProposalKind, why: impl std::fmt::Display) -> Error {
    let hint = format!(
        "nothing was recorded and the run goes on: complete it again with this shape of metadata: {}",
        kind.shape()
    );
    Error::invalid(FIELD, why.to_string(), hint)
}

fn parse<T: DeserializeOwned>(kind: ProposalKind, value: Value) -> Result<T, Error> {
    serde_json::from_value(value)
        .map_err(|error| refused(kind, format!("this is not a valid {kind}: {error}")))
}

/// Parses a review. Only `replan` may drop and make tasks.
fn reviewed(result: Reviewed) -> Result<Proposed, Error> {
    let kind = ProposalKind::Progress;
    let Reviewed { answer, reason, drop, tasks } = result;
    let checked = limits::filled("reason", &reason, "say why")
        .and_then(|()| limits::bytes("reason", &reason, limits::WORD));
    checked.map_err(|error| refused(kind, error))?;
    let changes = drop.len() + tasks.len();
    if drop.len() > TASKS {
        return Err(refused(kind, format!("{} tasks to drop, the limit is {TASKS}", drop.len())));
    }
    match answer {
        ReviewAnswer::Replan if changes == 0 => {
            return Err(refused(
                kind,
                "another plan has to drop tasks or create some; this one does neither",
            ));
        }
        ReviewAnswer::Continue | ReviewAnswer::Stop if changes > 0 => {
            return Err(refused(kind, format!("`{answer}` takes neither `drop` nor `tasks`")));
        }
        ReviewAnswer::Replan | ReviewAnswer::Continue | ReviewAnswer::Stop => {}
    }
    let review = Some(Review { answer, reason, drop });
    Ok(Proposed { tasks: parts(kind, tasks)?, review, ..Proposed::default() })
}

fn parts(kind: ProposalKind, parts: Vec<ProposedTask>) -> Result<Vec<TemplateTask>, Error> {
    if parts.is_empty() {
        return Ok(Vec::new());
    }
    if parts.len() > TASKS {
        return Err(refused(kind, format!("{} tasks, the limit is {TASKS}", parts.len())));
    }
    let tasks: Vec<TemplateTask> = parts
        .into_iter()
        .map(|ProposedTask { name, title, body, assignee, after }| {
            let after: BTreeSet<String> = after.into_iter().collect();
            // A new plan may name existing tasks of the mission as parents, by their ids.
            let known = |name: &String| kind == ProposalKind::Progress && TaskId::in_full(name).is_ok();
            let (known, after): (Vec<String>, Vec<String>) = after.into_iter().partition(known);
            let parents = known.iter().filter_map(|id| id.parse().ok()).collect();
            let task = NewTask { title, body: Some(body), assignee, parents, ..NewTask::default() };
            TemplateTask { name, after, task }
        })
        .collect();
    let ordered = in_order(&tasks).map_err(|error| refused(kind, error))?;
    Ok(ordered.into_iter().cloned().collect())
}

/// Refuses texts that no task may have, and profiles that were not offered.
fn within(proposed: &Proposed, staff: &BTreeMap<Profile, String>) -> Result<(), Error> {
    let own = (proposed.title.as_deref(), proposed.body.as_deref(), proposed.assignee.as_ref());
    let of_task = |part: &TemplateTask| -> Result<(), Error> {
        text(Some(&part.task.title), part.task.body.as_deref(), part.task.assignee.as_ref(), staff)
    };
    text(own.0, own.1, own.2, staff)?;
    proposed.tasks.iter().try_for_each(of_task)
}

fn text(
    title: Option<&str>,
    body: Option<&str>,
    assignee: Option<&Profile>,
    staff: &BTreeMap<Profile, String>,
) -> Result<(), Error> {
    title.map_or(Ok(()), limits::title)?;
    if let Some(body) = body {
        limits::filled("body", body, "say what to do")?;
        // The context of a worker shows no more than this.
        limits::bytes("body", body, limits::SUMMARY)?;
    }
    let Some(stranger) = assignee.filter(|name| !staff.contains_key(*name)) else { return Ok(()) };
    let known: Vec<&str> = staff.keys().map(Profile::as_str).collect();
    let why = format!("nobody is called {stranger}; there are {}", known.join(", "));
    Err(Error::invalid("assignee", why, "name one of them"))
}

/// Returns the JSON object of a handoff: its metadata, else an object inside its texts.
fn returned(handoff: &Handoff) -> Option<Value> {
    let words = [handoff.result.as_deref(), handoff.summary.as_deref()];
    handoff.metadata.clone().or_else(|| words.into_iter().flatten().find_map(object))
}

/// Returns the JSON object in a text, from the first brace to the last.
fn object(text: &str) -> Option<Value> {
    let text = text.get(text.find('{')?..=text.rfind('}')?)?;
    serde_json::from_str(text).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn proposal(kind: ProposalKind) -> Proposal {
        let id = |text: &str| text.parse().unwrap();
        let staff = [("bob".parse().unwrap(), String::new())].into();
        let taken = ["bob".parse().unwrap()].into();
        Proposal { task: id("t_00000001"), kind, subject: id("t_00000002"), staff, taken }
    }

    fn proposed(kind: ProposalKind, metadata: Value) -> Result<Proposed, String> {
        let handoff = Handoff { metadata: Some(metadata), ..Handoff::default() };
        read(&proposal(kind), &handoff).map_err(|error| error.to_string())
    }

    fn ids(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("t_{at:08}")).collect()
    }

    #[test]
    fn a_run_may_return_the_example_that_it_is_given() {
        for kind in ProposalKind::ALL {
            // A plan names the profile that its example asks for.
            let assignee = if *kind == ProposalKind::Plan { "a-new-one" } else { "bob" };
            let example =
                kind.shape().replace("a profile", assignee).replace("continue, replan or stop", "replan");
            proposed(*kind, serde_json::from_str(&example).unwrap()).unwrap();
        }
    }

    #[test]
    fn a_proposal_drops_and_makes_up_to_fifty_tasks() {
        let tasks: Vec<Value> =
            (0..TASKS).map(|at| json!({ "name": at.to_string(), "title": "t", "body": "b" })).collect();
        let all = json!({ "answer": "replan", "reason": "r", "drop": ids(TASKS), "tasks": tasks });
        let result = proposed(ProposalKind::Progress, all).unwrap();
        assert_eq!((result.tasks.len(), result.review.unwrap().drop.len()), (TASKS, TASKS));
    }

    #[test]
    fn tasks_of_another_plan_wait_for_one_another_and_for_tasks_that_are_there() {
        let part =
            |name: &str, after: &[&str]| json!({ "name": name, "title": name, "body": "b", "after": after });
        let tasks = [part("late", &["early", "t_00000003"]), part("early", &[])];
        let result =
            proposed(ProposalKind::Progress, json!({ "answer": "replan", "reason": "r", "tasks": tasks }));
        let tasks = result.unwrap().tasks;
        assert_eq!((tasks[0].name.as_str(), tasks[1].name.as_str()), ("early", "late"));
        assert!(tasks[1].after.iter().eq(["early"]), "{:?}", tasks[1].after);
        assert_eq!(tasks[1].task.parents, ["t_00000003".parse().unwrap()]);
    }

    #[test]
    fn what_a_proposal_may_not_say_is_refused_with_the_reason() {
        let part =
            |name: &str, after: &[&str]| json!({ "name": name, "title": "t", "body": "b", "after": after });
        let many: Vec<Value> = (0..=TASKS).map(|at| part(&at.to_string(), &[])).collect();
        for (kind, value, told) in [
            (ProposalKind::Specify, json!({}), "missing field `body`"),
            (ProposalKind::Specify, json!({ "body": "b", "policy": "unconfined" }), "unknown field `policy`"),
            (ProposalKind::Specify, json!({ "body": " " }), "body"),
            (ProposalKind::Specify, json!({ "body": "b", "title": "a\nb" }), "title"),
            (ProposalKind::Specify, json!({ "body": "x".repeat(limits::SUMMARY + 1) }), "body"),
            (ProposalKind::Specify, json!({ "body": "b", "assignee": "eve" }), "there are bob"),
            (ProposalKind::Decompose, json!({ "tasks": [] }), "neither a task nor a body"),
            (ProposalKind::Decompose, json!({ "tasks": many }), "51 tasks, the limit is 50"),
            (
                ProposalKind::Plan,
                json!({ "tasks": [part("a", &["b"]), part("b", &["a"])] }),
                "wait for each other",
            ),
            (ProposalKind::Plan, json!({ "tasks": [part("a", &["c"]), part("b", &[])] }), "\"c\""),
            (
                ProposalKind::Plan,
                json!({ "tasks": [part("a", &[]), part("a", &[])] }),
                "two tasks are called",
            ),
            (ProposalKind::Route, json!({ "assignee": "eve" }), "nobody is called eve"),
            (ProposalKind::Progress, json!({ "answer": "maybe", "reason": "r" }), "unknown variant `maybe`"),
            (ProposalKind::Progress, json!({ "answer": "stop", "reason": " " }), "reason"),
            (ProposalKind::Progress, json!({ "answer": "replan", "reason": "r" }), "does neither"),
            (
                ProposalKind::Progress,
                json!({ "answer": "stop", "reason": "r", "drop": ["t_00000003"] }),
                "takes neither",
            ),
            (
                ProposalKind::Progress,
                json!({ "answer": "replan", "reason": "r", "drop": ids(TASKS + 1) }),
                "51 tasks to drop, the limit is 50",
            ),
            (ProposalKind::Plan, json!({ "tasks": [part("a", &["t_00000003"])] }), "\"t_00000003\""),
        ] {
            let refused = proposed(kind, value).unwrap_err();
            assert!(refused.contains(told), "{kind}: {refused}");
        }
    }

    #[test]
    fn the_words_of_a_run_may_hold_what_it_returns() {
        let handoff = |text: &str| Handoff { summary: Some(text.to_owned()), ..Handoff::default() };
        let read = |text: &str| read(&proposal(ProposalKind::Specify), &handoff(text));
        let body = |text: &str| read(text).unwrap().body.unwrap();
        assert_eq!(body("{\"body\": \"do it\"}"), "do it");
        assert_eq!(body("Here it is:\n```json\n{\"body\": \"{do} it\"}\n```\nDone."), "{do} it");
        assert!(read("I have specified it.").is_err());
        assert!(read("} {").is_err());
        let part = json!({ "name": "b", "title": "t", "body": "b", "after": ["a", "a"], "assignee": "bob" });
        let tasks = json!({ "tasks": [part, { "name": "a", "title": "t", "body": "b" }] });
        let names: Vec<String> =
            proposed(ProposalKind::Plan, tasks).unwrap().tasks.into_iter().map(|part| part.name).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
