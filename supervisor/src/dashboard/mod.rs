//! The dashboard: the page in a browser, and the way from there to the API. It is a client of the API and has no rule of its own.
//!
//! ```text
//! browser ─▶ listener (bounds of a door) ─▶ desk ─┬─ /open, /session, /assets/…   pages, sign_in
//!                                                 └─ /api/…  guard: host, origin, cookie, key ─▶ the API, as the owner of the session
//! ```
//!
//! What it promises:
//!
//! 1. Nothing listens before a link is asked for, or without a session that lives.
//! 2. But for the page that takes a link, nothing is answered without a session; no data without its key, which other ports of the host never see.
//! 3. A page of another origin reaches nothing: `Host`, `Origin` and `Sec-Fetch-Site` are looked at before all else.
//! 4. Connections are bounded and timed as at each door, on threads of their own.

mod assets;
mod desk;
mod guard;
mod listener;
mod pages;
mod shell;
mod sign_in;
mod until;
mod visit;

use crate::api::Surface;

/// Adds the dashboard to what a daemon does.
pub(crate) fn mount(mut surface: Surface) -> Surface {
    surface.doors.push(listener::serve);
    surface
}
