//! `chat.d/NAME.toml`: a chat, its notification channel, and the rights of its senders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kernel::{BoardName, Tenant};
use policies::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::definitions::{Defect, Definitions, FileDefinition, FileLimit, Subject};
use crate::config::tenants::is_plain;
use base::paths::Root;

/// Limit on the senders of a chat.
const SENDERS: usize = 1000;
/// Limit on the id of a sender, in characters.
const ID: usize = 128;

/// Configuration of a chat. Reloaded on SIGHUP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatFile {
    /// Channel of `[notify.channels]` whose service the chat uses.
    pub channel: String,
    #[serde(default)]
    pub board: BoardName,
    /// Other boards that a command may name.
    #[serde(default)]
    pub boards: BTreeSet<BoardName>,
    /// Directories below which `/kanban here` may choose a directory.
    #[serde(default)]
    pub directories: Vec<PathBuf>,
    /// Second secret, if the service needs more than the channel's: the app-level token of Slack.
    #[serde(default)]
    pub secret: Option<Secret>,
    /// Address of Discord's gateway; none for the usual address.
    #[serde(default)]
    pub gateway: Option<String>,
    /// Limit on answered messages of one sender per minute.
    #[serde(default = "ChatFile::per_minute_default")]
    pub per_minute: u32,
    #[serde(default)]
    pub senders: Vec<Sender>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sender {
    /// Id at the service.
    pub id: String,
    /// Name of the person on the board.
    pub name: String,
    #[serde(default)]
    pub may: May,
    /// Only tenant that the sender may see.
    #[serde(default)]
    pub tenant: Option<Tenant>,
    /// Boards of the chat that the sender may access; all if absent.
    #[serde(default)]
    pub boards: Option<BTreeSet<BoardName>>,
}

/// Right of a sender; each includes the rights before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum May {
    /// See tasks, and unblock them.
    #[default]
    Read,
    /// Create and change tasks, and answer questions.
    Mutate,
    /// Approve and deny.
    Approve,
}

impl May {
    pub fn as_str(self) -> &'static str {
        match self {
            May::Read => "read",
            May::Mutate => "mutate",
            May::Approve => "approve",
        }
    }
}

impl ChatFile {
    fn per_minute_default() -> u32 {
        20
    }

    /// Parses the text of a file.
    pub fn parse(name: &str, path: &Path, text: &str) -> Result<Self, Defect> {
        let subject = || Subject::Chat(name.to_owned());
        let read: ChatFile = toml::from_str(text).map_err(|e| Defect::toml(subject(), path, text, &e))?;
        match read.unusable() {
            Some(why) => Err(Defect::new(subject(), path, why)),
            None => Ok(read),
        }
    }

    fn unusable(&self) -> Option<String> {
        if self.per_minute == 0 {
            return Some("per_minute is 0, so nobody would be answered; leave it out for 20".to_owned());
        }
        if let Some(path) = self.directories.iter().find(|path| !is_plain(path) || path.parent().is_none()) {
            return Some(format!(
                "directories has \"{}\", which is not an absolute path below / without `..`",
                path.display()
            ));
        }
        if self.senders.len() > SENDERS {
            return Some(format!("it has more than {SENDERS} senders"));
        }
        let mut ids = BTreeMap::new();
        for sender in &self.senders {
            if let Some(why) = sender.unusable() {
                return Some(why);
            }
            if let Some(other) = ids.insert(sender.id.as_str(), sender.name.as_str()) {
                return Some(format!("the senders {other} and {} have the same id", sender.name));
            }
        }
        None
    }

    pub fn sender(&self, id: &str) -> Option<&Sender> {
        self.senders.iter().find(|sender| sender.id == id)
    }

    /// Returns true if a sender's command may concern a board.
    pub fn reaches(&self, sender: &Sender, board: &BoardName) -> bool {
        (*board == self.board || self.boards.contains(board))
            && sender.boards.as_ref().is_none_or(|own| own.contains(board))
    }
}

impl Sender {
    fn unusable(&self) -> Option<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(is_plain) {
            return Some(format!(
                "the name of the sender {:?} is {:?}; a name has 1 to 64 letters, digits, `-`, `_` and `.`",
                self.id, self.name
            ));
        }
        let is_id = (1..=ID).contains(&self.id.len()) && self.id.bytes().all(|byte| byte.is_ascii_graphic());
        (!is_id)
            .then(|| format!("the id of the sender {} is not 1 to {ID} characters without spaces", self.name))
    }
}

/// All chats by name.
pub type Chats = Definitions<ChatFile>;

impl FileDefinition for ChatFile {
    const SUBJECT: fn(String) -> Subject = Subject::Chat;
    const MOST: Option<FileLimit> = Some(FileLimit { files: 32, noun: "chats" });

    fn directory(root: &Root) -> PathBuf {
        root.config_file().with_file_name("chat.d")
    }

    fn check(name: &str, _path: &Path) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_name = name.len() <= 32 && name.chars().all(is_plain);
        is_name
            .then_some(())
            .ok_or_else(|| "the file's name is the chat's: 1 to 32 letters, digits, `-` and `_`".to_owned())
    }

    fn from_text(name: &str, path: &Path, text: &str) -> Result<Self, Defect> {
        ChatFile::parse(name, path, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_means_two_things_or_nothing_is_refused_with_the_reason() {
        let sender = |id: &str, name: &str| format!("[[senders]]\nid = '{id}'\nname = '{name}'\n");
        for (text, expected) in [
            ("channel = 'tg'".to_owned(), None),
            (format!("channel = 'tg'\n{}", sender("1", "ann")), None),
            (String::new(), Some("missing field `channel`")),
            ("channel = 'tg'\nper_minute = 0".to_owned(), Some("per_minute is 0")),
            ("channel = 'tg'\ndirectories = ['a/b']".to_owned(), Some("not an absolute path")),
            ("channel = 'tg'\ndirectories = ['/']".to_owned(), Some("below /")),
            (format!("channel = 'tg'\n{}", sender("1", "a b")), Some("a name has")),
            (format!("channel = 'tg'\n{}", sender("", "ann")), Some("the id of the sender ann")),
            (
                format!("channel = 'tg'\n{}{}", sender("1", "ann"), sender("1", "bob")),
                Some("the senders ann and bob have the same id"),
            ),
            (format!("channel = 'tg'\n{}may = 'all'", sender("1", "ann")), Some("unknown variant `all`")),
            ("channel = 'tg'\ntoken = 'x'".to_owned(), Some("unknown field `token`")),
        ] {
            let found = ChatFile::parse("tg", Path::new("tg.toml"), &text).err().map(|e| e.to_string());
            let fits = match (&found, expected) {
                (None, None) => true,
                (Some(found), Some(expected)) => found.contains(expected),
                (None, Some(_)) | (Some(_), None) => false,
            };
            assert!(fits, "{text}: {found:?}");
        }
    }

    #[test]
    fn a_sender_reaches_the_boards_of_the_chat_that_are_its_own() {
        let text = "channel = 'tg'\nboards = ['work']\n[[senders]]\nid = '1'\nname = 'ann'\n\
                    [[senders]]\nid = '2'\nname = 'bob'\nboards = ['work', 'home']";
        let chat = ChatFile::parse("tg", Path::new("tg.toml"), text).unwrap();
        let reaches = |id: &str, board: &str| chat.reaches(chat.sender(id).unwrap(), &board.parse().unwrap());
        assert!(reaches("1", "default") && reaches("1", "work") && !reaches("1", "home"));
        assert!(reaches("2", "work") && !reaches("2", "default") && !reaches("2", "home"));
    }
}
