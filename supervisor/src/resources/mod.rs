//! The resources of the API: each one is a verb under a path that a client would guess.

mod board;
mod boards;
mod feed;
mod files;
mod paths;
mod stream;

use axum::Router;

use crate::api::Surface;
use crate::verbs;

/// The whole API: a path per verb, and the resources that map onto them.
pub(crate) fn surface() -> Surface {
    Surface {
        routes: stream::mount(board::mount(boards::mount(files::mount(paths::mount(verbs::mount(
            Router::new(),
        )))))),
        verbs: verbs::entries(),
        beside: Vec::new(),
        doors: Vec::new(),
    }
}
