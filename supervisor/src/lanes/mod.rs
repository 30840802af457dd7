//! Lanes: how a class of worker is started and how its ending is read.
//!
//! The `shell` lane is built in. `lanes.d/*.toml` of the configuration adds others, one file a lane, named by the file.

mod lane;
mod registry;

pub(crate) use self::lane::{CleanExit, Lane, Prompt, RateLimit};
pub(crate) use self::registry::Lanes;

/// An error with its causes on one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
