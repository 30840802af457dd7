//! `GET /api/v1/openapi.json`: the part of the API that the caller may use, as an `OpenAPI` 3.1 document. The document
//! is made from the registry of verbs, which has the schemas of requests, and from the catalog of resources.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use schemars::Schema;
use serde_json::{Map, Value, json};

use super::PREFIXES;
use super::catalog::{BodyKind, RESOURCES, ReplyKind, Resource};
use api::{Ask, Audience, Effect, Messages, Routes, VerbEntry, blocking, written};
use base::failure::Failure;

/// Prefixes of references to schemas: in the document, and in a schema of its own.
const HERE: &str = "#/components/schemas/";
const OWN: &str = "#/$defs/";

pub(super) fn mount(router: Routes) -> Routes {
    router.route("/api/v1/openapi.json", get(openapi))
}

async fn openapi(ask: Ask) -> Result<Response, Failure> {
    let verbs = ask.verbs()?;
    let exchanges = ask.exchanges().to_vec();
    let made = blocking("the document was not made", move || document(&verbs, &exchanges)).await?;
    written(StatusCode::OK, made).await
}

/// Returns the document for a caller who may call these verbs.
pub(super) fn document(verbs: &[VerbEntry], exchanges: &[Messages]) -> Value {
    let mut schemas = Schemas::default();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for entry in verbs {
        let path = format!("/api/v1/verbs/{}", entry.name);
        paths.entry(path).or_default().insert("post".to_owned(), of_verb(entry, &mut schemas));
    }
    let open: BTreeMap<&str, &VerbEntry> = verbs.iter().map(|entry| (entry.name, entry)).collect();
    for resource in &RESOURCES {
        let verb = match resource.verb {
            Some(verb) => match open.get(verb) {
                Some(entry) => Some(*entry),
                None => continue,
            },
            None => None,
        };
        // Shared resources have an operation under each prefix.
        for prefix in PREFIXES.iter().take(if resource.is_shared { 2 } else { 1 }) {
            let path = format!("{prefix}{}", resource.path);
            let operation = of_resource(resource, verb, &path, &mut schemas);
            paths.entry(path).or_default().insert(resource.method.to_owned(), operation);
        }
    }
    for messages in exchanges.iter().filter(|one| one.verb.is_none_or(|verb| open.contains_key(verb))) {
        let operation = of_messages(messages, &mut schemas);
        paths.entry(messages.path.to_owned()).or_default().insert("post".to_owned(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "supervisor",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The API of the daemon, on its Unix sockets and behind the dashboard. It lists what the caller may use.",
        },
        "servers": [{ "url": "/" }],
        "security": [{}, { "operator": [] }, { "run": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.finished(),
            "parameters": parameters(),
            "responses": { "Refusal": refusal() },
            "securitySchemes": {
                "operator": { "type": "apiKey", "in": "header", "name": "X-Supervisor-Key" },
                "run": { "type": "http", "scheme": "bearer" },
            },
        },
    })
}

fn of_verb(entry: &VerbEntry, schemas: &mut Schemas) -> Value {
    let schema = (entry.request)();
    let about = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let request = schemas.put(entry.name, schema);
    json!({
        "operationId": format!("verb.{}", entry.name),
        "summary": first_line(&about),
        "tags": ["verbs"],
        "parameters": headers(Some(entry)),
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": request } },
        },
        "responses": responses(&json!({ "application/json": { "schema": {} } })),
        "x-audience": audience(entry),
    })
}

fn of_messages(messages: &Messages, schemas: &mut Schemas) -> Value {
    let path = messages.path;
    let message = schemas.put(&format!("post{path}.body"), (messages.message)());
    let reply = schemas.put(&format!("post{path}.reply"), (messages.reply)());
    let mut parameters: Vec<Value> = in_path(path);
    parameters.extend(headers(None));
    json!({
        "operationId": operation_id(path, "post"),
        "summary": messages.about,
        "tags": ["messages"],
        "parameters": parameters,
        "requestBody": { "required": true, "content": { "application/json": { "schema": message } } },
        "responses": responses(&json!({ "application/json": { "schema": reply } })),
    })
}

/// Returns the parameters of a path.
fn in_path(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter =
        |name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    names.map(parameter).collect()
}

fn operation_id(path: &str, method: &str) -> String {
    path.trim_start_matches('/').replace(['/', '{', '}'], ".") + "." + method
}

