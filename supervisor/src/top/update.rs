//! Updates of the model by messages.

use super::message::{TopAction, TopMessage};
use super::model::{ScreenMode, ScreenNotice, TopModel};

impl TopModel {
    /// Handles a message, and returns the resulting orders.
    pub(super) fn update(&mut self, message: TopMessage) -> Vec<TopAction> {
        match message {
            TopMessage::Key(key) => return self.press(key),
            TopMessage::Pasted(text) => self.paste(&text),
            TopMessage::Resized => {}
            TopMessage::Picture(picture) => self.look_at(*picture),
            TopMessage::Lost(why) => self.lost = Some(why),
            TopMessage::Logged(piece) => {
                if let ScreenMode::Peek(peek) = &mut self.mode
                    && peek.task == piece.task
                {
                    peek.take(&piece);
                }
            }
            TopMessage::Facts { task, facts } => {
                if let ScreenMode::Approve(approving) = &mut self.mode
                    && approving.target.task == task
                {
                    approving.facts = facts;
                }
            }
            TopMessage::Acted(Ok(done)) => self.say(ScreenNotice::Done(done)),
            TopMessage::Acted(Err(why)) => self.say(ScreenNotice::Refused(why)),
            TopMessage::Time(now) => self.pass_to(now),
            TopMessage::Gone => return vec![TopAction::Quit],
        }
        Vec::new()
    }
}
