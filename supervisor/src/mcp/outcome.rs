//! What a tool call returns: the reply of the verb as it is, or why nothing came of it and what to do next.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::api::Effect;
use crate::command::Command;
use crate::failure::{Failure, Problem};

/// The result of a call. It is structured, and the same as text.
pub(super) fn of<V: Command>(outcome: Result<V::Reply, Failure>) -> CallToolResult {
    let reply = outcome.and_then(|reply| {
        let is_whole = V::verdict(&reply) == 0;
        let reply = serde_json::to_value(&reply)
            .map_err(|e| Failure::failed(format!("the reply to `{}` cannot be written: {e}", V::NAME)))?;
        Ok((is_whole, object(reply)))
    });
    match reply {
        Ok((true, reply)) => CallToolResult::structured(reply),
        // Some of what was asked for failed, and the reply says which.
        Ok((false, reply)) => CallToolResult::structured_error(reply),
        Err(failure) => refused(&failure, V::EFFECT),
    }
}

/// Results are objects. The other replies are lists.
fn object(reply: Value) -> Value {
    match reply {
        Value::Object(_) => reply,
        other => json!({ "items": other }),
    }
}

fn refused(failure: &Failure, effect: Effect) -> CallToolResult {
    let mut text = format!("error: {}", failure.message);
    if let Some(hint) = &failure.hint {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    if effect != Effect::Read && failure.code.changed_nothing() {
        text.push_str("\nNothing was changed.");
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({ "error": Problem::from(failure) }));
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;
    use crate::verbs::{Complete, Show};

    fn text(result: &CallToolResult) -> String {
        serde_json::to_value(&result.content).unwrap()[0]["text"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_refusal_says_what_to_do_next_and_that_nothing_changed_where_that_is_known() {
        let failure = Failure::new(Code::Conflict, "t_1 is done").hint("read it");
        let result = of::<Complete>(Err(failure.clone()));
        assert_eq!(text(&result), "error: t_1 is done\nhint: read it\nNothing was changed.");
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.structured_content.unwrap()["error"]["code"], "conflict");
        assert_eq!(text(&of::<Show>(Err(failure))), "error: t_1 is done\nhint: read it");
        let lost = Failure::new(Code::TryAgain, "the daemon has not answered");
        assert_eq!(text(&of::<Complete>(Err(lost))), "error: the daemon has not answered");
    }

    #[test]
    fn a_list_is_an_object_too() {
        assert_eq!(object(json!([1])), json!({ "items": [1] }));
        assert_eq!(object(json!({ "a": 1 })), json!({ "a": 1 }));
    }
}
