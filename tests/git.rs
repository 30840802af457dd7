//! Repositories that workers can write: what one of them plants there stops its own tasks, and nobody else's.

use std::path::PathBuf;

use crate::harness::{Fleet, Repository, User, skip};

/// The loose object of the commit at HEAD.
fn commit_object(repository: &Repository) -> PathBuf {
    let id = repository.git(&["rev-parse", "HEAD"]);
    repository.path().join(".git/objects").join(&id[..2]).join(&id[2..])
}

#[test]
fn a_fifo_in_a_repository_is_named_and_holds_up_nobody_elses_tasks() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.configure("[limits]\nmax_running = 2");
        fleet.start();
        let repository = Repository::new(&fleet, "repository");
        let object = commit_object(&repository);
        repository.plant_fifo(&object);
        let workspace = repository.workspace();
        let stuck: Vec<String> = (0..4)
            .map(|n| fleet.create(&format!("stuck {n}"), "true", &["--workspace", &workspace]))
            .collect();

        let neighbour = fleet.create("neighbour", "true", &[]);

        fleet.wait_for(&neighbour, "done");
        let named = object.display().to_string();
        fleet.eventually("the FIFO is named", || {
            let shown = fleet.show(&stuck[0]).to_string();
            (shown.contains(&named) && shown.contains("is a FIFO")).then_some(())
        });
        assert!(stuck.iter().all(|id| fleet.status_of(id) != "done"));
    }
}

#[test]
fn a_fifo_that_git_does_not_wait_for_but_takes_for_something_else_is_named() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let plant = |name: &str, place: &dyn Fn(&Repository) -> PathBuf| {
            let repository = Repository::new(&fleet, name);
            repository.git(&["repack", "-adq"]);
            let workspace = repository.workspace();
            let id = fleet.create(name, "true", &["--workspace", &workspace, "--tenant", name, "--triage"]);
            let fifo = place(&repository);
            repository.plant_fifo(&fifo);
            (id, fifo.display().to_string())
        };
        let pack = |repository: &Repository| {
            let packs = std::fs::read_dir(repository.path().join(".git/objects/pack")).unwrap();
            let mut paths = packs.map(|entry| entry.unwrap().path());
            paths.find(|path| path.extension().is_some_and(|ending| ending == "idx")).unwrap()
        };
        let planted = [
            plant("head", &|repository| repository.path().join(".git/HEAD")),
            plant("pack", &pack),
            plant("worktrees", &|repository| repository.path().join(".git/worktrees")),
        ];
        let head = format!("worktree:{}", fleet.home().join("head").display());
        fleet.cli(["create", "later", "--workspace", &head]).refused(4, "is a FIFO");
        for (id, named) in planted {
            fleet.cli(["promote", &id]).ok();
            fleet.eventually("the FIFO is named", || {
                let shown = fleet.show(&id).to_string();
                (shown.contains(&named) && shown.contains("is a FIFO")).then_some(())
            });
        }
    }
}

/// Only a worker of the daemon's own user could use what the daemon's git reads elsewhere, so this holds in every mode.
#[test]
fn git_reads_nothing_outside_of_its_repository_that_a_worker_names_and_waits_for_nothing_there() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let outside = fleet.home().join("outside");
        let plant = |name: &str| {
            let repository = Repository::new(&fleet, name);
            let id = fleet.create(name, "true", &["--workspace", &repository.workspace(), "--triage"]);
            let config = std::fs::read_to_string(repository.path().join(".git/config")).unwrap();
            let planted = format!("{config}[include]\n\tpath = {}\n", outside.display());
            repository.write(".git/config", &planted);
            (repository, id)
        };
        std::fs::write(&outside, "[core]\n\tbare = true\n").unwrap();
        let (file, _) = plant("file");
        let refused = fleet.cli(["create", "later", "--workspace", &file.workspace()]).refused(4, "include");
        let told = &refused.stderr;
        assert!(told.contains(&outside.display().to_string()) && told.contains("hint"), "{told}");
        assert!(!told.contains("is bare") && !told.contains("locked"), "{told}");

        std::fs::remove_file(&outside).unwrap();
        let (fifo, stuck) = plant("fifo");
        fifo.plant_fifo(&outside);
        fleet.cli(["create", "later", "--workspace", &fifo.workspace()]).refused(4, "include");
        fleet.cli(["promote", &stuck]).ok();
        let neighbour = fleet.create("neighbour", "true", &[]);
        fleet.wait_for(&neighbour, "done");
        let why = fleet.eventually("it waits for the repository", || {
            let shown = fleet.show(&stuck);
            (shown["why"]["code"] == "environment").then(|| shown["why"]["text"].to_string())
        });
        assert!(why.contains(&fifo.path().display().to_string()), "{why}");
    }
}

