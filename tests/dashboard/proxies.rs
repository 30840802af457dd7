//! The dashboard behind real reverse proxies with TLS, as `docs/dashboard.md` configures them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::wire::Served;
use crate::harness::skip;
use crate::http::free_port;

const NAME: &str = "fleet.example.org";

/// A proxy that runs, and a client of it.
struct Proxied {
    served: Served,
    /// Port of the proxy.
    port: u16,
    certificate: PathBuf,
    proxy: Child,
}

impl Drop for Proxied {
    fn drop(&mut self) {
        // It ends its own processes.
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.proxy.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap_or_default();
        drop(self.proxy.wait());
    }
}

/// The part of the manual that configures a proxy.
fn manual(begins: &str) -> String {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/dashboard.md")).unwrap();
    let blocks = text.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut found = blocks.filter(|block| block.starts_with(begins));
    found.next().unwrap_or_else(|| panic!("no block begins with {begins}")).to_owned()
}

fn pem(what: &str, der: &[u8]) -> String {
    format!("-----BEGIN {what}-----\n{}\n-----END {what}-----\n", STANDARD.encode(der))
}

impl Proxied {
    /// Starts a program before a dashboard. `configuration` gets the directory, the port of the dashboard and that of the proxy.
    fn start(program: &str, configure: impl FnOnce(&Path, u16, u16) -> Vec<String>) -> Option<Self> {
        let there = Command::new(program).arg(if program == "nginx" { "-v" } else { "version" }).output();
        if there.is_err() {
            skip(&format!("a reverse proxy with TLS: needs {program}"));
            return None;
        }
        let port = free_port();
        let served = Served::start(&format!("public_url = \"https://{NAME}:{port}\"\n"));
        let dir = served.fleet.home().join("proxy");
        fs::create_dir_all(&dir).unwrap();
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec![NAME.to_owned()]).unwrap().self_signed(&key).unwrap();
        let certificate = dir.join("fleet.pem");
        fs::write(&certificate, pem("CERTIFICATE", own.der())).unwrap();
        fs::write(dir.join("fleet.key"), pem("PRIVATE KEY", &key.serialize_der())).unwrap();
        let arguments = configure(&dir, served.port, port);
        let log = fs::File::create(dir.join("log")).unwrap();
        let proxy = Command::new(program)
            .args(arguments)
            .env("HOME", &dir)
            .env("XDG_DATA_HOME", &dir)
            .env("XDG_CONFIG_HOME", &dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
        drop(served.fleet.eventually("the proxy listens", listens));
        Some(Proxied { served, port, certificate, proxy })
    }

    fn origin(&self) -> String {
        format!("https://{NAME}:{}", self.port)
    }

    /// A request through the proxy.
    fn curl(&self, path: &str, more: &[&str]) -> Command {
        let mut curl = Command::new("curl");
        // Without a wait for `100 Continue`, whose head would come before that of the answer.
        curl.args([
            "--silent",
            "--show-error",
            "--max-time",
            "60",
            "--noproxy",
            "*",
            "-H",
            "expect:",
            "--cacert",
        ]);
        curl.arg(&self.certificate).args(["--resolve", &format!("{NAME}:{}:127.0.0.1", self.port)]);
        curl.args(more).arg(format!("{}{path}", self.origin()));
        curl
    }

    /// The status, the head in lower case, and the body.
    fn ask(&self, path: &str, more: &[&str]) -> (u16, String, String) {
        let said = self.curl(path, &[&["--include", "--http1.1"], more].concat()).output().unwrap();
        assert!(said.status.success(), "{path}: {said:?}");
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }
}

