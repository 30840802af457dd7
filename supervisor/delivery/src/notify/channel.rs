//! A channel in use: its secret, its address, and requests to its service.

use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use policies::Secret;
use rustls::ClientConfig;

use super::http::{HttpRequest, HttpResponse};
use super::step_log::{StepLog, Undelivered};
use base::failure::with_causes;
use net::proxy::trusting;
use service::Service;
use setup::config::notify::Channel;

/// A configured channel in use.
pub(crate) struct ChannelClient<'a> {
    pub service: &'a Service,
    pub name: &'a str,
    pub settings: &'a Channel,
}

impl ChannelClient<'_> {
    /// Returns the channel's secret, read again for each delivery; none if it has none.
    pub(super) fn secret(&self, step_log: &mut StepLog) -> Result<Option<String>, Undelivered> {
        let Some(secret) = &self.settings.secret else { return Ok(None) };
        let stores = self.service.root().secret_stores();
        let text = self.fetch(&format!("channel {}", self.name), secret);
        step_log.record("secret", text, secret.source_name(&stores)).map(Some)
    }

    /// Returns the value of a secret. `purpose` names the use of the secret in an error.
    pub(super) fn fetch(&self, purpose: &str, secret: &Secret) -> Result<String, Undelivered> {
        let read = secret.fetch(purpose, &self.service.root().secret_stores());
        let text = match read {
            Ok(value) => String::from_utf8(value.bytes().to_vec())
                .map_err(|_| Undelivered::later("the secret is not text")),
            Err(e) => Err(Undelivered::later(with_causes(&e))),
        };
        // A file written with an editor ends with a line break.
        text.map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Returns the channel's secret, or an error if it has none.
    pub(super) fn need_secret(&self, step_log: &mut StepLog) -> Result<String, Undelivered> {
        let secret = self.secret(step_log)?;
        secret.ok_or_else(|| step_log.failed("secret", Undelivered::later("the channel names no secret")))
    }

    /// Returns the host of the service.
    pub(super) fn host(&self) -> String {
        let uri: Option<Uri> = self.base().parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']').to_owned()
    }

    /// Returns the address of the service, without a trailing slash.
    pub(super) fn base(&self) -> &str {
        self.settings.base().unwrap_or_default().trim_end_matches('/')
    }

    pub(super) async fn post(
        &self,
        post: HttpRequest,
        step_log: &mut StepLog,
    ) -> Result<HttpResponse, Undelivered> {
        self.post_within(post, self.settings.timeout.duration(), step_log).await
    }

    /// Sends a request with its own time limit.
    pub(super) async fn post_within(
        &self,
        post: HttpRequest,
        limit: Duration,
        step_log: &mut StepLog,
    ) -> Result<HttpResponse, Undelivered> {
        let trust = self.trust_for(&post.url, step_log).await?;
        post.send(trust, limit, step_log).await
    }

    /// Returns the trusted certificates, if the address uses TLS.
    pub(super) async fn trust_for(
        &self,
        url: &str,
        step_log: &mut StepLog,
    ) -> Result<Option<Arc<ClientConfig>>, Undelivered> {
        if !url.starts_with("https:") {
            return Ok(None);
        }
        let trust = self.trust().await;
        step_log.record("certificates", trust, "read").map(Some)
    }

    async fn trust(&self) -> Result<Arc<ClientConfig>, Undelivered> {
        let extra = self.service.config().proxy.ca.clone();
        let read = tokio::task::spawn_blocking(move || trusting(extra.as_deref())).await;
        let read = read.map_err(|_| Undelivered::later("the certificates were not read"))?;
        read.map_err(|e| Undelivered::later(with_causes(&e)))
    }
}
