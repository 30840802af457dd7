//! A bridge: a chat with its channel, in use. It has what a service sends acted on, and says the reply.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::conversation::Conversation;
use super::pace::Pace;
use crate::automation::chat::{ChatFile, Heard};
use crate::config::notify::Channel;
use crate::notify::{Talk, Undelivered};
use crate::service::Service;

/// The longest pause that a service may ask for before a reply is sent.
const REPLY_PAUSE: Duration = Duration::from_secs(30);
/// How often a reply is tried. What it tells of is done already.
const REPLIES: u32 = 3;

/// A chat with its channel, in use.
pub(super) struct Bridge {
    pub(super) service: Arc<Service>,
    /// The name of the chat.
    pub(super) name: String,
    pub(super) chat: ChatFile,
    pub(super) channel: Channel,
}

impl Bridge {
    /// The service behind it.
    pub(super) fn talk(&self) -> Talk<'_> {
        Talk::new(&self.service, &self.chat.channel, &self.channel)
    }

    /// A conversation in which nothing was said.
    pub(super) fn conversation(&self) -> Conversation {
        Conversation {
            service: Arc::clone(&self.service),
            name: self.name.clone(),
            chat: self.chat.clone(),
            pace: Pace::default(),
        }
    }

    /// Its service answers.
    pub(super) fn connected(&self, account: Option<&str>) {
        self.service.chats().connected(&self.name, account);
    }

    /// The secret of the chat's own file.
    pub(super) fn secret(&self) -> Result<String, Undelivered> {
        let missing = || Undelivered::later(format!("chat.d/{}.toml names no `secret`", self.name));
        let secret = self.chat.secret.as_ref().ok_or_else(missing)?;
        self.talk().fetch(&format!("chat {}", self.name), secret)
    }

    /// Does what a message says, and returns the reply; none where it is not for this chat.
    pub(super) async fn reply(&self, conversation: &mut Conversation, heard: &Heard) -> Option<String> {
        // A message on which this fails would come again without end.
        let answer = AssertUnwindSafe(conversation.answer(heard)).catch_unwind().await;
        answer.unwrap_or_else(|_| Some("It failed inside the supervisor; its log has the reason.".to_owned()))
    }

    /// Does what a message says, and sends the reply. One that cannot be sent is left out.
    pub(super) async fn hear(&self, conversation: &mut Conversation, heard: &Heard) {
        let Some(reply) = self.reply(conversation, heard).await else { return };
        let thread = Some(heard.thread.as_str()).filter(|thread| !thread.is_empty());
        for attempt in 1..=REPLIES {
            let id = format!("chat/{}/{}", self.name, heard.id);
            let Err(error) = self.talk().say(&heard.chat, thread, &reply, &id).await else { return };
            let pause = match &error {
                Undelivered::Later { after, .. } => after.unwrap_or(Duration::from_secs(1)),
                Undelivered::Refused(_) => REPLY_PAUSE,
            };
            if attempt == REPLIES || pause >= REPLY_PAUSE {
                tracing::warn!(chat = %self.name, %error, "chat_reply_left_out");
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }
}