fn of_resource(resource: &Resource, verb: Option<&VerbEntry>, path: &str, schemas: &mut Schemas) -> Value {
    let mut parameters = in_path(path);
    let names_a_thing = !parameters.is_empty();
    if let Some(query) = resource.query {
        let schema = schemas.adopted(query());
        parameters.extend(in_query(&schema).into_iter().filter(|parameter| {
            // The path already contains it.
            !names_a_thing || parameter["name"] != "task_id"
        }));
    }
    parameters.extend(headers(verb));
    let name = format!("{}{}", resource.method, resource.path);
    let reply = match resource.reply {
        ReplyKind::OfVerb => json!({ "application/json": { "schema": {} } }),
        ReplyKind::Json(make) => {
            json!({ "application/json": { "schema": schemas.put(&format!("{name}.reply"), make()) } })
        }
        ReplyKind::Other(media_type) => json!({ (media_type): { "schema": { "type": "string" } } }),
    };
    let mut operation = json!({
        "operationId": operation_id(path, resource.method),
        "summary": resource.about,
        "tags": ["resources"],
        "parameters": parameters,
        "responses": responses(&reply),
    });
    let content = match resource.body {
        BodyKind::None => None,
        BodyKind::Json(make) => {
            Some(json!({ "application/json": { "schema": schemas.put(&format!("{name}.body"), make()) } }))
        }
        BodyKind::Bytes => Some(json!({ "application/octet-stream": {} })),
    };
    if let Some(content) = content {
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    if let Some(entry) = verb {
        operation["x-verb"] = json!(entry.name);
    }
    operation
}

fn first_line(about: &str) -> &str {
    about.split("\n\n").next().unwrap_or_default().trim_end_matches('.')
}

fn audience(entry: &VerbEntry) -> Value {
    let mut callers = match entry.audience {
        Audience::Operator => vec!["operators"],
        Audience::Orchestrator => vec!["operators", "orchestrators"],
        Audience::Worker => vec!["operators", "workers"],
    };
    callers.extend(entry.members.then_some("users of tenants"));
    json!(callers)
}

/// Returns the parameters of a query, from the fields of its type.
fn in_query(schema: &Value) -> Vec<Value> {
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object().into_iter().flatten();
    let parameter = |(name, schema): (&String, &Value)| json!({ "name": name, "in": "query", "required": required.contains(name.as_str()), "schema": schema });
    fields.map(parameter).collect()
}

/// Returns the optional headers of a request.
fn headers(verb: Option<&VerbEntry>) -> Vec<Value> {
    let header = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
    let mut headers = vec![header("Board")];
    if verb.is_some_and(|entry| entry.effect != Effect::Read) {
        headers.push(header("RequestId"));
    }
    headers
}

fn parameters() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "Board": {
            "name": "X-Supervisor-Board", "in": "header", "schema": text,
            "description": "The board; `default` where it is absent. The token of a worker names its own.",
        },
        "RequestId": {
            "name": "X-Request-Id", "in": "header", "schema": text,
            "description": "A repeat with the same id gets the reply of the first request.",
        },
    })
}

fn responses(content: &Value) -> Value {
    json!({
        "2XX": { "description": "Success.", "content": content },
        "default": { "$ref": "#/components/responses/Refusal" },
    })
}

fn refusal() -> Value {
    let schema = json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string", "description": "The failed operation and the reason." },
            "code": { "type": "string", "description": "The class, as a stable word." },
            "hint": { "type": "string", "description": "The next step for the reader." },
            "changed": { "type": "boolean", "description": "True if the request changed something before the refusal, or may have." },
        },
    });
    json!({ "description": "Refusal.", "content": { "application/problem+json": { "schema": schema } } })
}

/// Schemas of the document. A schema shared by several requests appears once.
#[derive(Default)]
struct Schemas {
    made: BTreeMap<String, Value>,
    /// Schemas by name in the document, before their references were changed.
    raw: BTreeMap<String, Value>,
}

impl Schemas {
    /// Adds a schema under a name. Returns a reference to it.
    fn put(&mut self, name: &str, schema: Schema) -> Value {
        let schema = self.adopted(schema);
        let name = format!("request.{}", word(name));
        self.made.insert(name.clone(), schema);
        json!({ "$ref": format!("{HERE}{name}") })
    }

    /// Adds the parts of a schema, and returns it with references to them.
    fn adopted(&mut self, schema: Schema) -> Value {
        let mut schema = schema.to_value();
        let parts = schema.as_object_mut().and_then(|fields| {
            fields.remove("$schema");
            fields.remove("title");
            fields.remove("$defs")
        });
        let parts = match parts {
            Some(Value::Object(parts)) => parts,
            _ => Map::new(),
        };
        let mut names = BTreeMap::new();
        for (own, part) in &parts {
            // A different part of the same name gets another name.
            let free = |name: &String| self.raw.get(name).is_none_or(|there| there == part);
            let name = (0..=parts.len())
                .map(|n| if n == 0 { word(own) } else { format!("{}.{n}", word(own)) })
                .find(free);
            let Some(name) = name else { continue };
            self.raw.insert(name.clone(), part.clone());
            names.insert(format!("{OWN}{own}"), format!("{HERE}{name}"));
        }
        for (own, mut part) in parts {
            redirect(&mut part, &names);
            if let Some(name) = names.get(&format!("{OWN}{own}")).and_then(|at| at.strip_prefix(HERE)) {
                self.made.insert(name.to_owned(), part);
            }
        }
        redirect(&mut schema, &names);
        schema
    }

    fn finished(self) -> Value {
        json!(self.made)
    }
}

/// Replaces characters that names of components may not have.
fn word(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    name.chars().map(fit).collect()
}

/// Changes the references of a schema.
fn redirect(schema: &mut Value, names: &BTreeMap<String, String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("$ref", Value::String(at)) => {
                        if let Some(there) = names.get(at.as_str()) {
                            at.clone_from(there);
                        }
                    }
                    (_, value) => redirect(value, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
