//! Tasks that somebody claims by hand: each has its workspace, as a run has, and its path is in the reply.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Fleet, Output, Repository, User};
use crate::http::Http;

/// A user of no host, as whom root's workers can work.
const OWNER: u32 = 64_322;

/// A directory in which workers of the fleet may work, and who owns it.
fn own_directory(fleet: &Fleet, user: User) -> (PathBuf, u32) {
    let path = fleet.home().join("own");
    fs::create_dir(&path).unwrap();
    fleet.give(&path);
    if user == User::Root {
        chown(&path, Some(OWNER), Some(OWNER)).unwrap();
    }
    let owner = fs::metadata(&path).unwrap().uid();
    (path, owner)
}

fn workspace(path: &Path) -> String {
    format!("dir:{}", path.display())
}

/// A task that nothing here runs.
fn task(fleet: &Fleet, more: &[&str]) -> Value {
    fleet.json([&["create", "outside", "--assignee", "outside"], more].concat())
}

fn id(created: &Value) -> &str {
    created["id"].as_str().unwrap()
}

#[test]
fn a_claim_by_hand_makes_the_scratch_workspace_and_tells_its_path() {
    for user in User::all() {
        for fleet in [Fleet::offline_as(user), Fleet::boot_as(user)] {
            let created = task(&fleet, &[]);
            let id = id(&created);
            assert_eq!(created["workspace_path"], json!(null));
            let path = fleet.root().join("workspaces/default").join(id);

            let told = fleet.cli(["claim", id]).ok().stdout;

            assert!(told.contains(&format!("\nWorkspace: {}\n", path.display())), "{told}");
            let meta = fs::metadata(&path).unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, 0o700);
            let shown = fleet.show(id);
            assert_eq!(shown["task"]["workspace_path"], path.display().to_string());
            assert_eq!(shown["runs"][0]["workspace_path"], path.display().to_string());
            if user == User::Root {
                assert_eq!(shown["task"]["worker_uid"], meta.uid());
                assert_ne!(meta.uid(), 0, "a workspace is never root's");
            }
            fleet.cli(["complete", id]).ok();
            fleet.cli(["archive", id]).ok();
            assert!(!path.exists(), "it goes as that of a run does");
        }
    }
}

#[test]
fn a_claim_that_makes_a_scratch_workspace_is_one_commit() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let tasks: Vec<Value> = (0..10).map(|_| fleet.json(["create", "outside"])).collect();
        let commits = || fleet.json(["status"])["daemon"]["commits"].as_u64().unwrap();
        let before = commits();

        for task in &tasks {
            fleet.cli(["claim", id(task)]).ok();
        }

        let made = commits() - before;
        assert!((10..20).contains(&made), "{made} commits for 10 claims");
    }
}

