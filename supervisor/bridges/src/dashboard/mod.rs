//! The dashboard: serves the page to browsers, and passes their requests to the API. The room is a client of the API
//! without rules of its own.
//!
//! ```text
//! browser ─▶ listener (limits) ─▶ dashboard ─┬─ /open, /session, /assets/…  pages, sign_in
//!                                       └─ /api/…  guard: host, origin, cookie, key ─▶ the API, as the session's owner
//! ```
//!
//! Guarantees:
//!
//! 1. The port is closed before the first link, and while no link is valid and no session lives.
//! 2. Without a session, only the page that takes a link is served. Data also requires the session's key, which other
//!    ports of the host never receive.
//! 3. A page of another origin is refused: `Host`, `Origin` and `Sec-Fetch-Site` are checked first.
//! 4. Connections have the limits of all listeners, and run on separate threads.
//!
//! A colour of the page has one meaning: the colour of a status for it and its outcome, the accent for controls and
//! the selection, orange for a warning or a question, red for a failure. Charts and initials are grey, and a word
//! stands beside each colour.

mod assets;
mod checked_request;
mod guard;
mod handler;
mod listener;
mod pages;
mod session_body;
mod shell;
mod sign_in;

use api::Surface;

/// Adds the dashboard to the daemon's listeners.
pub fn mount(mut surface: Surface) -> Surface {
    surface.listeners.push(listener::serve);
    surface
}
