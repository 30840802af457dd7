//! State of a service besides its boards: jobs in workspaces, chats, notification channels and browsers.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use kernel::{BoardName, Finding, Tenant, Timestamp};

use super::Service;
use super::jobs::Jobs;
use setup::automation::chat::ChatsState;
use setup::browsers::Browsers;

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

    /// Records the problems of a board's channels and plugins.
    pub fn set_delivery_problems(&self, board: &BoardName, problems: Vec<Finding>) {
        let mut known = self.delivery_problems.lock().unwrap_or_else(PoisonError::into_inner);
        if problems.is_empty() {
            known.remove(board);
        } else {
            known.insert(board.clone(), problems);
        }
    }

    /// Returns the problems of channels and plugins on all boards, without duplicates.
    pub fn delivery_problems(&self) -> Vec<Finding> {
        let known = self.delivery_problems.lock().unwrap_or_else(PoisonError::into_inner);
        let mut problems: Vec<Finding> = known.values().flatten().cloned().collect();
        problems.sort_by(|a, b| (a.code, &a.subject).cmp(&(b.code, &b.subject)));
        problems.dedup_by(|a, b| (a.code, &a.subject) == (b.code, &b.subject));
        problems
    }

    /// Returns the links and sessions of browsers.
    pub fn browsers(&self) -> &Browsers {
        &self.browsers
    }
}