#[test]
fn a_repeated_claim_gets_its_reply_and_the_workspace_that_was_not_made_yet() {
    let fleet = Fleet::boot();
    let created = task(&fleet, &[]);
    let key = fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    let api = Http::at(fleet.root().join("run/supervisor.sock")).with("x-supervisor-key", &key);
    let api = api.with("x-request-id", "the-claim");
    // Each reply has a token of its own.
    let claim = || {
        let mut claimed = api.post("/api/v1/verbs/claim", &json!({ "task_id": id(&created) })).json(200);
        claimed.as_object_mut().unwrap().remove("token").unwrap();
        claimed
    };
    let first = claim();
    // As where the daemon dies right after the commit.
    let path = first["task"]["workspace_path"].as_str().unwrap();
    fs::remove_dir(path).unwrap();

    assert_eq!(claim(), first);

    assert!(Path::new(path).is_dir());
    assert_eq!(fleet.show(id(&created))["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_directory_is_named_at_creation_and_a_missing_one_is_made_by_those_who_may() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let (own, owner) = own_directory(&fleet, user);
        for (name, claims) in [("new/inner", false), ("other", true)] {
            let path = own.join(name);
            let place = workspace(&path);
            let lane = if claims { "outside" } else { "shell" };
            let args = ["create", "x", "--assignee", lane, "--body", "pwd", "--workspace", &place];
            let created = fleet.json(args);
            assert_eq!(created["workspace_path"], path.display().to_string());
            assert!(created["warnings"].to_string().contains("does not exist yet"), "{created}");

            let id = id(&created);
            if claims {
                let told = fleet.cli(["claim", id]).ok().stdout;
                assert!(told.contains(&format!("\nWorkspace: {}\n", path.display())), "{told}");
            } else {
                assert_eq!(fleet.wait_for(id, "done")["latest_summary"], path.display().to_string());
            }

            let meta = fs::metadata(&path).unwrap();
            assert_eq!((meta.uid(), meta.permissions().mode() & 0o777), (owner, 0o700));
        }
    }
}

#[test]
fn a_directory_is_not_made_where_its_user_may_not() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let (own, _) = own_directory(&fleet, user);
        let closed = own.join("closed");
        fs::create_dir(&closed).unwrap();
        // As root a directory of root's, whose worker nobody may be; else one that this user may not write.
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
        let path = closed.join("new");
        let refused = fleet.cli(["create", "x", "--workspace", &workspace(&path)]);
        refused.refused(3, &format!("{} does not exist", path.display()));
        let inside = fleet.root().join("boards/new");
        fleet.cli(["create", "x", "--workspace", &workspace(&inside)]).refused(77, "closed to every worker");
        assert!(!path.exists() && !inside.exists());
        assert_eq!(fleet.json(["list"]), json!([]));
    }
}

#[test]
fn a_claim_whose_workspace_cannot_be_made_is_given_back_with_the_reason() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let (own, _) = own_directory(&fleet, user);
        let path = own.join("gone");
        let created = task(&fleet, &["--workspace", &workspace(&path)]);
        fs::write(&path, "a file").unwrap();

        fleet.cli(["claim", id(&created)]).refused(4, &path.display().to_string());

        let shown = fleet.show(id(&created));
        assert_eq!(
            (&shown["task"]["status"], &shown["runs"][0]["outcome"]),
            (&"ready".into(), &"reclaimed".into())
        );
        assert_eq!(shown["task"]["consecutive_failures"], 0);
        fs::remove_file(&path).unwrap();
        fleet.cli(["claim", id(&created)]).ok();
        assert!(path.is_dir());
    }
}

#[test]
fn a_directory_in_which_a_run_works_is_not_claimed_by_hand() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let (own, _) = own_directory(&fleet, user);
        let place = workspace(&own);
        let busy = fleet.create("busy", "touch here; sleep 1000", &["--workspace", &place]);
        fleet.eventually("it works there", || own.join("here").exists().then_some(()));
        let created = task(&fleet, &["--workspace", &place]);

        fleet.cli(["claim", id(&created)]).refused(4, &format!("task {busy}"));

        assert_eq!(fleet.status_of(id(&created)), "ready");
        fleet.cli(["archive", &busy]).ok();
        fleet.eventually("the run has ended", || (fleet.status_of(&busy) == "archived").then_some(()));
        fleet.cli(["claim", id(&created)]).ok();
    }
}

#[test]
fn a_claim_by_hand_has_its_directory_for_itself_as_long_as_it_lasts() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let (own, _) = own_directory(&fleet, user);
        let place = workspace(&own);
        let mine = task(&fleet, &["--workspace", &place]);
        let second = task(&fleet, &["--workspace", &place]);
        fleet.cli(["claim", id(&mine)]).ok();

        fleet.cli(["claim", id(&second)]).refused(4, &format!("task {}", id(&mine)));
        let script = "touch here";
        let waits = || {
            let run = fleet.create("a run", script, &["--workspace", &place]);
            fleet.eventually("it waits for the claim", || {
                fleet.show(&run)["why"]["text"].as_str()?.contains(id(&mine)).then_some(())
            });
            run
        };
        let run = waits();
        fleet.restart();
        let another = waits();
        assert!(!own.join("here").exists());

        fleet.cli(["complete", id(&mine), "--result", "by hand"]).ok();
        for run in [run, another] {
            assert_eq!(fleet.wait_for(&run, "done")["task"]["consecutive_failures"], 0);
        }
        fleet.cli(["claim", id(&second)]).ok();
    }
}

