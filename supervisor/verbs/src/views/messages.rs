//! The messages to the agents of a task's runs, for `show`.

use kernel::{Message, MessageState};

use base::terminal::{Ink, Screen, printable, printable_lines};
use base::time::timestamp;

/// Limit on the latest messages in a reply.
pub(crate) const SHOWN: u32 = 20;

/// Shows each message with its sender and whether it was delivered.
pub(crate) fn show(messages: &[Message], screen: &mut Screen) {
    if messages.is_empty() {
        return;
    }
    screen.heading("Messages to the agent");
    for message in messages {
        let Message { number, run_id, author, created_at, .. } = message;
        let at = timestamp::local(*created_at);
        let head = format!("{number} to run {run_id}, {author}, {at}: {}", became(message));
        let head = screen.paint(Ink::Dim, &printable(&head));
        screen.line(head);
        match message.comment_id {
            // Its text is among the comments.
            Some(comment) => screen.line(format!("comment {comment}")),
            None => screen.line(printable_lines(&message.body)),
        }
    }
}

fn became(message: &Message) -> String {
    match (message.state, message.reason.as_deref()) {
        (MessageState::Queued, _) => "not delivered yet".to_owned(),
        (MessageState::Written, _) => "passed to its agent, not confirmed".to_owned(),
        (MessageState::Delivered, _) => "delivered".to_owned(),
        (MessageState::NotDelivered, why) => format!("not delivered: {}", why.unwrap_or("the run has ended")),
    }
}
