//! Subscriptions of chats to tasks, the outbox, and the bridges to chats.

pub(crate) mod chats;
pub(crate) mod default_subscriber;
pub(crate) mod list;
pub(crate) mod outbox;
pub(crate) mod subscribe;
pub(crate) mod test_message;
pub(crate) mod unsubscribe;
