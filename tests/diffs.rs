//! `diff`: what the runs of a task have changed in git, as files and lines, while they go on and afterwards.

use serde_json::{Value, json};

use crate::harness::{Fleet, Repository, User};

/// Each file of a diff: its path, what became of it, and how many lines came and went.
fn files(diff: &Value) -> Vec<(String, String, u64, u64)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let file = |file: &Value| {
        let count = |name: &str| file[name].as_u64().unwrap();
        (text(&file["path"]), text(&file["status"]), count("additions"), count("deletions"))
    };
    diff["files"].as_array().unwrap().iter().map(file).collect()
}

fn changed() -> Vec<(String, String, u64, u64)> {
    vec![("file".to_owned(), "modified".to_owned(), 1, 1), ("new".to_owned(), "added".to_owned(), 2, 0)]
}

const COMMIT: &str = "git -c user.name=a -c user.email=a@b commit -qam";

#[test]
fn the_work_of_a_run_is_the_same_while_it_goes_on_and_afterwards() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let start = repository.git(&["rev-parse", "HEAD"]);
        let script = format!(
            "echo 2 > file; {COMMIT} 'change the file'; printf 'a\\nb\\n' > new; touch ready
             while [ ! -e go ]; do sleep 0.1; done; rm -f ready go"
        );
        let id = fleet.create("work", &script, &["--workspace", &repository.workspace()]);
        let tree = repository.tree(&id);
        fleet.eventually("the work is there", || tree.join("ready").exists().then_some(()));
        std::fs::remove_file(tree.join("ready")).unwrap();

        let live = fleet.json(["diff", &id]);
        assert_eq!((&live["live"], &live["base"]), (&json!(true), &json!(start)));
        assert_eq!(files(&live), changed());
        assert_ne!(
            live["head"], live["base"],
            "the commit of the run, which its repository does not have yet"
        );
        let hunk = &live["files"][0]["hunks"][0];
        assert_eq!(hunk["header"], "@@ -1 +1 @@");
        let lines = json!([
            { "kind": "-", "old": 1, "new": null, "text": "1" },
            { "kind": "+", "old": null, "new": 1, "text": "2" },
        ]);
        assert_eq!(hunk["lines"], lines);
        assert_eq!((&live["truncated"], &live["files"][0]["binary"]), (&json!(false), &json!(false)));

        repository.write(&format!(".worktrees/{id}/go"), "");
        fleet.wait_for(&id, "done");
        let ended = fleet.json(["diff", &id]);
        assert_eq!((&ended["live"], &ended["head"]), (&json!(false), &live["head"]));
        assert_eq!(ended["files"], live["files"]);

        let shown = fleet.cli(["diff", &id]).ok().stdout;
        for part in ["modified file", "@@ -1 +1 @@", "-1\n", "+2\n", "added new"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let counts = fleet.cli(["diff", &id, "--stat"]).ok().stdout;
        assert_eq!(counts, " file |     2 +-\n new  |     2 ++ (new)\n2 files, +3 -1\n");
        assert!(fleet.cli(["diff", &id, "--color", "always"]).ok().stdout.contains("\u{1b}[32m+2"));
        // Without a daemon the command line reads it by itself.
        fleet.stop(&["--now"]);
        assert_eq!(fleet.json(["diff", &id])["files"], live["files"]);
    }
}

#[test]
fn a_run_has_its_own_work_and_a_task_that_of_all_its_runs() {
    let fleet = Fleet::boot();
    let repository = Repository::new(&fleet, "repository");
    let script = format!(
        "if [ -e new ]; then echo 3 > second; git add .; {COMMIT} second
         else echo 2 > file; printf 'a\\nb\\n' > new; git add .; {COMMIT} first; exit 9; fi"
    );
    let flags = ["--workspace", &repository.workspace(), "--max-retries", "5"];
    let id = fleet.create("twice", &script, &flags);
    let shown = fleet.eventually("the first run has failed and the second is done", || {
        let shown = fleet.show(&id);
        if ["scheduled", "blocked"].iter().any(|status| shown["task"]["status"] == *status) {
            drop(fleet.cli(["retry", &id]));
        }
        (shown["task"]["status"] == "done").then_some(shown)
    });
    let runs: Vec<String> =
        shown["runs"].as_array().unwrap().iter().map(|run| run["id"].to_string()).collect();
    let (first, second) = (runs.first().unwrap(), runs.last().unwrap());
    assert_ne!(first, second);
    assert_eq!(files(&fleet.json(["diff", &id, "--run", first])), changed());
    let own = files(&fleet.json(["diff", &id, "--run", second]));
    assert_eq!(own, [("second".to_owned(), "added".to_owned(), 1, 0)]);
    assert_eq!(files(&fleet.json(["diff", &id])).len(), 3);
    // A worktree that is gone has left its commits.
    std::fs::remove_dir_all(repository.tree(&id)).unwrap();
    assert_eq!(files(&fleet.json(["diff", &id])).len(), 3);
    fleet.cli(["diff", &id, "--run", "999"]).refused(3, "has no run 999");
}

#[test]
fn what_has_no_work_in_git_is_refused_with_the_reason() {
    let fleet = Fleet::boot();
    let id = fleet.create("scratch", "true", &[]);
    fleet.wait_for(&id, "done");
    fleet.cli(["diff", &id]).refused(3, "no run of");
    fleet.cli(["diff", "t_ffffffff"]).refused(3, "no such task");
    fleet.cli(["diff"]).refused(2, "no task is named");
}

/// Traps in a worker's tree are shown as they are, and delay nobody.
#[test]
fn what_a_worker_plants_in_its_tree_is_bounded_and_escaped() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let script = "mkfifo pipe; ln -s /etc/shadow link; head -c 3000000 /dev/zero | tr '\\0' x > huge
            printf '\\033]0;owned\\007\\033[2J<script>alert(1)</script>\\n' > evil
            mkdir z; for n in $(seq 400); do echo $n > z/$n; done; ln -s . z/loop";
        let id = fleet.create("plants", script, &["--workspace", &repository.workspace()]);
        fleet.wait_for(&id, "done");
        let diff = fleet.json(["diff", &id]);
        assert_eq!((&diff["truncated"], diff["files"].as_array().unwrap().len()), (&json!(true), 300));
        let of = |path: &str| diff["files"].as_array().unwrap().iter().find(|file| file["path"] == path);
        let lines = |path: &str| of(path).unwrap()["hunks"][0]["lines"].clone();
        assert_eq!(of("huge").unwrap()["truncated"], true);
        assert_eq!(lines("evil")[0]["text"], "\u{1b}]0;owned\u{7}\u{1b}[2J<script>alert(1)</script>");
        assert_eq!(lines("link")[0]["text"], "/etc/shadow", "a link is what it says, not what it leads to");
        assert!(of("pipe").is_none(), "git knows no FIFOs");
        let shown = fleet.cli(["diff", &id]).ok().stdout;
        assert!(!shown.contains('\u{1b}') && shown.contains("<script>"), "{shown}");
    }
}
