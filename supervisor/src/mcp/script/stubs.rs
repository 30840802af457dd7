//! Writes the Python module `supervisor_tools` for one script, with a function for each permitted tool.

use serde_json::Value;

use super::super::catalog::VerbTool;

/// Text of the module before its functions. A function returns the reply of its tool unchanged, and raises a refusal.
const HEAD: &str = r#""""The tools of the board, for the script of one call of execute_code."""
import json as _json
import os as _os
import socket as _socket
import threading as _threading


class ToolError(Exception):
    """A tool has refused or failed. The text says why and what to do; `code` is the word of the API."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code


_lock = _threading.Lock()
_descriptor = int(_os.environ.pop("SUPERVISOR_TOOLS_FD"))
_os.set_inheritable(_descriptor, False)
_stream = _socket.socket(fileno=_descriptor).makefile("rwb")


def _call(tool, arguments):
    given = {name: value for name, value in arguments.items() if value is not None}
    request = _json.dumps({"tool": tool, "args": given}) + "\n"
    with _lock:
        _stream.write(request.encode())
        _stream.flush()
        line = _stream.readline()
    if not line:
        raise ToolError("the server of the tools has gone")
    answer = _json.loads(line)
    if "error" in answer:
        raise ToolError(answer["error"], answer.get("code"))
    return answer["result"]
"#;

/// Keywords of Python, which cannot name arguments.
const RESERVED: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Returns the text of the module for these tools.
pub(super) fn module(tools: &[&VerbTool]) -> String {
    let mut module = HEAD.to_owned();
    for listed in tools {
        module.push_str(&function(listed));
    }
    module
}

fn function(listed: &VerbTool) -> String {
    let schema = &listed.tool.input_schema;
    let words = |key: &str| schema.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let required: Vec<String> =
        words("required").iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_name = |name: &&String| {
        !RESERVED.contains(&name.as_str()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let optional =
        properties.into_iter().flat_map(|p| p.keys()).filter(is_name).filter(|name| !required.contains(name));
    let mut parameters = required.clone();
    parameters.push("*".to_owned());
    let before = parameters.len();
    parameters.extend(optional.map(|name| format!("{name}=None")));
    if parameters.len() == before {
        parameters.pop();
    }
    let about = listed.tool.description.as_deref().unwrap_or_default();
    // The description becomes the docstring: a JSON string without line ends is also a literal of Python.
    let about = Value::from(about.replace('\n', " "));
    let name = &listed.tool.name;
    format!(
        "\n\ndef {name}({}):\n    {about}\n    return _call(\"{name}\", dict(locals()))\n",
        parameters.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::mcp::catalog;

    #[test]
    fn a_tool_is_a_function_with_its_arguments() {
        let text = function(catalog::find("kanban_comment").unwrap());
        assert_snapshot!(text.trim(), @r#"
        def kanban_comment(body, *, author=None, max_len=None, task_id=None):
            "Add a comment to a task. The people and the later workers of the task read it."
            return _call("kanban_comment", dict(locals()))
        "#);
    }

    #[test]
    fn each_tool_of_the_module_is_one_function() {
        let tools: Vec<&VerbTool> = catalog::all().iter().collect();
        let module = module(&tools);
        assert_eq!(module.matches("\ndef kanban_").count(), tools.len());
        assert!(!module.contains("from=None"), "a word of Python is no argument");
    }
}