/// The job process that a daemon has now.
fn job_of(daemon: i32) -> Option<nix::unistd::Pid> {
    let children = std::fs::read_dir(format!("/proc/{daemon}/task")).ok()?.flatten().filter_map(|thread| {
        let children = std::fs::read_to_string(thread.path().join("children")).ok()?;
        Some(children.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<i32>>())
    });
    let is_job = |pid: &i32| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("__job"))
    };
    children.flatten().find(is_job).map(nix::unistd::Pid::from_raw)
}

#[test]
fn a_stop_does_not_wait_for_git() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let id = fleet.create("stuck", "true", &["--workspace", &repository.workspace(), "--triage"]);
        repository.plant_fifo(&repository.path().join(".git/config"));
        fleet.cli(["promote", &id]).ok();
        let job = fleet.eventually("git waits in a job process", || job_of(fleet.daemon_pid()));
        // One that is stopped does not stand still, so it has its whole time, unless the start is given up.
        nix::sys::signal::kill(job, nix::sys::signal::Signal::SIGSTOP).unwrap();

        assert!(fleet.stop(&["--kill"]).success());

        let shown = fleet.show(&id);
        assert_eq!(shown["runs"][0]["outcome"], "reclaimed", "{shown:#}");
        assert_eq!(shown["task"]["status"], "ready", "{shown:#}");
    }
}

#[test]
fn a_collection_passes_over_a_worktree_that_makes_git_wait() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let id = fleet.create("planted", "mkfifo .gitignore", &["--workspace", &repository.workspace()]);
        fleet.wait_for(&id, "done");
        fleet.cli(["archive", &id]).ok();

        let kept = fleet.json(["gc"]);

        let tree = repository.tree(&id);
        let item = &kept["kept"][0];
        assert_eq!(item["path"], tree.display().to_string(), "{kept:#}");
        let why = item["why"].as_str().unwrap();
        let fifo = tree.join(".gitignore").display().to_string();
        assert!(why.contains(&fifo) && why.contains("FIFO"), "{why}");
        assert!(tree.is_dir());
    }
}

#[test]
fn a_named_branch_is_where_each_run_starts_from() {
    let fleet = Fleet::boot();
    let repository = Repository::new(&fleet, "repository");
    repository.git(&["checkout", "-q", "-b", "release"]);
    repository.write("released", "yes\n");
    repository.git(&["add", "released"]);
    repository.git(&["commit", "-q", "-m", "release"]);
    repository.git(&["checkout", "-q", "main"]);
    let more = ["--workspace", &repository.workspace(), "--branch", "release"];

    let script =
        "test -e released || exec echo another branch; test -e once && exec echo again; touch once; exit 1";
    let id = fleet.create("twice", script, &more);

    let shown = fleet.wait_for(&id, "done");
    assert_eq!(shown["latest_summary"], "again", "{shown:#}");
    assert_eq!(shown["task"]["branch_name"], "release");
    let branches: Vec<&str> =
        shown["runs"].as_array().unwrap().iter().map(|run| run["branch_name"].as_str().unwrap()).collect();
    assert_eq!(branches, [format!("task/{id}"), format!("task/{id}")]);
}

#[test]
fn a_branch_that_is_not_there_asks_a_person_at_once() {
    let fleet = Fleet::boot();
    let repository = Repository::new(&fleet, "repository");
    let more = ["--workspace", &repository.workspace(), "--branch", "nosuch"];

    let shown = fleet.wait_for(&fleet.create("from nowhere", "true", &more), "blocked");

    assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "{shown:#}");
    assert!(shown["runs"][0]["error"].as_str().unwrap().contains("has no branch nosuch"), "{shown:#}");
}

