//! Reviews: asked for by a worker or a person, given by somebody else.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::harness::{Fleet, User, tidy};

/// A lane whose worker approves what it finds in the workspace, and sends it back otherwise.
const CRITIC: &str = r#"
argv = ["/bin/sh", "-c", '''
test "$SUPERVISOR_PURPOSE" = review || exit 9
grep -q 'This run is a review' || exit 8
if test -f proof; then supervisor approve 'saw the proof'; else supervisor request-changes 'where is the proof?'; fi
''']
"#;

fn comments(shown: &Value) -> Vec<&str> {
    shown["comments"].as_array().unwrap().iter().map(|comment| comment["body"].as_str().unwrap()).collect()
}

fn kinds(shown: &Value) -> Vec<&str> {
    shown["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_worker_asks_for_a_review_and_a_person_approves_it() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let id =
            fleet.create("work", "supervisor request-review --summary 'did it' --metadata '{\"n\": 1}'", &[]);
        let child = fleet.create("after it", "supervisor context", &["--parent", &id]);

        let shown = fleet.wait_for(&id, "review");

        assert_eq!(shown["task"]["work_by"], "worker:shell");
        assert_eq!(shown["runs"][0]["outcome"], "review_requested", "{shown:#}");
        assert_eq!(shown["why"]["text"], "waits for a review by a person other than shell");
        assert_eq!(fleet.status_of(&child), "todo");

        fleet.cli(["approve", &id, "looks", "good"]).ok();

        let shown = fleet.wait_for(&id, "done");
        assert_eq!(comments(&shown), ["looks good"]);
        assert_eq!(
            (&shown["latest_summary"], &shown["task"]["result"]),
            (&json!("did it"), &json!("did it"))
        );
        assert!(kinds(&shown).ends_with(&["approved", "completed"]), "{shown:#}");
        let after = fleet.wait_for(&child, "done");
        assert!(after["latest_summary"].as_str().unwrap().contains("did it"), "{after:#}");
    }
}

#[test]
fn a_profile_reviews_in_a_run_of_its_own_until_it_is_content() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.lane("critic", CRITIC);
        fleet.start();
        let script = "if supervisor context | grep -q '^> where'; then touch proof; fi; \
                      supervisor request-review --summary 'done' --reviewer critic";
        let id = fleet.create("work", script, &[]);

        let shown = fleet.wait_for(&id, "done");

        let runs: Vec<_> = shown["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| ["profile", "purpose", "outcome"].map(|key| run[key].as_str().unwrap().to_owned()))
            .collect();
        let expected = [
            ["shell", "work", "review_requested"],
            ["critic", "review", "changes_requested"],
            ["shell", "work", "review_requested"],
            ["critic", "review", "approved"],
        ];
        assert_eq!(runs, expected.map(|run| run.map(str::to_owned)), "{shown:#}");
        assert_eq!(comments(&shown), ["where is the proof?", "saw the proof"]);
        assert_eq!(shown["latest_summary"], "done");
    }
}

#[test]
fn a_reviewer_that_does_not_exist_is_said_at_once_and_a_person_can_do_it() {
    let fleet = Fleet::boot();
    let id = fleet.create("work", "supervisor request-review --reviewer ghost --json", &[]);
    let shown = fleet.wait_for(&id, "review");
    let text = fleet.eventually("the dispatcher has looked", || {
        let text = fleet.show(&id)["why"]["text"].as_str().unwrap().to_owned();
        text.contains("exists here").then_some(text)
    });
    assert_eq!(text, "waits for a review by ghost: no profile or lane `ghost` exists here");
    assert!(fleet.cli(["log", &id]).ok().stdout.contains("no profile or lane `ghost`"), "{shown:#}");
    fleet.cli(["request-changes", &id, "ask a person"]).ok();
    fleet.eventually("it was asked again", || {
        (fleet.show(&id)["runs"].as_array().unwrap().len() == 2 && fleet.status_of(&id) == "review")
            .then_some(())
    });
    assert_eq!(comments(&fleet.show(&id)), ["ask a person"]);
}

#[test]
fn a_worker_ends_only_the_kind_of_run_that_it_has() {
    let fleet = Fleet::offline();
    fleet.lane(
        "hasty",
        "argv = [\"/bin/sh\", \"-c\", \"supervisor complete; echo $?; supervisor request-review; echo $?\"]",
    );
    fleet.start();
    let other = fleet.create("other", "true", &["--initial-status", "blocked"]);
    let script = format!(
        "supervisor approve; echo $?; supervisor request-changes no; echo $?; supervisor approve {other}; echo $?
         supervisor request-review --reviewer shell; echo $?; supervisor request-review {other}; echo $?
         supervisor request-review --reviewer hasty"
    );
    let id = fleet.create("work", &script, &["--max-retries", "1"]);
    fleet.wait_for(&id, "blocked");
    let runs = fleet.json(["runs", &id]);
    let logs = ["0", "1"].map(|at| {
        let path = runs[at.parse::<usize>().unwrap()]["log_path"].as_str().unwrap().to_owned();
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter(|line| line.parse::<u8>().is_ok()).collect::<Vec<_>>().join(" ")
    });
    assert_eq!(logs, ["4 4 77 2 77", "4 4"]);
    assert_eq!(runs[1]["outcome"], "unreported");
}

#[test]
fn whose_work_it_is_may_not_approve_it() {
    let fleet = Fleet::offline();
    let _tidy = tidy();
    let id = fleet.json(["create", "by hand"])["id"].as_str().unwrap().to_owned();
    fleet.cli(["approve", &id]).refused(4, "is not in review: its status is ready");
    let asked = fleet.cli(["request-review", &id, "--summary", "did it"]).ok();
    assert_snapshot!(asked.stdout, @"Review requested of t_[id] (review)");
    fleet.cli(["approve", &id]).refused(77, "own: somebody else has to review it");
    assert_eq!(fleet.cli(["complete", &id]).code, 77);
    assert_eq!(fleet.cli(["request-changes", &id]).code, 2, "no reason is given");
    assert_eq!(fleet.cli(["request-changes", &id, "no"]).code, 77);
    assert_eq!(fleet.cli(["request-review", &id]).code, 4);
    assert_eq!(fleet.cli(["approve", "t_00000000"]).code, 3);
    assert_eq!(fleet.cli(["approve", "nonsense"]).code, 2);
    assert_eq!(fleet.cli(["approve"]).code, 2);
    let both = fleet.cli(["request-review", &id, "t_00000000", "--summary", "x"]);
    assert_eq!(both.code, 2);
    let bulk = fleet.cli(["approve", &id, "--ids", "t_00000000", "--json"]);
    assert_eq!(bulk.code, 77);
    assert_eq!(bulk.json()["results"][1]["code"], "not_found");
}
