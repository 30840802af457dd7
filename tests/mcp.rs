//! The board as tools of agents: over standard input and output, and over HTTP.

mod agent;
mod configuration;
mod http;
mod plugins;
mod scripts;
mod stdio;
mod versions;

pub(crate) use stdio::CLIENT;
