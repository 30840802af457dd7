//! The A2A bridge: profiles as agents that others find and give work to, and agents elsewhere as workers of a lane.

mod bridge;
mod liar;
mod peer;
mod wire;
