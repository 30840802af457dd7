//! Explains denials other than files from the words of a complaint: system calls, and the network.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use policies::{Denial, Mode, Policy};

/// Phrases of programs that failed to resolve a host name.
const NAMES: &[&str] = &["resolve", "resolution", "eai_again", "dns"];

fn denied(act: &str, line: impl Into<String>) -> Denial {
    Denial { act: act.to_owned(), line: Some(line.into()), place: None }
}

/// Returns the denial of a system call that a line, in lower case, names.
pub(super) fn call(policy: &Policy, line: &str) -> Option<Denial> {
    let says = |words: &[&str]| words.iter().any(|word| line.contains(word));
    let process = &policy.process;
    let denied = |act: &str, line: &str| Some(denied(act, line));
    let never = |act: &str| Some(Denial { act: act.to_owned(), line: None, place: None });
    if says(&["ptrace", "strace", "process_vm_"]) && !process.debug {
        return denied("tracing a process", "process.debug = true");
    }
    let ipc = [
        "shmget",
        "semget",
        "msgget",
        "mq_open",
        "share memory",
        "shared memory",
        "semaphore",
        "message queue",
    ];
    if says(&ipc) && !process.sysv_ipc {
        return denied("System V or POSIX IPC", "process.sysv_ipc = true");
    }
    if says(&["unshare", "namespace", "mount"]) {
        return never("making a namespace or a mount");
    }
    if says(&["io_setup", "io_uring"]) {
        return never("asynchronous I/O (io_setup, io_uring)");
    }
    if says(&["nice", "taskset", "setpriority", "sched_set", "set priority"]) {
        return never("changing the scheduling of another process");
    }
    if says(&["chmod", "changing permissions", "mode of"]) {
        return never("setting a set-user-ID or set-group-ID bit");
    }
    if says(&["kill"]) {
        return never("a signal to a process that is not the run's");
    }
    network(policy, line)
}

/// Returns the denial of a network access that a line, in lower case, suggests.
pub(super) fn network(policy: &Policy, line: &str) -> Option<Denial> {
    let says = |words: &[&str]| words.iter().any(|word| line.contains(word));
    let serves = says(&["bind", "listen"]);
    let is_loopback = serves || says(&["127.0.0.1", "localhost", "[::1]", "loopback"]);
    let named = says(NAMES);
    // Shells name a connection as `/dev/tcp/`.
    let connects = named || says(&["connect", "network", "/dev/tcp/"]);
    if !is_loopback && !connects && !says(&["socket"]) {
        return None;
    }
    let network = &policy.network;
    let denial = match network.mode {
        Mode::None if is_loopback => {
            denied("a server or a connection on this host", "network.mode = \"loopback\"")
        }
        // The destination is unknown. A connection beyond the host fails with another complaint, which leads to the
        // case below.
        Mode::None if !connects => denied("a network socket", "network.mode = \"loopback\""),
        Mode::None | Mode::Loopback if !is_loopback => {
            let ports = match port(line) {
                Some(port) => port.to_string(),
                None if line.contains("ssh") => "22".to_owned(),
                None => "80, 443".to_owned(),
            };
            let line = format!("network = {{ mode = \"ports\", connect_tcp = [{ports}], udp = true }}");
            denied("a connection to the network", line)
        }
        Mode::Ports if serves => {
            return more("listening on a port", "bind_tcp", &network.bind_tcp, port(line));
        }
        // Names are resolved over UDP. With UDP allowed, a failure means a missing name service or an unknown name.
        Mode::Ports if named && network.udp => return None,
        Mode::Ports if named => denied("a DNS query", "network.udp = true"),
        Mode::Ports => {
            return more("a connection to a port", "connect_tcp", &network.connect_tcp, port(line));
        }
        // The proxy itself reports a refusal, with the host.
        Mode::None | Mode::Loopback | Mode::Host | Mode::Proxy => return None,
    };
    Some(denial)
}

/// Returns the policy line that adds a port. None if the policy has the port already, so that the denial has another
/// cause.
fn more(act: &str, key: &str, has: &BTreeSet<u16>, port: Option<u16>) -> Option<Denial> {
    if port.is_some_and(|port| has.contains(&port)) {
        return None;
    }
    let all = has.iter().map(ToString::to_string);
    let all: Vec<String> =
        all.chain([port.map_or_else(|| "PORT".to_owned(), |port| port.to_string())]).collect();
    Some(denied(act, format!("network.{key} = [{}]", all.join(", "))))
}

