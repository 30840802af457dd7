//! Request to a service: the task of this run, and the headers of the lane.

use std::io::Read as _;

use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Uri, header};
use serde::Serialize;

use base::environment;
use base::failure::Failure;
use setup::lanes::{BY_BROKER, Service};

/// Version of the request's format.
const VERSION: u32 = 1;
/// Limit on the prompt that is sent, in bytes. A context is smaller.
pub(super) const CONTEXT_BYTES: u64 = 4 << 20;

/// HTTP request to the service of a lane.
#[derive(Debug)]
pub(super) struct ServiceRequest {
    pub(super) method: Method,
    /// Target address.
    pub(super) uri: Uri,
    /// Address as in the lane, for messages.
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

#[derive(Serialize)]
struct RequestBody<'a> {
    version: u32,
    task: &'a str,
    run: Option<u64>,
    board: Option<String>,
    tenant: Option<String>,
    profile: Option<String>,
    /// `work` or `review`.
    purpose: Option<String>,
    /// Deadline, in seconds since the epoch.
    deadline: Option<i64>,
    /// Context of the task, as a worker reads it.
    context: String,
}

impl ServiceRequest {
    /// Makes the request of this process's run.
    pub(super) fn of_this_run(service: &Service) -> Result<Self, Failure> {
        let variable = |name: &str| environment::text(&format!("SUPERVISOR_{name}"));
        let mut context = String::new();
        let read = std::io::stdin().lock().take(CONTEXT_BYTES).read_to_string(&mut context);
        read.map_err(|e| Failure::failed(format!("failed to read the context of the task: {e}")))?;
        let task = variable("TASK").unwrap_or_default();
        let body = RequestBody {
            version: VERSION,
            task: &task,
            run: variable("RUN_ID").and_then(|run| run.parse().ok()),
            board: variable("BOARD"),
            tenant: variable("TENANT"),
            profile: variable("PROFILE"),
            purpose: variable("PURPOSE"),
            deadline: variable("DEADLINE").and_then(|at| at.parse().ok()),
            context,
        };
        let key = format!("{}-{}", body.task, body.run.unwrap_or_default());
        let text = serde_json::to_vec(&body)
            .map_err(|e| Failure::failed(format!("the request cannot be written: {e}")))?;
        Ok(ServiceRequest {
            method: Method::POST,
            uri: address(service, environment::text(BY_BROKER))?,
            url: service.url.clone(),
            headers: headers(service, &key, environment::text)?,
            body: text.into(),
        })
    }
}

/// Returns the target: the service itself, or the proxy that adds the key.
pub(super) fn address(service: &Service, broker: Option<String>) -> Result<Uri, Failure> {
    let refuse = |e: hyper::http::uri::InvalidUri| Failure::failed(format!("`{}`: {e}", service.url));
    let service_uri: Uri = service.url.parse().map_err(refuse)?;
    let Some(broker) = broker else { return Ok(service_uri) };
    let path = service_uri.path_and_query().map_or("/", |path| path.as_str());
    format!("{broker}{path}").parse().map_err(refuse)
}

pub(super) fn headers(
    service: &Service,
    key: &str,
    env: impl Fn(&str) -> Option<String>,
) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("application/json, application/x-ndjson, text/plain"),
    );
    let agent = concat!("supervisor/", env!("CARGO_PKG_VERSION"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    let refuse = |name: &str| {
        let why = format!(
            "the header `{name}` of the lane cannot be sent: its value has characters that no header has"
        );
        Failure::failed(why)
    };
    let key = HeaderValue::from_str(key).map_err(|_| refuse("idempotency-key"))?;
    headers.insert(HeaderName::from_static("idempotency-key"), key);
    for (name, value) in &service.headers {
        let filled = filled(value, &env).map_err(|variable| {
            Failure::failed(format!("the header `{name}` of the lane needs {variable}, which is not set"))
                .hint(format!("name it in the lane's file: [secrets], {variable} = \"NAME\""))
        })?;
        let mut value = HeaderValue::from_str(&filled).map_err(|_| refuse(name))?;
        value.set_sensitive(true);
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse(name))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Replaces each `${NAME}` in a text by the variable's value. Returns the first variable that is not set as an error.
fn filled(text: &str, env: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        whole.push_str(before);
        whole.push_str(&env(name).ok_or_else(|| name.to_owned())?);
        rest = behind;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(url: &str, headers: &[(&str, &str)]) -> Service {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Service { url: url.to_owned(), headers: headers.collect() }
    }

    #[test]
    fn a_header_has_the_values_of_variables_and_none_is_left_out_in_silence() {
        let env = |name: &str| (name == "KEY").then(|| "sk-1".to_owned());
        let own =
            service("https://a/", &[("x-key", "k=${KEY};"), ("x-plain", "${"), ("accept", "text/plain")]);
        let sent = headers(&own, "t_1-7", env).unwrap();
        assert_eq!((&sent["x-key"], &sent["x-plain"]), (&"k=sk-1;".parse().unwrap(), &"${".parse().unwrap()));
        assert_eq!(sent["idempotency-key"], "t_1-7");
        assert_eq!(sent["accept"], "text/plain");
        assert!(sent["x-key"].is_sensitive());
        let missing = headers(&service("https://a/", &[("x", "${NONE}")]), "", env).unwrap_err();
        assert!(missing.message.contains("needs NONE, which is not set"), "{missing}");
        assert!(headers(&service("https://a/", &[("x", "${KEY}\n")]), "", env).is_err());
    }

    #[test]
    fn a_request_with_a_broker_goes_to_the_proxy_with_the_path_of_the_service() {
        let own = service("https://a.example/run?x=1", &[]);
        assert_eq!(address(&own, None).unwrap(), "https://a.example/run?x=1");
        let by = address(&own, Some("http://127.0.0.1:3128/a.example".to_owned())).unwrap();
        assert_eq!(by, "http://127.0.0.1:3128/a.example/run?x=1");
    }
}
