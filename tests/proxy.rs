//! The way out: a worker under `[network] mode = "proxy"` reaches the hosts that its policy names, and nothing else.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use serde_json::Value;

use crate::harness::{Fleet, User, skip};

/// A server on the host's loopback interface, which answers each request with its head and a word.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) answered: Arc<AtomicUsize>,
    ready: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answered, ready) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, word) = (Arc::clone(&answered), Arc::clone(&ready));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                    head.push(byte[0]);
                }
                let word = if word.load(Ordering::Acquire) { "ready" } else { "hello" };
                let body = format!("{word} {}", String::from_utf8_lossy(&head));
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                // Counted before: who has read the answer finds it counted.
                count.fetch_add(1, Ordering::AcqRel);
                drop(stream.write_all(answer.as_bytes()));
            }
        });
        Server { port, answered, ready }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }
}

/// Returns true if workers here have curl and a network of their own, as the tests need.
pub(crate) fn is_possible(fleet: &Fleet) -> bool {
    if !Path::new("/usr/bin/curl").exists() {
        skip("a worker behind the proxy: no curl here");
        return false;
    }
    proxied(fleet, "probe", &[]);
    let doctor = fleet.cli(["doctor", "--json"]);
    if doctor.stdout.contains("make a loopback interface") {
        skip("a worker behind the proxy: no network namespaces here");
        return false;
    }
    true
}

fn proxied(fleet: &Fleet, name: &str, hosts: &[String]) {
    let text = format!("version = 1\nextends = 'default'\n[network]\nmode = 'proxy'\nhosts = {hosts:?}\n");
    fleet.policy(name, &text);
}

pub(crate) fn events(fleet: &Fleet, task: &str, kind: &str) -> Vec<Value> {
    let found = fleet.json(["events", "--task", task, "--kind", kind]);
    found["events"].as_array().unwrap().iter().map(|event| event["payload"].clone()).collect()
}

fn words(list: &[Value], key: &str) -> Vec<String> {
    list.iter().map(|one| one[key].as_str().unwrap_or_default().to_owned()).collect()
}

/// A server that answers every request of a connection, whatever its head says about the end of the connection.
/// Returns its port and the first lines that it reads.
fn greedy() -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            thread::spawn(move || {
                let (mut stream, mut reader) = (stream.try_clone().unwrap(), BufReader::new(stream));
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
                    if line == "\r\n" {
                        drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"));
                    } else if line.contains(" HTTP/1.1") {
                        sender.send(line.trim().to_owned()).unwrap();
                    }
                    line.clear();
                }
            });
        }
    });
    (port, lines)
}