/// Returns the port that a line names: `port 8080`, `/dev/tcp/HOST/8080`, `127.0.0.1:8080`, `https://…`.
fn port(line: &str) -> Option<u16> {
    let is_edge = |c: char| c.is_whitespace() || "'\"`(),;=<>/".contains(c);
    let words: Vec<&str> = line.split(is_edge).filter(|word| !word.is_empty()).collect();
    let number = |word: &str| word.trim_end_matches([':', '.']).parse::<u16>().ok();
    let after = words.windows(3).find_map(|near| match near {
        ["tcp", _, word] | [_, "port", word] => number(word),
        _ => None,
    });
    let of_host = |word: &&str| -> Option<u16> {
        let (host, number) = word.trim_end_matches([':', '.']).rsplit_once(':')?;
        let is_host = host == "localhost" || host.ends_with(']') || host.parse::<Ipv4Addr>().is_ok();
        number.parse().ok().filter(|_| is_host)
    };
    let scheme = || match () {
        () if line.contains("https://") => Some(443),
        () if line.contains("http://") => Some(80),
        () => None,
    };
    after.or_else(|| words.iter().find_map(of_host)).or_else(scheme)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn line(policy: &str, complaint: &str) -> Option<String> {
        let text = format!("version = 1\n{policy}");
        let policy = Policy::from_toml(&text, Path::new("own.toml")).unwrap();
        call(&policy, &complaint.to_lowercase())?.line
    }

    #[test]
    fn each_line_is_one_that_a_policy_takes_and_has_what_it_had_before() {
        let ports = "[network]\nmode = 'ports'\nudp = true\nconnect_tcp = [22]\nbind_tcp = [80]\n";
        for (policy, complaint, expected) in [
            ("", "bind: Operation not permitted", "network.mode = \"loopback\""),
            ("", "socket: Operation not permitted", "network.mode = \"loopback\""),
            (
                "",
                "ssh: Could not resolve hostname x",
                "network = { mode = \"ports\", connect_tcp = [22], udp = true }",
            ),
            (
                "",
                "unable to access 'https://x/': Could not resolve host: x",
                "network = { mode = \"ports\", connect_tcp = [443], udp = true }",
            ),
            (
                "",
                "Could not resolve host: x",
                "network = { mode = \"ports\", connect_tcp = [80, 443], udp = true }",
            ),
            (ports, "connect to 127.0.0.1:8080: Permission denied", "network.connect_tcp = [22, 8080]"),
            (ports, "connect to x port 25: Permission denied", "network.connect_tcp = [22, 25]"),
            (ports, "bind [::1]:8080: Permission denied", "network.bind_tcp = [80, 8080]"),
            (
                ports,
                "bash: line 1: /dev/tcp/127.0.0.1/8443: Permission denied",
                "network.connect_tcp = [22, 8443]",
            ),
            ("[network]\nmode = 'ports'\n", "Could not resolve host: x", "network.udp = true"),
            ("", "ipcmk: create share memory failed", "process.sysv_ipc = true"),
        ] {
            let named = line(policy, complaint).unwrap_or_default();
            assert_eq!(named, expected, "{complaint}");
            Policy::from_toml(&format!("version = 1\n{named}\n"), Path::new("own.toml")).unwrap();
        }
        assert_eq!(line(ports, "Could not resolve host: x"), None, "names are open");
        assert_eq!(line(ports, "connect to x port 22: Permission denied"), None, "this port is open");
    }

    #[test]
    fn what_no_policy_opens_is_said_to_be_so() {
        for (complaint, act) in [
            ("kill: (17): Operation not permitted", "a signal to a process that is not the run's"),
            ("mount: /mnt: must be superuser to use mount.", "making a namespace or a mount"),
            (
                "nginx: [emerg] io_setup() failed (1: Operation not permitted)",
                "asynchronous I/O (io_setup, io_uring)",
            ),
            ("renice: failed to set priority for 17", "changing the scheduling of another process"),
        ] {
            let policy = Policy::builtin("default").unwrap();
            let denial = call(&policy, &complaint.to_lowercase()).unwrap();
            assert_eq!((denial.act.as_str(), denial.line), (act, None));
        }
    }
}
