//! Log record of a tool call from a worker's script, or of the script itself. The record never has the arguments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::words::words;

words! {
    /// Result of a call.
    "result of a call"
    ToolResult {
        /// The call succeeded.
        Success => "success",
        /// The call was refused, or it failed.
        Error => "error",
        /// The call took too long and was ended.
        Timeout => "timeout",
        /// The caller gave up, and the call was ended.
        Interrupted => "interrupted",
    }
}

/// Call of a tool that a worker has finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Name of the tool
    pub tool: String,
    /// Result of the call
    pub result: ToolResult,
    /// Duration in milliseconds
    pub duration_ms: u64,
    /// Size of the arguments, in bytes
    pub request_bytes: u64,
    /// Size of the reply, in bytes
    pub reply_bytes: u64,
    /// For a script: number of tools that it has called
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
}
