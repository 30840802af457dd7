//! Updates of the model by messages.

use super::message::{Message, Order};
use super::model::{Mode, Model, Notice};

impl Model {
    /// Handles a message, and returns the resulting orders.
    pub(super) fn update(&mut self, message: Message) -> Vec<Order> {
        match message {
            Message::Key(key) => return self.press(key),
            Message::Pasted(text) => self.paste(&text),
            Message::Resized => {}
            Message::Picture(picture) => self.look_at(*picture),
            Message::Lost(why) => self.lost = Some(why),
            Message::Logged(piece) => {
                if let Mode::Peek(peek) = &mut self.mode
                    && peek.task == piece.task
                {
                    peek.take(&piece);
                }
            }
            Message::Facts { task, facts } => {
                if let Mode::Approve(approving) = &mut self.mode
                    && approving.target.task == task
                {
                    approving.facts = facts;
                }
            }
            Message::Acted(Ok(done)) => self.say(Notice::Done(done)),
            Message::Acted(Err(why)) => self.say(Notice::Refused(why)),
            Message::Time(now) => self.pass_to(now),
            Message::Gone => return vec![Order::Quit],
        }
        Vec::new()
    }
}