#[test]
fn a_worktree_is_made_for_a_claim_and_what_is_committed_there_stays_on_its_branch() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "app");
        let created = task(&fleet, &["--workspace", &repository.workspace()]);
        let id = id(&created);

        let claimed = fleet.json(["claim", id]);

        let tree = repository.tree(id);
        let told = json!([tree.display().to_string(), format!("task/{id}")]);
        assert_eq!(json!([claimed["task"]["workspace_path"], claimed["task"]["branch_name"]]), told);
        let commit = ["commit", "-q", "--allow-empty", "-m", "by hand"];
        assert_eq!(repository.git_in(&tree, &commit).code, 0);
        let tip = repository.git(&["rev-parse", &format!("task/{id}")]);
        fleet.cli(["reclaim", id]).ok();
        fleet.cli(["edit", id, "--body", "git log -1 --format=%H"]).ok();
        fleet.cli(["assign", id, "shell"]).ok();
        assert_eq!(fleet.wait_for(id, "done")["latest_summary"], tip, "a run goes on from it");
    }
}

#[test]
fn what_was_never_run_answers_as_what_was() {
    let fleet = Fleet::offline();
    let created = task(&fleet, &[]);
    let id = id(&created);
    assert_eq!(fleet.cli(["log", id]).ok().stdout, fleet.cli(["runs", id]).ok().stdout);
    let logged = fleet.json(["log", id]);
    assert_eq!(
        (&logged["run_id"], &logged["text"], &logged["ended"]),
        (&json!(null), &json!(""), &json!(false))
    );
    for verb in ["log", "runs", "show", "context", "attachments"] {
        fleet.cli([verb, "t_00000000"]).refused(3, "no such task: t_00000000");
    }
    let row = json!([{"task_id": id, "title": "outside", "status": "ready", "assignee": "outside", "diagnostics": []}]);
    assert_eq!(fleet.json(["diagnostics", "--task", id]), row);
    let told = fleet.cli(["diagnostics", "--task", id]).ok().stdout;
    assert_eq!(told, format!("{id}  outside (ready): nothing is wrong\n"));
    assert_eq!(fleet.json(["diagnostics"]), json!([]));
}

#[test]
fn a_block_for_a_dependency_that_is_not_linked_waits_for_a_person_and_says_so() {
    let fleet = Fleet::boot();
    let created = task(&fleet, &[]);
    let id = id(&created);
    let told = fleet.cli(["block", id, "after the release", "--kind", "dependency"]).ok().stdout;
    assert!(told.starts_with(&format!("Blocked {id} (blocked): no open parent is linked")), "{told}");
    assert!(told.contains(&format!("`supervisor unblock {id}`")), "{told}");
    let worker = fleet.create("asks", "supervisor block 'the release' --kind dependency", &[]);
    let shown = fleet.wait_for(&worker, "blocked");
    assert_eq!(shown["task"]["block_kind"], "dependency");
    let parent = task(&fleet, &[]);
    fleet.cli(["link", parent["id"].as_str().unwrap(), &worker]).ok();
    fleet.cli(["unblock", &worker]).ok();
    assert_eq!(fleet.status_of(&worker), "todo");
}

/// A lane whose tasks nothing here starts.
const PULL: &str = "pull = true\n";

