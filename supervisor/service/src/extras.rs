//! State of a service besides its boards: jobs in workspaces, chats, notification channels and browsers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use kernel::{BoardName, Tenant, Timestamp};

use super::Service;
use super::jobs::Jobs;
use setup::automation::chat::ChatsState;
use setup::browsers::Browsers;

/// Name of the A2A bridge in lists of unreachable services.
pub const BRIDGE: &str = "the A2A bridge";

impl Service {
    /// Returns the scheduler of workers' jobs in workspaces.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Returns the scheduler of diffs that people ask for, by tenant of the asking member; none for operators.
    pub fn diffs(&self) -> &Jobs<Option<Tenant>> {
        &self.diffs
    }

    /// Returns the state of the chats.
    pub fn chats(&self) -> &ChatsState {
        &self.chats
    }

    /// Records that the A2A bridge listens, or the reason why it cannot.
    pub fn set_bridge(&self, trouble: Option<String>) {
        *self.bridge_trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Returns the reason why the A2A bridge does not listen although it should.
    pub fn bridge_trouble(&self) -> Option<String> {
        self.bridge_trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records channels with the time before which no message is sent over them: the service asked for a pause, or
    /// the rate limit is reached.
    pub fn set_paused_channels(&self, resting: BTreeMap<String, Timestamp>) {
        *self.paused_channels.lock().unwrap_or_else(PoisonError::into_inner) = resting;
    }

    /// Returns the time before which no message is sent over a channel; none if it is free.
    pub fn channel_paused_until(&self, name: &str) -> Option<Timestamp> {
        self.paused_channels.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// Returns the chats, and the A2A bridge, that should be reachable and are not, with the reasons.
    pub fn unreachable(&self) -> BTreeMap<String, String> {
        let chats = self.chats.disconnected().into_iter();
        let mut unheard: BTreeMap<String, String> = chats
            .map(|(name, line)| (format!("the chat {name}"), line.last_error.unwrap_or_default()))
            .collect();
        if let Some(why) = self.bridge_trouble() {
            unheard.insert(BRIDGE.to_owned(), why);
        }
        unheard
    }

    /// Records the problems of a board's channels and plugins, in words.
    pub fn set_delivery_problems(&self, board: &BoardName, troubles: Vec<String>) {
        let mut silent = self.delivery_problems.lock().unwrap_or_else(PoisonError::into_inner);
        if troubles.is_empty() {
            silent.remove(board);
        } else {
            silent.insert(board.clone(), troubles);
        }
    }

    /// Returns the problems of channels and plugins on all boards, without duplicates.
    pub fn delivery_problems(&self) -> BTreeSet<String> {
        let silent = self.delivery_problems.lock().unwrap_or_else(PoisonError::into_inner);
        silent.values().flatten().cloned().collect()
    }

    /// Returns the links and sessions of browsers.
    pub fn browsers(&self) -> &Browsers {
        &self.browsers
    }
}
