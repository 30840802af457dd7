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

/// A request in JSON with abbreviated ids.
#[derive(Debug)]
pub struct Abbreviated {
    schema: Schema,
    request: Value,
}

impl Abbreviated {
    /// Returns the request if it contains an abbreviated id.
    pub fn of(schema: fn() -> Schema, json: &[u8]) -> Result<Option<Self>, Failure> {
        if !may_be_in(json) {
            return Ok(None);
        }
        let request = serde_json::from_slice(json).map_err(|e| unreadable(&e))?;
        let mut abbreviated = Abbreviated { schema: schema(), request };
        Ok((!abbreviated.places().is_empty()).then_some(abbreviated))
    }

    /// Returns the abbreviated ids.
    pub fn ids(&mut self) -> Vec<String> {
        self.places().iter().filter_map(|place| place.as_str().map(str::to_owned)).collect()
    }

    /// Returns the request in JSON with these ids in their place.
    pub fn with(mut self, whole: Vec<TaskId>) -> Vec<u8> {
        for (place, whole) in self.places().into_iter().zip(whole) {
            *place = whole.as_str().into();
        }
        self.request.to_string().into_bytes()
    }

    fn places(&mut self) -> Vec<&mut Value> {
        in_request(&self.schema, &mut self.request)
    }
}

fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::failed(format!("the request cannot be read: {error}"))
}

/// Returns the abbreviated ids of a request, in the fields that its schema declares as task ids.
pub fn in_request<'a>(schema: &Schema, request: &'a mut Value) -> Vec<&'a mut Value> {
    let fields = schema.get("properties").and_then(Value::as_object);
    let is_id = |name: &str| fields.and_then(|fields| fields.get(name)).is_some_and(names_a_task);
    let found = request.as_object_mut().into_iter().flatten().filter(|(name, _)| is_id(name));
    let texts = found.flat_map(|(_, value)| match value {
        Value::Array(items) => items.iter_mut().collect(),
        other => vec![other],
    });
    texts.filter(|value| value.as_str().is_some_and(is_short)).collect()
}

/// Returns the task ids of a request, from the fields that its schema declares as task ids.
pub fn of_request(schema: &Schema, request: &[u8]) -> Result<Vec<TaskId>, Failure> {
    let request: Value = serde_json::from_slice(request).map_err(|e| unreadable(&e))?;
    let fields = schema.get("properties").and_then(Value::as_object);
    let is_id = |name: &str| fields.and_then(|fields| fields.get(name)).is_some_and(names_a_task);
    let named = request.as_object().into_iter().flatten().filter(|(name, _)| is_id(name));
    let texts = named.flat_map(|(_, value)| match value {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    });
    let ids = texts.filter_map(Value::as_str).map(str::parse);
    ids.collect::<Result<_, _>>().map_err(|e: kernel::ParseError| Failure::usage(e.to_string()))
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
