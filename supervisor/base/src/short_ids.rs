//! Abbreviated task ids: a prefix of an id that no other task's id shares.
//!
//! Only the client of an operator completes ids. Workers and programs name whole ids: a stored id has to mean the
//! same later, and a worker should not learn the ids of other tenants.

use kernel::TaskId;
use schemars::{Schema, schema_for};
use serde_json::Value;

use crate::failure::Failure;

/// Number of hexadecimal digits in an id that this program generates.
const DIGITS: usize = 8;

/// Returns true if a text may be an abbreviated id. False for a full id.
fn is_short(text: &str) -> bool {
    text.strip_prefix("t_").is_some_and(|digits| {
        (1..DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Returns true if a JSON request may contain an abbreviated id: a cheap check before the request is parsed.
pub fn may_be_in(body: &[u8]) -> bool {
    body.split(|byte| *byte == b'"').any(|text| std::str::from_utf8(text).is_ok_and(is_short))
}

/// Returns a request with whole ids in the place of abbreviated ones; none if it has no abbreviated ids. `resolve` is
/// asked for the whole ids, in the order of the abbreviated ones.
pub async fn widened(
    schema: fn() -> Schema,
    request: &[u8],
    resolve: impl AsyncFnOnce(Vec<String>) -> Result<Vec<TaskId>, Failure>,
) -> Result<Option<Vec<u8>>, Failure> {
    if !may_be_in(request) {
        return Ok(None);
    }
    let mut request: Value = serde_json::from_slice(request).map_err(|e| unreadable(&e))?;
    let places = in_request(&schema(), &mut request);
    if places.is_empty() {
        return Ok(None);
    }
    let ids = places.iter().filter_map(|place| place.as_str().map(str::to_owned)).collect();
    for (place, whole) in places.into_iter().zip(resolve(ids).await?) {
        *place = whole.as_str().into();
    }
    Ok(Some(request.to_string().into_bytes()))
}

fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::failed(format!("the request cannot be read: {error}"))
}

/// Returns the abbreviated ids of a request, in the fields that its schema declares as task ids.
pub fn in_request<'a>(schema: &Schema, request: &'a mut Value) -> Vec<&'a mut Value> {
    let fields = request.as_object_mut().into_iter().flatten();
    let texts = fields.filter(|(name, _)| is_id(schema, name)).flat_map(|(_, value)| match value {
        Value::Array(items) => items.iter_mut().collect(),
        other => vec![other],
    });
    texts.filter(|value| value.as_str().is_some_and(is_short)).collect()
}

/// Returns the task ids of a request, from the fields that its schema declares as task ids.
pub fn of_request(schema: &Schema, request: &[u8]) -> Result<Vec<TaskId>, Failure> {
    let request: Value = serde_json::from_slice(request).map_err(|e| unreadable(&e))?;
    let fields = request.as_object().into_iter().flatten();
    let texts = fields.filter(|(name, _)| is_id(schema, name)).flat_map(|(_, value)| match value {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    });
    let ids = texts.filter_map(Value::as_str).map(str::parse);
    ids.collect::<Result<_, _>>().map_err(|e: kernel::ParseError| Failure::usage(e.to_string()))
}

/// Returns true if the schema of a request declares a field as a task id, or as a list of them.
fn is_id(schema: &Schema, field: &str) -> bool {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.and_then(|fields| fields.get(field)).is_some_and(names_a_task)
}

/// Returns true if the schema of a field, or of its items, is the schema of a task id.
fn names_a_task(field: &Value) -> bool {
    let whole = schema_for!(TaskId);
    let is_whole = field.get("pattern").is_some_and(|pattern| whole.get("pattern") == Some(pattern));
    let parts = ["items", "anyOf"].into_iter().filter_map(|part| field.get(part));
    is_whole
        || parts
            .flat_map(|part| part.as_array().map_or_else(|| vec![part], |parts| parts.iter().collect()))
            .any(names_a_task)
}
