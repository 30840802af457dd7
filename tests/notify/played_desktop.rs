//! A desktop that shows notifications: a session's D-Bus of its own, and a service behind it that keeps what it is asked to show.
//! The messages are those of the D-Bus specification, "Message Protocol": little-endian, each value at a multiple of its size.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

const NAME: &str = "org.freedesktop.Notifications";

pub(crate) struct PlayedDesktop {
    pub(crate) address: String,
    bus: Child,
    shown: Arc<Mutex<Vec<String>>>,
}

impl PlayedDesktop {
    /// Starts one whose socket is in a directory; none where the host has no D-Bus.
    pub(crate) fn start(dir: &Path) -> Option<Self> {
        let path = dir.join("bus");
        let address = format!("unix:path={}", path.display());
        let mut bus = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address", "--address"])
            .arg(&address)
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        // It says its address when it listens.
        BufReader::new(bus.stdout.take()?).read_line(&mut String::new()).unwrap();
        let mut stream = UnixStream::connect(path).unwrap();
        let user = hex::encode(nix::unistd::getuid().to_string());
        stream.write_all(format!("\0AUTH EXTERNAL {user}\r\n").as_bytes()).unwrap();
        let mut byte = [0];
        while byte != *b"\n" {
            stream.read_exact(&mut byte).unwrap();
        }
        stream.write_all(b"BEGIN\r\n").unwrap();
        let mut wanted = Vec::new();
        text(&mut wanted, NAME);
        number(&mut wanted, 4);
        for (serial, member, signature, body) in
            [(1, "Hello", "", &[][..]), (2, "RequestName", "su", &wanted)]
        {
            let bus = [(1, "o", "/org/freedesktop/DBus"), (2, "s", "org.freedesktop.DBus")];
            let mut fields = fields(&bus);
            field(&mut fields, 3, "s", member);
            field(&mut fields, 6, "s", "org.freedesktop.DBus");
            field(&mut fields, 8, "g", signature);
            stream.write_all(&message(1, serial, &fields, body)).unwrap();
        }
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (kept, (ready, is_ready)) = (Arc::clone(&shown), std::sync::mpsc::channel());
        std::thread::spawn(move || {
            let mut serial = 2;
            while let Ok(asked) = receive(&mut stream) {
                // The answer to the request for the name.
                if asked.answers == Some(2) {
                    ready.send(()).ok();
                }
                if asked.kind != 1 {
                    continue;
                }
                serial += 1;
                if asked.member == "Notify" {
                    kept.lock().unwrap().push(String::from_utf8_lossy(&asked.body).into_owned());
                }
                let answer = answer(serial, &asked);
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
        });
        is_ready.recv().unwrap();
        Some(PlayedDesktop { address, bus, shown })
    }

    /// The bodies of what it was asked to show.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.shown.lock().unwrap().clone()
    }
}

impl Drop for PlayedDesktop {
    fn drop(&mut self) {
        drop(self.bus.kill());
        drop(self.bus.wait());
    }
}

/// A message as it came.
struct DesktopNotice {
    kind: u8,
    serial: u32,
    sender: String,
    member: String,
    /// The serial of the message that it answers.
    answers: Option<u32>,
    body: Vec<u8>,
}

fn receive(stream: &mut UnixStream) -> std::io::Result<DesktopNotice> {
    let mut head = [0; 16];
    stream.read_exact(&mut head)?;
    let at = |at: usize, bytes: &[u8]| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (length, serial, of_fields) = (at(4, &head) as usize, at(8, &head), at(12, &head) as usize);
    let mut fields = vec![0; of_fields.next_multiple_of(8)];
    stream.read_exact(&mut fields)?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let mut asked = DesktopNotice {
        kind: head[1],
        serial,
        sender: String::new(),
        member: String::new(),
        answers: None,
        body,
    };
    let mut place = 0;
    while place < of_fields {
        let (code, signature) = (fields[place], fields[place + 2]);
        place += 4;
        let mut value = String::new();
        if signature == b'u' {
            asked.answers = asked.answers.or((code == 5).then(|| at(place, &fields)));
            place += 4;
        } else {
            let (length, prefix) = match signature {
                b'g' => (usize::from(fields[place]), 1),
                _ => (at(place, &fields) as usize, 4),
            };
            let text = &fields[place + prefix..place + prefix + length];
            value = String::from_utf8_lossy(text).into_owned();
            place += prefix + length + 1;
        }
        match code {
            3 => asked.member = value,
            7 => asked.sender = value,
            _ => {}
        }
        place = place.next_multiple_of(8);
    }
    Ok(asked)
}

/// Notify has the number of what is shown; who asks about the service gets four names, capabilities, or an empty description.
fn answer(serial: u32, asked: &DesktopNotice) -> Vec<u8> {
    let mut body = Vec::new();
    let signature = match asked.member.as_str() {
        "Notify" => {
            number(&mut body, 7);
            "u"
        }
        "GetCapabilities" => {
            number(&mut body, 0);
            "as"
        }
        "GetServerInformation" => {
            for name in ["played", "tests", "1", "1.2"] {
                text(&mut body, name);
            }
            "ssss"
        }
        _ => {
            text(&mut body, "<node/>");
            "s"
        }
    };
    let mut fields = fields(&[(6, "s", &asked.sender), (8, "g", signature)]);
    align(&mut fields, 8);
    fields.extend([5, 1, b'u', 0]);
    number(&mut fields, asked.serial);
    message(2, serial, &fields, &body)
}

fn message(kind: u8, serial: u32, fields: &[u8], body: &[u8]) -> Vec<u8> {
    let mut message = vec![b'l', kind, 0, 1];
    for count in [u32::try_from(body.len()).unwrap(), serial, u32::try_from(fields.len()).unwrap()] {
        number(&mut message, count);
    }
    message.extend(fields);
    align(&mut message, 8);
    message.extend(body);
    message
}

fn fields(all: &[(u8, &str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (code, signature, value) in all {
        field(&mut bytes, *code, signature, value);
    }
    bytes
}

/// A field of the head: a code, and a value with its type. An empty signature is that of no body.
fn field(bytes: &mut Vec<u8>, code: u8, signature: &str, value: &str) {
    align(bytes, 8);
    bytes.extend([code, 1, signature.as_bytes()[0], 0]);
    if signature == "g" {
        bytes.push(u8::try_from(value.len()).unwrap());
        bytes.extend(value.as_bytes());
        bytes.push(0);
    } else {
        text(bytes, value);
    }
}

fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

fn number(bytes: &mut Vec<u8>, number: u32) {
    align(bytes, 4);
    bytes.extend(number.to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, u32::try_from(text.len()).unwrap());
    bytes.extend(text.as_bytes());
    bytes.push(0);
}
