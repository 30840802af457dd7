//! The listeners of the daemon: they identify the caller first, on every path, and every refusal is a document.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Fleet, User};
use crate::http::{Http, HttpAnswer};

/// Each path of the API with its methods: what it takes as a body, and what it takes as a file.
const RESOURCES: &[(&str, &[(&str, Takes)])] = &[
    ("board", &[("GET", Takes::Nothing)]),
    ("tasks", &[("GET", Takes::Nothing), ("POST", Takes::Json)]),
    ("tasks/{task}", &[("GET", Takes::Nothing), ("PATCH", Takes::Json), ("DELETE", Takes::Nothing)]),
    ("tasks/{task}/comments", &[("POST", Takes::Json)]),
    ("tasks/{task}/attachments", &[("GET", Takes::Nothing), ("POST", Takes::File)]),
    ("attachments/{file}", &[("GET", Takes::Nothing), ("DELETE", Takes::Nothing)]),
    ("links", &[("POST", Takes::Json), ("DELETE", Takes::Nothing)]),
    ("dispatch", &[("POST", Takes::Nothing)]),
    ("events", &[("GET", Takes::Nothing)]),
    ("status", &[("GET", Takes::Nothing)]),
    ("verbs", &[("GET", Takes::Nothing)]),
    ("stats", &[("GET", Takes::Nothing)]),
    ("metrics", &[("GET", Takes::Nothing)]),
    ("boards", &[("GET", Takes::Nothing), ("POST", Takes::Json)]),
    ("boards/{board}", &[("PATCH", Takes::Json), ("DELETE", Takes::Nothing)]),
    ("doctor", &[("GET", Takes::Nothing)]),
    ("export", &[("GET", Takes::Nothing)]),
    ("tasks/bulk", &[("POST", Takes::Json)]),
    ("markdown", &[("POST", Takes::Json)]),
    ("config", &[("GET", Takes::Nothing)]),
    ("runs/live", &[("GET", Takes::Nothing)]),
    ("stream", &[("GET", Takes::Nothing)]),
    ("openapi.json", &[("GET", Takes::Nothing)]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    Json,
    File,
}

/// A method of a path.
struct Route {
    method: String,
    path: String,
    takes: Takes,
}

impl Route {
    fn with(&self, task: &str, file: &str) -> String {
        self.path.replace("{task}", task).replace("{file}", file).replace("{board}", "default")
    }

    /// With names that nothing can have.
    fn astray(&self) -> String {
        ["{task}", "{file}", "{board}"]
            .iter()
            .fold(self.path.clone(), |path, name| path.replace(name, "No%20Name"))
    }
}

/// The texts of a directory of the source code and of those in it.
fn sources(dir: &str) -> impl Iterator<Item = String> {
    let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)];
    let mut texts = Vec::new();
    while let Some(dir) = dirs.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                dirs.push(path);
            } else {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    texts.into_iter()
}

/// Every verb's name, from the sources.
fn verbs() -> BTreeSet<String> {
    named_in(sources("verbs/src"))
}

/// The names of the verbs that are about the root, and not about a board.
fn verbs_without_a_board() -> BTreeSet<String> {
    named_in(sources("verbs/src").filter(|text| text.contains("on(None)")))
}

fn named_in(texts: impl Iterator<Item = String>) -> BTreeSet<String> {
    let named = texts.flat_map(|text| {
        let headers = text.split("verb! {").skip(1).map(str::trim_start);
        let names = headers.filter_map(|header| header.strip_prefix('"')?.split('"').next());
        names.map(str::to_owned).collect::<Vec<_>>()
    });
    named.collect()
}

/// Every route there is.
/// Every route: its method, and its path with names that nothing can have.
pub(crate) fn all_routes() -> Vec<(String, String)> {
    routes().into_iter().map(|route| (route.method.clone(), route.astray())).collect()
}

