//! Storage in an `SQLite` file: the only module with SQL, one file per table. Every query is a method of [`tx::Tx`].

mod approvals;
pub(crate) mod attachments;
mod bulk;
pub(crate) mod bundled;
mod cards;
mod chats;
pub(crate) mod check;
pub(crate) mod checkpoint;
mod columns;
pub(crate) mod comments;
pub(crate) mod convert;
pub(crate) mod copy;
pub(crate) mod counts;
pub(crate) mod create;
mod days;
pub(crate) mod delays;
pub(crate) mod events;
pub(crate) mod examined_tasks;
pub(crate) mod fields;
pub(crate) mod files;
pub(crate) mod folded;
pub(crate) mod foreign;
pub(crate) mod future;
pub(crate) mod holds;
mod identity;
pub(crate) mod imported;
mod leases;
mod ledger;
pub(crate) mod links;
pub(crate) mod marker;
mod mentions;
mod messages;
pub(crate) mod meta;
pub(crate) mod migrate;
mod missions;
pub(crate) mod notify;
mod objects;
pub(crate) mod open;
pub(crate) mod open_error;
pub(crate) mod outbox;
mod page_order;
mod page_sources;
pub(crate) mod pages;
mod plugins;
pub(crate) mod presence;
mod progress;
pub(crate) mod projected_use;
pub(crate) mod projection;
mod proposals;
pub(crate) mod queue;
pub(crate) mod repair;
pub(crate) mod requests;
mod rows;
pub(crate) mod runs;
mod schedules;
mod sequence;
pub(crate) mod snapshot;
mod spent;
pub(crate) mod stamp;
mod statement;
pub(crate) mod tasks;
mod tenant_rows;
mod tenant_use;
mod time_limit;
pub(crate) mod tx;
mod unread;
pub(crate) mod usage;
pub(crate) mod values;
pub(crate) mod watched;

#[cfg(test)]
pub(crate) mod adopt_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod durable_tests;
#[cfg(test)]
mod end_tests;
#[cfg(test)]
mod growth_tests;
#[cfg(test)]
mod open_tests;
#[cfg(test)]
mod presence_tests;
#[cfg(test)]
mod tenant_rows_tests;
#[cfg(test)]
mod transfer_tests;
