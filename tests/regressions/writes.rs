//! Concurrent writes of programs are complete.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::harness::Fleet;
use crate::journal::{Journal, PATIENT};

fn titles(fleet: &Fleet) -> Vec<String> {
    let listed = fleet.json(["list", "--limit", "1000"]);
    listed.as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_created_beside_a_pass_is_there_also_where_others_open_and_close_the_board() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 2, "");
    let first = fleet.create("runs", &Journal::script(PATIENT), &[]);
    let pass = fleet.command(["dispatch", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    fleet.eventually("the pass has a worker", || (journal.begun() == 1).then_some(()));
    let mut created = Vec::new();
    for n in 0..8 {
        let title = format!("beside {n}");
        fleet.json(["create", &title]);
        created.push(title);
        // Each opens and closes the board, some of them without asking the pass.
        fleet.cli(["list"]).ok();
        fleet.cli(["doctor", "--replay"]).ok();
        fleet.cli(["backup", "--force", "copy.db"]).ok();
    }
    let board = fleet.root().join("boards/default");
    let open = fs::read_dir(format!("/proc/{}/fd", pass.id())).unwrap().flatten();
    let deleted = open
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|path| path.starts_with(&board) && path.to_string_lossy().ends_with("(deleted)"));
    assert_eq!(deleted.collect::<Vec<PathBuf>>(), Vec::<PathBuf>::new());
    journal.let_go();
    assert!(pass.wait_with_output().unwrap().status.success());

    let titles = titles(&fleet);
    for title in created {
        assert!(titles.contains(&title), "{title} is lost");
    }
    assert_eq!(fleet.status_of(&first), "done");
    assert_eq!(fleet.json(["doctor", "--replay"])["ok"], true);
}

#[test]
fn sixteen_programs_create_at_once_and_each_task_is_there_once() {
    let fleet = Fleet::boot();
    std::thread::scope(|scope| {
        for program in 0..16 {
            let fleet = &fleet;
            scope.spawn(move || {
                for n in 0..5 {
                    fleet.json(["create", &format!("{program}.{n}")]);
                }
            });
        }
    });
    let titles = titles(&fleet);
    assert_eq!((titles.len(), titles.iter().collect::<BTreeSet<_>>().len()), (80, 80));
}
