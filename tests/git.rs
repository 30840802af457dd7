//! Repositories that workers can write: what one of them plants there stops its own tasks, and nobody else's.

use std::path::PathBuf;

use crate::harness::{Fleet, Repository, User};

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
            let shown = fleet.cli(["why", &stuck[0]]);
            let shown = format!("{}{}", shown.stdout, fleet.show(&stuck[0]));
            (shown.contains(&named) && shown.contains("is a FIFO")).then_some(())
        });
        assert!(stuck.iter().all(|id| fleet.status_of(id) != "done"));
    }
}

#[test]
fn a_stop_does_not_wait_for_git() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        repository.plant_fifo(&repository.path().join(".git/HEAD"));
        let id = fleet.create("stuck", "true", &["--workspace", &repository.workspace()]);
        fleet.eventually("the run is claimed", || {
            (fleet.show(&id)["runs"].as_array().is_some_and(|runs| !runs.is_empty())).then_some(())
        });
        assert!(fleet.stop(&["--kill"]).success());
        fleet.start();
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
