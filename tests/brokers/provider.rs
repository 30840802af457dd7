//! A service on the host's loopback interface that speaks TLS, with a certificate of an authority of its own: it notes what it is
//! asked, and answers as the path says.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

type Stream = StreamOwned<ServerConnection, TcpStream>;

pub(crate) struct Provider {
    pub(crate) port: u16,
    /// The certificate of its authority.
    ca: String,
    asked: Arc<Mutex<Vec<String>>>,
    /// Number of bytes sent of an endless response.
    pub(crate) endless: Arc<AtomicUsize>,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let (config, ca) = certified();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let endless = Arc::new(AtomicUsize::new(0));
        let (noted, sent) = (Arc::clone(&asked), Arc::clone(&endless));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, noted, sent) = (Arc::clone(&config), Arc::clone(&noted), Arc::clone(&sent));
                thread::spawn(move || {
                    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
                    let connection = ServerConnection::new(config).unwrap();
                    // Who does not trust it ends the connection.
                    drop(answer(StreamOwned::new(connection, stream), &noted, &sent));
                });
            }
        });
        Provider { port, ca, asked, endless }
    }

    /// Writes the certificate of its authority.
    pub(crate) fn write_ca(&self, dir: &Path) -> PathBuf {
        written(&self.ca, dir)
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The requests as they came, head and body.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Writes the certificate of an authority.
pub(crate) fn written(ca: &str, dir: &Path) -> PathBuf {
    let path = dir.join("authority.pem");
    std::fs::write(&path, ca).unwrap();
    path
}

/// Returns the server's configuration with a certificate for this host, and the certificate of its authority.
pub(crate) fn certified() -> (Arc<ServerConfig>, String) {
    let authority = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&authority).unwrap();
    let issuer = Issuer::new(params, authority);
    let key = KeyPair::generate().unwrap();
    let names = ["127.0.0.1", "127.0.0.2", "localhost"].map(str::to_owned);
    let own = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let encoded = STANDARD.encode(root.der());
    let lines: Vec<String> = encoded.as_bytes().chunks(64).map(text).collect();
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"));
    (Arc::new(config), pem)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn answer(mut stream: Stream, asked: &Mutex<Vec<String>>, endless: &AtomicUsize) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = text(&head);
    let small = head.to_lowercase();
    let mut body = Vec::new();
    if let Some(length) = small.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()) {
        body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body)?;
    } else if small.contains("transfer-encoding: chunked") {
        while !body.ends_with(b"0\r\n\r\n") {
            stream.read_exact(&mut byte)?;
            body.push(byte[0]);
        }
    }
    asked.lock().unwrap().push(format!("{head}{}", text(&body)));
    let path = head.split(' ').nth(1).unwrap_or_default();
    match path {
        "/events" => {
            // Each part is sent by itself: who reads it has it before the next one is there.
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            for n in 1..=3 {
                stream.write_all(format!("9\r\ndata: {n}\n\n\r\n").as_bytes())?;
                stream.flush()?;
                // The worker asks for the next part when it has this one.
                let wanted = n + 1;
                while n < 3 && !asked.lock().unwrap().iter().any(|one| one.contains(&format!("/next/{wanted}"))) {
                    thread::sleep(Duration::from_millis(5));
                }
            }
            stream.write_all(b"0\r\n\r\n")?;
        }
        "/endless" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            let piece = vec![b'x'; 1 << 16];
            loop {
                stream.write_all(&piece)?;
                endless.fetch_add(1 << 16, Ordering::AcqRel);
            }
        }
        status if status.starts_with("/status/") => {
            let status = status.trim_start_matches("/status/");
            let head = format!("HTTP/1.1 {status} Told\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes())?;
        }
        "/elsewhere" => stream.write_all(
            b"HTTP/1.1 307 Temporary Redirect\r\nLocation: https://evil.example/\r\nContent-Length: 0\r\nKeep-Alive: timeout=5\r\n\r\n",
        )?,
        "/head" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
            loop {
                stream.write_all(b"X-Long: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n")?;
            }
        }
        "/busy" => stream.write_all(
            b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5000\r\nContent-Length: 0\r\n\r\n",
        )?,
        "/work" => {
            let said = r#"{"complete": {"summary": "by the service"}}"#;
            let length = said.len();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{said}")?;
        }
        _ => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")?,
    }
    stream.conn.send_close_notify();
    stream.flush()
}