#[test]
fn settings_that_no_run_can_follow_keep_no_worker_from_committing() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        repository.git(&["init", "-q", "--shared=group"]);
        for (key, value) in
            [("commit.gpgSign", "true"), ("gpg.format", "ssh"), ("user.signingKey", "/no/id.pub")]
        {
            repository.git(&["config", key, value]);
        }
        repository.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n");
        let hook = repository.path().join(".git/hooks/pre-commit");
        std::fs::set_permissions(hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let script =
            "echo 2 >> file; git -c user.name=w -c user.email=w@h commit -qam work && git log -1 --format=%s";
        for workspace in [repository.workspace(), format!("dir:{}", repository.path().display())] {
            let id = fleet.create("commits", script, &["--workspace", &workspace]);
            let shown = fleet.wait_for(&id, "done");
            assert_eq!(shown["latest_summary"], "work", "{workspace}: {shown:#}");
        }
    }
}

#[test]
fn a_worker_has_the_files_of_its_repository_that_the_settings_name() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        repository.write(".gitconfig", "[alias]\n\tst = status --short\n[rerere]\n\tenabled = true\n");
        repository.write(".git/ignored", "*.tmp\n");
        repository.git(&["config", "include.path", "../.gitconfig"]);
        let ignored = repository.path().join(".git/ignored").display().to_string();
        repository.git(&["config", "core.excludesFile", &ignored]);
        repository.git(&["config", "branch.autoSetupMerge", "always"]);
        let script = "touch a.tmp b; git st && git switch -qc task/other HEAD && git add b && git commit -qm b && echo committed";

        let id = fleet.create("named", script, &["--workspace", &repository.workspace()]);

        let shown = fleet.wait_for(&id, "done");
        assert_eq!(shown["latest_summary"], "?? b\ncommitted", "{shown:#}");
    }
}

#[test]
fn large_files_are_pointers_in_a_worktree_and_new_ones_are_stored_when_it_is_taken_over() {
    if !std::path::Path::new("/usr/bin/git-lfs").exists() {
        return skip("objects of Git LFS: git-lfs is not installed");
    }
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        repository.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
        repository.git(&["lfs", "install", "--local", "--skip-repo"]);
        repository.write("old.bin", "old content\n");
        repository.git(&["add", "."]);
        repository.git(&["commit", "-q", "-m", "large"]);
        for is_set_by_its_user in [false, true] {
            if is_set_by_its_user {
                repository.git(&["lfs", "uninstall", "--local", "--skip-repo"]);
            }
            let script = "head -c 7 old.bin > before; echo 2 >> file; echo new $$ > new.bin; git add -A && git commit -qm work && \
                          git lfs checkout && cat old.bin && git status --short && git show HEAD:new.bin | head -c 7";
            let id = fleet.create("large", script, &["--workspace", &repository.workspace()]);

            let shown = fleet.wait_for(&id, "done");

            let told = shown["latest_summary"].as_str().unwrap();
            assert!(told.ends_with("old content\nversion"), "{shown:#}");
            assert!(shown["comments"].to_string().contains("`old.bin` is a pointer of Git LFS"), "{shown:#}");
            let branch = format!("task/{id}");
            assert_eq!(repository.git(&["show", &format!("{branch}:before")]), "version");
            let pointer = repository.git(&["show", &format!("{branch}:new.bin")]);
            let digest =
                pointer.split("sha256:").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
            let object = format!(".git/lfs/objects/{}/{}/{digest}", &digest[..2], &digest[2..4]);
            let stored = std::fs::read_to_string(repository.path().join(object)).unwrap();
            assert!(stored.starts_with("new "), "{stored}");
        }
    }
}

#[test]
fn a_directory_and_one_inside_it_are_not_worked_in_at_once() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let outer = fleet.home().join("outer");
        let inner = outer.join("inner");
        for dir in [&outer, &inner] {
            std::fs::create_dir(dir).unwrap();
            std::fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            if user == User::Root {
                std::os::unix::fs::chown(dir, Some(64_321), Some(64_321)).unwrap();
            } else {
                fleet.give(dir);
            }
        }
        let of = |dir: &std::path::Path| format!("dir:{}", dir.display());
        let first = fleet.create("first", "touch here; exec sleep 600", &["--workspace", &of(&outer)]);
        fleet.eventually("it works", || outer.join("here").exists().then_some(()));

        let second = fleet.create("second", "touch here", &["--workspace", &of(&inner)]);

        let why = fleet.eventually("it says what it waits for", || {
            let why = fleet.show(&second)["why"]["text"].as_str().unwrap_or_default().to_owned();
            why.contains(&first).then_some(why)
        });
        assert!(why.contains(&outer.display().to_string()), "{why}");
        // It is not even tried: the lease, which would refuse it too, is asked by a run that was begun.
        let shown = fleet.show(&second);
        assert_eq!(
            (&shown["why"]["code"], &shown["runs"]),
            (&"workspace".into(), &serde_json::json!([])),
            "{why}"
        );
        assert!(!inner.join("here").exists());
        fleet.cli(["archive", &first]).ok();
        fleet.wait_for(&second, "done");
    }
}

