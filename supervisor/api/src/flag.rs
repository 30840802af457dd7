//! Boolean query parameters in the notations of other boards' clients.

use serde::{Deserialize as _, Deserializer, de};

/// Accepts `true` and `false` in any case, `1` and `0`, and a JSON boolean.
pub fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Notation {
        Is(bool),
        Word(String),
    }
    match Notation::deserialize(deserializer)? {
        Notation::Is(flag) => Ok(flag),
        Notation::Word(word) => match word.to_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(de::Error::custom(format!("`{word}` is neither true nor false"))),
        },
    }
}
