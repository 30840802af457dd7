//! The owner loop and its rules: an event comes in, actions go out.

pub(super) mod action;
pub(super) mod admission;
pub(super) mod backoff;
pub(super) mod board;
pub(super) mod capacity;
mod commands;
pub(super) mod dispatcher;
pub(super) mod event;
pub(super) mod event_loop;
mod headroom;
pub(super) mod link;
pub(super) mod mode;
pub(super) mod pass;
mod routing;
pub(super) mod scan;
pub(super) mod snapshot;
pub(super) mod stopping;
mod wait;
pub(super) mod why;
