//! What is wrong with a text that stands for one value.

/// A text that is not what it should be.
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

    /// Returns what the text was meant to be.
    pub fn what(&self) -> &'static str {
        self.what
    }
}
