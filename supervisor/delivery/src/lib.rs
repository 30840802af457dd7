//! Delivery of events to people and plugins: notifications, calls of plugins, and programs of the operator.

pub mod notify;
pub mod plugins;
pub mod program;
