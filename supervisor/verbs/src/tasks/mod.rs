//! Tasks: create, find, change, start and end them.

pub(crate) mod archive;
pub(crate) mod assign;
pub(crate) mod assignees;
pub(crate) mod bulk;
pub(crate) mod bulk_patch;
pub(crate) mod comment;
pub(crate) mod create;
pub(crate) mod dispatch_fleet;
pub(crate) mod edit;
mod fleet_root;
pub(crate) mod fork;
pub(crate) mod kill;
pub(crate) mod link;
pub(crate) mod list;
pub(crate) mod obstacles;
pub(crate) mod of_tasks;
pub(crate) mod patch;
pub(crate) mod promote;
pub(crate) mod reassign;
pub(crate) mod reclaim;
pub(crate) mod schedule;
pub(crate) mod selection;
pub(crate) mod show;
mod tenant_defaults;
