//! Tests that the document is complete and valid for its readers.

use std::path::Path;

use regex::Regex;

use super::*;

fn whole() -> Value {
    document(&verbs::entries(), &[])
}

/// Calls `each` for every object of a value, with its path.
fn walk(value: &Value, at: &str, each: &mut dyn FnMut(&Map<String, Value>, &str)) {
    match value {
        Value::Object(fields) => {
            each(fields, at);
            fields.iter().for_each(|(name, value)| walk(value, &format!("{at}/{name}"), each));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, at, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_verb_and_every_resource_is_in_the_document() {
    let document = whole();
    for entry in verbs::entries() {
        let operation = &document["paths"][format!("/api/v1/verbs/{}", entry.name)]["post"];
        assert_eq!(operation["operationId"], format!("verb.{}", entry.name));
    }
    // Paths mounted by the files of this room.
    let mounted = Regex::new(
        r#"route\(\s*(?:&at\("([^"]+)"\)|&format!\("\{prefix\}([^"]+)"\)|"/api/v1([^"]+)"),\s*((?:[a-z]+\([a-z_]+\)\.?)+)\)"#,
    )
    .unwrap();
    let method = Regex::new(r"(get|post|patch|delete|put)\(").unwrap();
    let mut found = BTreeSet::new();
    let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/resources");
    for file in std::fs::read_dir(room).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for route in mounted.captures_iter(&text) {
            let shared = route.get(1).or_else(|| route.get(2));
            let path = shared.or_else(|| route.get(3)).unwrap().as_str();
            for method in method.captures_iter(&route[4]) {
                for prefix in PREFIXES.iter().take(if shared.is_some() { 2 } else { 1 }) {
                    found.insert((format!("{prefix}{path}"), method[1].to_owned()));
                }
            }
        }
    }
    assert!(found.len() > 40, "the paths were not found: {found:?}");
    let mut listed = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        if !path.starts_with("/api/v1/verbs/") {
            listed
                .extend(operations.as_object().unwrap().keys().map(|method| (path.clone(), method.clone())));
        }
    }
    assert_eq!(listed, found, "resources/catalog.rs lists other resources than are mounted");
}

#[test]
fn every_reference_leads_to_something() {
    let document = whole();
    let mut count = 0;
    walk(&document, "", &mut |fields, at| {
        let Some(Value::String(reference)) = fields.get("$ref") else { return };
        count += 1;
        let there = document.pointer(reference.strip_prefix('#').unwrap());
        assert!(there.is_some(), "{at}: {reference}");
    });
    assert!(count > 300, "{count}");
}

#[test]
fn every_operation_is_one_of_openapi() {
    let document = whole();
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    let name = Regex::new("^[a-zA-Z0-9._-]+$").unwrap();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let template: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        for (method, operation) in operations.as_object().unwrap() {
            let at = format!("{method} {path}");
            assert!(["get", "post", "patch", "delete"].contains(&method.as_str()), "{at}");
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap().to_owned()),
                "{at}: its id is another's"
            );
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{at}: it says nothing");
            assert!(operation["responses"]["2XX"]["description"].is_string(), "{at}");
            let parameters = operation["parameters"].as_array().unwrap();
            let of = |place: &str| -> Vec<&str> {
                let of = parameters.iter().filter(|parameter| parameter["in"] == place);
                of.map(|parameter| parameter["name"].as_str().unwrap()).collect()
            };
            assert_eq!(of("path").into_iter().collect::<BTreeSet<_>>(), template, "{at}");
            let query = of("query");
            assert_eq!(query.iter().collect::<BTreeSet<_>>().len(), query.len(), "{at}: {query:?}");
            let body = operation.get("requestBody").is_some();
            assert!(!body || !["get", "delete"].contains(&method.as_str()), "{at} has a body");
        }
    }
    for (kind, components) in document["components"].as_object().unwrap() {
        for key in components.as_object().unwrap().keys() {
            assert!(name.is_match(key), "{kind}: {key}");
        }
    }
}

/// Keywords of JSON Schema 2020-12 in use, with their permitted values.
#[test]
fn every_schema_is_one_of_json_schema() {
    let types = ["string", "integer", "number", "boolean", "object", "array", "null"];
    let is_type = |value: &Value| value.as_str().is_some_and(|word| types.contains(&word));
    let is_schema = |value: &Value| value.is_object() || value.is_boolean();
    let document = whole();
    let mut schemas: Vec<&Value> = document["components"]["schemas"].as_object().unwrap().values().collect();
    let mut seen = 0;
    while let Some(schema) = schemas.pop() {
        let Some(fields) = schema.as_object() else { continue };
        seen += 1;
        for (word, value) in fields {
            let fits = match word.as_str() {
                "type" => is_type(value) || value.as_array().is_some_and(|all| all.iter().all(is_type)),
                "properties" | "patternProperties" => {
                    let all = value.as_object().unwrap();
                    schemas.extend(all.values());
                    all.values().all(is_schema)
                }
                "items" | "additionalProperties" | "propertyNames" | "unevaluatedProperties" | "not" => {
                    schemas.push(value);
                    is_schema(value)
                }
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                    let all = value.as_array().unwrap();
                    schemas.extend(all);
                    !all.is_empty() && all.iter().all(is_schema)
                }
                "required" => value.as_array().unwrap().iter().all(Value::is_string),
                "enum" => !value.as_array().unwrap().is_empty(),
                "pattern" => value.as_str().is_some_and(|pattern| Regex::new(pattern).is_ok()),
                "$ref" | "description" | "format" | "title" | "contentEncoding" => value.is_string(),
                "minimum" | "maximum" | "exclusiveMinimum" => value.is_number(),
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" => value.is_u64(),
                "uniqueItems" | "deprecated" => value.is_boolean(),
                "default" | "const" | "examples" => true,
                _ => false,
            };
            assert!(fits, "{word}: {value}");
        }
    }
    assert!(seen > 500, "{seen}");
}

#[test]
fn a_caller_is_told_of_what_it_may_use_alone() {
    let workers: Vec<VerbEntry> =
        verbs::entries().into_iter().filter(|entry| entry.audience == Audience::Worker).collect();
    let document = document(&workers, &[]);
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.contains_key("/api/v1/verbs/comment") && paths.contains_key("/api/v1/openapi.json"));
    for closed in
        ["/api/v1/board", "/api/v1/verbs/list", "/api/v1/stream", "/api/v1/export", "/api/v1/verbs/diff"]
    {
        assert!(!paths.contains_key(closed), "{closed}");
    }
}
