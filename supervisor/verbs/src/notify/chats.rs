//! `chats` and `check-chat`: list the chats and the state of their bridges, and check whether a service answers.

use kernel::{BoardName, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Cell, Ink, Screen};
use base::time::timestamp;
use delivery::notify::ChatApi;
use service::Service;
use setup::automation::chat::{ChatConnection, ChatFile};
use setup::config::definitions::Lookup;
use setup::config::notify::Channel;

/// A chat of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Configured {
    /// Name, from the file name.
    name: String,
    /// The channel that it belongs to.
    channel: Option<String>,
    /// Board to which its lines apply.
    board: Option<BoardName>,
    /// Number of people who may use it.
    senders: usize,
    /// Reason why it cannot be used.
    defect: Option<String>,
    /// True if a daemon serves it.
    served: bool,
    /// State of its bridge.
    #[serde(flatten)]
    line: ChatConnection,
}

/// Returns the chats of the configuration.
fn configured(service: &Service) -> Vec<Configured> {
    let registry = service.chats();
    let chats = registry.chats(service.root());
    let one = |name: &str| {
        let (file, defect) = match chats.find(name) {
            Lookup::Usable(file) => (Some(file), channel_of(service, file).err()),
            Lookup::Disabled(defect) => (None, Some(defect.to_string())),
            Lookup::Absent => (None, None),
        };
        Configured {
            name: name.to_owned(),
            channel: file.map(|file| file.channel.clone()),
            board: file.map(|file| file.board.clone()),
            senders: file.map_or(0, |file| file.senders.len()),
            defect,
            served: service.daemon().is_some(),
            line: registry.connection(name),
        }
    };
    chats.names().map(one).collect()
}

fn channel_of(service: &Service, file: &ChatFile) -> Result<Channel, String> {
    service.config().notify.find(&file.channel).cloned()
}

/// Asks the service of a chat whether it answers. Returns the name of the bot's account.
async fn probe(service: &Service, name: &str) -> Result<String, String> {
    let chats = service.chats().chats(service.root());
    let file = match chats.find(name) {
        Lookup::Usable(file) => file,
        Lookup::Disabled(defect) => return Err(defect.to_string()),
        Lookup::Absent => return Err("there is no such chat".to_owned()),
    };
    let channel = channel_of(service, file)?;
    ChatApi::new(service, &file.channel, &channel).account().await.map_err(|error| error.to_string())
}

/// List the configured chats, and the state of their bridges
#[derive(Clone, Copy, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    about = "List the chats, and the state of their bridges",
    after_help = "\
Examples:
  supervisor chat list
  supervisor chat list --json"
)]
pub struct ListChats {}

impl Verb for ListChats {
    verb! { "chats": Operator, Read, on(None) => Vec<Configured> }

    async fn run(self, call: Call) -> Result<Vec<Configured>, Failure> {
        Ok(configured(&call.service))
    }
}

impl Command for ListChats {
    fn show(reply: &Vec<Configured>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("No chats.");
            return;
        }
        let rows = reply.iter().map(|chat| {
            let (ink, word) = state_of(chat);
            [
                Cell::from(chat.name.clone()),
                Cell::or_dash(chat.channel.as_ref()),
                Cell::or_dash(chat.board.as_ref()),
                Cell::from(chat.senders.to_string()),
                Cell::inked(ink, word),
                Cell::or_dash(chat.line.since.map(since)),
                Cell::from(chat.line.messages.to_string()),
                Cell::or_dash(chat.defect.as_ref().or(chat.line.last_error.as_ref())),
            ]
        });
        let header = ["CHAT", "CHANNEL", "BOARD", "SENDERS", "STATE", "SINCE", "MESSAGES", "LAST ERROR"];
        screen.table(header, rows);
    }
}

fn since(at: Timestamp) -> String {
    timestamp::local(at)
}

fn state_of(chat: &Configured) -> (Ink, &'static str) {
    match (&chat.defect, chat.served, chat.line.connected) {
        (Some(_), _, _) => (Ink::Red, "disabled"),
        (None, false, _) => (Ink::Dim, "no daemon"),
        (None, true, true) => (Ink::Green, "connected"),
        (None, true, false) => (Ink::Yellow, "not connected"),
    }
}

/// Check whether the services of chats respond
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    about = "Check whether the services of the chats respond",
    after_help = "\
Exit code: 0 if all can be used, else 1.

Examples:
  supervisor chat check
  supervisor chat check team --json"
)]
pub struct CheckChat {
    /// Only this chat.
    pub name: Option<String>,
}

/// Answer of the service of a chat.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Probed {
    /// The chat.
    pub chat: String,
    /// True if it can be used.
    pub ok: bool,
    /// Account of the bot at the service, or the reason why the chat cannot be used.
    pub detail: String,
}

impl Verb for CheckChat {
    verb! { "check-chat": Operator, Read, on(None) => Vec<Probed> }

    async fn run(self, call: Call) -> Result<Vec<Probed>, Failure> {
        let chats = configured(&call.service);
        let names: Vec<String> = chats.into_iter().map(|chat| chat.name).collect();
        let asked = match self.name {
            Some(name) if names.contains(&name) => vec![name],
            Some(name) => {
                let known = if names.is_empty() { "none is configured".to_owned() } else { names.join(", ") };
                let missing = format!("there is no chat `{name}`; the chats are: {known}");
                return Err(Failure::new(base::exit::Code::NotFound, missing)
                    .hint("a file chat.d/NAME.toml of the configuration makes one"));
            }
            None => names,
        };
        let mut probed = Vec::new();
        for chat in asked {
            let (ok, detail) = match probe(&call.service, &chat).await {
                Ok(account) => (true, account),
                Err(why) => (false, why),
            };
            probed.push(Probed { chat, ok, detail });
        }
        Ok(probed)
    }
}

impl Command for CheckChat {
    fn show(reply: &Vec<Probed>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("No chats.");
        }
        for one in reply {
            let word = if one.ok { screen.paint(Ink::Green, "ok") } else { screen.paint(Ink::Red, "failed") };
            screen.line(format!("{word}  {}  {}", one.chat, base::terminal::printable(&one.detail)));
        }
    }

    fn verdict(reply: &Vec<Probed>) -> u8 {
        u8::from(reply.iter().any(|one| !one.ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_chats_has_the_whole_error_at_eighty_columns() {
        const ERROR: &str = "the service does not answer: connection refused by 203.0.113.7:443 after 3 tries, the last one a moment ago";
        let chat = serde_json::json!({"name": "the-team-in-the-morning", "channel": "telegram-of-the-team", "board": "default", "senders": 12,
            "defect": null, "served": true, "connected": false, "since": 1_795_000_000, "last_error": ERROR, "messages": 7});
        let chat: Configured = serde_json::from_value(chat).unwrap();
        let mut screen = Screen::plain(80);
        ListChats::show(&vec![chat], &mut screen);
        let text = screen.into_text();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["the-team-in-the-morning", "telegram-of-the-team", "not connected", ERROR] {
            assert!(joined.contains(part), "{part}\n{text}");
        }
    }
}
