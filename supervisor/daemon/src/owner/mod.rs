//! The owner loop and its rules: an event comes in, actions go out.

pub(super) mod action;
pub(super) mod admission;
pub(super) mod backoff;
pub(super) mod board;
mod commands;
pub(super) mod dispatcher;
pub(super) mod event;
pub(super) mod event_loop;
pub(super) mod extent;
mod headroom;
pub(super) mod link;
pub(super) mod look;
pub(super) mod pass;
pub(super) mod room;
mod routing;
pub(super) mod snapshot;
pub(super) mod stopping;
mod wait;
pub(super) mod why;
