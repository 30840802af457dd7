//! Review of work, and answers to workers.

pub(crate) mod answer;
pub(crate) mod approve;
pub(crate) mod deny;
mod line_comment;
pub(crate) mod request_changes;
pub(crate) mod request_review;
