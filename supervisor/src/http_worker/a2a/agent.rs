//! Client of an A2A agent: finds it by its card, and calls it over JSON-RPC.

use std::io::Write as _;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, StatusCode, Uri};
use serde_json::{Value, json};

use super::super::connection;
use super::super::request::{ServiceRequest, address, headers};
use super::super::response::ResponseMeaning;
use base::a2a_wire::VERSION;
use base::environment;
use base::exit::Code;
use base::failure::{Failure, with_causes};
use setup::lanes::{BY_BROKER, Service};

/// Size limits of a card and of a response, in bytes.
const CARD_BYTES: usize = 1 << 20;
const ANSWER_BYTES: usize = 8 << 20;
/// Time limit of a request; the agent can respond to each at once.
const ANSWERED: Duration = Duration::from_mins(1);
/// Limit on the error text taken from an agent, in characters.
const WORDS: usize = 300;

/// An agent that can be called.
#[derive(Debug)]
pub(super) struct Agent {
    uri: Uri,
    url: String,
    headers: HeaderMap,
}

impl Agent {
    /// Reads the card at the lane's address, and takes the agent's address from it.
    pub(super) async fn of_card(service: &Service) -> Result<Self, Failure> {
        let mut headers = headers(service, "card", environment::text)?;
        // An idempotency key would make repeated reads return the first response.
        headers.remove("idempotency-key");
        headers.insert(HeaderName::from_static("a2a-version"), HeaderValue::from_static(VERSION));
        let broker = || environment::text(BY_BROKER);
        let order = ServiceRequest {
            method: Method::GET,
            uri: address(service, broker())?,
            url: service.url.clone(),
            headers: headers.clone(),
            body: Bytes::new(),
        };
        let card = exchange(&order, CARD_BYTES, ANSWERED).await?;
        let url = interface(&card, &service.url)?;
        let uri = address(&Service { url: url.clone(), ..service.clone() }, broker())?;
        Ok(Agent { uri, url, headers })
    }

    /// Sends a message. Returns the agent's task, or a completed task if the agent responds at once.
    pub(super) async fn send(&self, message: &Value) -> Result<Value, Failure> {
        let configuration =
            json!({ "returnImmediately": true, "acceptedOutputModes": ["text/plain", "application/json"] });
        let mut result =
            self.call("SendMessage", json!({ "message": message, "configuration": configuration })).await?;
        if result["task"].is_object() {
            return Ok(result["task"].take());
        }
        if result["message"].is_object() {
            let parts = result["message"]["parts"].take();
            return Ok(
                json!({ "status": { "state": "TASK_STATE_COMPLETED" }, "artifacts": [{ "parts": parts }] }),
            );
        }
        Err(Failure::failed("the agent has answered a message with neither a task nor a message"))
    }

    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let order = ServiceRequest {
            method: Method::POST,
            uri: self.uri.clone(),
            url: self.url.clone(),
            headers: self.headers.clone(),
            body: request.to_string().into(),
        };
        let mut answer = exchange(&order, ANSWER_BYTES, ANSWERED).await?;
        if answer["error"].is_object() {
            let words = short(answer["error"]["message"].as_str().unwrap_or_default());
            let code = answer["error"]["code"].as_i64().unwrap_or_default();
            return Err(Failure::failed(format!("the agent refuses {method} ({code}): {words}")));
        }
        Ok(answer["result"].take())
    }
}

/// Returns the agent's address in its card. The address must be on the card's own host: the lane reaches no other, and
/// its key is meant for that host only.
fn interface(card: &Value, url: &str) -> Result<String, Failure> {
    let fail = |why: String| Failure::failed(format!("the card at {url} {why}"));
    let interfaces = card["supportedInterfaces"].as_array().map(Vec::as_slice).unwrap_or_default();
    let speaks = |one: &&Value| {
        let version = one["protocolVersion"].as_str().unwrap_or_default();
        one["protocolBinding"] == "JSONRPC" && (version == VERSION || version.starts_with("1.0."))
    };
    let found = interfaces.iter().find(speaks).and_then(|one| one["url"].as_str());
    let url_text = found.ok_or_else(|| fail(format!("names no interface for JSON-RPC of A2A {VERSION}")))?;
    let (own, other) = (url.parse::<Uri>().ok(), url_text.parse::<Uri>().ok());
    let place = |uri: &Option<Uri>| {
        uri.as_ref().map(|uri| (uri.scheme_str().map(str::to_owned), uri.authority().cloned()))
    };
    if place(&own).is_none() || place(&own) != place(&other) {
        return Err(fail(format!("names the interface {}, which is at another address", short(url_text)))
            .hint("a lane reaches the host of its card alone; have the agent name an interface there"));
    }
    Ok(url_text.to_owned())
}

