//! The A2A bridge: profiles of this root are agents that others find by their cards and give work to, over JSON-RPC (A2A 1.0).
//!
//! ```text
//! agent ── GET …/agent-card.json ─▶ card
//!       ── POST, bearer token ────▶ door (sender, bounds) ─▶ desk (method) ─▶ verb, as a user of the sender's tenant
//!                                                             └─ stream: a task until it rests
//! ```
//!
//! A sender is a user of one tenant, on one board, and sees the tasks that it has sent and no others. Every check of a task is that of the verb.
//! The other direction, an agent as a worker of this root, is the lane `a2a` in [`http_worker`](crate::http_worker).

mod card;
mod desk;
mod door;
mod message;
mod reply;
mod senders;
mod state;
mod strangers;
mod stream;

use crate::api::Surface;

/// Adds the bridge to what a daemon does.
pub(crate) fn mount(mut surface: Surface) -> Surface {
    surface.beside.push(door::serve);
    surface
}
