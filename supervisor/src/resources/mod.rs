//! Resources of the API: verbs under paths that a client would guess.

mod board;
mod boards;
mod catalog;
mod config;
mod feed;
mod files;
#[cfg(test)]
mod hang_up_tests;
mod live;
mod openapi;
mod paths;
mod socket;
mod stream;

use axum::Router;

use api::{Routes, Surface};

/// Prefixes of resources. Resources that Hermes Kanban has too are also under the prefix of its clients.
const PREFIXES: [&str; 2] = ["/api/v1", "/api/plugins/kanban"];

/// Returns the whole API: a path per verb, and the resources.
pub(crate) fn surface() -> Surface {
    Surface {
        routes: routes(),
        verbs: verbs::entries(),
        exchanges: Vec::new(),
        background: Vec::new(),
        listeners: Vec::new(),
    }
}

/// Returns the paths of all verbs and resources.
fn routes() -> Routes {
    let mounts: [fn(Routes) -> Routes; 9] = [
        verbs::mount,
        paths::mount,
        files::mount,
        boards::mount,
        board::mount,
        stream::mount,
        live::mount,
        config::mount,
        openapi::mount,
    ];
    mounts.into_iter().fold(Router::new(), |router, mount| mount(router))
}