/// Sends a request, and reads the response as JSON, within a time limit.
async fn exchange(order: &ServiceRequest, most: usize, limit: Duration) -> Result<Value, Failure> {
    let late = || {
        let why = format!("the agent at {} has not answered within {} s", order.url, limit.as_secs());
        Failure::new(Code::Unreachable, why)
    };
    tokio::time::timeout(limit, converse(order, most)).await.map_err(|_| late())?
}

async fn converse(order: &ServiceRequest, most: usize) -> Result<Value, Failure> {
    let (head, body) = connection::send(order).await?.into_parts();
    let body = Limited::new(body, most).collect().await.map_err(|e| {
        let why = with_causes(e.as_ref());
        Failure::new(
            Code::Unreachable,
            format!("the answer of the agent at {} has broken off: {why}", order.url),
        )
    })?;
    let body = body.to_bytes();
    if head.status != StatusCode::OK {
        let words = format!(": {}", short(String::from_utf8_lossy(&body).lines().next().unwrap_or_default()));
        return Err(match ResponseMeaning::refusal(head.status, &head.headers, &words) {
            Ok((why, _)) => Failure::new(Code::Throttled, why),
            Err(failure) => failure,
        });
    }
    serde_json::from_slice(&body)
        // Half an emoji in a text of the agent costs itself alone.
        .or_else(|e| shim::lenient::read(&body).ok_or(e))
        .map_err(|e| Failure::failed(format!("the answer of the agent at {} is no JSON: {e}", order.url)))
}

/// Writes the status of the agent's task to the log of the run.
pub(super) fn log(status: &Value) {
    let mut out = std::io::stdout().lock();
    // The shim cuts the log at its size limit.
    drop(writeln!(out, "{status}").and_then(|()| out.flush()));
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_agent_that_never_answers_or_never_ends_its_answer_is_left_after_a_time() {
        for head in ["", "HTTP/1.1 200 OK\r\n\r\n"] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/card", listener.local_addr().unwrap());
            let serving = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
                std::future::pending::<()>().await;
            });
            let order = ServiceRequest {
                method: Method::GET,
                uri: url.parse().unwrap(),
                url,
                headers: HeaderMap::new(),
                body: Bytes::new(),
            };

            let failure = exchange(&order, CARD_BYTES, Duration::from_millis(50)).await.unwrap_err();

            assert_eq!(failure.code, Code::Unreachable);
            assert!(failure.message.contains("has not answered within"), "{failure}");
            serving.abort();
        }
    }

    #[test]
    fn an_agent_is_where_its_card_is() {
        let card = |url: &str, version: &str| {
            json!({"supportedInterfaces": [
                {"url": "https://a.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version},
            ]})
        };
        let of = "https://a.example/.well-known/agent-card.json";
        assert_eq!(interface(&card("https://a.example/rpc", "1.0"), of).unwrap(), "https://a.example/rpc");
        for (card, why) in [
            (card("https://b.example/rpc", "1.0"), "another address"),
            (card("http://a.example/rpc", "1.0"), "another address"),
            (card("https://a.example:444/rpc", "1.0"), "another address"),
            (card("https://a.example/rpc", "0.3"), "no interface for JSON-RPC of A2A 1.0"),
            (json!([]), "no interface"),
        ] {
            let failure = interface(&card, of).unwrap_err();
            assert!(failure.message.contains(why), "{failure}");
        }
    }
}
