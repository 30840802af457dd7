//! Services behind TLS: a webhook over https, and mail over TLS and STARTTLS. Nothing goes to a server that cannot prove who it is.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{done, outbox, secret};
use crate::brokers::provider::{Provider, certified, written};
use crate::harness::Fleet;

/// A mail server that speaks TLS: from the beginning, after STARTTLS, or not at all.
#[derive(Clone, Copy, PartialEq)]
enum Tls {
    Wrapped,
    Upgraded,
    Missing,
}

/// Lines that a mail server received; those after `TLS` were encrypted.
type ReceivedLines = Arc<Mutex<Vec<String>>>;

/// The address at which mail servers are played: to the host itself mail would go in the clear.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

struct MailServer {
    port: u16,
    told: ReceivedLines,
    ca: PathBuf,
}

impl MailServer {
    fn start(fleet: &Fleet, tls: Tls) -> Self {
        let (config, pem) = certified();
        let ca = written(&pem, &fleet.home());
        fleet.give(&ca);
        let listener = TcpListener::bind((ADDRESS, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let told = ReceivedLines::default();
        let noted = Arc::clone(&told);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that does not trust the server breaks the connection off.
                drop(serve(stream, tls, &config, &noted));
            }
        });
        MailServer { port, told, ca }
    }

    fn received(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    tls: Tls,
    config: &Arc<ServerConfig>,
    told: &ReceivedLines,
) -> std::io::Result<()> {
    let secured = |stream| StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), stream);
    if tls == Tls::Wrapped {
        return converse(&mut secured(stream), false, true, told);
    }
    converse(&mut stream, tls == Tls::Upgraded, true, told)?;
    told.lock().unwrap().push("TLS".to_owned());
    converse(&mut secured(stream), false, false, told)
}

/// Takes mail until the client is done, or has asked for TLS.
fn converse(
    stream: &mut (impl Read + Write),
    offers: bool,
    greets: bool,
    told: &ReceivedLines,
) -> std::io::Result<()> {
    if greets {
        stream.write_all(b"220 played\r\n")?;
    }
    let mut is_message = false;
    loop {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while !line.ends_with(b"\r\n") {
            stream.read_exact(&mut byte)?;
            line.push(byte[0]);
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        told.lock().unwrap().push(line.clone());
        let answer = match line.split_whitespace().next().unwrap_or_default() {
            "." => {
                is_message = false;
                "250 taken"
            }
            _ if is_message => continue,
            "EHLO" if offers => "250-played\r\n250 STARTTLS",
            "EHLO" => "250-played\r\n250 AUTH PLAIN",
            "STARTTLS" => return stream.write_all(b"220 go on\r\n"),
            "AUTH" => "235 welcome",
            "DATA" => {
                is_message = true;
                "354 go on"
            }
            _ => "250 ok",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes())?;
    }
}

/// The configuration of a channel of mail, with the authority that is trusted beside those of the host.
fn mail(fleet: &Fleet, scheme: &str, server: &MailServer, trusts: bool) {
    let password = secret(fleet, "password", "open-sesame\n");
    let trust = if trusts { format!("[proxy]\nca = '{}'\n", server.ca.display()) } else { String::new() };
    fleet.configure(&format!(
        "{trust}[notify]\ndefault = 'mail'\n[notify.channels.mail]\nkind = 'email'\nurl = '{scheme}://{ADDRESS}:{}'\n\
         user = 'fleet'\nsecret = {password}\nfrom = 'fleet@example.org'\nto = 'ann@example.org'\nretry_first = 0\n",
        server.port
    ));
}

#[test]
fn mail_goes_over_tls_and_starttls_to_a_server_that_proves_who_it_is() {
    for (scheme, tls) in [("smtps", Tls::Wrapped), ("smtp", Tls::Upgraded)] {
        let fleet = Fleet::offline();
        let server = MailServer::start(&fleet, tls);
        mail(&fleet, scheme, &server, false);
        done(&fleet, "a title", "all is well", &[]);
        fleet.start();
        let error =
            fleet.eventually("it was tried", || outbox(&fleet)[0]["last_error"].as_str().map(str::to_owned));
        assert!(error.to_lowercase().contains("certificate"), "{scheme}: {error}");
        let told = server.received();
        assert!(!told.iter().any(|line| line.starts_with("AUTH") || line.starts_with("MAIL")), "{told:?}");

        mail(&fleet, scheme, &server, true);
        fleet.cli(["service", "reload"]).ok();
        fleet.eventually("it has come", || outbox(&fleet).is_empty().then_some(()));

        let told = server.received();
        let at = |text: &str| told.iter().rposition(|line| line.starts_with(text));
        assert!(at("Subject: ").is_some() && at("AUTH PLAIN ").is_some(), "{told:?}");
        if tls == Tls::Upgraded {
            assert!(at("AUTH") > at("TLS"), "the password goes encrypted: {told:?}");
        }
    }
}

#[test]
fn a_mail_server_without_starttls_gets_neither_password_nor_message() {
    let fleet = Fleet::offline();
    let server = MailServer::start(&fleet, Tls::Missing);
    mail(&fleet, "smtp", &server, true);
    done(&fleet, "a title", "all is well", &[]);
    fleet.start();

    fleet.eventually("it was tried", || outbox(&fleet)[0]["last_error"].as_str().map(drop));

    let told = server.received();
    assert!(!told.iter().any(|line| line.starts_with("AUTH") || line.starts_with("MAIL")), "{told:?}");
}

#[test]
fn a_webhook_over_https_is_called_where_its_certificate_is_trusted() {
    let fleet = Fleet::offline();
    let provider = Provider::start();
    let ca = provider.write_ca(&fleet.home());
    fleet.give(&ca);
    let channel = format!(
        "[notify]\ndefault = 'ops'\n[notify.channels.ops]\nkind = 'webhook'\nurl = 'https://{}/hook'\nretry_first = 0\n",
        provider.host()
    );
    fleet.configure(&channel);
    done(&fleet, "a title", "all is well", &[]);
    fleet.start();
    let error =
        fleet.eventually("it was tried", || outbox(&fleet)[0]["last_error"].as_str().map(str::to_owned));
    assert!(error.contains("TLS") && provider.asked().is_empty(), "{error}");

    fleet.configure(&format!("{channel}[proxy]\nca = {ca:?}\n"));
    fleet.cli(["service", "reload"]).ok();

    fleet.eventually("it has come", || outbox(&fleet).is_empty().then_some(()));
    let asked = provider.asked();
    assert!(asked[0].starts_with("POST /hook ") && asked[0].contains("all is well"), "{asked:?}");
}
