//! Missions: how far workers go below one task of a person's, and the question when a limit is reached.

use crate::harness::{Fleet, User};

#[test]
fn a_worker_that_makes_tasks_without_end_pauses_its_mission_and_a_person_lets_it_go_on() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.configure("[missions]\ntasks = 4\n");
        fleet.start();
        // What it makes waits for it, so that nothing of it has started when the limit is reached.
        let script = "n=0; while supervisor create part --assignee shell --body true --parent $SUPERVISOR_TASK; do n=$((n+1)); done \
                      2> refused; supervisor complete --summary \"made $n: $(cat refused)\"";
        let first = fleet.create("divide it", script, &[]);

        let shown = fleet.wait_for(&first, "done");

        let summary = shown["latest_summary"].as_str().unwrap();
        assert!(summary.starts_with("made 3: "), "{summary}");
        let told = format!("missions.tasks: this would be 5 tasks of the mission {first}, the limit is 4");
        assert!(summary.contains(&told), "{summary}");
        let parts: Vec<String> =
            shown["children"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
        let part = fleet.show(&parts[0]);
        assert_eq!(part["task"]["status"], "ready");
        assert_eq!((&part["task"]["mission"], &part["task"]["depth"]), (&first.as_str().into(), &1.into()));
        let verb = format!("`supervisor release --mission {first}`");
        let why = &part["why"]["text"];
        assert!(why.as_str().unwrap().contains("4 tasks of 4 (missions.tasks)"), "{why}");
        assert!(why.as_str().unwrap().contains(&verb), "{why}");
        let wrong = fleet.json(["diagnostics"]).to_string();
        assert!(wrong.contains("mission_paused"), "{wrong}");

        fleet.cli(["release", "--mission", &parts[1]]).ok();
        for part in &parts {
            fleet.wait_for(part, "done");
        }
    }
}
