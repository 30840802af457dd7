//! A server that plays a service with a WebSocket (RFC 6455): a handshake, unmasked frames out, masked frames in.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::harness::Fleet;

/// The guid of the handshake.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[derive(Default)]
struct Line {
    /// The open connection.
    stream: Option<TcpStream>,
    connections: usize,
    received: Vec<Value>,
}

pub(crate) struct PlayedSocket {
    pub(crate) port: u16,
    line: Arc<Mutex<Line>>,
}

impl PlayedSocket {
    /// Listens. The first messages of each connection are `hello`.
    pub(crate) fn start(hello: Vec<Value>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let line: Arc<Mutex<Line>> = Arc::default();
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

fn serve(stream: TcpStream, line: &Mutex<Line>, hello: &[Value]) -> std::io::Result<()> {
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
    let accept = STANDARD.encode(sha1(format!("{key}{GUID}").as_bytes()));
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
    match u16::try_from(text.len()) {
        Ok(length) if length < 126 => frame.push(length as u8),
        Ok(length) => {
            frame.push(126);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => panic!("the message is too long for this server"),
    }
    frame.extend(text.as_bytes());
    stream.write_all(&frame)
}

/// SHA-1 (RFC 3174), which the handshake asks for.
fn sha1(text: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = text.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((text.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut words: Vec<u32> =
            block.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
        for at in 16..80 {
            words.push((words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1));
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.iter().enumerate() {
            let (mix, constant) = match at / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let next =
                a.rotate_left(5).wrapping_add(mix).wrapping_add(e).wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    let mut digest = [0; 20];
    digest.chunks_mut(4).zip(state).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_be_bytes()));
    digest
}
