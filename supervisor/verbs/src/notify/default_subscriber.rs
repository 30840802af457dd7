//! Default subscriber of a new task: its creator, over the channel of the session, or the default channel.

use kernel::{ActorKind, Address};

use api::Call;
use base::exit::Code;
use base::failure::Failure;
use setup::config::notify::{NOBODY, NotifyConfig};

/// Accepts `CHANNEL`, `CHANNEL:CHAT` and `CHANNEL:CHAT:THREAD` for a channel that is configured.
pub(crate) fn known(text: &str, config: &NotifyConfig) -> Result<String, Failure> {
    let channel = text.split(':').next().unwrap_or_default();
    let channel_name = config.find(channel).map(|_| text.to_owned());
    channel_name.map_err(|why| {
        Failure::new(Code::NotFound, why).hint(
            "name one of them with --notify or SUPERVISOR_CHANNEL; a table [notify.channels.NAME] in supervisor.toml makes one",
        )
    })
}

/// Returns the channel over which a caller is notified about its new tasks. `named` is the caller's choice. A worker
/// names no channel: the subscribers of its mission are notified.
pub(crate) fn channel(call: &Call, named: Option<&str>) -> Result<Option<String>, Failure> {
    if call.actor.kind == ActorKind::Worker {
        return match named {
            None => Ok(None),
            Some(_) => Err(Failure::new(Code::NotPermitted, "a worker cannot subscribe anybody to a task")
                .hint(
                    "leave --notify out: the subscribers of the mission get a message when somebody has to act",
                )),
        };
    }
    if let (None, Some(chat)) = (&named, call.chat()) {
        return Ok(Some(of_address(chat)));
    }
    let config = call.service.config();
    match named {
        Some(NOBODY) => Ok(None),
        Some(named) => known(named, &config.notify).map(Some),
        None => {
            let usual = config.notify.default_of(call.board_name());
            usual.map(|usual| known(usual, &config.notify)).transpose()
        }
    }
}

/// Returns an address as `--notify` names it: the channel, the chat and the thread.
pub fn of_address(address: &Address) -> String {
    let parts = [&address.channel, &address.chat_id, &address.thread_id];
    let named: Vec<&str> = parts.into_iter().map(String::as_str).collect();
    named.join(":").trim_end_matches(':').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_with_a_chat_and_a_thread_is_one_of_the_configuration() {
        let config: NotifyConfig =
            toml::from_str("[channels.tg]\nkind = 'telegram'\nsecret = 'bot'").unwrap();
        for text in ["tg", "tg:-100:7:8"] {
            assert_eq!(known(text, &config).unwrap(), text);
        }
        let refused = known("ops:1", &config).unwrap_err().message;
        assert_eq!(refused, "there is no channel `ops`; the channels are: tg");
    }
}
