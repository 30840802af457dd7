//! Error for a text that does not parse as a value.

/// A text that is not valid for the type it was parsed as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid {what}: expected {expected}")]
pub struct ParseError {
    what: &'static str,
    text: String,
    expected: String,
}

impl ParseError {
    pub(crate) fn new(what: &'static str, text: &str, expected: impl Into<String>) -> Self {
        let text = if text.chars().count() > 80 {
            text.chars().take(80).chain(['…']).collect()
        } else {
            text.to_owned()
        };
        Self { what, text, expected: expected.into() }
    }

    /// Returns the name of the type that the text was parsed as.
    pub fn what(&self) -> &'static str {
        self.what
    }
}
