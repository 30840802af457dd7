//! What a service has beside its boards: looks into workspaces, chats, and browsers.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use kernel::{Tenant, Timestamp};

use super::Service;
use super::looks::Looks;
use crate::automation::chat::Desk;
use crate::browsers::Browsers;

/// What the A2A bridge is called among what is not heard.
pub(crate) const BRIDGE: &str = "the A2A bridge";

impl Service {
    /// The looks into workspaces that workers ask for.
    pub(crate) fn looks(&self) -> &Looks {
        &self.looks
    }

    /// The looks at what runs have done that people ask for: of the users of a tenant, and of operators.
    pub(crate) fn diffs(&self) -> &Looks<Option<Tenant>> {
        &self.diffs
    }

    /// The chats, and how their bridges stand.
    pub(crate) fn chats(&self) -> &Desk {
        &self.chats
    }

    /// The A2A bridge listens, or cannot for a reason.
    pub(crate) fn set_bridge(&self, trouble: Option<String>) {
        *self.bridge_trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Why the A2A bridge does not listen, where it should.
    pub(crate) fn bridge_trouble(&self) -> Option<String> {
        self.bridge_trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes over which channels nothing is sent before a time: their service asks for a pause, or they have sent enough.
    pub(crate) fn rest_channels(&self, resting: BTreeMap<String, Timestamp>) {
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner) = resting;
    }

    /// The time before which nothing is sent over a channel; none where it is free.
    pub(crate) fn channel_rests_until(&self, name: &str) -> Option<Timestamp> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// Who should be heard by now and is not: chats and the A2A bridge, each with the reason.
    pub(crate) fn unheard(&self) -> BTreeMap<String, String> {
        let chats = self.chats.deaf().into_iter();
        let mut unheard: BTreeMap<String, String> = chats
            .map(|(name, line)| (format!("the chat {name}"), line.last_error.unwrap_or_default()))
            .collect();
        if let Some(why) = self.bridge_trouble() {
            unheard.insert(BRIDGE.to_owned(), why);
        }
        unheard
    }

    /// The links and sessions of browsers.
    pub(crate) fn browsers(&self) -> &Browsers {
        &self.browsers
    }
}
