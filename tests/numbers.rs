//! Numbers at their edges, in each query, path and request of the API that reads: each is taken, or refused with its name.

use std::fs;

use serde_json::{Map, Value, json};

use crate::harness::Fleet;
use crate::http::{Http, HttpAnswer};

/// As they stand in a query, and in JSON.
const EDGES: [&str; 9] = [
    "0",
    "-1",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e400",
    "x",
];

/// Returns true if the values of a schema are numbers.
fn is_numeric(document: &Value, schema: &Value) -> bool {
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    if kinds.iter().any(|kind| kind == "integer" || kind == "number") {
        return true;
    }
    let within = schema["$ref"].as_str().and_then(|at| document.pointer(at.strip_prefix('#')?));
    let parts = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|part| schema[part].as_array());
    within.into_iter().chain(parts.flatten()).any(|part| is_numeric(document, part))
}

/// A refusal names what is wrong; anything else is an answer.
fn judge(what: &str, key: &str, edge: &str, said: &HttpAnswer) -> Option<String> {
    match said.status {
        200..=299 | 404 => None,
        400 | 422 if said.body.contains(key) || said.body.contains(edge) => None,
        status => Some(format!("{what}: {key} = {edge}: {status} {}", said.body)),
    }
}

#[test]
fn a_number_at_its_edge_is_taken_or_refused_by_its_name() {
    let fleet = Fleet::boot();
    let ran = fleet.create("ran", "echo one; echo two", &[]);
    fleet.wait_for(&ran, "done");
    let api = Http::at(fleet.root().join("run/supervisor.sock"));
    let api = match fs::read_to_string(fleet.root().join("operator.key")) {
        Ok(key) => api.with("x-supervisor-key", &key),
        Err(_) => api,
    };
    let document = api.get("/api/v1/openapi.json").json(200);
    let reads = api.get("/api/v1/verbs").json(200);
    let reads: Vec<&str> = reads
        .as_array()
        .unwrap()
        .iter()
        .filter(|verb| verb["needs"] == "read")
        .map(|verb| verb["name"].as_str().unwrap())
        .collect();
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for (path, methods) in document["paths"].as_object().unwrap() {
        if let Some(get) = methods.get("get").filter(|_| path != "/api/v1/stream") {
            let filled = path.replace("{id}", if path.contains("attachments/") { "1" } else { &ran });
            for parameter in get["parameters"].as_array().unwrap() {
                let (Some("query"), Some(key)) = (parameter["in"].as_str(), parameter["name"].as_str())
                else {
                    continue;
                };
                if is_numeric(&document, &parameter["schema"]) {
                    for edge in EDGES {
                        tried += 1;
                        wrong.extend(judge(path, key, edge, &api.get(&format!("{filled}?{key}={edge}"))));
                    }
                }
            }
            for edge in EDGES.into_iter().filter(|_| path.contains("{id}")) {
                tried += 1;
                wrong.extend(judge(path, "id", edge, &api.get(&path.replace("{id}", edge))));
            }
        }
        let Some(verb) = path.strip_prefix("/api/v1/verbs/").filter(|verb| reads.contains(verb)) else {
            continue;
        };
        let schema = &methods["post"]["requestBody"]["content"]["application/json"]["schema"];
        let schema = document.pointer(schema["$ref"].as_str().unwrap().strip_prefix('#').unwrap()).unwrap();
        let empty = Map::new();
        let fields = schema["properties"].as_object().unwrap_or(&empty);
        for (key, _) in fields.iter().filter(|(_, schema)| is_numeric(&document, schema)) {
            for edge in EDGES {
                let value = if edge == "x" { "\"x\"" } else { edge };
                let task = if fields.contains_key("task_id") {
                    format!("\"task_id\":\"{ran}\",")
                } else {
                    String::new()
                };
                tried += 1;
                let said = api.send("POST", path, format!("{{{task}\"{key}\":{value}}}").as_bytes());
                wrong.extend(judge(verb, key, edge, &said));
            }
        }
    }
    assert!(tried > 200, "{tried}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The one that was found: no file reaches so far.
    let log = json!({ "task_id": ran, "offset": 1_u64 << 63 });
    let said = api.post("/api/v1/verbs/log", &log);
    assert_eq!(said.status, 422, "{said:?}");
    assert!(said.body.contains("`offset`"), "{said:?}");
}
