//! Text of a workspace in a row from elsewhere.

use std::str::FromStr as _;

use kernel::WorkspaceSpec;

/// Returns the reason why a text names no workspace.
#[must_use]
pub fn unfit_workspace(text: &str) -> Option<String> {
    WorkspaceSpec::from_str(text).err().map(|error| error.to_string())
}
