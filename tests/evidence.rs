//! Evidence: what a run did in git, found by the supervisor, stands beside what its worker says.

use serde_json::{Value, json};

use crate::harness::{Fleet, Repository, User};

fn evidence(shown: &Value) -> &Value {
    &shown["runs"][0]["evidence"]
}

#[test]
fn what_a_run_did_in_git_stands_beside_what_its_worker_says() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let start = repository.git(&["rev-parse", "HEAD"]);
        let script = "echo 2 > file; git -c user.name=a -c user.email=a@b commit -qam 'change the file'
            echo new > new; supervisor complete --summary 'rewrote everything'";
        let directory = format!("dir:{}", repository.path().display());
        for workspace in [repository.workspace(), directory] {
            let id = fleet.create("work", script, &["--workspace", &workspace]);
            let shown = fleet.wait_for(&id, "done");
            let found = evidence(&shown);
            assert_eq!(found["base"], start.trim(), "{shown:#}");
            assert_eq!(found["commits"].as_array().unwrap().len(), 1, "{shown:#}");
            assert_eq!(found["commits"][0]["subject"], "change the file");
            let changed =
                json!([{"path": "file", "change": "modified"}, {"path": "new", "change": "untracked"}]);
            assert_eq!(found["changed"], changed);
            assert_eq!(
                (&found["insertions"], &found["deletions"]),
                (&json!(2), &json!(1)),
                "new files count"
            );
            let human = fleet.cli(["show", &id]).ok().stdout;
            for part in ["rewrote everything", "1 commit, 2 changed paths, +2 -1", "change the file"] {
                assert!(human.contains(part), "{part}: {human}");
            }
        }
    }
}

#[test]
fn a_run_that_did_nothing_is_told_to_have_done_nothing_and_one_without_git_is_told_nothing() {
    let fleet = Fleet::boot();
    let repository = Repository::new(&fleet, "repository");
    let id = fleet.create("lies", "true", &["--workspace", &repository.workspace()]);
    let shown = fleet.wait_for(&id, "done");
    assert_eq!((&evidence(&shown)["commits"], &evidence(&shown)["files"]), (&json!([]), &json!(0)));
    assert!(fleet.cli(["show", &id]).ok().stdout.contains("0 commits, 0 changed paths, +0 -0"));
    let id = fleet.create("scratch", "true", &[]);
    assert_eq!(evidence(&fleet.wait_for(&id, "done")), &Value::Null);
}

/// The repository is the worker's, so it can make it unreadable: that is said, and the run ends as it would have.
#[test]
fn what_cannot_be_found_out_is_said_and_the_run_ends() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let directory = format!("dir:{}", repository.path().display());
        let script = "rm -rf .git/objects; mkdir .git/objects; supervisor complete --summary done";
        let id = fleet.create("breaks", script, &["--workspace", &directory]);
        let shown = fleet.wait_for(&id, "done");
        assert!(evidence(&shown)["error"].is_string(), "{shown:#}");
        assert!(fleet.cli(["show", &id]).ok().stdout.contains("not found"), "{shown:#}");
    }
}

#[test]
fn a_completion_that_names_tasks_which_do_not_exist_is_refused_and_the_run_goes_on() {
    let fleet = Fleet::boot();
    let script = r#"supervisor complete --summary lie --metadata '{"created_cards": ["t_00000000"]}' 2> said
        echo $? >> said
        child=$(supervisor create child --triage --quiet)
        supervisor complete --summary "$(cat said)" --metadata "{\"created_cards\": [\"$child\"]}""#;
    let id = fleet.create("makes", script, &[]);
    let shown = fleet.wait_for(&id, "done");
    let said = shown["latest_summary"].as_str().unwrap();
    assert!(said.contains("there is no task") && said.contains("the run goes on"), "{said}");
    assert!(said.trim_end().ends_with('2'), "{said}");
}

#[test]
fn a_completion_that_names_files_or_commits_which_do_not_exist_is_refused_and_the_run_goes_on() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let script = r#"told() { supervisor "$@" 2>> said; echo "exit $?" >> said; }
            told complete --summary lie --artifact out/report.md
            told request-review --summary lie --artifact ../secret
            mkdir out; echo report > out/report.md
            told complete --summary lie --artifact out
            if git rev-parse HEAD > /dev/null 2>&1; then
              told complete --summary lie --metadata '{"commits": ["0123456789012345678901234567890123456789"]}'
              told complete --summary lie --metadata '{"commits": ["HEAD"]}'
              git -c user.name=a -c user.email=a@b commit -q --allow-empty -m new
              real=", \"commits\": [\"$(git rev-parse HEAD)\", \"$(git rev-parse --short HEAD^)\"]"
            fi
            supervisor complete --summary "$(cat said)" --metadata "{\"tests\": 14$real}" --artifact out/report.md"#;
        let directory = format!("dir:{}", repository.path().display());
        for workspace in ["scratch", &repository.workspace(), &directory] {
            let id = fleet.create("names", script, &["--workspace", workspace]);
            let shown = fleet.wait_for(&id, "done");
            let said = shown["latest_summary"].as_str().unwrap();
            for words in
                ["\"out/report.md\": there is no such file", "the run goes on", "\"out\": it is not a file"]
            {
                assert!(said.contains(words), "{workspace}: {words}: {said}");
            }
            let (lies, in_git) = (said.matches("exit 2").count(), workspace != "scratch");
            assert_eq!(lies, if in_git { 5 } else { 3 }, "{workspace}: {said}");
            let commit = "there is no commit 0123456789012345678901234567890123456789";
            assert_eq!(said.contains(commit), in_git, "{workspace}: {said}");
            assert_eq!(
                said.contains("the commit `HEAD` is a name that moves"),
                in_git,
                "{workspace}: {said}"
            );
            assert_eq!(shown["attachments"].as_array().unwrap().len(), 1, "{shown:#}");
            assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "{shown:#}");
        }
    }
}

/// Nothing is looked for that the board would not take: none of these names exists, and the refusal is about their number.
#[test]
fn a_completion_that_names_too_many_files_is_refused_before_any_is_looked_for() {
    let fleet = Fleet::boot();
    let script = r#"names=$(for n in $(seq 101); do echo --artifact $n; done)
        supervisor complete --summary lie $names 2> said; echo "exit $?" >> said
        supervisor request-review --summary lie $names 2>> said; echo "exit $?" >> said
        supervisor complete --summary "$(cat said)" "#;
    let id = fleet.create("names", script, &[]);
    let said = fleet.wait_for(&id, "done")["latest_summary"].as_str().unwrap().to_owned();
    assert_eq!(said.matches("101 entries, the limit is 100").count(), 2, "{said}");
    assert_eq!(said.matches("exit 2").count(), 2, "{said}");
}

/// A worker's entries in its own `.git` do not make the supervisor read files that the worker may not read itself.
#[test]
fn a_repository_that_a_worker_says_is_elsewhere_is_not_read_there() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let (own, other) = (Repository::new(&fleet, "own"), Repository::new(&fleet, "other"));
        own.git(&["update-ref", "-d", "HEAD"]);
        let script = format!(
            "rm -rf .git; echo 'gitdir: {}/.git' > .git; supervisor complete --summary planted",
            other.path().display()
        );
        let directory = format!("dir:{}", own.path().display());
        let id = fleet.create("plants", &script, &["--workspace", &directory]);
        let shown = fleet.wait_for(&id, "done");
        assert!(evidence(&shown)["error"].is_string(), "{shown:#}");
        assert!(!evidence(&shown).to_string().contains("start"), "{shown:#}");
    }
}
