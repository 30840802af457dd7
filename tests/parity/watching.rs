//! Runs and their observation: `dispatch`, `diagnostics`, `log`, `tail`, `watch`, `daemon`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::json;

use super::{TypedRoot, id};

pub(super) fn walk(desk: &TypedRoot) {
    let task = id(&desk.json("create hello --assignee shell --body 'echo hello'"));
    let broken = id(&desk.json("create broken --assignee shell --body false"));
    let plan = desk.json("dispatch --dry-run");
    let would: Vec<_> = plan["spawned"].as_array().unwrap().iter().map(|one| &one["task_id"]).collect();
    assert!(would.contains(&&json!(task)) && would.contains(&&json!(broken)), "{plan}");
    assert_eq!(desk.json("dispatch --dry-run --max 1")["spawned"].as_array().map(Vec::len), Some(1));

    let pass = desk.run("dispatch --failure-limit 1 --json");

    assert_eq!(pass.code, 1, "{}", pass.stderr);
    let pass = pass.json();
    assert_eq!((&pass["auto_blocked"], &pass["crashed"]), (&json!([broken]), &json!([broken])), "{pass}");
    assert_eq!((desk.status(&task), desk.status(&broken)), ("done".to_owned(), "blocked".to_owned()));
    let cycling = desk.task("--assignee ann");
    for kind in ["needs_input", "capability", "transient"] {
        desk.ok(&format!("block {cycling} 'not yet' --kind {kind}"));
        desk.ok(&format!("unblock {cycling}"));
    }
    let wrong = desk.json(&format!("diagnostics --task {cycling}"));
    assert_eq!(wrong[0]["task_id"], cycling, "{wrong}");
    assert_eq!(desk.json(&format!("diagnostics --task {cycling} --severity critical")), json!([]));
    assert!(desk.ok("diag").contains(&cycling));
    assert_eq!(desk.ok(&format!("log {task}")), "hello\n");
    assert_eq!(desk.ok(&format!("log {task} --tail 3")), "lo\n");
    assert!(first_line(desk, &format!("tail {task} --interval 0.5")).contains("created"));
    let late = desk.task("--assignee walter --tenant seen");
    let events = desk.json("list --tenant seen");
    assert_eq!(events[0]["id"], late);
    let seen = first_line(
        desk,
        "watch --assignee walter --tenant seen --kinds created,completed --interval 0.5 --since 0",
    );
    assert!(seen.contains(&late) && seen.contains("created"), "{seen}");
    // Each of them alone leaves out what came before.
    for only in ["--assignee walter", "--tenant seen"] {
        let seen = first_line(desk, &format!("watch --since 0 {only}"));
        assert!(seen.contains(&late), "{only}: {seen}");
    }
    let seen = first_line(desk, "watch --since 0 --kinds completed");
    assert!(seen.contains("completed"), "{seen}");
    desk.ok("gc --event-retention-days 30 --log-retention-days 30");
    assert_eq!(desk.ok(&format!("log {task}")), "hello\n", "nothing is that old");
    daemon(desk);
}

/// The first line of a command that goes on until it is ended.
fn first_line(desk: &TypedRoot, line: &str) -> String {
    let mut command = desk.fleet.command(desk.note(line));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    first
}

fn daemon(desk: &TypedRoot) {
    let fleet = &desk.fleet;
    let pidfile = fleet.home().join("daemon.pid");
    let line = format!(
        "daemon --interval 5 --max 1 --failure-limit 1 --pidfile {} --verbose --force",
        pidfile.display()
    );
    let log = std::fs::File::create(fleet.log_file()).unwrap();
    let mut command = fleet.command(desk.note(&line));
    command.stdout(log.try_clone().unwrap()).stderr(log);
    fleet.adopt(command.spawn().unwrap());
    let pid = fleet.eventually("the pid is written", || {
        std::fs::read_to_string(&pidfile).ok().filter(|text| text.ends_with('\n'))
    });
    assert_eq!(pid.trim_end(), fleet.daemon_pid().to_string());
    assert_eq!(fleet.json(["status"])["daemon"]["slots"], 1, "--max 1");
    let broken = desk.task("--assignee shell --body false");
    let shown = fleet.wait_for(&broken, "blocked");
    assert_eq!(shown["runs"].as_array().map(Vec::len), Some(1), "one failure was enough");
    assert!(fleet.log().contains("DEBUG"), "--verbose says more");
    assert!(fleet.stop(&["--wait"]).success());
    assert!(!pidfile.exists(), "a daemon that has gone has no pid");
}
