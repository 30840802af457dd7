//! A2A bridge: offers profiles of this root to other agents, which find them by their cards and give them tasks over
//! JSON-RPC (A2A 1.0).
//!
//! ```text
//! agent ── GET …/agent-card.json ─▶ card
//!       ── POST, bearer token ────▶ listener (sender, bounds) ─▶ methods (method) ─▶ verb, as a user of the sender's tenant
//!                                                             └─ stream: a task until it rests
//! ```
//!
//! A sender is a user of one tenant, on one board, and sees only its own tasks. All checks of a task are the verb's.
//! The lane `a2a` in `http_worker` of the command line is the opposite direction: an agent as a worker of this root.
//!
//! The board keeps all state: a task has the sender and the `messageId` as its key, and the `contextId` as its
//! session, so a repeated message is one task and nothing is replayed. `INPUT_REQUIRED` is a question that a message
//! can answer; a wait for a person of this root is `AUTH_REQUIRED`, or clients would ask their users for an answer
//! that is refused.

mod card;
mod listener;
mod message;
mod methods;
mod reply;
mod senders;
mod state;
mod stream;
mod unauthenticated;

use api::Surface;

/// Adds the bridge to the daemon's tasks.
pub fn mount(mut surface: Surface) -> Surface {
    surface.background.push(listener::serve);
    surface
}
