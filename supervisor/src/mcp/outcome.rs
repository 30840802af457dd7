//! Result of a tool call: the reply of the verb, or an error with a hint for the next step.
//!
//! A refusal is a result with `isError`, because models do not see errors of the protocol.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use api::command::Reply;
use api::{AnyReply, Audience, Effect, VerbEntry};
use base::failure::{Failure, Problem};
use base::json::Buffer;
use verbs::entries;

/// Commands without a verb of the same name, which workers may not call.
const GROUPS: [&str; 10] =
    ["boards", "daemon", "lane", "login", "notify", "plugin", "profile", "schedules", "service", "tenant"];

/// Makes the result of a call, as structured data and the same as text.
pub(super) fn tool_result(
    verb: &VerbEntry,
    verdict: Verdict,
    outcome: Result<Box<dyn AnyReply>, Failure>,
    is_worker: bool,
) -> CallToolResult {
    let reply = outcome.and_then(|reply| {
        let is_whole = verdict(&*reply)? == 0;
        let mut buffer = Buffer::of(usize::MAX);
        let written = reply.write(&mut buffer).and_then(|()| serde_json::from_slice(&buffer.into_bytes()));
        let reply = written
            .map_err(|e| Failure::failed(format!("the reply to `{}` cannot be written: {e}", verb.name)))?;
        Ok((is_whole, object(reply)))
    });
    match reply {
        Ok((true, reply)) => CallToolResult::structured(reply),
        // A part of the request failed; the reply names it.
        Ok((false, reply)) => CallToolResult::structured_error(reply),
        Err(mut failure) => {
            failure.hint = failure.hint.filter(|hint| !is_worker || workers_may(hint));
            refused(&failure, verb.effect)
        }
    }
}

/// Returns the exit code for a reply.
pub(super) type Verdict = fn(&Reply) -> Result<u8, Failure>;

/// Wraps a list in an object, because results must be objects.
fn object(reply: Value) -> Value {
    match reply {
        Value::Object(_) => reply,
        other => json!({ "items": other }),
    }
}

/// Returns true if a worker may call all commands in a hint. A hint that leads to a refusal is useless.
fn workers_may(hint: &str) -> bool {
    let is_closed = |command: &str| {
        GROUPS.contains(&command)
            || entries().iter().any(|entry| entry.name == command && entry.audience != Audience::Worker)
    };
    let word =
        |rest: &str| rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().is_some_and(is_closed);
    !hint.split("supervisor ").skip(1).any(word)
}

fn refused(failure: &Failure, effect: Effect) -> CallToolResult {
    let mut text = format!("error: {}", failure.message);
    if let Some(hint) = &failure.hint {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    if effect != Effect::Read && failure.changed_nothing() {
        text.push_str("\nNothing was changed.");
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({ "error": Problem::from(failure) }));
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::command::{Command, Replies};
    use base::exit::Code;
    use verbs::{Complete, Show};

    fn tool_result<V: Command>(
        outcome: Result<Box<dyn AnyReply>, Failure>,
        is_worker: bool,
    ) -> CallToolResult {
        super::tool_result(&VerbEntry::for_verb::<V>(), Replies::of::<V>().verdict, outcome, is_worker)
    }

    fn text(result: &CallToolResult) -> String {
        serde_json::to_value(&result.content).unwrap()[0]["text"].as_str().unwrap().to_owned()
    }

    /// Returns a failure as a client receives it from a daemon.
    fn failure_of_the_wire(failure: &Failure) -> Failure {
        let problem = serde_json::to_string(&Problem::from(failure)).unwrap();
        serde_json::from_str::<Problem>(&problem).unwrap().into()
    }

    #[test]
    fn a_refusal_says_what_to_do_next_and_that_nothing_changed_where_that_is_known() {
        let failure = Failure::new(Code::Conflict, "t_1 is done").hint("read it");
        let result = tool_result::<Complete>(Err(failure.clone()), true);
        assert_eq!(text(&result), "error: t_1 is done\nhint: read it\nNothing was changed.");
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.structured_content.unwrap()["error"]["code"], "conflict");
        assert_eq!(text(&tool_result::<Show>(Err(failure), true)), "error: t_1 is done\nhint: read it");
        let late =
            failure_of_the_wire(&Failure::new(Code::Conflict, "t_1 was not answered").after_a_change());
        assert_eq!(text(&tool_result::<Complete>(Err(late), true)), "error: t_1 was not answered");
        let lost = Failure::new(Code::TryAgain, "the daemon has not answered");
        assert_eq!(text(&tool_result::<Complete>(Err(lost), true)), "error: the daemon has not answered");
    }

    #[test]
    fn a_worker_is_not_told_to_call_what_it_may_not() {
        let problem = |hint: &str, is_worker| {
            let failure = Failure::new(Code::NotFound, "no").hint(hint);
            text(&tool_result::<Show>(Err(failure), is_worker)).contains(hint)
        };
        for hint in
            ["see `supervisor list`", "supervisor boards list", "let it be read: `supervisor service reload`"]
        {
            assert!(!problem(hint, true) && problem(hint, false), "{hint}");
        }
        for hint in ["see what happened: supervisor show t_1", "the supervisor is stopping", "name a task"] {
            assert!(problem(hint, true), "{hint}");
        }
    }

    #[test]
    fn a_list_is_an_object_too() {
        assert_eq!(object(json!([1])), json!({ "items": [1] }));
        assert_eq!(object(json!({ "a": 1 })), json!({ "a": 1 }));
    }
}
