//! Texts at a terminal of eighty columns: nothing necessary is cut, no word is broken, and a duration has one form.

use crate::harness::{Fleet, Output};

/// Returns the output of a command at a terminal of eighty columns. Each line fits, except for a longer word and for a
/// command to copy.
fn at_eighty(fleet: &Fleet, words: &[&str]) -> String {
    let text = Output::of(fleet.command(words.iter().copied()).env("COLUMNS", "80")).stdout;
    for line in text.lines() {
        if line.trim_start().starts_with("have it tried at once: ") {
            continue;
        }
        let longest = line.split_whitespace().map(|word| word.chars().count()).max().unwrap_or_default();
        assert!(line.chars().count() <= 80.max(longest + 8), "{line}\n{text}");
    }
    text
}

/// The text as one line, however it is wrapped.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn status_names_what_is_broken_why_and_the_command_that_helps() {
    let fleet = Fleet::offline();
    fleet.lane(
        "an-agent-with-a-rather-long-name",
        "argv = [\"/nonexistent/directory/of/the/program\"]\nprompt = \"stdin\"\non_clean_exit = \"complete\"\n",
    );
    fleet.start();
    fleet.json(["create", "x", "--assignee", "an-agent-with-a-rather-long-name"]);
    let whole = fleet.eventually("it is broken", || {
        Some(fleet.json(["status"])["broken"][0].clone()).filter(|broken| broken["release"].is_string())
    });
    let shown = at_eighty(&fleet, &["status"]);
    let (_, broken) = shown.split_once("Problems\n").unwrap();
    // A word that is longer than a line, such as a PATH, is broken.
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    assert!(bare(broken).contains(&bare(whole["why"].as_str().unwrap())), "{shown}");
    // The command can be copied: it is a line of its own, whole.
    let command = format!("have it tried at once: {}\n", whole["release"].as_str().unwrap());
    assert!(broken.contains(&command), "{shown}");
}

#[test]
fn holds_and_lanes_and_runs_have_every_word_of_every_cell() {
    let fleet = Fleet::boot();
    let reason = "the account is being moved to another region until the invoice of the last month is paid";
    fleet.cli(["hold", "--profile", "shell", "--reason", reason, "--until", "2h"]).ok();
    let hold = fleet.json(["holds"])[0].clone();
    let shown = at_eighty(&fleet, &["holds"]);
    for part in ["profile shell", "manual", hold["placed_by"].as_str().unwrap(), reason] {
        assert!(joined(&shown).contains(part), "{part}:\n{shown}");
    }
    let task = fleet.create("waits", "true", &[]);
    let why = fleet.show(&task)["why"]["text"].as_str().unwrap().to_owned();
    assert!(joined(&at_eighty(&fleet, &["status"])).contains(&why), "{why}");
    fleet.cli(["release", "--profile", "shell"]).ok();

    let lanes = at_eighty(&fleet, &["lane", "list"]);
    for lane in fleet.json(["lane", "list"]).as_array().unwrap() {
        for part in
            [&lane["name"], &lane["lane"]["argv"][0], &lane["lane"]["stdout"], &lane["lane"]["policy"]]
        {
            let Some(part) = part.as_str() else { continue };
            assert!(lanes.contains(part), "{part}:\n{lanes}");
        }
    }
    let failed = fleet.create(
        "fails",
        "echo 'there is no room on the device for the figures of May' >&2; exit 3",
        &["--max-retries", "1"],
    );
    fleet.wait_for(&failed, "blocked");
    let run = fleet.show(&failed)["runs"][0].clone();
    let runs = at_eighty(&fleet, &["runs", &failed]);
    assert!(joined(&runs).contains(&joined(run["error"].as_str().unwrap())), "{runs}");
    assert!(runs.lines().nth(1).unwrap().contains("exit 3"), "{runs}");
}

#[test]
fn a_duration_has_one_form_in_reasons_limits_and_tables() {
    let fleet = Fleet::offline();
    let task = fleet.create("later", "true", &["--not-before", "2h", "--max-runtime", "2h"]);
    let why = fleet.show(&task)["why"]["text"].as_str().unwrap().to_owned();
    assert!(why.starts_with("starts in 1h 59m") || why == "starts in 2h", "{why}");
    assert!(fleet.cli(["show", &task]).ok().stdout.contains("time limit 2h, set by the task"));
    fleet.cli(["profile", "create", "slow", "--lane", "shell"]).ok();
    let home = fleet.json(["profile", "show", "slow"])["profile"]["origin"].as_str().unwrap().to_owned();
    let file = std::fs::read_to_string(&home).unwrap();
    std::fs::write(&home, file.replacen("---\n", "---\nlimits: {max_runtime: 90m}\n", 1)).unwrap();
    let shown = fleet.cli(["profile", "show", "slow"]).ok().stdout;
    assert!(shown.contains("max runtime   1h 30m"), "{shown}");
}
