//! Reads an agent's almost valid JSON: a bad character costs itself, not the line.
//!
//! A program cuts a text within an emoji, prints a byte that is not UTF-8, `NaN`, a key twice, or an escape sequence of
//! its terminal before an event. Valid JSON is read as it is. Otherwise:
//!
//! * a byte that is not UTF-8, half of a surrogate pair, an unknown escape and a raw control character in a string
//!   become U+FFFD;
//! * `NaN`, `Infinity` and a number that is too large become `null`;
//! * the last value of a key counts, as in JavaScript;
//! * a byte order mark, escape sequences and control characters outside of strings are left out.
//!
//! A parser for almost JSON would also accept comments and bare words, and take a text for people for an event. Only
//! objects are repaired; requests and configuration files stay strict.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Escape of U+FFFD.
const REPLACED: &str = "\\ufffd";
/// Words that stand for numbers without a form in JSON, longest first where one begins another.
const NO_NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Reads one value; none if the text is still no JSON after the repair.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    if let Ok(value) = serde_json::from_slice(text) {
        return Some(value);
    }
    // Text for people is not repaired: an event is an object.
    let text = String::from_utf8_lossy(text);
    let begins = without_controls(&text).trim_start();
    if !begins.starts_with('{') {
        return None;
    }
    // A map keeps the last value of a key; a struct would refuse the second.
    let value: Value = serde_json::from_str(&repaired(begins)).ok()?;
    serde_json::from_value(value).ok()
}

/// Returns the text after leading byte order marks, escape sequences, control characters and white space.
fn without_controls(mut text: &str) -> &str {
    while let Some(after) = control(text) {
        text = after;
    }
    text
}

/// Returns the text after the byte order mark, escape sequence, control character or space at its beginning; none for
/// another beginning.
fn control(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    match chars.next()? {
        '\u{1b}' => Some(sequence(chars.as_str())),
        '\u{feff}' | ' ' => Some(chars.as_str()),
        c if c.is_control() => Some(chars.as_str()),
        _ => None,
    }
}

/// Returns the text after an escape sequence (ECMA-48) whose first character was ESC.
fn sequence(text: &str) -> &str {
    match text.chars().next() {
        // A control sequence ends with its first character from `@` to `~`.
        Some('[') => {
            let rest = &text[1..];
            let end = rest.find(|c: char| !(' '..='?').contains(&c)).unwrap_or(rest.len());
            let is_whole = rest[end..].starts_with(|c: char| ('@'..='~').contains(&c) && c != '{');
            &rest[end + usize::from(is_whole)..]
        }
        // A command for the operating system ends with BEL or ESC \.
        Some(']' | 'P' | '_' | '^') => {
            let end = text.find(['\u{7}', '\u{1b}']).unwrap_or(text.len());
            let after = text.get(end + 1..).unwrap_or_default();
            if text[end..].starts_with('\u{1b}') { after.strip_prefix('\\').unwrap_or(after) } else { after }
        }
        Some(c) if c != '{' => &text[c.len_utf8()..],
        Some(_) | None => text,
    }
}

/// Returns a text with what JSON does not allow replaced.
fn repaired(mut text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    loop {
        let plain = text
            .find(|c: char| c == '"' || c == '-' || c.is_control() || c.is_alphanumeric() || c == '\u{feff}');
        let Some(plain) = plain else {
            out.push_str(text);
            return out;
        };
        out.push_str(&text[..plain]);
        text = &text[plain..];
        text = if let Some(string) = text.strip_prefix('"') {
            out.push('"');
            repair_string(string, &mut out)
        } else if let Some(after) = control(text) {
            after
        } else if let Some(word) = NO_NUMBERS.iter().find(|word| text.starts_with(**word)) {
            out.push_str("null");
            &text[word.len()..]
        } else {
            repair_word(text, &mut out)
        };
    }
}

/// Copies a number or a word, and returns the text after it.
fn repair_word<'a>(text: &'a str, out: &mut String) -> &'a str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || "+-.".contains(c))).unwrap_or(text.len());
    let (word, after) = text.split_at(end.max(1));
    let is_infinite = word.parse::<f64>().is_ok_and(f64::is_infinite);
    out.push_str(if is_infinite { "null" } else { word });
    after
}

