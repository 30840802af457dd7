//! Name of a workspace: a single path component that is also valid in the name of a git branch.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Limit on a name, in bytes. File names have up to 255 bytes, and the name gets prefixes and suffixes.
const LONGEST: usize = 128;

/// Name for a scratch directory or a worktree: 1 to 128 letters, digits, `_`, `-` and inner dots.
///
/// The name cannot lead to another directory (`..`, a slash), be hidden (a leading dot), look like an option (a leading
/// `-`), or be refused by git (`a..b`, `x.lock`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Error for a text that is not a [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} cannot name a workspace: it must be 1 to 128 of a-z A-Z 0-9 _ - and inner single dots, and not end in .lock"
)]
pub struct NameError {
    /// Refused text.
    pub name: String,
}

impl Name {
    /// Checks a text, and returns it as a name.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let name = text.into();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let fits = !name.is_empty()
            && name.len() <= LONGEST
            && name.bytes().all(plain)
            && !name.starts_with(['.', '-'])
            && !name.ends_with('.')
            && !name.contains("..")
            && !name.to_ascii_lowercase().ends_with(".lock");
        if fits { Ok(Self(name)) } else { Err(NameError { name }) }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_plain_path_component() {
        for good in ["t_0badcafe", "a", "release-1.2"] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn what_could_lead_elsewhere_or_upset_git_is_refused() {
        for bad in
            ["", ".", "..", "../x", "a/b", ".hidden", "a..b", "x.lock", "a\0b", "-rf", "x.", "a b", "é"]
        {
            assert!(Name::new(bad).is_err(), "{bad:?}");
        }
        assert!(Name::new("x".repeat(129)).is_err());
    }
}
