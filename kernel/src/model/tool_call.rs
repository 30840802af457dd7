//! What the log keeps of a tool that a script of a worker has called, or of the script itself: never its arguments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::words::words;

words! {
    /// How a call came out.
    "result of a call"
    ToolResult {
        /// It did what was asked.
        Success => "success",
        /// It was refused, or it failed.
        Error => "error",
        /// It took too long, and was ended.
        Timeout => "timeout",
        /// The caller has given it up, and it was ended.
        Interrupted => "interrupted",
    }
}

/// A call that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The name of the tool
    pub tool: String,
    /// How it came out
    pub result: ToolResult,
    /// How long it took, in milliseconds
    pub duration_ms: u64,
    /// The size of its arguments, in bytes
    pub request_bytes: u64,
    /// The size of what came back, in bytes
    pub reply_bytes: u64,
    /// Of a script: how many tools it has called
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
}
