//! Definitions of a root: profiles, lanes, tenants, schedules and plugins.

mod lane_needs;
mod lane_program;
pub(crate) mod lanes;
pub(crate) mod plugins;
pub(crate) mod profiles;
pub(crate) mod schedules;
pub(crate) mod tenants;
