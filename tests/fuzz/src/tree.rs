//! Changes of a value: a part of it goes, becomes another one, or is put somewhere else.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Map, Value, json};

/// Changes a JSON value; none where the input is none.
pub(crate) fn change_json(
    input: &[u8],
    other: &[u8],
    words: &[Vec<u8>],
    rng: &mut StdRng,
) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(input).ok()?;
    let other = serde_json::from_slice(other).unwrap_or(Value::Null);
    change(&mut value, &other, words, rng);
    serde_json::to_vec(&value).ok()
}

/// Changes a TOML document; none where the input is none.
pub(crate) fn change_toml(
    input: &[u8],
    other: &[u8],
    words: &[Vec<u8>],
    rng: &mut StdRng,
) -> Option<Vec<u8>> {
    let read = |input: &[u8]| toml::from_str::<Value>(str::from_utf8(input).ok()?).ok();
    let mut value = read(input)?;
    let other = read(other).unwrap_or(Value::Null);
    change(&mut value, &other, words, rng);
    toml::to_string(&value).ok().map(String::into_bytes)
}

fn change(value: &mut Value, other: &Value, words: &[Vec<u8>], rng: &mut StdRng) {
    let other = choose(other, rng).clone();
    // Deep places are as likely as high ones.
    let mut place = value;
    while is_branch(place) && rng.random_bool(0.75) {
        place = match place {
            Value::Array(items) => {
                let at = rng.random_range(0..items.len());
                &mut items[at]
            }
            Value::Object(fields) => {
                let at = rng.random_range(0..fields.len());
                match fields.values_mut().nth(at) {
                    Some(field) => field,
                    None => return,
                }
            }
            leaf => {
                *leaf = other;
                return;
            }
        };
    }
    match place {
        Value::Object(fields) if rng.random_bool(0.7) => change_fields(fields, other, words, rng),
        Value::Array(items) if rng.random_bool(0.7) => change_items(items, other, rng),
        place if rng.random_bool(0.2) => *place = other,
        place => *place = leaf(place, words, rng),
    }
}

fn is_branch(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    }
}

/// Some part of a value.
fn choose<'a>(value: &'a Value, rng: &mut StdRng) -> &'a Value {
    let mut place = value;
    while is_branch(place) && rng.random_bool(0.7) {
        let found = match place {
            Value::Array(items) => items.choose(rng),
            Value::Object(fields) => fields.values().nth(rng.random_range(0..fields.len())),
            _ => None,
        };
        place = found.unwrap_or(place);
    }
    place
}

fn change_fields(fields: &mut Map<String, Value>, other: Value, words: &[Vec<u8>], rng: &mut StdRng) {
    let key = fields.keys().nth(rng.random_range(0..fields.len().max(1))).cloned();
    let word = word(words, rng);
    match (rng.random_range(0..4), key) {
        (0, Some(key)) => drop(fields.remove(&key)),
        (1, Some(key)) => {
            if let Some(field) = fields.remove(&key) {
                fields.insert(word, field);
            }
        }
        (2, Some(key)) => drop(fields.insert(key, other)),
        _ => drop(fields.insert(word, other)),
    }
}

fn change_items(items: &mut Vec<Value>, other: Value, rng: &mut StdRng) {
    let at = rng.random_range(0..items.len().max(1));
    match rng.random_range(0..4) {
        0 if at < items.len() => drop(items.remove(at)),
        1 if at < items.len() => {
            let item = items[at].clone();
            items.extend(std::iter::repeat_n(item, rng.random_range(1..40)));
        }
        2 => items.insert(at.min(items.len()), other),
        _ => items.push(other),
    }
}

fn word(words: &[Vec<u8>], rng: &mut StdRng) -> String {
    words.choose(rng).map(|word| String::from_utf8_lossy(word).into_owned()).unwrap_or_default()
}

/// A value that stands where another one stood, most often of its own type.
fn leaf(before: &Value, words: &[Vec<u8>], rng: &mut StdRng) -> Value {
    const WHOLE: [i64; 12] =
        [0, 1, -1, 2, 255, 65_536, 1 << 31, 1 << 32, 1 << 53, i64::MAX, i64::MIN, i64::MAX / 1_000_000 + 1];
    const TEXTS: [&str; 12] =
        ["", " ", "\0", "\u{feff}", "\u{202e}", "a\nb", "é", "😀", "../..", "/", "{}", "\u{1b}[31m"];
    let kind = if rng.random_bool(0.7) { before.clone() } else { kinds()[rng.random_range(0..6)].clone() };
    match kind {
        Value::Bool(flag) => Value::Bool(!flag),
        Value::Number(_) if rng.random_bool(0.2) => odd()[rng.random_range(0..4)].clone(),
        Value::Number(_) => json!(WHOLE[rng.random_range(0..WHOLE.len())]),
        Value::String(text) => match rng.random_range(0..5) {
            0 => Value::String(TEXTS[rng.random_range(0..TEXTS.len())].to_owned()),
            1 => Value::String(word(words, rng)),
            2 => Value::String(format!("{text}{}", word(words, rng))),
            3 => Value::String(text.repeat(rng.random_range(1..200)).chars().take(16 << 10).collect()),
            _ => Value::String(text.chars().rev().collect()),
        },
        Value::Array(_) => {
            let mut deep = before.clone();
            for _ in 0..rng.random_range(1..60) {
                deep = json!([deep]);
            }
            deep
        }
        Value::Object(_) => json!({ word(words, rng): before }),
        Value::Null => Value::Null,
    }
}

/// A value of each type.
fn kinds() -> [Value; 6] {
    [json!(true), json!(1), json!(""), json!([]), json!({}), Value::Null]
}

/// Numbers that are no whole ones, or too large for those with a sign.
fn odd() -> [Value; 4] {
    [json!(0.5), json!(-0.0), json!(1e300), json!(u64::MAX)]
}
