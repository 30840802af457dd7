//! The board as tools of agents: the Model Context Protocol over standard input and output, and over HTTP.
//!
//! ```text
//! agent ── stdio ── `supervisor mcp` ── Client ── socket of the run ──┐
//! agent ── HTTP ───────────────────────────────── POST /mcp ── Ask ───┴─▶ verb
//! ```
//!
//! A tool is a verb that has a [`TOOL`](api::Verb::TOOL): its arguments are the request, its result is the
//! reply, and all checks are the verb's. This room decides only on the form. No other room uses the crate `rmcp`.
//!
//! The macros of `rmcp` are not used: they would define each request a second time. Messages are not forwarded as
//! they are, because only this side knows the task, the files and the retries of a worker.

mod board;
mod catalog;
mod http;
mod outcome;
mod script;
mod server;
mod stdio;

pub(crate) use http::mount;
pub(crate) use script::main as script_main;
pub(crate) use stdio::serve;
