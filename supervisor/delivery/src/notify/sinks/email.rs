//! Sink for e-mail over SMTP. `smtps://` uses TLS from the start, `smtp://` STARTTLS. Only mail to a server on this host is
//! sent without TLS.

use std::path::PathBuf;

use hyper::Uri;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};

use super::Sending;
use crate::notify::text;
use crate::notify::trail::{Trail, Undelivered};
use base::failure::with_causes;

type Transport = AsyncSmtpTransport<Tokio1Executor>;

pub(super) async fn send(sending: &Sending<'_>, trail: &mut Trail) -> Result<(), Undelivered> {
    let to = sending.need_chat(trail)?.to_owned();
    let message = message(sending, &to);
    let message = trail.note("message", message, to)?;
    let password = sending.wire.secret(trail)?;
    let extra = sending.wire.service.config().proxy.ca.clone();
    let transport = transport(sending, password, extra);
    let transport = trail.note("server", transport, sending.wire.host())?;
    let limit = sending.wire.channel.timeout.duration();
    let sent = match tokio::time::timeout(limit, transport.send(message)).await {
        Err(_) => Err(Undelivered::later(format!("no answer within {} s", limit.as_secs()))),
        // A 5xx code is a permanent refusal of the message or the account, so another try does not help.
        Ok(Err(e)) if e.is_permanent() => {
            Err(Undelivered::Refused(format!("the server refuses it: {}", plain(&e))))
        }
        Ok(Err(e)) => Err(Undelivered::later(format!("the server refuses it for now: {}", plain(&e)))),
        Ok(Ok(_)) => Ok(()),
    };
    trail.note("answer", sent, "the message was taken")
}

fn plain(error: &lettre::transport::smtp::Error) -> String {
    with_causes(error).chars().filter(|c| !c.is_control()).take(200).collect()
}

fn message(sending: &Sending<'_>, to: &str) -> Result<Message, Undelivered> {
    let mailbox = |what: &str, text: &str| {
        text.parse::<Mailbox>().map_err(|_| Undelivered::later(format!("`{what}` is not a mail address")))
    };
    let host = sending.wire.host();
    Message::builder()
        .from(mailbox("from", sending.wire.channel.from.as_deref().unwrap_or_default())?)
        .to(mailbox("to", to)?)
        .subject(text::subject(sending.parcel))
        .message_id(Some(format!("<{}@{host}>", sending.parcel.id)))
        .header(ContentType::TEXT_PLAIN)
        .body(text::whole(sending.parcel, text::LONGEST, str::to_owned))
        .map_err(|e| Undelivered::Refused(format!("the message cannot be written: {e}")))
}

fn transport(
    sending: &Sending<'_>,
    password: Option<String>,
    extra: Option<PathBuf>,
) -> Result<Transport, Undelivered> {
    let uri: Uri = sending.wire.base().parse().map_err(|_| Undelivered::later("`url` is not an address"))?;
    let host = sending.wire.host();
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
        .timeout(Some(sending.wire.channel.timeout.duration()));
    if let (Some(user), Some(password)) = (&sending.wire.channel.user, password) {
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
