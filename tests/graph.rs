//! The graph that links draw is the graph that is worked through, however late they are drawn.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Fleet, User};

/// An agent: it works until a file says that it may end, and reports by itself.
const AGENT: &str = "argv = [\"/bin/sh\", \"-c\", \"while [ ! -e go ]; do sleep 0.02; done\"]\n";

/// The worked example of the other board's specification, as it is printed there; what each `create` prints is T1, T2, ….
const LISTING: &str = r#"
hermes kanban create "what killed Gemini 2 adoption?" --assignee planner
hermes kanban create "angle: cost" --assignee researcher --parent T1
hermes kanban create "angle: latency" --assignee researcher --parent T1
hermes kanban create "angle: tool-quality" --assignee researcher --parent T1
hermes kanban create "angle: licensing" --assignee researcher --parent T1
hermes kanban create "synthesize" --assignee analyst
hermes kanban link T2 T6 && link T3 T6 && link T4 T6 && link T5 T6
hermes kanban create "write brief" --assignee writer
hermes kanban link T6 T7
hermes kanban complete T1
"#;

/// The words of the listing, for a shell: ids stand for the names that the text gives them.
const WORDS: &str = r#"
set -e
n=0
id() { sed -n 's/.*"id": *"\(t_[0-9a-f]*\)".*/\1/p' | head -1; }
hermes() {
    shift
    verb=$1; shift
    i=$#
    while [ "$i" -gt 0 ]; do
        word=$1; shift
        case $word in T[0-9]) eval "word=\$$word" ;; esac
        set -- "$@" "$word"
        i=$((i - 1))
    done
    if [ "$verb" = create ]; then
        n=$((n + 1))
        made=$("$SUPERVISOR" --root "$ROOT" create "$@" --json | id)
        eval "T$n=\$made"
    else
        "$SUPERVISOR" --root "$ROOT" "$verb" "$@" >&2
    fi
}
link() { hermes kanban link "$@"; }
"#;

fn paste(fleet: &Fleet) -> Vec<String> {
    let mut shell = Command::new("/bin/sh");
    fleet.dress(&mut shell);
    let tell = "echo $T1 $T2 $T3 $T4 $T5 $T6 $T7";
    shell.arg("-c").arg(format!("{WORDS}{LISTING}{tell}"));
    shell.env("SUPERVISOR", fleet.binary()).env("ROOT", fleet.root());
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ids: Vec<String> =
        String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect();
    assert_eq!(ids.len(), 7, "{ids:?}");
    ids
}

/// The number of the first event of a kind of a task that follows another one.
fn event(fleet: &Fleet, task: &str, kind: &str, after: i64) -> Option<i64> {
    let events = fleet.json(["events", "--task", task, "--kind", kind, "--limit", "1000"]);
    let ids = events["events"].as_array().unwrap().iter().filter_map(|event| event["id"].as_i64());
    ids.filter(|id| *id > after).min()
}

#[test]
fn the_listing_of_the_specification_pasted_against_a_daemon_gives_the_graph_that_it_draws() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        for lane in ["planner", "researcher", "analyst", "writer"] {
            fleet.lane(lane, AGENT);
        }
        fleet.start();

        let ids = paste(&fleet);

        let [first, angles @ .., synthesis, brief] = ids.as_slice() else { panic!("{ids:?}") };
        fleet.wait_for(first, "done");
        for angle in angles {
            fleet.wait_for(angle, "running");
        }
        for waits in [synthesis, brief] {
            let task = fleet.wait_for(waits, "todo");
            assert_eq!(task["task"]["consecutive_failures"], 0, "{task:#}");
            for run in task["runs"].as_array().unwrap() {
                assert_eq!(run["outcome"], "reclaimed", "{task:#}");
            }
        }
        // The gated source of the listing.
        fleet.cli(["comment", &angles[1], "source gated; alternative?"]).ok();
        fleet.cli(["block", &angles[1]]).ok();
        fleet.wait_for(&angles[1], "blocked");
        fleet.cli(["comment", &angles[1], "use arxiv-sanity mirror"]).ok();
        fleet.cli(["unblock", &angles[1]]).ok();
        for angle in angles {
            fleet.cli(["complete", angle]).ok();
        }
        let last = angles.iter().map(|angle| {
            fleet.wait_for(angle, "done");
            event(&fleet, angle, "completed", 0).unwrap()
        });
        let last = last.max().unwrap();
        fleet.wait_for(synthesis, "running");
        let promoted = event(&fleet, synthesis, "promoted", 0).unwrap();
        assert!(promoted > last, "the synthesis was ready before the last angle was done");
        assert_eq!(fleet.status_of(brief), "todo");
        fleet.cli(["complete", synthesis]).ok();
        fleet.wait_for(brief, "running");
        assert!(event(&fleet, brief, "promoted", 0) > event(&fleet, synthesis, "completed", 0));
        fleet.cli(["complete", brief]).ok();
        fleet.wait_for(brief, "done");
    }
}

#[test]
fn a_child_at_work_is_taken_back_and_said_or_refused_with_the_way_out() {
    let fleet = Fleet::offline();
    fleet.configure("[worker]\nlink_grace = \"1s\"\n");
    fleet.lane("agent", AGENT);
    fleet.start();
    let parent = fleet.create("first", "true", &["--triage"]);
    let child = fleet.json(["create", "second", "--assignee", "agent"])["id"].clone();
    let child = child.as_str().unwrap();
    fleet.eventually("it has worked for two seconds", || {
        let status = fleet.json(["status"]);
        status["workers"]
            .as_array()?
            .iter()
            .find(|one| one["task"] == child && one["age_seconds"].as_u64() >= Some(2))
            .map(drop)
    });

    let refused = fleet.cli(["link", &parent, child]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(
        refused.stderr.contains(&format!("supervisor link --reclaim {parent} {child}")),
        "{}",
        refused.stderr
    );
    assert_eq!(fleet.status_of(child), "running");

    let linked = fleet.json(["link", "--reclaim", &parent, child]);
    assert_eq!(linked["taken_back"], fleet.show(child)["runs"][0]["id"]);
    assert!(linked["note"].as_str().unwrap().contains("is taken back"), "{linked}");
    let waits = fleet.wait_for(child, "todo");
    assert_eq!(waits["runs"][0]["outcome"], "reclaimed");
    let asked = fleet.json(["events", "--task", child, "--kind", "stop_requested"]);
    let reason: &Value = &asked["events"][0]["payload"]["reason"];
    assert_eq!(reason, &json!(format!("linked behind {parent}")));
}