fn routes() -> Vec<Route> {
    let resources = RESOURCES.iter().flat_map(|(path, methods)| {
        let path = format!("/api/v1/{path}");
        methods.iter().map(move |(method, takes)| Route {
            method: (*method).to_owned(),
            path: path.clone(),
            takes: *takes,
        })
    });
    let verbs = verbs().into_iter().map(|name| Route {
        method: "POST".to_owned(),
        path: format!("/api/v1/verbs/{name}"),
        takes: Takes::Json,
    });
    resources.chain(verbs).collect()
}

/// The operator's door.
pub(crate) fn operator(fleet: &Fleet) -> Http {
    let key = fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    Http::at(fleet.root().join("run/supervisor.sock")).with("x-supervisor-key", &key)
}

/// The sockets of all runs that live, by their numbers.
pub(crate) fn run_sockets(fleet: &Fleet) -> BTreeMap<u64, PathBuf> {
    let doors = fs::read_dir(fleet.root().join("run/doors")).unwrap().flatten();
    let numbered = doors.map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        (name.split('-').next().unwrap().parse().unwrap(), entry.path().join("sock"))
    });
    numbered.collect()
}

/// The socket of the oldest run that lives.
pub(crate) fn first_socket(fleet: &Fleet) -> PathBuf {
    run_sockets(fleet).into_values().next().expect("a run lives")
}

/// The door of the oldest run, without a token.
pub(crate) fn workers_door(fleet: &Fleet) -> Http {
    Http::at(first_socket(fleet))
}

/// The socket of the run that has a token.
pub(crate) fn socket_of(fleet: &Fleet, token: &str) -> PathBuf {
    let mut specs = run_sockets(fleet).into_iter().filter(|(run, _)| {
        let boards = fs::read_dir(fleet.root().join("runs")).unwrap().flatten();
        let specs = boards.map(|board| board.path().join(run.to_string()).join("spec.json"));
        specs.filter_map(|spec| fs::read_to_string(spec).ok()).any(|spec| spec.contains(token))
    });
    let socket = specs.next().map(|(_, socket)| socket);
    // A run's door goes with it. A token that is shown at the operator's means the run all the same.
    socket.unwrap_or_else(|| fleet.root().join("run/supervisor.sock"))
}

/// The door of the run that has a token, with that token.
pub(crate) fn as_worker(fleet: &Fleet, token: &str) -> Http {
    Http::at(socket_of(fleet, token)).with("authorization", &format!("Bearer {token}"))
}

/// Starts a worker that does nothing, and returns its task and its token.
pub(crate) fn idle_worker(fleet: &Fleet, more: &[&str]) -> (String, String) {
    let task = fleet.create("idle", "env > env; touch up; exec sleep 600", more);
    let workspace = fleet.eventually("the worker is up", || {
        let board = more.iter().skip_while(|word| **word != "--board").take(2);
        let shown = fleet.json(["show", &task].into_iter().chain(board.copied()));
        let path = PathBuf::from(shown["runs"][0]["workspace_path"].as_str()?);
        path.join("up").exists().then_some(path)
    });
    let env = fs::read_to_string(workspace.join("env")).unwrap();
    let token = env.lines().find_map(|line| line.strip_prefix("SUPERVISOR_TOKEN=")).unwrap();
    (task, token.to_owned())
}

/// Checks that an answer is a problem document, and returns it.
#[track_caller]
fn problem(what: &str, answer: &HttpAnswer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{what}: {}", answer.body);
    assert!(answer.head.contains("content-type: application/problem+json"), "{what}: {}", answer.head);
    let problem: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(problem["status"], json!(status), "{what}");
    assert!(problem["detail"].is_string() && problem["code"].is_string(), "{what}: {problem}");
    problem
}

#[test]
fn the_table_of_routes_is_complete() {
    let mounted: usize = sources("src/resources").map(|text| text.matches(".route(").count()).sum();
    assert_eq!(mounted, RESOURCES.len(), "a path is mounted that the table lacks");
}

