//! A2A bridge: offers profiles of this root to other agents, which find them by their cards and give them tasks over
//! JSON-RPC (A2A 1.0).
//!
//! ```text
//! agent ── GET …/agent-card.json ─▶ card
//!       ── POST, bearer token ────▶ door (sender, bounds) ─▶ desk (method) ─▶ verb, as a user of the sender's tenant
//!                                                             └─ stream: a task until it rests
//! ```
//!
//! A sender is a user of one tenant, on one board, and sees only its own tasks. All checks of a task are the verb's.
//! The lane `a2a` in [`http_worker`](supervisor::http_worker) is the opposite direction: an agent as a worker of this root.

mod card;
mod desk;
mod door;
mod message;
mod reply;
mod senders;
mod state;
mod strangers;
mod stream;

use api::Surface;

/// Adds the bridge to the daemon's tasks.
pub fn mount(mut surface: Surface) -> Surface {
    surface.beside.push(door::serve);
    surface
}