#[test]
fn a_submodule_says_why_it_is_no_repository_for_worktrees() {
    let fleet = Fleet::boot();
    let repository = Repository::new(&fleet, "repository");
    let inner = Repository::new(&fleet, "inner");
    let url = inner.path().display().to_string();
    repository.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &url, "sub"]);
    let workspace = format!("worktree:{}", repository.path().join("sub").display());

    let create =
        ["create", "in a submodule", "--assignee", "shell", "--body", "true", "--workspace", &workspace];
    let refused = fleet.cli(create).refused(4, "is a submodule");

    assert!(refused.stderr.contains("git clone"), "{}", refused.stderr);
    let outer = fleet.create("in the repository", "true", &["--workspace", &repository.workspace()]);
    fleet.cli(["edit", &outer, "--workspace", &workspace]).refused(4, "");
}

/// The worker of this script commits, stages and works with a detached HEAD, as a rebase does, until its tree has the file `go`.
const AT_WORK: &str = "echo w1 >> file && git commit -qam w1 && git checkout -q --detach && echo w2 >> file && git commit -qam w2 && \
     echo staged > new && git add new && touch ready && while ! test -e go; do sleep 0.1; done; \
     git commit -qm w3 && git checkout -q -B task/$SUPERVISOR_TASK && git log --format=%s";

#[test]
fn the_owner_of_a_repository_works_on_in_it_while_a_task_commits_and_has_the_commits_afterwards() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let other = Repository::new(&fleet, "other");
        let id = fleet.create("at work", AT_WORK, &["--workspace", &repository.workspace()]);
        let tree = repository.tree(&id);
        fleet.eventually("it works", || tree.join("ready").exists().then_some(()));

        let url = other.path().display().to_string();
        for args in [
            &["fetch", "-q", url.as_str()][..],
            &["log", "--all", "--oneline"],
            &["commit", "-q", "--allow-empty", "-m", "mine"],
            &["fsck", "--no-dangling"],
            &["repack", "-adq"],
            &["gc", "-q", "--prune=now"],
            &["worktree", "prune"],
        ] {
            repository.git(args);
        }
        assert_eq!(repository.git(&["log", "-1", "--format=%s", &format!("task/{id}")]), "start");

        std::fs::write(tree.join("go"), "").unwrap();
        fleet.wait_for(&id, "done");
        let subjects = repository.git(&["log", "--format=%s", &format!("task/{id}")]);
        assert_eq!(subjects, "w3\nw2\nw1\nstart");
        assert_eq!(repository.git_in(&tree, &["status", "--porcelain"]).stdout, "?? go\n?? ready\n");
        repository.git(&["fsck", "--no-dangling"]);
        repository.git(&["gc", "-q"]);
    }
}

/// The directories of the tests lie beneath `/tmp`.
#[test]
fn a_run_whose_repository_lies_beneath_tmp_has_a_tmp_of_its_own_with_its_workspace_in_it() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        std::fs::write(fleet.home().join("beside"), "").unwrap();
        let script = format!(
            "echo made > /tmp/x && mkdir /tmp/tmux-1 && cat /tmp/x; test -e {0}/beside && echo beside; touch {0}/new && echo new; \
             git commit -q --allow-empty -m work",
            fleet.home().display()
        );
        let id = fleet.create("in tmp", &script, &["--workspace", &repository.workspace()]);
        fleet.wait_for(&id, "done");
        let log = fleet.cli(["logs", &id]).ok().stdout;
        let lines: Vec<&str> = log.lines().collect();
        assert!(lines.contains(&"made") && !lines.contains(&"beside") && !lines.contains(&"new"), "{log}");
        assert_eq!(repository.git(&["log", "-1", "--format=%s", &format!("task/{id}")]), "work");
    }
}
