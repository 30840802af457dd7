//! What a service has beside its boards: looks into workspaces, chats, and browsers.

use kernel::Tenant;

use super::Service;
use super::looks::Looks;
use crate::automation::chat::Desk;
use crate::browsers::Browsers;

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

    /// The links and sessions of browsers.
    pub(crate) fn browsers(&self) -> &Browsers {
        &self.browsers
    }
}