#[test]
fn a_connection_in_the_clear_has_one_request_which_is_checked_and_counted() {
    let fleet = Fleet::offline();
    if !is_possible(&fleet) || !Path::new("/usr/bin/bash").exists() {
        return;
    }
    let (port, lines) = greedy();
    let other = greedy();
    proxied(&fleet, "agent", &[format!("127.0.0.1:{port}")]);
    fleet.start();
    let script = format!(
        "cat > raw <<'END'
         trap '' PIPE
         send() {{ exec 3<>/dev/tcp/127.0.0.1/3128; printf \"$1\" >&3; cat <&3; exec 3>&-; }}
         more=\"GET http://127.0.0.1:{port}/second HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nGET http://127.0.0.1:{other}/other HTTP/1.1\\r\\nHost: b\\r\\n\\r\\n\"
         send \"GET http://127.0.0.1:{port}/first HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n$more\"
         send \"POST http://127.0.0.1:{port}/length HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 0\\r\\n\\r\\n$more\"
         send \"POST http://127.0.0.1:{port}/chunked HTTP/1.1\\r\\nHost: a\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n$more\"
         send \"trace http://127.0.0.1:{port}/trace HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\"
END
         bash raw",
        other = other.0,
    );
    let task = fleet.create("pipelines", &script, &["--policy", "agent"]);
    let shown = fleet.wait_for(&task, "done");

    let seen: Vec<String> = lines.try_iter().collect();
    assert_eq!(seen, ["GET /first HTTP/1.1", "POST /length HTTP/1.1", "POST /chunked HTTP/1.1"]);
    assert_eq!(other.1.try_iter().count(), 0);
    let said = fleet.cli(["log", &task]).ok().stdout;
    assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 3, "{said}");
    assert!(said.contains("HTTP/1.1 405 "), "{said}");
    assert_eq!(shown["runs"][0]["egress"]["requests"], 3, "{shown}");
}

#[test]
fn a_worker_reaches_the_hosts_that_its_policy_names_and_nothing_else() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        if !is_possible(&fleet) {
            return;
        }
        let (server, other) = (Server::start(), Server::start());
        proxied(
            &fleet,
            "agent",
            &[format!("127.0.0.1:{}", server.port), format!("localhost:{}", server.port)],
        );
        fleet.start();
        let (named, closed) = (server.url("a"), other.url("b"));
        let script = format!(
            "exec 2>&1; env | grep -i _proxy= | sort
             echo; echo clear: $(curl -s -m 20 -H 'Proxy-Authorization: x' {named})
             echo tunnel: $(curl -s -m 20 --proxytunnel {named})
             echo name: $(curl -s -m 20 http://localhost:{port}/n)
             echo closed: $(curl -s -m 20 -w ' %{{http_code}}' {closed})
             echo tunnel to closed: $(curl -s -m 20 -p -w ' %{{http_connect}}' {closed})
             echo unnamed: $(curl -s -m 20 -w ' %{{http_code}}' http://denied.example/)
             echo direct: $(curl -s -m 20 --noproxy '*' {named} || echo refused)
             echo outside: $(curl -s -m 20 --noproxy '*' http://192.0.2.1/ || echo unreachable)
             echo whole: $(curl -s -m 20 -x '' http://denied.example/ || echo unresolved)",
            port = server.port,
        );
        let task = fleet.create("goes out", &script, &["--policy", "agent"]);
        let shown = fleet.wait_for(&task, "done");
        let said = fleet.cli(["log", &task]).stdout;
        let line =
            |start: &str| said.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
        for name in ["HTTP_PROXY", "https_proxy", "ALL_PROXY"] {
            assert!(said.contains(&format!("{name}=http://127.0.0.1:3128")), "{said}");
        }
        assert!(said.contains("NO_PROXY=127.0.0.1:3128,::1\n"), "{said}");
        let clear = line("clear: hello GET /a HTTP/1.1");
        assert!(!clear.is_empty() && !clear.contains("Proxy-Authorization"), "{said}");
        assert!(!line("tunnel: hello GET /a HTTP/1.1").is_empty(), "{said}");
        assert!(!line("name: hello GET /n HTTP/1.1").is_empty(), "{said}");
        for start in ["closed:", "unnamed:"] {
            let line = line(start);
            assert!(line.ends_with(" 403") && line.contains("the policy agent does not allow it"), "{said}");
        }
        assert!(line("tunnel to closed:").ends_with("403"), "{said}");
        assert!(line("direct:").ends_with("refused") && line("outside:").ends_with("unreachable"), "{said}");
        assert!(line("whole:").ends_with("unresolved"), "{said}");
        assert_eq!((server.answered.load(Ordering::Acquire), other.answered.load(Ordering::Acquire)), (3, 0));

        let denied = events(&fleet, &task, "egress_denied");
        let closed = format!("127.0.0.1:{}", other.port);
        assert_eq!(words(&denied, "host"), [closed.as_str(), "denied.example:80"]);
        assert_eq!(words(&denied, "policy"), ["agent", "agent"]);
        assert!(denied[1]["line"].as_str().unwrap().contains("\"denied.example:80\"]"), "{denied:?}");
        let egress = &events(&fleet, &task, "egress")[0];
        assert_eq!((egress["requests"].as_u64(), egress["denied"].as_u64()), (Some(3), Some(3)), "{egress}");
        assert!(egress["sent_bytes"].as_u64() > Some(100) && egress["received_bytes"].as_u64() > Some(100));
        let layers = shown["runs"][0]["sandbox"]["layers"].as_array().unwrap();
        let network = layers.iter().find(|layer| layer["layer"] == "network").unwrap();
        assert_eq!(network["state"], "enforced", "{network}");
    }
}

#[test]
fn a_name_that_leads_to_the_hosts_own_addresses_is_refused_unless_they_are_named() {
    let fleet = Fleet::offline();
    if !is_possible(&fleet) {
        return;
    }
    let server = Server::start();
    proxied(&fleet, "narrow", &[format!("localhost:{}", server.port)]);
    fleet.start();
    let script = format!("curl -s -m 20 -f -x $HTTP_PROXY --noproxy '' http://localhost:{}/", server.port);
    let task = fleet.create("is led back", &script, &["--policy", "narrow", "--max-retries", "1"]);
    fleet.wait_for(&task, "blocked");
    assert_eq!(server.answered.load(Ordering::Acquire), 0);
    let denied = events(&fleet, &task, "egress_denied");
    let text = denied[0]["text"].as_str().unwrap();
    assert!(
        text.contains("localhost")
            && text.contains(&format!(":{}\"] in the policy narrow does", server.port)),
        "{text}"
    );
    assert!(text.contains("which is 127.0.0.1") || text.contains("which is [::1]"), "{text}");
    // A run that failed has the reason where people look for it.
    let diagnosed = fleet.cli(["diagnostics"]).stdout;
    assert!(diagnosed.contains("its sandbox denied connecting to localhost"), "{diagnosed}");
}

#[test]
fn the_next_daemon_serves_the_proxy_of_a_worker_that_it_takes_over() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        if !is_possible(&fleet) {
            return;
        }
        let server = Server::start();
        proxied(&fleet, "agent", &[format!("127.0.0.1:{}", server.port)]);
        fleet.start();
        let url = server.url("again");
        let script = format!("until curl -s -m 60 {url} | grep -q ready; do sleep 0.05; done");
        let task = fleet.create("outlives a daemon", &script, &["--policy", "agent"]);
        fleet.eventually("it goes out", || (server.answered.load(Ordering::Acquire) > 0).then_some(()));
        fleet.kill_daemon();
        server.ready.store(true, Ordering::Release);
        fleet.start();
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "{shown}");
    }
}

