//! Skills: how they reach a worker.

use serde_json::Value;

use crate::harness::Fleet;

/// A lane whose program would look for skills in the home of its worker, and one whose program has no such place.
const WITH: &str = "argv = [\"/bin/sh\", \"-c\", \"cat; cat $HOME/.agent/skills/*/SKILL.md; ls $HOME/.agent/skills\"]\nskills = \".agent/skills\"\non_clean_exit = \"complete\"\n";
const WITHOUT: &str = "argv = [\"/bin/sh\", \"-c\", \"cat; ls -A $HOME\"]\non_clean_exit = \"complete\"\n";

fn fleet() -> Fleet {
    let fleet = Fleet::offline();
    fleet.lane("with", WITH);
    fleet.lane("without", WITHOUT);
    let text = "---\nname: tidy\ndescription: How it is tidied\n---\nBegin at the top.\n";
    std::fs::create_dir_all(fleet.root().join("skills.d/tidy")).unwrap();
    fleet.give(&fleet.root().join("skills.d"));
    fleet.give(&fleet.root().join("skills.d/tidy"));
    fleet.write_config("skills.d/tidy/SKILL.md", text);
    fleet
}

fn run(fleet: &Fleet, args: &[&str]) -> String {
    let id = fleet.json(["create", "tidy up", "--body", "b"].iter().chain(args))["id"].clone();
    let id = id.as_str().unwrap();
    fleet.wait_for(id, "done");
    fleet.cli(["log", id]).ok().stdout
}

#[test]
fn a_skill_reaches_a_worker_in_the_form_that_its_program_reads_or_in_its_prompt() {
    let fleet = fleet();
    fleet.write_config("profiles.d/ann.md", "---\nlane: with\nskills: [board-worker]\n---\nYou are Ann.\n");
    fleet.start();

    let told = run(&fleet, &["--assignee", "with", "--skill", "tidy"]);
    let prompt = told.split("# How this run ends").next().unwrap();
    assert!(prompt.starts_with("# Skills\n\nThese skills are for this task."), "{told}");
    assert!(prompt.contains("`tidy`") && !prompt.contains("Begin at the top."), "{told}");
    assert!(told.contains("description: How it is tidied") && told.contains("Begin at the top."), "{told}");

    let told = run(&fleet, &["--assignee", "without", "--skill", "tidy"]);
    assert!(told.starts_with("# Skill: tidy\n\nBegin at the top.\n\n# Task t_"), "{told}");
    assert!(!told.contains("description:"), "{told}");

    let told = run(&fleet, &["--assignee", "ann", "--skill", "tidy"]);
    assert!(told.starts_with("# Your role\n\nYou are Ann.\n\n# Skills"), "{told}");
    assert!(told.contains("`board-worker`, `tidy`") && told.ends_with("board-worker\ntidy\n"), "{told}");
}

#[test]
fn a_skill_that_does_not_exist_is_warned_of_and_a_profile_that_names_one_starts_nothing() {
    let fleet = fleet();
    fleet.write_config("profiles.d/ann.md", "---\nlane: shell\nskills: [polish]\n---\n");
    fleet.start();
    let created =
        fleet.cli(["create", "x", "--assignee", "shell", "--body", "true", "--skill", "polish"]).ok();
    assert!(created.stderr.contains("warning: there is no skill `polish`"), "{created:?}");
    assert!(created.stderr.contains("without it the worker starts all the same"), "{created:?}");
    run(&fleet, &["--assignee", "without", "--skill", "polish", "--skill", "tidy"]);
    let path = ["create", "x", "--assignee", "shell", "--body", "true", "--skill", "../x"];
    fleet.cli(path).refused(2, "`../x` is a path, and not the name of a skill");

    let waits = fleet.json(["create", "x", "--assignee", "ann", "--body", "true"]);
    assert!(waits["warnings"].to_string().contains("there is no skill `polish`"), "{waits:#}");
    let why = fleet.show(waits["id"].as_str().unwrap())["why"]["text"].clone();
    assert!(
        why.as_str().unwrap().starts_with("waits for its profile: the profile `ann` cannot be used"),
        "{why}"
    );
    let status: Value = fleet.cli(["status", "--json"]).json();
    assert_eq!(fleet.problems("configuration_defect"), Vec::<Value>::new(), "{status:#}");
}

#[test]
fn a_bad_skill_disables_itself_alone() {
    let fleet = fleet();
    fleet.write_config("skills.d/tidy/SKILL.md", "---\nname: tidy\n---\n");
    let status: Value = fleet.cli(["status", "--json"]).json();
    assert!(status["problems"].to_string().contains("skills.d/tidy/SKILL.md"), "{status:#}");
    let created = fleet.cli(["create", "x", "--assignee", "shell", "--body", "true", "--skill", "tidy"]).ok();
    assert!(created.stderr.contains("the skill `tidy` is disabled"), "{created:?}");
}
