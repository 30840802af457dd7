//! A command and a daemon of different releases: what one does not know of the other is said so, with what to do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixListener;

use serde_json::json;

use crate::harness::Fleet;
use crate::http::Http;

/// Stands in for a daemon of the release before, which lacks the verb `consult` and a field of `edit`.
fn former_daemon(fleet: &Fleet) {
    let run = fleet.root().join("run");
    std::fs::create_dir_all(&run).unwrap();
    let listener = UnixListener::bind(run.join("supervisor.sock")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            reader.read_line(&mut line).unwrap();
            let asked = line.trim().to_owned();
            while line != "\r\n" {
                line.clear();
                reader.read_line(&mut line).unwrap();
                if let Some(said) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = said.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let (status, code, detail) = match asked.split(' ').take(2).collect::<Vec<_>>()[..] {
                [_, "/api/v1/verbs/diagnostics"] => (404, "not_found", "no such path in this API"),
                ["POST", "/api/v1/verbs/edit"] => (
                    422,
                    "usage",
                    "invalid body: pools: unknown field `pools`, expected one of `title`, `body`",
                ),
                ["POST", "/api/v1/verbs/show"] => (404, "not_found", "no such task: t_00000000"),
                ["GET", _] => (405, "usage", "this path does not support this method"),
                _ => (500, "failed", "not looked for"),
            };
            let answer = json!({ "type": "about:blank", "title": code, "status": status, "code": code, "detail": detail });
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/problem+json\r\ncontent-length: {}",
                answer.len()
            );
            reader
                .get_mut()
                .write_all(format!("{head}\r\nconnection: close\r\n\r\n{answer}").as_bytes())
                .unwrap();
        }
    });
}

#[test]
fn a_command_says_that_the_daemon_is_of_another_release_and_how_to_restart_it() {
    let fleet = Fleet::offline();
    former_daemon(&fleet);
    let restart = "systemctl restart supervisor, or supervisor stop --leave";
    let refused =
        fleet.cli(["diagnostics"]).refused(1, "another release and does not know the verb `diagnostics`");
    assert!(refused.stderr.contains(restart), "{}", refused.stderr);
    let sent = ["edit", "t_00000000", "--pool", "gpu"];
    let refused = fleet.cli(sent).refused(1, "does not know what this command sends with `edit`");
    assert!(
        refused.stderr.contains("unknown field `pools`") && refused.stderr.contains(restart),
        "{}",
        refused.stderr
    );
    // What the daemon knows and does not have is no matter of releases.
    let refused = fleet.cli(["show", "t_00000000"]).refused(3, "no such task: t_00000000");
    assert!(!refused.stderr.contains("release"), "{}", refused.stderr);
}

#[test]
fn a_request_of_an_earlier_release_lacks_what_is_new_and_is_carried_out() {
    let fleet = Fleet::boot();
    let api = Http::at(fleet.root().join("run/supervisor.sock"));
    let api = match std::fs::read_to_string(fleet.root().join("operator.key")) {
        Ok(key) => api.with("x-supervisor-key", &key),
        Err(_) => api,
    };
    let sent = |verb: &str, body| api.post(&format!("/api/v1/verbs/{verb}"), &body);
    // As the first release has sent them: without anything that came later.
    let task = sent("create", json!({"title": "x", "assignee": "nobody"})).json(200)["id"].clone();
    let edited = sent("edit", json!({"task_id": task, "title": "y"})).json(200);
    assert_eq!((&edited["title"], &edited["pools"]), (&json!("y"), &json!(null)));
    for (verb, body) in [
        ("show", json!({"task_id": task})),
        ("status", json!({})),
        ("list", json!({})),
        ("gc", json!({"dry_run": true})),
        ("hold", json!({"task_ids": [task], "reason": "r"})),
        ("holds", json!({})),
        ("release", json!({"task_ids": [task]})),
        ("diagnostics", json!({})),
        ("reload", json!({})),
        ("log", json!({"task_id": task})),
    ] {
        let answer = sent(verb, body);
        assert_eq!(answer.status, 200, "{verb}: {}", answer.body);
    }
    // What a later command sends is refused as what it is: a verb and a field that are not known here.
    assert_eq!(sent("of_tomorrow", json!({})).json(404)["detail"], "no such path in this API");
    let refused = sent("edit", json!({"task_id": task, "title": "z", "of_tomorrow": 1})).json(422);
    assert!(
        refused["detail"].as_str().unwrap().starts_with("invalid body: of_tomorrow: unknown field"),
        "{refused}"
    );
    assert_eq!(fleet.show(task.as_str().unwrap())["task"]["title"], "y", "nothing of it is done");
}
