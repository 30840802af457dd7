//! A server on the loopback interface that plays a service: it notes what it is asked, and answers as the test says.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde_json::Value;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedPost {
    /// Time of arrival.
    pub(crate) at: SystemTime,
    pub(crate) path: String,
    /// The head in lower case.
    pub(crate) head: String,
    pub(crate) text: String,
}

impl ReceivedPost {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// An answer: the status line, further headers, the body.
pub(crate) type PlayedAnswer = (&'static str, &'static str, &'static str);

/// All is well.
pub(crate) const OK: PlayedAnswer = ("200 OK", "", "{\"ok\":true}");

/// Function that replies to a request, given the number of earlier requests.
type Play = dyn Fn(&ReceivedPost, usize) -> PlayedAnswer + Send + Sync;

pub(crate) struct Played {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<ReceivedPost>>>,
    closed: Arc<AtomicBool>,
}

impl Played {
    pub(crate) fn start(play: impl Fn(&ReceivedPost, usize) -> PlayedAnswer + Send + Sync + 'static) -> Self {
        Self::at(0, play)
    }

    /// The same at a port that a test knows.
    pub(crate) fn at(
        port: u16,
        play: impl Fn(&ReceivedPost, usize) -> PlayedAnswer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, closed) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(false)));
        let (noted, is_closed): (Arc<Mutex<Vec<ReceivedPost>>>, _) =
            (Arc::clone(&asked), Arc::clone(&closed));
        let play: Arc<Play> = Arc::new(play);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_closed.load(Ordering::Acquire) {
                    return;
                }
                let (noted, play) = (Arc::clone(&noted), Arc::clone(&play));
                // Who breaks the connection off has asked nothing.
                std::thread::spawn(move || drop(answer(stream, &noted, &*play)));
            }
        });
        Played { port, asked, closed }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedPost> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
    }
}

fn answer(stream: TcpStream, noted: &Mutex<Vec<ReceivedPost>>, play: &Play) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
        writeln!(head, "{}: {value}", name.to_lowercase()).unwrap();
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut asked = ReceivedPost { at: SystemTime::now(), path, head, text: String::new() };
    let length = asked.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    asked.text = String::from_utf8_lossy(&body).into_owned();
    let before = {
        let mut noted = noted.lock().unwrap();
        noted.push(asked.clone());
        noted.len() - 1
    };
    let (status, headers, body) = play(&asked, before);
    let length = body.len();
    write!(
        reader.get_mut(),
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}connection: close\r\n\r\n{body}"
    )
}

/// A mail server in the clear. It refuses the first message for a while, and keeps what it takes.
pub(crate) fn mail_server() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&taken);
    std::thread::spawn(move || {
        let mut tries = 0;
        for stream in listener.incoming().flatten() {
            tries += 1;
            drop(receive(stream, tries, &kept));
        }
    });
    (port, taken)
}

fn receive(stream: TcpStream, tries: u32, kept: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let say = |reader: &mut BufReader<TcpStream>, text: &str| write!(reader.get_mut(), "{text}\r\n");
    say(&mut reader, "220 played")?;
    let mut line = String::new();
    while {
        line.clear();
        reader.read_line(&mut line)?
    } > 0
    {
        let word = line.split_whitespace().next().unwrap_or_default().to_uppercase();
        match word.as_str() {
            "EHLO" => say(&mut reader, "250-played\r\n250 AUTH PLAIN")?,
            "MAIL" if tries == 1 => say(&mut reader, "451 4.7.1 greylisted, try again later")?,
            "DATA" => {
                say(&mut reader, "354 go on")?;
                let mut message = String::new();
                while !message.ends_with("\r\n.\r\n") {
                    if reader.read_line(&mut message)? == 0 {
                        return Ok(());
                    }
                }
                kept.lock().unwrap().push(message);
                say(&mut reader, "250 taken")?;
            }
            "QUIT" => return say(&mut reader, "221 bye"),
            _ => say(&mut reader, "250 ok")?,
        }
    }
    Ok(())
}
