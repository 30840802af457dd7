//! What an agent may write into its conversation: changed lines of each form.

use serde_json::Value;

use super::{Acp, AppServer, Lines, Speech, StreamJson};
use crate::rundir::AgentMessage;

/// Has the lines of an agent heard, with messages before them and in between. Returns what came of it.
fn hear_all(mut speech: Box<dyn Speech>, input: &[u8]) -> String {
    let letter = |number| AgentMessage { number, id: format!("id-{number}"), text: format!("text {number}") };
    let mut sent = vec![speech.begin("the prompt")];
    sent.extend(speech.say(&letter(1)));
    let (mut decided, mut last, mut count) = (Vec::new(), 1, 0);
    let mut lines = Lines::cut();
    for piece in input.chunks(7) {
        lines.take(piece, |line| {
            let effects = speech.hear(line);
            sent.extend(effects.say.into_iter().map(|(_, sent)| sent));
            decided.extend(effects.confirmed.into_iter().chain(effects.refused));
            count += 1;
            if count % 3 == 0 && last < 4 {
                last += 1;
                sent.extend(speech.say(&letter(last)));
            }
        });
    }
    for line in sent.iter().flat_map(|sent| sent.split_inclusive(|byte| *byte == b'\n')) {
        assert!(line.ends_with(b"\n"), "a line has no end");
        assert!(serde_json::from_slice::<Value>(line).is_ok(), "no JSON is said");
    }
    let before = decided.len();
    decided.sort_unstable();
    decided.dedup();
    assert_eq!(decided.len(), before, "something is decided twice");
    assert!(decided.iter().all(|number| (1..=last).contains(number)), "{decided:?} of {last}");
    format!("{} {} {before} {}", speech.is_idle(), speech.is_confirmed(), sent.len().min(6))
}

#[test]
fn what_an_agent_of_stream_json_writes_is_heard_or_passed_over() {
    fuzz::Target::new("conversation-stream-json", fuzz::Shape::Lines)
        .check(|input| hear_all(Box::new(StreamJson::new("p".to_owned())), input));
}

#[test]
fn what_an_agent_of_the_client_protocol_writes_is_heard_or_passed_over() {
    fuzz::Target::new("conversation-acp", fuzz::Shape::Lines)
        .check(|input| hear_all(Box::new(Acp::new(None, "/w".to_owned())), input));
}

#[test]
fn what_an_app_server_writes_is_heard_or_passed_over() {
    fuzz::Target::new("conversation-app-server", fuzz::Shape::Lines)
        .check(|input| hear_all(Box::new(AppServer::new("p".to_owned(), None, "/w".to_owned())), input));
}
