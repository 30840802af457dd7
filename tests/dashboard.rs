//! The dashboard's port: links, sessions, and what is answered to whom.

mod attacks;
mod members;
mod proxies;
mod session;
mod unauthenticated;
mod wire;
