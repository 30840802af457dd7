//! Sink for e-mail over SMTP. `smtps://` uses TLS from the start, `smtp://` STARTTLS. Only mail to a server on this host is
//! sent without TLS.

use std::path::PathBuf;

use hyper::Uri;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};

use super::Delivery;
use crate::notify::step_log::{StepLog, Undelivered};
use crate::notify::text;
use base::failure::with_causes;

type Transport = AsyncSmtpTransport<Tokio1Executor>;

pub(super) async fn send(delivery: &Delivery<'_>, step_log: &mut StepLog) -> Result<(), Undelivered> {
    let to = delivery.need_chat(step_log)?.to_owned();
    let message = message(delivery, &to);
    let message = step_log.record("message", message, to)?;
    let password = delivery.channel.secret(step_log)?;
    let extra = delivery.channel.service.config().proxy.ca.clone();
    let transport = transport(delivery, password, extra);
    let transport = step_log.record("server", transport, delivery.channel.host())?;
    let limit = delivery.channel.settings.timeout.duration();
    let sent = match tokio::time::timeout(limit, transport.send(message)).await {
        Err(_) => Err(Undelivered::later(format!("no answer within {} s", limit.as_secs()))),
        // A 5xx code is a permanent refusal of the message or the account, so another try does not help.
        Ok(Err(e)) if e.is_permanent() => {
            Err(Undelivered::Refused(format!("the server refuses it: {}", plain(&e))))
        }
        Ok(Err(e)) => Err(Undelivered::later(format!("the server refuses it for now: {}", plain(&e)))),
        Ok(Ok(_)) => Ok(()),
    };
    step_log.record("answer", sent, "the message was taken")
}

fn plain(error: &lettre::transport::smtp::Error) -> String {
    with_causes(error).chars().filter(|c| !c.is_control()).take(200).collect()
}

fn message(delivery: &Delivery<'_>, to: &str) -> Result<Message, Undelivered> {
    let mailbox = |what: &str, text: &str| {
        text.parse::<Mailbox>().map_err(|_| Undelivered::later(format!("`{what}` is not a mail address")))
    };
    let host = delivery.channel.host();
    Message::builder()
        .from(mailbox("from", delivery.channel.settings.from.as_deref().unwrap_or_default())?)
        .to(mailbox("to", to)?)
        .subject(text::subject(delivery.batch))
        .message_id(Some(format!("<{}@{host}>", delivery.batch.id)))
        .header(ContentType::TEXT_PLAIN)
        .body(text::whole(delivery.batch, text::LONGEST, str::to_owned))
        .map_err(|e| Undelivered::Refused(format!("the message cannot be written: {e}")))
}

fn transport(
    delivery: &Delivery<'_>,
    password: Option<String>,
    extra: Option<PathBuf>,
) -> Result<Transport, Undelivered> {
    let uri: Uri =
        delivery.channel.base().parse().map_err(|_| Undelivered::later("`url` is not an address"))?;
    let host = delivery.channel.host();
    let is_wrapped = uri.scheme_str() == Some("smtps");
    let is_own = matches!(host.as_str(), "127.0.0.1" | "::1" | "localhost");
    let tls = match (is_wrapped, is_own) {
        (true, _) => Tls::Wrapper(parameters(&host, extra)?),
        (false, false) => Tls::Required(parameters(&host, extra)?),
        (false, true) => Tls::None,
    };
    let usual = if is_wrapped { 465 } else { 587 };
    let mut builder = Transport::builder_dangerous(&host)
        .port(uri.port_u16().unwrap_or(usual))
        .tls(tls)
        .timeout(Some(delivery.channel.settings.timeout.duration()));
    if let (Some(user), Some(password)) = (&delivery.channel.settings.user, password) {
        builder = builder.credentials(Credentials::new(user.clone(), password));
    }
    Ok(builder.build())
}

fn parameters(host: &str, extra: Option<PathBuf>) -> Result<TlsParameters, Undelivered> {
    let failed = |why: String| Undelivered::later(format!("TLS: {why}"));
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(path) = extra {
        let text =
            std::fs::read(&path).map_err(|e| failed(format!("failed to read {}: {e}", path.display())))?;
        builder =
            builder.add_root_certificate(Certificate::from_pem(&text).map_err(|e| failed(with_causes(&e)))?);
    }
    builder.build_rustls().map_err(|e| failed(with_causes(&e)))
}
