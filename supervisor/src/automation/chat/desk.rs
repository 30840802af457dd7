//! What is known of the chats: their files, and how their bridges stand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::{Clock as _, SystemClock, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};

use super::file::Chats;
use super::heard::Posted;
use crate::config::definitions::Defect;
use crate::paths::Root;

/// The most channels of one chat in which the last message is known.
const ROOMS: usize = 100;

/// Up to where a channel of a service was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chatroom {
    /// The number of the last message; later ones have higher numbers.
    pub(crate) last: u64,
    /// Whether nobody else is in it.
    pub(crate) is_direct: bool,
}

/// Whether a channel is one whose words matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Yes,
    No,
}

/// Whether a message comes for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    New,
    Again,
}

/// The chats of a root.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    chats: Mutex<Option<Arc<Chats>>>,
    lines: Mutex<BTreeMap<String, Line>>,
    /// Up to where services were read, by the account that has read.
    positions: Mutex<BTreeMap<String, i64>>,
    /// Up to where the channels of a service were heard, by the chat and the channel.
    rooms: Mutex<BTreeMap<String, BTreeMap<String, Chatroom>>>,
    /// Where programs post what was said in a chat of theirs.
    inboxes: Mutex<BTreeMap<String, mpsc::Sender<Posted>>>,
    changed: watch::Sender<u64>,
}

/// How the bridge of a chat stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Line {
    /// Whether its service answers.
    pub(crate) connected: bool,
    /// As whom it is at its service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
    /// Since when it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// Why it was last not connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
    /// How many messages of known senders have come since the daemon began.
    pub(crate) messages: u64,
    /// Whether its service was asked and has not answered.
    #[serde(skip)]
    is_failing: bool,
}

impl Desk {
    /// The chats as their files define them: read when they are first asked for, and again when the daemon reloads.
    pub(crate) fn chats(&self, root: &Root) -> Arc<Chats> {
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(chats.get_or_insert_with(|| Arc::new(Chats::load(root))))
    }

    /// Reads the files again. One that has become defective stays as it was.
    pub(crate) fn reload(&self, root: &Root) {
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match chats.take() {
            Some(before) => Chats::reload(root, &before),
            None => Chats::load(root),
        };
        *chats = Some(Arc::new(now));
        self.changed.send_modify(|count| *count += 1);
    }

    /// What is wrong with the files.
    pub(crate) fn defects(&self, root: &Root) -> Vec<Defect> {
        self.chats(root).defects().cloned().collect()
    }

    /// A receiver that is woken when the files or the channels were read again.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// How the bridge of a chat stands.
    pub(crate) fn line(&self, name: &str) -> Line {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(name).cloned().unwrap_or_default()
    }

    /// The chats whose services do not answer.
    pub(crate) fn deaf(&self) -> Vec<(String, Line)> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let deaf = lines.iter().filter(|(_, line)| line.is_failing);
        deaf.map(|(name, line)| (name.clone(), line.clone())).collect()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Line)) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        change(lines.entry(name.to_owned()).or_default());
    }

    /// Its service has answered.
    pub(crate) fn connected(&self, name: &str, account: Option<&str>) {
        self.change(name, |line| {
            if !line.connected {
                line.since = Some(SystemClock.now());
            }
            (line.connected, line.is_failing) = (true, false);
            if let Some(account) = account {
                line.account = Some(account.chars().filter(|c| !c.is_control()).take(64).collect());
            }
        });
    }

    /// Its service has not.
    pub(crate) fn failed(&self, name: &str, why: &str) {
        self.change(name, |line| {
            if line.connected || line.since.is_none() {
                line.since = Some(SystemClock.now());
            }
            (line.connected, line.is_failing) = (false, true);
            line.last_error = Some(why.chars().filter(|c| !c.is_control()).take(300).collect());
        });
    }

    /// Its bridge has ended.
    pub(crate) fn closed(&self, name: &str) {
        self.change(name, |line| (line.connected, line.is_failing) = (false, false));
    }

    /// A message of a known sender has come.
    pub(crate) fn heard(&self, name: &str) {
        self.change(name, |line| line.messages += 1);
    }

    /// Opens the inbox of a chat. It is closed when its reader is gone.
    pub(crate) fn open_inbox(&self, name: &str, inbox: mpsc::Sender<Posted>) {
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.insert(name.to_owned(), inbox);
    }

    /// The inbox of a chat, where it is open.
    pub(crate) fn inbox(&self, name: &str) -> Option<mpsc::Sender<Posted>> {
        let inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.get(name).filter(|inbox| !inbox.is_closed()).cloned()
    }

    /// Up to where an account has read its service; 0 where that is not known.
    pub(crate) fn position(&self, account: &str) -> i64 {
        let positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        positions.get(account).copied().unwrap_or(0)
    }

    pub(crate) fn moved(&self, account: &str, position: i64) {
        let mut positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        positions.insert(account.to_owned(), position);
    }

    /// A message of a channel was heard, which is known from then on where `is_known`. Returns whether it was heard before.
    pub(crate) fn heard_in(&self, chat: &str, channel: &str, heard: Chatroom, is_known: Known) -> Repeat {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let rooms = rooms.entry(chat.to_owned()).or_default();
        if let Some(room) = rooms.get_mut(channel) {
            let repeat = if heard.last <= room.last { Repeat::Again } else { Repeat::New };
            room.last = room.last.max(heard.last);
            return repeat;
        }
        if is_known == Known::Yes {
            rooms.insert(channel.to_owned(), heard);
        }
        if rooms.len() > ROOMS {
            let oldest = rooms.iter().min_by_key(|(_, room)| room.last).map(|(name, _)| name.clone());
            oldest.map(|name| rooms.remove(&name));
        }
        Repeat::New
    }

    /// The channels of a chat that are known, that which was heard last first.
    pub(crate) fn rooms(&self, chat: &str) -> Vec<(String, Chatroom)> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rooms: Vec<_> = rooms.get(chat).into_iter().flatten().map(|(n, r)| (n.clone(), *r)).collect();
        rooms.sort_by_key(|(_, room)| std::cmp::Reverse(room.last));
        rooms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_channels_that_were_heard_last_are_known_and_each_message_is_new_once() {
        let desk = Desk::default();
        let room = |last| Chatroom { last, is_direct: false };
        assert_eq!(desk.heard_in("c", "talk", room(1), Known::No), Repeat::New);
        assert_eq!(desk.rooms("c"), [], "the talk of others is no matter of ours");
        for channel in 0..=ROOMS as u64 {
            desk.heard_in("c", &channel.to_string(), room(1000 + channel), Known::Yes);
        }
        let rooms = desk.rooms("c");
        assert_eq!((rooms.len(), rooms[0].0.as_str()), (ROOMS, "100"));
        assert!(rooms.iter().all(|(name, _)| name != "0"), "the oldest went");
        assert_eq!(desk.heard_in("c", "7", room(1007), Known::Yes), Repeat::Again);
        assert_eq!(desk.heard_in("c", "7", room(2000), Known::No), Repeat::New);
        assert_eq!(desk.rooms("c")[0], ("7".to_owned(), room(2000)));
        assert_eq!(desk.rooms("another"), []);
    }
}
