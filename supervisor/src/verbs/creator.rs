//! Who is notified about a new task: its creator, over the channel of the session, or the default one.

use kernel::{ActorKind, SubscriptionKey, TaskId};

use crate::api::Call;
use crate::config::notify::NotifyConfig;
use crate::exit::Code;
use crate::failure::Failure;

/// The word for nobody.
const NOBODY: &str = "none";

/// A channel, with the chat and the thread where such are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subscriber {
    channel: String,
    chat: String,
    thread: String,
}

impl Subscriber {
    /// The subscription to a task.
    pub(super) fn to(&self, task: &TaskId) -> SubscriptionKey {
        SubscriptionKey {
            task_id: task.clone(),
            platform: self.channel.clone(),
            chat_id: self.chat.clone(),
            thread_id: self.thread.clone(),
        }
    }

    /// Reads `CHANNEL`, `CHANNEL:CHAT` and `CHANNEL:CHAT:THREAD`.
    fn parse(text: &str, config: &NotifyConfig) -> Result<Self, Failure> {
        let mut parts = text.splitn(3, ':').map(str::to_owned);
        let channel = parts.next().unwrap_or_default();
        if !config.channels.contains_key(&channel) {
            let why = format!("there is no channel `{channel}`; the channels are: {}", config.names());
            return Err(Failure::new(Code::NotFound, why).hint(
                "name one of them with --notify or SUPERVISOR_CHANNEL; a table [notify.channels.NAME] in supervisor.toml makes one",
            ));
        }
        Ok(Subscriber {
            channel,
            chat: parts.next().unwrap_or_default(),
            thread: parts.next().unwrap_or_default(),
        })
    }
}

/// Returns who is notified about a task that a caller creates. `named` is what the caller says; a worker names nobody: the subscribers of its mission are
/// notified.
pub(super) fn subscriber(call: &Call, named: Option<&str>) -> Result<Option<Subscriber>, Failure> {
    if call.actor.kind == ActorKind::Worker {
        return match named {
            None => Ok(None),
            Some(_) => Err(Failure::new(Code::NotPermitted, "a worker cannot subscribe anybody to a task")
                .hint(
                    "leave --notify out: the subscribers of the mission get a message when somebody has to act",
                )),
        };
    }
    let config = call.service.config();
    match named {
        Some(NOBODY) => Ok(None),
        Some(named) => Subscriber::parse(named, &config.notify).map(Some),
        None => {
            let usual = config.notify.default_of(call.board_name());
            usual.map(|usual| Subscriber::parse(usual, &config.notify)).transpose()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_is_a_channel_with_a_chat_and_a_thread() {
        let config: NotifyConfig =
            toml::from_str("[channels.tg]\nkind = 'telegram'\nsecret = 'bot'").unwrap();
        let parts = |text: &str| {
            Subscriber::parse(text, &config)
                .map(|one| [one.channel, one.chat, one.thread])
                .map_err(|e| e.message)
        };
        assert_eq!(parts("tg").unwrap(), ["tg", "", ""]);
        assert_eq!(parts("tg:-100:7:8").unwrap(), ["tg", "-100", "7:8"]);
        assert_eq!(parts("ops").unwrap_err(), "there is no channel `ops`; the channels are: tg");
    }
}
