//! A tick that replaces the one before it: the run that it ends is over before the next one begins.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::harness::Fleet;

/// Work that takes its time to end.
const STUBBORN: &str = "trap 'sleep 0.5; exit 0' TERM; while :; do sleep 0.05; done";

/// The events of tasks in their order: the kind and the task.
fn events_in_order(fleet: &Fleet) -> Vec<(String, String)> {
    let events = fleet.json(["events", "--limit", "1000"]);
    let of = |event: &Value| {
        let task = event["task_id"].as_str()?.to_owned();
        Some((event["kind"].as_str()?.to_owned(), task))
    };
    events["events"].as_array().unwrap().iter().filter_map(of).collect()
}

#[test]
fn a_tick_that_replaces_begins_when_the_run_that_it_ends_has_ended() {
    let fleet = Fleet::boot();
    let file = format!(
        "every = \"2s\"\noverlap = \"replace\"\n[task]\ntitle = \"beat\"\nassignee = \"shell\"\nbody = \"\"\"{STUBBORN}\"\"\"\n"
    );
    fs::write(fleet.home().join("beat.toml"), file).unwrap();
    fleet.cli(["schedules", "add", "beat", "--file", "beat.toml"]).ok();
    let count = |kind: &str| events_in_order(&fleet).iter().filter(|(found, _)| found == kind).count();

    fleet.eventually("runs are replaced", || (count("claimed") > 3 && count("archived") > 2).then_some(()));

    fleet.cli(["schedules", "pause", "beat"]).ok();
    let mut at: BTreeMap<String, (usize, Option<usize>)> = BTreeMap::new();
    for (place, (kind, task)) in events_in_order(&fleet).into_iter().enumerate() {
        if kind == "claimed" {
            at.insert(task, (place, None));
        } else if kind == "archived"
            && let Some(found) = at.get_mut(&task)
        {
            found.1 = Some(place);
        }
    }
    let mut runs: Vec<(usize, Option<usize>)> = at.into_values().collect();
    runs.sort_unstable();
    let is_beside = |pair: &[(usize, Option<usize>)]| pair[0].1.is_none_or(|end| end > pair[1].0);
    assert!(runs.len() > 3 && !runs.windows(2).any(is_beside), "{:#?}", events_in_order(&fleet));
    let ticked = fleet.json(["events", "--kind", "ticked", "--limit", "1000"]).to_string();
    assert!(ticked.contains("waits for the run of"), "a tick has waited for the end of a run: {ticked}");
}
