//! A server that plays a service with a WebSocket (RFC 6455): a handshake, unmasked frames out, masked frames in.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::harness::Fleet;

#[derive(Default)]
struct SocketConnection {
    /// The open connection.
    stream: Option<TcpStream>,
    connections: usize,
    received: Vec<Value>,
}

pub(crate) struct PlayedSocket {
    pub(crate) port: u16,
    line: Arc<Mutex<SocketConnection>>,
}

impl PlayedSocket {
    /// Listens. The first messages of each connection are `hello`.
    pub(crate) fn start(hello: Vec<Value>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let line: Arc<Mutex<SocketConnection>> = Arc::default();
        let own = Arc::clone(&line);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (own, hello) = (Arc::clone(&own), hello.clone());
                std::thread::spawn(move || drop(serve(stream, &own, &hello)));
            }
        });
        PlayedSocket { port, line }
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://127.0.0.1:{}", self.port)
    }

    /// Sends a message, as soon as somebody is connected.
    pub(crate) fn send(&self, fleet: &Fleet, message: &Value) {
        fleet.eventually("the message is sent", || {
            let line = self.line.lock().unwrap();
            write_frame(line.stream.as_ref()?, &message.to_string()).ok()
        });
    }

    /// Breaks the connection off.
    pub(crate) fn break_off(&self) {
        if let Some(stream) = self.line.lock().unwrap().stream.take() {
            drop(stream.shutdown(std::net::Shutdown::Both));
        }
    }

    pub(crate) fn received(&self) -> Vec<Value> {
        self.line.lock().unwrap().received.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.line.lock().unwrap().connections
    }
}

fn serve(stream: TcpStream, line: &Mutex<SocketConnection>, hello: &[Value]) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut key = String::new();
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header == "\r\n" {
            break;
        }
        if let Some((name, value)) = header.split_once(": ")
            && name.eq_ignore_ascii_case("sec-websocket-key")
        {
            value.trim().clone_into(&mut key);
        }
    }
    let accept = derive_accept_key(key.as_bytes());
    write!(
        &stream,
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
    )?;
    for message in hello {
        write_frame(&stream, &message.to_string())?;
    }
    {
        let mut line = line.lock().unwrap();
        (line.stream, line.connections) = (Some(stream), line.connections + 1);
    }
    loop {
        let mut head = [0; 2];
        reader.read_exact(&mut head)?;
        let length = match head[1] & 0x7f {
            126 => {
                let mut long = [0; 2];
                reader.read_exact(&mut long)?;
                usize::from(u16::from_be_bytes(long))
            }
            127 => return Ok(()),
            short => usize::from(short),
        };
        let mut mask = [0; 4];
        reader.read_exact(&mut mask)?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        body.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        if let Ok(message) = serde_json::from_slice(&body) {
            line.lock().unwrap().received.push(message);
        }
    }
}

fn write_frame(mut stream: &TcpStream, text: &str) -> std::io::Result<()> {
    let mut frame = vec![0x81];
    // A length of 126 and more has two bytes of its own here.
    if let Some(short) = u8::try_from(text.len()).ok().filter(|short| *short < 126) {
        frame.push(short);
    } else {
        frame.push(126);
        frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    }
    frame.extend(text.as_bytes());
    stream.write_all(&frame)
}