/// Copies a string after its first quote, and returns the text after its last.
fn repair_string<'a>(mut text: &'a str, out: &mut String) -> &'a str {
    loop {
        let Some(plain) = text.find(|c: char| c == '"' || c == '\\' || c < ' ') else {
            out.push_str(text);
            return "";
        };
        out.push_str(&text[..plain]);
        text = &text[plain..];
        if let Some(after) = text.strip_prefix('"') {
            out.push('"');
            return after;
        }
        let Some(escape) = text.strip_prefix('\\') else {
            // A raw control character.
            out.push_str(if text.starts_with('\t') { "\\t" } else { REPLACED });
            text = &text[1..];
            continue;
        };
        let taken = match escape.as_bytes().first() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => code_units(text),
            Some(_) | None => 0,
        };
        if taken > 0 {
            out.push_str(&text[..taken]);
            text = &text[taken..];
        } else {
            out.push_str(REPLACED);
            let digits = escape.strip_prefix('u').unwrap_or(escape);
            let known = if escape.starts_with('u') {
                digits.bytes().take(4).take_while(u8::is_ascii_hexdigit).count()
            } else {
                0
            };
            text = &digits[known..];
        }
    }
}

/// Returns the length of an escaped character: one code unit, or a pair of surrogates; zero for half of a pair.
fn code_units(text: &str) -> usize {
    match unit(text) {
        Some(0xd800..=0xdbff) if matches!(unit(&text[6..]), Some(0xdc00..=0xdfff)) => 12,
        Some(0xd800..=0xdfff) | None => 0,
        Some(_) => 6,
    }
}

/// Returns the code unit that a text begins with, as an escape.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn value(text: &[u8]) -> Option<Value> {
        read(text)
    }

    #[test]
    fn a_bad_character_costs_itself_alone() {
        for (text, read) in [
            (&br#"{"a":"x \ud83d","b":1}"#[..], json!({"a": "x \u{fffd}", "b": 1})),
            (
                br#"{"a":"\udc00 \ud83d\ud83d\ude00","b":1}"#,
                json!({"a": "\u{fffd} \u{fffd}\u{1f600}", "b": 1}),
            ),
            (br#"{"a":"\ud83d\n\"","b":1}"#, json!({"a": "\u{fffd}\n\"", "b": 1})),
            (b"{\"a\":\"x\xff\xc3y\"}", json!({"a": "x\u{fffd}\u{fffd}y"})),
            (
                b"{\"a\":\"x\x1b[1m\ty\\x1b\\u12\\uzz\"}",
                json!({"a": "x\u{fffd}[1m\ty\u{fffd}x1b\u{fffd}\u{fffd}zz"}),
            ),
            (
                br#"{"a":NaN,"b":[-Infinity,Infinity,1e999,-1e999,-1.5e3,true]}"#,
                json!({"a": null, "b": [null, null, null, null, -1500.0, true]}),
            ),
            (
                br#"{"a":1,"a":2,"b":{"c":1,"c":"NaN"},"d":1e999}"#,
                json!({"a": 2, "b": {"c": "NaN"}, "d": null}),
            ),
        ] {
            assert_eq!(value(text), Some(read), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn the_sequences_of_a_terminal_around_an_event_are_left_out() {
        for before in [
            "\u{1b}[?2004h",
            "\u{feff}",
            "\u{1b}]0;title\u{7}\r",
            "\u{1b}]8;;x\u{1b}\\",
            "\u{1b}7\u{1b}[2K  ",
            "\u{1b}",
        ] {
            for after in ["", "\r", "\u{1b}[?2004l", " \u{1b}[0m\u{7}"] {
                let text = format!("{before}{{\"a\":[1,{{\"b\":\"c\"}}]}}{after}");
                assert_eq!(value(text.as_bytes()), Some(json!({"a": [1, {"b": "c"}]})), "{text:?}");
            }
        }
    }

    #[test]
    fn a_key_that_comes_twice_is_no_refusal_of_a_struct() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Cost {
            cost: f64,
        }
        assert_eq!(read(br#"{"cost":1.5,"cost":2.5}"#), Some(Cost { cost: 2.5 }));
    }

    #[test]
    fn what_is_no_event_stays_none() {
        for text in [
            &b""[..],
            b"text",
            b"[NaN]",
            b"{",
            b"{\"a\":\"",
            b"{\"a\":\"\\",
            b"{\"a\":\"\\u",
            b"{]",
            b"{\"a\":--1}",
            b"{\"a\" 1}",
            b"\x1b",
            b"\x1b[",
            b"{\"a\":nan}",
            b"{}{}",
        ] {
            assert_eq!(value(text), None, "{}", String::from_utf8_lossy(text));
        }
        let deep = format!("{{\"a\":NaN,\"b\":{}", "[".repeat(100_000));
        assert_eq!(value(deep.as_bytes()), None);
    }
}
