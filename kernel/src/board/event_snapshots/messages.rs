//! Payloads of the events about messages to the agents of runs and about their terminals.

use super::rendered_events;
use crate::testing::{Bench, alice, start};
use crate::{MessageNews, MessageState, RunId, Start};

fn sent() -> (Bench, RunId) {
    let bench = Bench::new();
    let id = bench.ready();
    let start = Start { takes_messages: true, ..start(&*bench.clock) };
    let run = bench
        .call(move |board| {
            let run = board.start_run(&id, start)?.id;
            board.steer(&id, "use the new endpoint", &alice())?;
            Ok(run)
        })
        .unwrap();
    (bench, run)
}

fn became(state: MessageState, reason: Option<&str>) -> Bench {
    let (bench, run) = sent();
    let news = MessageNews { number: 1, state, reason: reason.map(str::to_owned) };
    bench.call(move |board| board.record_messages(run, &[news])).unwrap();
    bench
}

#[test]
fn message_queued_tells_of_what_is_sent_to_an_agent() {
    let (bench, _) = sent();
    insta::assert_snapshot!(
        rendered_events(&bench, "message_queued"),
        @r#"its run: {"by":"alice","comment":null,"len":20,"message":1,"text":"use the new endpoint"}"#
    );
}

#[test]
fn message_written_tells_of_one_in_the_input_of_its_agent() {
    let bench = became(MessageState::Written, None);
    insta::assert_snapshot!(rendered_events(&bench, "message_written"), @r#"its run: {"message":1}"#);
}

#[test]
fn message_delivered_tells_of_one_that_its_agent_has_confirmed() {
    let bench = became(MessageState::Delivered, None);
    insta::assert_snapshot!(rendered_events(&bench, "message_delivered"), @r#"its run: {"message":1}"#);
}

#[test]
fn message_not_delivered_tells_of_one_that_came_too_late() {
    let bench = became(MessageState::NotDelivered, Some("the run ended"));
    insta::assert_snapshot!(
        rendered_events(&bench, "message_not_delivered"),
        @r#"its run: {"message":1,"reason":"the run ended"}"#
    );
}

fn typed(change: impl FnOnce(&mut crate::Board<'_>, &crate::TaskId) + Send + 'static) -> Bench {
    let bench = Bench::new();
    let id = bench.ready();
    bench.start(&id);
    bench
        .call(move |board| {
            change(board, &id);
            Ok(())
        })
        .unwrap();
    bench
}

#[test]
fn terminal_taken_tells_of_who_begins_to_type_at_a_run() {
    let bench = typed(|board, id| {
        board.begin_typing(id, &alice()).unwrap();
    });
    insta::assert_snapshot!(rendered_events(&bench, "terminal_taken"), @r#"its run: {"by":"alice"}"#);
}

#[test]
fn terminal_typed_tells_of_how_much_was_typed_and_not_of_what() {
    let bench = typed(|board, id| {
        let run = board.run_to_type_at(id, &alice()).unwrap().id;
        board.record_typed(run, 12, &alice()).unwrap();
    });
    insta::assert_snapshot!(rendered_events(&bench, "terminal_typed"), @r#"its run: {"by":"alice","bytes":12}"#);
}
