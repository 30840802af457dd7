//! Payload of the event about a tool call from a worker's script.

use super::reported;
use crate::testing::{Bench, alice};
use crate::{ToolCall, ToolResult};

fn call() -> ToolCall {
    ToolCall {
        tool: "kanban_show".to_owned(),
        result: ToolResult::Success,
        duration_ms: 12,
        request_bytes: 2,
        reply_bytes: 340,
        tool_calls: None,
    }
}

#[test]
fn tool_called_tells_of_a_call_and_never_of_its_arguments() {
    let rendered = reported("tool_called", |board, id, bob| board.note_tool_call(id, &call(), bob));
    insta::assert_snapshot!(
        rendered,
        @r#"its run: {"duration_ms":12,"reply_bytes":340,"request_bytes":2,"result":"success","tool":"kanban_show"}"#
    );
}

#[test]
fn a_call_without_an_open_run_is_refused() {
    let bench = Bench::new();
    let id = bench.ready();

    let refused = bench.call(move |board| board.note_tool_call(&id, &call(), &alice()));

    let why = refused.unwrap_err().to_string();
    assert!(why.contains("has no open run"), "{why}");
    let count = bench.readers.with(|view| {
        view.events(&crate::EventFilter {
            kinds: vec!["tool_called".to_owned()],
            limit: 1,
            ..crate::EventFilter::default()
        })
    });
    assert!(count.unwrap().is_empty());
}
