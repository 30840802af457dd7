//! Refusals as HTTP responses: RFC 9457 problem documents.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::exit::Code;
use crate::failure::{Failure, Problem};

/// Pause of a caller that exceeded its request rate, during which neither its connections nor its socket are read. The refusal
/// has the same time in `Retry-After`.
pub const REST: Duration = Duration::from_secs(1);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&Problem::from(&self)).unwrap_or_default();
        let mut response =
            (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if self.code == Code::Throttled {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(REST.as_secs()));
        }
        response
    }
}
