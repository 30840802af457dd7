//! Identifiers of boards, tasks, runs and other records. Each has its own type, and is parsed once, when it enters the
//! program.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::model::parse_error::ParseError;
use crate::model::words::schema;

/// Declares a newtype around a text that its parser has checked. Its name for errors, its pattern for JSON schemas and the
/// check state the same rule. A text after `or` is converted before it is refused.
macro_rules! text_id {
    ($(#[$meta:meta])* $name:ident, $what:literal, $pattern:literal, $expected:literal, $check:expr $(, or $meant:expr)?) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                let check: fn(&str) -> bool = $check;
                if check(text) {
                    return Ok(Self(text.to_owned()));
                }
                $(
                    let meant: fn(&str) -> Option<String> = $meant;
                    if let Some(meant) = meant(text) {
                        return Ok(Self(meant));
                    }
                )?
                Err(ParseError::new($what, text, $expected))
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseError;

            fn try_from(text: String) -> Result<Self, ParseError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        schema!($name, { "type": "string", "pattern": $pattern });
    };
}

text_id!(
    /// Task id: `t_` and 8 lower-case hex digits when this program draws it. An imported id may have up to 62 letters,
    /// digits, `_` and `-` after the `t_`. A task id can be part of a path and of a branch name. The parser also accepts
    /// up to 8 lower-case hex digits alone and puts `t_` before them.
    TaskId, "task id", "^(t_[0-9A-Za-z][0-9A-Za-z_-]{0,61}|[0-9a-f]{1,8})$", "one such as t_0123abcd",
    |text| text.strip_prefix("t_").is_some_and(|rest| {
        rest.len() <= 62
            && rest.starts_with(|c: char| c.is_ascii_alphanumeric())
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    }),
    or |text| {
        let is_number = (1..=8).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
        is_number.then(|| format!("t_{text}"))
    }
);

impl TaskId {
    /// Parses an id that includes its `t_`. Callers use it for file names and for texts that may start with another word.
    ///
    /// # Errors
    /// [`ParseError`] for any other text, hex digits without `t_` included.
    pub fn in_full(text: &str) -> Result<Self, ParseError> {
        let id: Self = text.parse()?;
        if id.0 == text { Ok(id) } else { Err(ParseError::new("task id", text, "one such as t_0123abcd")) }
    }

    pub(crate) fn from_number(number: u32) -> Self {
        Self(format!("t_{number:08x}"))
    }
}

text_id!(
    /// Name of a board: 1 to 64 lower-case letters, digits, `_` and `-`.
    BoardName, "board name", "^[a-z0-9][a-z0-9_-]{0,63}$",
    "1 to 64 of a-z 0-9 _ -, starting with a letter or digit",
    |text| text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
);

impl Default for BoardName {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

text_id!(
    /// Tenant: a namespace of tasks.
    Tenant, "tenant", "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    "1 to 64 of A-Z a-z 0-9 . _ -, starting with a letter or digit", is_name
);
text_id!(
    /// Profile: the worker identity that an assignee names.
    Profile, "profile", "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    "1 to 64 of A-Z a-z 0-9 . _ -, starting with a letter or digit", is_name
);
text_id!(
    /// Pool: a scarce resource with a fixed number of places, such as GPUs or licences.
    Pool, "pool", "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    "1 to 64 of A-Z a-z 0-9 . _ -, starting with a letter or digit", is_name
);
text_id!(
    /// Tick: one occasion of a fleet, such as a day: `2026-11-23` or `2026-11-23T08:00`.
    Tick, "tick", "^[A-Za-z0-9._:+-]{1,64}$", "1 to 64 of A-Z a-z 0-9 . _ : + -, such as 2026-11-23T08:00",
    |text| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._:+-".contains(&byte);
        (1..=64).contains(&text.len()) && text.bytes().all(fits)
    }
);
text_id!(
    /// Name of a schedule and of its file.
    ScheduleName, "name of a schedule", "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    "1 to 64 of A-Z a-z 0-9 . _ -, starting with a letter or digit", is_name
);
text_id!(
    /// Name of a plugin and of its directory.
    PluginName, "name of a plugin", "^[a-z][a-z0-9-]{0,23}$", "1 to 24 of a-z 0-9 -, starting with a letter",
    |text| text.len() <= 24
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
);
text_id!(
    /// Class of an approval: `spend`, `book`, `send_as_me`, `destructive`, or a class of the configuration.
    ApprovalClass, "approval class", "^[a-z][a-z0-9_]{0,31}$", "1 to 32 of a-z 0-9 _, starting with a letter",
    |text| text.len() <= 32
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
);
text_id!(
    /// Id that a caller gives to a change. A repeat with the same id gets the reply to the first request.
    RequestId, "request id", "^[!-~]{1,128}$", "1 to 128 printable ASCII characters without spaces",
    |text| (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
);

text_id!(
    /// Digest of the content of a file: its SHA-256 in 64 lower-case hex digits.
    Digest, "digest", "^[0-9a-f]{64}$", "64 lower-case hex digits",
    |text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
);

impl Digest {
    pub(crate) fn from_hash(hash: sha2::Sha256) -> Self {
        use sha2::Digest as _;
        Self(hex::encode(hash.finalize()))
    }
}

/// Declares a newtype around a row number.
macro_rules! number_id {
    ($(#[$meta:meta])* $name:ident, $what:literal) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl $name {
            /// Returns the number.
            pub fn get(self) -> i64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                text.parse().map(Self).map_err(|_| ParseError::new($what, text, "a whole number"))
            }
        }
    };
}

number_id!(
    /// Run: one attempt at a task.
    RunId, "run id"
);
number_id!(
    /// Event: a row of the event log. Later events have greater ids.
    EventId, "event id"
);
number_id!(
    /// Number of a comment, unique on its board.
    CommentId, "comment id"
);

number_id!(
    /// File attached to a task.
    AttachmentId, "attachment id"
);

number_id!(
    /// Message of the outbox. Later messages have greater ids.
    LetterId, "message id"
);

/// Identity of one board, drawn at random when the board is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BoardId(pub Uuid);

impl fmt::Display for BoardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for BoardId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        text.parse().map(Self).map_err(|_| ParseError::new("board id", text, "a UUID"))
    }
}

