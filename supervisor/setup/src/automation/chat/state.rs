//! State of the chats: their files, their bridges, and the positions up to which messages were read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::{Clock as _, SystemClock, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};

use super::file::Chats;
use super::incoming::Posted;
use crate::config::definitions::Defect;
use base::paths::Root;

/// Limit on the channels of a chat for which the last message is remembered.
const ROOMS: usize = 100;

/// Position in a channel of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chatroom {
    /// Number of the last message; later messages have higher numbers.
    pub last: u64,
    /// True if the sender is alone with the bot.
    pub is_direct: bool,
}

/// Decides if a channel is to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remembered {
    Yes,
    No,
}

/// Result of noting a message: new, or delivered before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    New,
    Again,
}

/// State of the chats of a root.
#[derive(Debug, Default)]
pub struct ChatsState {
    chats: Mutex<Option<Arc<Chats>>>,
    connections: Mutex<BTreeMap<String, ChatConnection>>,
    /// Positions up to which services were read, by account.
    positions: Mutex<BTreeMap<String, i64>>,
    /// Positions in the channels of services, by chat and channel.
    rooms: Mutex<BTreeMap<String, BTreeMap<String, Chatroom>>>,
    /// Channels into which programs post messages for a chat of theirs.
    inboxes: Mutex<BTreeMap<String, mpsc::Sender<Posted>>>,
    changed: watch::Sender<u64>,
}

/// State of a chat's bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChatConnection {
    /// True if the service responds.
    pub connected: bool,
    /// Account of the bridge at the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Time of the last change of `connected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Reason for the last loss of the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Number of messages from known senders since the start of the daemon.
    pub messages: u64,
    /// True if the service was contacted and did not respond.
    #[serde(skip)]
    is_failing: bool,
}

impl ChatsState {
    /// Returns the chats as their files define them. The files are read on first use and at a reload.
    pub fn chats(&self, root: &Root) -> Arc<Chats> {
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(chats.get_or_insert_with(|| Arc::new(Chats::load(root))))
    }

    /// Reads the files again. A file that has become defective keeps its last good version.
    pub fn reload(&self, root: &Root) {
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match chats.take() {
            Some(before) => Chats::reload(root, &before),
            None => Chats::load(root),
        };
        *chats = Some(Arc::new(now));
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns the defects in the files.
    pub fn defects(&self, root: &Root) -> Vec<Defect> {
        self.chats(root).defects().cloned().collect()
    }

    /// Returns a receiver that is notified when the files or the channels were read again.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the state of a chat's bridge.
    pub fn connection(&self, name: &str) -> ChatConnection {
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.get(name).cloned().unwrap_or_default()
    }

    /// Returns the chats whose services do not respond.
    pub fn disconnected(&self) -> Vec<(String, ChatConnection)> {
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let failing = connections.iter().filter(|(_, connection)| connection.is_failing);
        failing.map(|(name, connection)| (name.clone(), connection.clone())).collect()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut ChatConnection)) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        change(connections.entry(name.to_owned()).or_default());
    }

    /// Records a response of the service.
    pub fn connected(&self, name: &str, account: Option<&str>) {
        self.change(name, |connection| {
            if !connection.connected {
                connection.since = Some(SystemClock.now());
            }
            (connection.connected, connection.is_failing) = (true, false);
            if let Some(account) = account {
                connection.account = Some(account.chars().filter(|c| !c.is_control()).take(64).collect());
            }
        });
    }

    /// Records a failure of the service.
    pub fn failed(&self, name: &str, why: &str) {
        self.change(name, |connection| {
            if connection.connected || connection.since.is_none() {
                connection.since = Some(SystemClock.now());
            }
            (connection.connected, connection.is_failing) = (false, true);
            connection.last_error = Some(why.chars().filter(|c| !c.is_control()).take(300).collect());
        });
    }

    /// Records the end of the bridge.
    pub fn closed(&self, name: &str) {
        self.change(name, |connection| (connection.connected, connection.is_failing) = (false, false));
    }

    /// Counts a message from a known sender.
    pub fn received(&self, name: &str) {
        self.change(name, |connection| connection.messages += 1);
    }

    /// Opens the inbox of a chat. The inbox closes when its reader is gone.
    pub fn open_inbox(&self, name: &str, inbox: mpsc::Sender<Posted>) {
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.insert(name.to_owned(), inbox);
    }

    /// Returns the inbox of a chat, if open.
    pub fn inbox(&self, name: &str) -> Option<mpsc::Sender<Posted>> {
        let inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.get(name).filter(|inbox| !inbox.is_closed()).cloned()
    }

    /// Returns the position up to which an account has read its service; 0 if unknown.
    pub fn position(&self, account: &str) -> i64 {
        let positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        positions.get(account).copied().unwrap_or(0)
    }

    pub fn moved(&self, account: &str, position: i64) {
        let mut positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        positions.insert(account.to_owned(), position);
    }

    /// Records a message in a channel. A channel that is not remembered yet is added if `is_known` says so.
    /// Returns `Again` if this message, or a later one, was recorded before.
    pub fn received_in(&self, chat: &str, channel: &str, message: Chatroom, is_known: Remembered) -> Repeat {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let rooms = rooms.entry(chat.to_owned()).or_default();
        if let Some(room) = rooms.get_mut(channel) {
            let repeat = if message.last <= room.last { Repeat::Again } else { Repeat::New };
            room.last = room.last.max(message.last);
            return repeat;
        }
        if is_known == Remembered::Yes {
            rooms.insert(channel.to_owned(), message);
        }
        if rooms.len() > ROOMS {
            let oldest = rooms.iter().min_by_key(|(_, room)| room.last).map(|(name, _)| name.clone());
            oldest.map(|name| rooms.remove(&name));
        }
        Repeat::New
    }

    /// Returns the remembered channels of a chat, the most recent first.
    pub fn rooms(&self, chat: &str) -> Vec<(String, Chatroom)> {
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
        let state = ChatsState::default();
        let room = |last| Chatroom { last, is_direct: false };
        assert_eq!(state.received_in("c", "talk", room(1), Remembered::No), Repeat::New);
        assert_eq!(state.rooms("c"), [], "the talk of others is no matter of ours");
        for channel in 0..=ROOMS as u64 {
            state.received_in("c", &channel.to_string(), room(1000 + channel), Remembered::Yes);
        }
        let rooms = state.rooms("c");
        assert_eq!((rooms.len(), rooms[0].0.as_str()), (ROOMS, "100"));
        assert!(rooms.iter().all(|(name, _)| name != "0"), "the oldest went");
        assert_eq!(state.received_in("c", "7", room(1007), Remembered::Yes), Repeat::Again);
        assert_eq!(state.received_in("c", "7", room(2000), Remembered::No), Repeat::New);
        assert_eq!(state.rooms("c")[0], ("7".to_owned(), room(2000)));
        assert_eq!(state.rooms("another"), []);
    }
}