#[test]
fn a_task_of_a_pull_lane_waits_to_be_claimed_and_its_worker_reports_with_the_token_of_its_run() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.lane("outside", PULL);
        fleet.start();
        fleet.cli(["claim", "--assignee", "outside"]).refused(75, "no task for outside is ready");
        let created = task(&fleet, &["--priority", "3"]);
        assert_eq!(created["warnings"], json!(null));
        let later = task(&fleet, &[]);
        let shown = fleet.show(id(&created));
        let why = shown["why"]["text"].as_str().unwrap();
        assert!(why.contains("waits for somebody to claim it: outside is a pull lane"), "{why}");
        assert!(!shown["events"].to_string().contains("skipped_nonspawnable"), "{shown:#}");

        let long = fleet.cli(["claim", "--assignee", "outside", "--ttl", "365d"]);
        assert!(long.refused(2, "between 1 second and 30 days").stderr.contains("15m or 30d"));
        let claimed = fleet.json(["claim", "--assignee", "outside", "--ttl", "15m"]);

        assert_eq!(claimed["task"]["id"], created["id"]);
        let (token, socket) = (claimed["token"].as_str().unwrap(), claimed["socket"].as_str().unwrap());
        let worker = |args: &[&str]| {
            let mut command = fleet.command(args);
            command.env("SUPERVISOR_TASK", id(&created)).env("SUPERVISOR_TOKEN", token);
            Output::of(command.env("SUPERVISOR_SOCKET", socket))
        };
        worker(&["heartbeat", "--note", "halfway"]).ok();
        worker(&["complete", id(&later)]).refused(77, "only about its own task");
        worker(&["release", id(&created)]).refused(77, "");
        worker(&["complete", "--summary", "by its token"]).ok();
        let shown = fleet.wait_for(id(&created), "done");
        assert_eq!(shown["latest_summary"], "by its token");
        worker(&["heartbeat"]).refused(77, "not valid");

        let second = fleet.json(["claim", id(&later)]);
        assert_ne!(second["token"], claimed["token"]);
        fleet.cli(["reclaim", id(&later)]).ok();
        assert_eq!(fleet.status_of(id(&later)), "ready");
        let listed = fleet.cli(["lane", "show", "outside"]).ok().stdout;
        assert!(listed.contains("its workers claim their tasks"), "{listed}");
        fleet.cli(["lane", "check", "outside"]).ok();
    }
}

#[test]
fn a_repeated_claim_has_a_token_that_works() {
    let fleet = Fleet::boot();
    let created = task(&fleet, &[]);
    let key = fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    let api = Http::at(fleet.root().join("run/supervisor.sock"))
        .with("x-supervisor-key", &key)
        .with("x-request-id", "once-only");
    let claim = || api.post("/api/v1/verbs/claim", &json!({"task_id": id(&created)})).json(200);
    let (first, again) = (claim(), claim());
    assert_eq!(first["run"]["id"], again["run"]["id"]);
    assert_ne!(first["token"], again["token"], "no token is kept");
    let heartbeat = |token: &Value| {
        let door = crate::listeners::as_worker(&fleet, token.as_str().unwrap());
        door.post("/api/v1/verbs/heartbeat", &json!({"task_id": id(&created)})).status
    };
    assert_eq!((heartbeat(&first["token"]), heartbeat(&again["token"])), (403, 200));
}

#[test]
fn a_claim_of_nothing_says_what_may_be_claimed_and_one_for_a_wrong_name_which_is_meant() {
    let fleet = Fleet::boot();
    fleet.cli(["claim"]).refused(2, "claim takes either a task or an assignee");
    assert!(fleet.cli(["claim"]).stderr.contains("--assignee"));
    let wrong = fleet.cli(["claim", "--assignee", "shel"]);
    assert!(wrong.stderr.contains("is `shell` meant?"), "{}", wrong.stderr);
    wrong.refused(3, "no profile or lane has this name");
    fleet.cli(["claim", "--assignee", "shell"]).refused(75, "no task for shell is ready");
    // Somebody outside, whom nothing here knows but the board.
    fleet.json(["create", "x", "--assignee", "my-service", "--triage"]);
    fleet.cli(["claim", "--assignee", "my-service"]).refused(75, "no task for my-service is ready");
}
