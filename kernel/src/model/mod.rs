//! The nouns of a board and their words. They know no rule, no file and no database.

pub(crate) mod actor;
pub(crate) mod candidate;
pub(crate) mod cell;
pub(crate) mod clock;
pub(crate) mod counted;
pub(crate) mod entropy;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod filter;
pub(crate) mod hold;
pub(crate) mod id;
pub mod limits;
pub(crate) mod log;
pub(crate) mod note;
pub(crate) mod outcome;
pub(crate) mod quota;
pub(crate) mod request;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod subscription;
pub(crate) mod suspect;
pub(crate) mod swarm;
pub(crate) mod task;
pub(crate) mod verdict;
pub(crate) mod waiting;
pub(crate) mod words;
