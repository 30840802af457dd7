//! A list that JSON may carry as its only element.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value or a list, as it is read.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum ListOrOne<T> {
    One(T),
    Many(Vec<T>),
}

/// Writes the list.
pub(crate) fn serialize<T: Serialize, S: Serializer>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    list.serialize(serializer)
}

/// Reads either form; `null` is an empty list.
pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(match Option::<ListOrOne<T>>::deserialize(deserializer)? {
        None => Vec::new(),
        Some(ListOrOne::One(one)) => vec![one],
        Some(ListOrOne::Many(many)) => many,
    })
}
