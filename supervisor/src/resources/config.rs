//! `GET /api/v1/config`: initial settings of a page, from `[dashboard]` in `supervisor.toml`.

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use kernel::Tenant;
use schemars::JsonSchema;
use serde::Serialize;

use super::PREFIXES;
use api::{Ask, Routes, written};
use base::failure::Failure;

pub(super) fn mount(router: Routes) -> Routes {
    PREFIXES.into_iter().fold(router, |router, prefix| router.route(&format!("{prefix}/config"), get(config)))
}

/// Initial settings of a page.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageConfig {
    /// Tenant that the board is filtered by; none for all.
    default_tenant: Option<String>,
    /// True if running tasks are shown in lanes by profile.
    lane_by_profile: bool,
    /// True if archived tasks are shown.
    include_archived_by_default: bool,
    /// True if texts are shown as Markdown.
    render_markdown: bool,
}

async fn config(ask: Ask) -> Result<Response, Failure> {
    // Callers who may see the board may know its settings.
    let call = ask.admit::<verbs::List>().await?;
    let config = call.service.config();
    let dashboard = &config.dashboard;
    let tenant = call.confined().map(Tenant::to_string);
    let set = Some(dashboard.default_tenant.clone()).filter(|tenant| !tenant.is_empty());
    let page = PageConfig {
        default_tenant: tenant.or(set),
        lane_by_profile: dashboard.lane_by_profile,
        include_archived_by_default: dashboard.include_archived_by_default,
        render_markdown: dashboard.render_markdown,
    };
    written(StatusCode::OK, page).await
}
