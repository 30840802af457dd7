//! Bridges to other clients: chat services, agents of others (A2A), and the dashboard.

pub mod a2a;
pub mod chat;
pub mod dashboard;
