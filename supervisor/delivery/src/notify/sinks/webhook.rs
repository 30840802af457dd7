//! Sink for webhooks. The message is JSON and is signed by the specification "Standard Webhooks", for which receivers find
//! libraries.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::header::HeaderName;
use kernel::{Clock as _, SystemClock};
use sha2::Sha256;

use super::Delivery;
use crate::notify::form;
use crate::notify::http::HttpRequest;
use crate::notify::step_log::{StepLog, Undelivered};

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// Prefix of a secret that is a key in base64. A secret without it is the key itself.
const ENCODED: &str = "whsec_";

pub(super) async fn send(delivery: &Delivery<'_>, step_log: &mut StepLog) -> Result<(), Undelivered> {
    let (id, body) = (&delivery.batch.id, form::from_batch(delivery.batch));
    let secret = delivery.channel.secret(step_log)?;
    let seconds = (SystemClock.now().as_micros() / 1_000_000).to_string();
    let mut post = HttpRequest::json(delivery.channel.base().to_owned(), &body)
        .with(ID, id)?
        .with(TIMESTAMP, &seconds)?;
    if let Some(secret) = secret {
        let signature = signature(&secret, id, &seconds, &post.body);
        let signature = signature.ok_or_else(|| {
            step_log.failed("sign", Undelivered::later("the secret begins with whsec_ and is not base64"))
        })?;
        post = post.with(SIGNATURE, &signature)?;
        step_log.done("sign", "HMAC-SHA256");
    }
    let response = delivery.channel.post(post, step_log).await?.accepted(None, None);
    step_log.record("answer", response, "the message was taken").map(drop)
}

/// Returns `v1,` and the HMAC of `ID.TIMESTAMP.BODY`; none if the key is not valid base64.
pub(in crate::notify) fn signature(secret: &str, id: &str, seconds: &str, body: &[u8]) -> Option<String> {
    let key = match secret.strip_prefix(ENCODED) {
        Some(encoded) => STANDARD.decode(encoded).ok()?,
        None => secret.as_bytes().to_vec(),
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    for part in [id.as_bytes(), b".", seconds.as_bytes(), b".", body] {
        mac.update(part);
    }
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    /// Example of the specification (standard-webhooks/spec, "Signature scheme").
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let body = br#"{"test": 2432232314}"#;
        let of = |secret| super::signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body);
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").as_deref(), Some(expected));
        assert_ne!(of("another").as_deref(), Some(expected));
        assert_eq!(of("whsec_!"), None);
    }
}
