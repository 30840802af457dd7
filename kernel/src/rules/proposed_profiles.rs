//! New profiles that a plan may ask for. A person creates each of them; until then its tasks wait.
//!
//! A profile decides about program, policy and account, so the text of an agent must not make one. A name that a
//! profile or a lane has is refused: the tasks would run there without the decision of a person.

use std::collections::BTreeMap;

use super::proposed::{Proposed, STAFF};
use crate::model::error::Error;
use crate::model::id::Profile;
use crate::model::limits;
use crate::model::proposal::{Proposal, ProposedProfile};

/// Largest number of new profiles in a plan, and largest prompt of each, in bytes.
const PROFILES: usize = 10;
const PROMPT: usize = 16 << 10;

/// Returns the existing and the new profiles that tasks may name, or refuses the new ones. A new profile with a used name
/// is refused, because its tasks would go to the profile that already has the name.
pub(super) fn with_proposed(
    proposal: &Proposal,
    proposed: &Proposed,
) -> Result<BTreeMap<Profile, String>, Error> {
    let mut staff = proposal.staff.clone();
    let wrong = |why: String, hint: &str| Err(Error::invalid("profiles", why, hint));
    if proposed.profiles.len() > PROFILES {
        let why = format!("{} new profiles, the limit is {PROFILES}", proposed.profiles.len());
        return wrong(why, "name profiles that there are");
    }
    for ProposedProfile { name, description, prompt } in &proposed.profiles {
        limits::filled("description", description, "say what the profile is for")?;
        if description.chars().count() > STAFF.1 || description.chars().any(char::is_control) {
            let why = format!("the description of {name} is not one line of {} characters", STAFF.1);
            return wrong(why, "write more of it into the prompt");
        }
        limits::filled("prompt", prompt, "say what its workers are to know")?;
        limits::bytes("prompt", prompt, PROMPT)?;
        let is_used = |assignee: Option<&Profile>| assignee == Some(name);
        let mut tasks = proposed.tasks.iter().map(|part| part.task.assignee.as_ref());
        // An empty list of taken names is no proof that the name is free.
        if proposal.taken.is_empty() || proposal.taken.contains(name) {
            return wrong(format!("{name} is there already"), "give the new profile another name");
        }
        if !tasks.any(is_used) && !is_used(proposed.assignee.as_ref()) {
            return wrong(format!("no task is for the new profile {name}"), "leave it out");
        }
        if staff.insert(name.clone(), description.clone()).is_some() {
            return wrong(format!("two profiles are called {name}"), "give each another name");
        }
    }
    Ok(staff)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::proposal::ProposalKind;
    use crate::model::verdict::Handoff;
    use crate::rules::proposal::read;

    fn proposed(kind: ProposalKind, metadata: Value) -> Result<Proposed, String> {
        let id = |text: &str| text.parse().unwrap();
        let staff = [("bob".parse().unwrap(), String::new())].into();
        let taken = ["bob", "shell"].iter().map(|name| name.parse().unwrap()).collect();
        let proposal = Proposal { task: id("t_00000001"), kind, subject: id("t_00000002"), staff, taken };
        let handoff = Handoff { metadata: Some(metadata), ..Handoff::default() };
        read(&proposal, &handoff).map_err(|error| error.to_string())
    }

    #[test]
    fn a_plan_asks_for_profiles_that_it_needs_and_that_nobody_is_called() {
        let plan = |kind: ProposalKind, names: &[&str], assignee: &str| {
            let profile = |name: &&str| json!({ "name": name, "description": "d", "prompt": "p" });
            let profiles: Vec<Value> = names.iter().map(profile).collect();
            let task = json!({ "name": "a", "title": "t", "body": "b", "assignee": assignee });
            proposed(kind, json!({ "tasks": [task], "profiles": profiles }))
        };
        let asked = plan(ProposalKind::Plan, &["cook"], "cook").unwrap();
        assert_eq!(asked.profiles.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["cook"]);
        let many: Vec<String> = (0..=PROFILES).map(|at| format!("p{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (names, assignee, told) in [
            (&["shell"][..], "shell", "shell is there already"),
            (&["bob"], "bob", "bob is there already"),
            (&["cook"], "bob", "no task is for the new profile cook"),
            (&["cook", "cook"], "cook", "two profiles are called cook"),
            (&[], "cook", "nobody is called cook"),
            (&many, "p1", "11 new profiles, the limit is 10"),
        ] {
            let refused = plan(ProposalKind::Plan, names, assignee).unwrap_err();
            assert!(refused.contains(told), "{names:?}: {refused}");
        }
        let divided = plan(ProposalKind::Decompose, &["cook"], "cook").unwrap_err();
        assert!(divided.contains("unknown field `profiles`"), "{divided}");
    }

    #[test]
    fn a_plan_asks_for_up_to_ten_profiles_with_a_description_of_one_line_each() {
        let plan = |count: usize, description: &str| {
            let named =
                |at: usize| json!({ "name": format!("p{at}"), "description": description, "prompt": "p" });
            let profiles: Vec<Value> = (0..count).map(named).collect();
            let task = |at: usize| json!({ "name": at.to_string(), "title": "t", "body": "b", "assignee": format!("p{at}") });
            let tasks: Vec<Value> = (0..count).map(task).collect();
            proposed(ProposalKind::Plan, json!({ "tasks": tasks, "profiles": profiles }))
        };
        let longest = "d".repeat(STAFF.1);
        assert_eq!(plan(PROFILES, &longest).unwrap().profiles.len(), PROFILES);
        for description in ["d\ne", &format!("{longest}d"), &format!("{longest}dd")] {
            let refused = plan(1, description).unwrap_err();
            assert!(refused.contains("is not one line"), "{refused}");
        }
    }
}