#[test]
fn the_api_lists_the_verbs_that_its_caller_may_call() {
    let fleet = Fleet::boot();
    let (_, token) = idle_worker(&fleet, &[]);
    let listed = |http: &Http| -> BTreeMap<String, Value> {
        let answer = http.send("GET", "/api/v1/verbs", b"");
        assert_eq!(answer.status, 200, "{}", answer.body);
        let rows: Vec<Value> = serde_json::from_str(&answer.body).unwrap();
        rows.into_iter().map(|row| (row["name"].as_str().unwrap().to_owned(), row)).collect()
    };

    let operators = listed(&operator(&fleet));
    let workers = listed(&as_worker(&fleet, &token));

    assert_eq!(operators.keys().cloned().collect::<BTreeSet<_>>(), verbs());
    assert!(operators["create"]["request"]["properties"]["title"].is_object(), "{}", operators["create"]);
    assert!(workers.contains_key("complete") && !workers.contains_key("stop"), "{:?}", workers.keys());
    assert!(workers.values().all(|row| row["audience"] == "worker"));
    assert!(operators.values().filter(|row| row["audience"] == "worker").count() == workers.len());
}

#[test]
fn every_route_refuses_what_does_not_fit_with_a_document_of_the_right_status() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let task = fleet.create("x", "true", &["--triage"]);
    let large = vec![b' '; 5 << 20];
    for route in routes() {
        let Route { method, takes, .. } = &route;
        let path = route.with(&task, "1");
        let what = format!("{method} {path}");
        let said = problem(&what, &api.send(method, &format!("{path}?flavour=sweet"), b""), 422);
        assert!(said["detail"].as_str().unwrap().contains("flavour"), "{what}: {said}");
        if *takes == Takes::Json {
            problem(&what, &api.send(method, &path, b"[]"), 422);
            problem(&what, &api.send(method, &path, b" \n[1, 2]"), 422);
            problem(&what, &api.send(method, &path, b"{"), 422);
            for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
                problem(&what, &api.send_as(method, &path, kind, b"{\"title\": \"x\"}"), 415);
            }
            let said = problem(&what, &api.send(method, &path, b"{\"flavour\": \"sweet\"}"), 422);
            assert!(said["detail"].as_str().unwrap().contains("flavour"), "{what}: {said}");
            problem(&what, &api.send(method, &path, &large), 413);
        }
        if *takes == Takes::File {
            let big = vec![0; (25 << 20) + 1];
            problem(&what, &api.send(method, &format!("{path}?filename=big"), &big), 413);
        }
        let answer = api.send("PUT", &path, b"");
        problem(&what, &answer, 405);
        assert!(answer.head.contains(&method.to_lowercase()), "{what}: {}", answer.head);
        if route.path.contains('{') {
            let path = route.astray();
            let body: &[u8] = if *takes == Takes::Json { b"{}" } else { b"" };
            problem(&what, &api.send(method, &path, body), 400);
        }
    }
    assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 1, "nothing was made or removed");
}

#[test]
fn what_the_path_names_is_not_named_otherwise_in_the_request() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let [a, b] = ["a", "b"].map(|title| fleet.create(title, "true", &["--triage"]));
    let path = format!("/api/v1/tasks/{a}");
    let other = json!({"task_id": b, "body": "x"});
    problem("comment", &api.post(&format!("{path}/comments"), &other), 422);
    let other = json!({"task_id": b, "assignee": "x"}).to_string();
    problem("patch", &api.send("PATCH", &path, other.as_bytes()), 422);
    problem("attach", &api.send("POST", &format!("{path}/attachments?task_id={b}&filename=x"), b"x"), 422);
}

#[test]
fn a_bearer_token_is_read_in_any_case_and_anything_else_in_its_place_is_refused() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &[]);
    let path = format!("/api/v1/tasks/{task}");
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        workers_door(&fleet).with("authorization", &format!("{scheme} {token}")).get(&path).json(200);
    }
    for shown in ["Basic YTpi", "Bearer", "Bearer x", "Bearer \u{fc}", &token] {
        // An operator that shows a token speaks for a run, and for nobody where there is none.
        for door in [operator(&fleet), workers_door(&fleet)] {
            problem(shown, &door.with("authorization", shown).get(&path), 403);
        }
    }
}