/// Checks the behaviour behind a proxy.
fn try_it(proxied: &Proxied) {
    let url = proxied.served.fleet.cli(["dashboard"]).ok().stdout;
    let begin = format!("{}/open#", proxied.origin());
    let code = url.trim_end().strip_prefix(&begin).unwrap_or_else(|| panic!("{url}"));
    let origin = format!("origin: {}", proxied.origin());
    let kind = "content-type: application/json";

    let (status, head, _) = proxied.ask("/board", &[]);
    assert_eq!(status, 303, "{head}");
    assert!(head.contains("location: /open?to="), "{head}");
    let body = json!({ "code": code }).to_string();
    let (status, head, said) = proxied.ask("/session", &["-H", &origin, "-H", kind, "-d", &body]);
    assert_eq!(status, 201, "{head}{said}");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.ends_with("; secure"), "{cookie}");
    let cookie = format!("cookie: {}", cookie.split(';').next().unwrap());
    let said: Value = serde_json::from_str(&said).unwrap();
    let key = format!("x-supervisor-dashboard: {}", said["key"].as_str().unwrap());
    let session = ["-H", &cookie, "-H", &key];

    let (status, _, board) = proxied.ask("/api/v1/board", &session);
    assert_eq!(status, 200, "{board}");
    let (status, head, _) = proxied
        .ask("/board", &[&session[..], &["-H", "accept-encoding: gzip", "-o", "/dev/stdout"]].concat());
    assert_eq!((status, head.contains("content-encoding: gzip")), (200, true), "{head}");
    let elsewhere = proxied.ask("/api/v1/board", &[&session[..], &["-H", "host: evil.example.org"]].concat());
    assert!(elsewhere.0 != 200 || elsewhere.2.is_empty(), "another name has no data: {elsewhere:?}");
    let other = proxied.ask("/session", &["-H", "origin: https://evil.example.org", "-H", kind, "-d", &body]);
    assert_eq!(other.0, 403, "{other:?}");

    // Longer than what proxies take by themselves.
    let file = proxied.certificate.with_file_name("file");
    fs::write(&file, vec![7; 20 << 20]).unwrap();
    let task = proxied.served.fleet.create("has a file", "true", &["--initial-status", "blocked"]);
    let data = format!("@{}", file.display());
    let path = format!("/api/v1/tasks/{task}/attachments?filename=file");
    let upload = ["-H", &origin, "-H", "content-type: application/octet-stream", "--data-binary", &data];
    let (status, _, said) = proxied.ask(&path, &[&session[..], &upload].concat());
    assert_eq!(status, 201, "{said}");

    let mut stream = proxied.curl("/api/v1/stream", &[&session[..], &["--no-buffer"]].concat());
    let mut stream = stream.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(stream.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "event: hello"), "the stream begins at once");
    proxied.served.fleet.cli(["comment", &task, "through the proxy"]).ok();
    assert!(lines.any(|line| line == "event: event"), "an event comes while the stream is open");
    proxied.served.fleet.cli(["dashboard", "revoke", "--all"]).ok();
    assert!(lines.any(|line| line == "event: signed_out"), "the end of the session comes, too");
    drop(stream.wait());
}

#[test]
fn behind_nginx_links_sessions_streams_and_files_go_as_the_manual_says() {
    let proxied = Proxied::start("nginx", |dir, dashboard, port| {
        let server = manual("server {")
            .replace("listen 443 ssl", &format!("listen 127.0.0.1:{port} ssl"))
            .replace("/etc/ssl/", &format!("{}/", dir.display()))
            .replace("127.0.0.1:8470", &format!("127.0.0.1:{dashboard}"));
        let user = if nix::unistd::geteuid().is_root() { "user root;\n" } else { "" };
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|what| format!("{what}_temp_path {}/{what};\n", dir.display()))
            .concat();
        let whole = format!(
            "{user}daemon off;\npid {0}/pid;\nerror_log {0}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{server}}}\n",
            dir.display()
        );
        let path = dir.join("nginx.conf");
        fs::write(&path, whole).unwrap();
        vec!["-p".to_owned(), dir.display().to_string(), "-c".to_owned(), path.display().to_string()]
    });
    let Some(proxied) = proxied else { return };
    try_it(&proxied);
}

#[test]
fn behind_caddy_links_sessions_streams_and_files_go_as_the_manual_says() {
    let proxied = Proxied::start("caddy", |dir, dashboard, port| {
        // A name that nobody owns gets no certificate from outside.
        let site = manual("fleet.example.org {")
            .replacen(
                "fleet.example.org {",
                &format!(
                    "https://{NAME}:{port} {{\n  bind 127.0.0.1\n  tls {0}/fleet.pem {0}/fleet.key",
                    dir.display()
                ),
                1,
            )
            .replace("127.0.0.1:8470", &format!("127.0.0.1:{dashboard}"));
        let path = dir.join("Caddyfile");
        fs::write(&path, format!("{{\n  admin off\n  auto_https disable_redirects\n}}\n{site}")).unwrap();
        ["run", "--adapter", "caddyfile", "--config"]
            .map(str::to_owned)
            .into_iter()
            .chain([path.display().to_string()])
            .collect()
    });
    let Some(proxied) = proxied else { return };
    try_it(&proxied);
}