#[test]
fn a_worker_that_holds_every_connection_that_it_gets_leaves_the_proxy_to_others() {
    let fleet = Fleet::offline();
    if !is_possible(&fleet) || !Path::new("/usr/bin/bash").exists() {
        return;
    }
    let server = Server::start();
    proxied(&fleet, "agent", &[format!("127.0.0.1:{}", server.port)]);
    fleet.start();
    let script = "exec bash -c 'for i in $(seq 10 200); do eval \"exec $i<>/dev/tcp/127.0.0.1/3128\"; done; \
                  supervisor heartbeat --note full; sleep 600'";
    let greedy = fleet.create("takes all", script, &["--policy", "agent"]);
    fleet.eventually("it has them", || {
        (!fleet.json(["events", "--task", &greedy, "--kind", "heartbeat"])["events"].as_array()?.is_empty())
            .then_some(())
    });
    let task =
        fleet.create("needs one", &format!("curl -s -f -m 60 {}", server.url("x")), &["--policy", "agent"]);
    fleet.wait_for(&task, "done");
    fleet.cli(["archive", &greedy]).ok();
}

/// A program that asks for a page, and says as Claude Code does that the answer of its service had this status.
fn says(status: u16, asks: &str) -> String {
    format!(
        r#"{asks}; echo '{{"type":"result","is_error":true,"result":"{status} no","api_error_status":{status}}}'; exit 1"#
    )
}

#[test]
fn a_host_that_the_proxy_refuses_is_no_login_that_a_service_rejects() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        if !is_possible(&fleet) {
            return;
        }
        let server = Server::start();
        proxied(&fleet, "agent", &[format!("127.0.0.1:{}", server.port)]);
        proxied(&fleet, "narrow", &[]);
        let lane = |policy: &str, hosts: &str| {
            format!(
                "argv = [\"/bin/sh\", \"{{prompt_file}}\"]\nprompt = \"body-file\"\npolicy = \"{policy}\"\n\
                 stdout = \"claude-stream-json\"\naccount = \"main\"\nhosts = [{hosts:?}]\n"
            )
        };
        fleet.lane("other", &lane("agent", &format!("127.0.0.1:{}", server.port)));
        fleet.lane("private", &lane("narrow", &format!("localhost:{}", server.port)));
        fleet.start();
        let ask = |url: &str| format!("curl -s -o /dev/null -m 20 -x $HTTP_PROXY --noproxy '' {url}");
        let (named, unnamed) = (ask(&server.url("a")), ask("-p http://api.denied.example/"));
        let resolved = ask(&format!("http://localhost:{}/", server.port));
        let create = |lane: &str, status, asks: &str| {
            let body = says(status, asks);
            let words = ["create", "x", "--assignee", lane, "--max-retries", "1", "--body", &body];
            fleet.json(words)["id"].as_str().unwrap().to_owned()
        };
        // Another lane has other hosts than the program asks for, or the name of its service leads to this host.
        for (lane, asks, host) in [
            ("other", format!("{named}; {unnamed}"), "api.denied.example"),
            ("private", resolved, "localhost"),
        ] {
            let task = create(lane, 403, &asks);
            let shown = fleet.wait_for(&task, "blocked");
            let run = &shown["runs"][0];
            assert_eq!(run["outcome"], "crashed", "{shown:#}");
            assert!(run["error"].as_str().unwrap().contains(&format!("connecting to {host}")), "{shown:#}");
            assert_eq!(fleet.json(["holds"]), Value::Array(Vec::new()));
        }
        // The service itself was asked last, or its status is none of the proxy's.
        for (status, asks) in [
            (403, format!("{unnamed}; {named}")),
            (401, format!("{unnamed}; {named}")),
            (401, format!("{named}; {unnamed}")),
        ] {
            let task = create("other", status, &asks);
            fleet.eventually("its account waits for a login", || {
                (fleet.json(["holds"])[0]["kind"] == "login").then_some(())
            });
            assert_eq!(fleet.show(&task)["task"]["consecutive_failures"], 0, "{status} {asks}");
            fleet.cli(["archive", &task]).ok();
            fleet.cli(["release", "--account", "main"]).ok();
        }
    }
}
