//! The rules of a board, pure: what may follow what, who may do what, what starts first, and what is reported.

pub(crate) mod admission;
pub(crate) mod artifact;
pub(crate) mod authority;
pub(crate) mod backoff;
pub(crate) mod budget;
pub(crate) mod check;
pub(crate) mod context;
pub(crate) mod diagnose;
pub(crate) mod implied;
pub(crate) mod links;
pub(crate) mod mention;
pub(crate) mod mission;
pub(crate) mod notice;
pub(crate) mod proposal;
pub(crate) mod proposed;
mod proposed_profiles;
pub(crate) mod readiness;
pub(crate) mod reason;
pub(crate) mod recurrence;
pub(crate) mod remedy;
pub(crate) mod retry;
pub(crate) mod rounds;
pub(crate) mod template;
pub(crate) mod ticks;
pub(crate) mod transition;
pub(crate) mod turns;
pub(crate) mod waiting;