#[test]
fn who_is_not_known_learns_nothing_and_makes_nothing_on_any_path() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        // It asks as fast as it can, over a connection each.
        fleet.configure(
            "[api]\nconnections_per_second_per_worker = 100000\nrequests_per_second_per_run = 100000",
        );
        fleet.start();
        fleet.cli(["boards", "create", "secret"]).ok();
        let task = fleet.create("x", "true", &["--triage"]);
        idle_worker(&fleet, &[]);
        let (_, foreign) = idle_worker(&fleet, &[]);
        let key = fs::read_to_string(fleet.root().join("operator.key")).unwrap();
        let strangers = [
            workers_door(&fleet),
            workers_door(&fleet).with("x-supervisor-key", &key),
            workers_door(&fleet).with("authorization", "Bearer 0123456789abcdef"),
            workers_door(&fleet).with("authorization", &format!("Bearer {foreign}")),
        ];
        let mut others = routes();
        for (method, path) in [("GET", "/"), ("GET", "/api/v1/nowhere"), ("PUT", "/api/v1/board")] {
            let (method, path) = (method.to_owned(), path.to_owned());
            others.push(Route { method, path, takes: Takes::Nothing });
        }
        for stranger in &strangers {
            let mut said = BTreeSet::new();
            for route in &others {
                for board in [None, Some("secret"), Some("new-board"), Some("No Name")] {
                    let door =
                        board.map_or(stranger.clone(), |name| stranger.with("x-supervisor-board", name));
                    let answer = door.send(&route.method, &route.with(&task, "1"), b"");
                    problem(&route.path, &answer, 403);
                    said.insert(answer.body);
                }
            }
            assert_eq!(said.len(), 1, "one answer to everything: {said:?}");
        }
        assert!(!fleet.root().join("boards/new-board").exists());
    }
}

#[test]
fn a_workers_token_names_its_board_and_no_other_is_spoken_of() {
    let fleet = Fleet::boot();
    fleet.cli(["boards", "create", "secret"]).ok();
    fleet.cli(["boards", "create", "own"]).ok();
    let (task, token) = idle_worker(&fleet, &["--board", "own"]);
    let door = as_worker(&fleet, &token);
    let path = format!("/api/v1/tasks/{task}");

    assert_eq!(door.get(&path).json(200)["task"]["id"], json!(task), "without a name");
    door.with("x-supervisor-board", "own").get(&path).json(200);

    let refusals: BTreeSet<String> = ["default", "secret", "new-board", "No Name", ""]
        .map(|name| {
            let door = door.with("x-supervisor-board", name);
            let said = [
                door.get(&path),
                door.post("/api/v1/verbs/init", &json!({})),
                door.post("/api/v1/verbs/create", &json!({"title": "x"})),
                door.get("/api/v1/nowhere"),
            ];
            said.map(|answer| problem(name, &answer, 403).to_string()).concat()
        })
        .into();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    problem("init", &door.post("/api/v1/verbs/init", &json!({})), 403);
    assert!(!fleet.root().join("boards/new-board").exists());
    // An operator gets an answer, and makes boards by `init` alone. Which verbs and boards there are is about no board.
    let operator = operator(&fleet).with("x-supervisor-board", "new-board");
    let without = verbs_without_a_board();
    let about_no_board = |route: &&Route| {
        let name = route.path.rsplit('/').next().unwrap();
        let is_about_boards = route.path.starts_with("/api/v1/boards");
        is_about_boards
            || ["init", "verbs", "doctor", "openapi.json"].contains(&name)
            || without.contains(name)
    };
    for route in routes().iter().filter(|route| !about_no_board(route)) {
        let answer = operator.send(&route.method, &route.with(&task, "1"), b"");
        assert!(answer.status != 200 || route.path.ends_with("/stop"), "{}: {}", route.path, answer.body);
        if route.path.ends_with("/stop") {
            break;
        }
    }
    assert!(!fleet.root().join("boards/new-board").exists());
    operator.post("/api/v1/verbs/init", &json!({})).json(200);
    assert!(fleet.root().join("boards/new-board").exists());
}