schema!(BoardId, { "type": "string", "format": "uuid" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_id_is_one_of_ours_or_one_that_was_imported() {
        for right in
            ["t_0123abcd", "t_9f2a", "t_0123ABCD", "t_spawn-2", "t_a_b", &format!("t_{}", "a".repeat(62))]
        {
            assert!(right.parse::<TaskId>().is_ok(), "{right}");
        }
        let long = format!("t_{}", "a".repeat(63));
        for wrong in [
            "",
            "t_",
            "t",
            "x_0123abcd",
            "t_0123abc/",
            "t_..",
            "t_-x",
            "t__x",
            "t_a.lock",
            "t_a b",
            "t_ä",
            &long,
        ] {
            assert!(wrong.parse::<TaskId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_tick_is_a_short_word_without_separators_of_keys() {
        for text in ["2026-11-23", "2026-11-23T08:00", "2026-11-23T08:00:00+01:00", "7"] {
            assert_eq!(text.parse::<Tick>().unwrap().as_str(), text);
        }
        for wrong in ["", "a b", "a/b", "a@b", "tick\n", "ä", &"1".repeat(65)] {
            assert!(wrong.parse::<Tick>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_id_is_accepted_without_its_prefix_where_one_is_asked_for_and_nowhere_else() {
        for (written, meant) in [("0123abcd", "t_0123abcd"), ("9f", "t_9f"), ("0", "t_0")] {
            assert_eq!(written.parse::<TaskId>().unwrap().as_str(), meant);
            let read: TaskId = serde_json::from_value(written.into()).unwrap();
            assert_eq!(read.as_str(), meant);
            assert!(TaskId::in_full(written).is_err(), "{written}");
            assert_eq!(TaskId::in_full(meant).unwrap().as_str(), meant);
        }
        for wrong in ["0123ABCD", "0123abcd9", "0123abcg", "spawn-2", "0x12", "-1"] {
            assert!(wrong.parse::<TaskId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_cannot_walk_out_of_a_directory() {
        for wrong in ["", "..", ".hidden", "a/b", "a b", "ä", &"a".repeat(65)] {
            assert!(wrong.parse::<Tenant>().is_err(), "{wrong}");
            assert!(wrong.parse::<BoardName>().is_err(), "{wrong}");
        }
        assert!("Team-1.x".parse::<Profile>().is_ok());
        assert!("Team".parse::<BoardName>().is_err());
    }
}
