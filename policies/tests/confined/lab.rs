//! A place with all that a worker may and may not reach, and a program that tries it.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use policies::{BoardAccess, ClosedPaths, Identity, Layer, Report, RunContext, State};
use tempfile::TempDir;

/// A user that no account has.
pub(crate) const WORKER: u32 = 61_501;
/// Another one.
pub(crate) const USER: u32 = 61_502;

/// Who applies the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Root, for a worker of another user.
    Root,
    /// An ordinary user, for itself.
    User,
}

/// A place with all that a worker may and may not reach.
pub(crate) struct Lab {
    dir: TempDir,
    pub(crate) caller: Caller,
    pub(crate) uid: u32,
    pub(crate) victim: Child,
    tcp: TcpListener,
    pub(crate) udp: UdpSocket,
    _sockets: [UnixListener; 3],
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.victim.kill().ok();
        self.victim.wait().ok();
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Path of an example of this crate.
fn built(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().unwrap().parent().unwrap().join("examples").join(example);
    assert!(built.exists(), "build it first: cargo build -p policies --example {example}");
    built
}

fn program() -> PathBuf {
    built("confined")
}

/// Copies an example to where the lab's caller can execute it.
pub(crate) fn example(lab: &Lab, name: &str) -> String {
    let copied = lab.path(&format!("bin/{name}"));
    copy(&built(name), Path::new(&copied));
    copied
}

/// Copies a program in another process: a descriptor of ours, open for writing, would be inherited by what other tests
/// start at that moment, and the copy be "text file busy".
pub(crate) fn copy(from: &Path, to: &Path) {
    assert!(Command::new("/bin/cp").arg(from).arg(to).status().unwrap().success());
}

impl Lab {
    /// Returns a lab for this caller, or says why there is none.
    pub(crate) fn new(caller: Caller) -> Option<Self> {
        let uid = match (caller, is_root()) {
            (Caller::Root, true) => WORKER,
            (Caller::User, true) => USER,
            (Caller::User, false) => rustix::process::geteuid().as_raw(),
            (Caller::Root, false) => {
                skips::skip("only root can give a worker a user of its own");
                return None;
            }
        };
        let dir = tempfile::Builder::new().prefix("policies").tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["ws", "home", "tmp", "sibling", "bin", "board"] {
            fs::create_dir(at(name)).unwrap();
        }
        copy(&program(), &at("bin/confined"));
        fs::write(at("sibling/secret"), "s").unwrap();
        fs::write(at("ws/mine"), "m").unwrap();
        let sockets = [
            UnixListener::bind(at("foreign.sock")).unwrap(),
            UnixListener::bind(at("board/board.sock")).unwrap(),
            UnixListener::bind_addr(
                &SocketAddr::from_abstract_name(at("abstract").to_str().unwrap()).unwrap(),
            )
            .unwrap(),
        ];
        for name in ["foreign.sock", "board/board.sock"] {
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o666)).unwrap();
        }
        let mut victim = Command::new("/bin/sleep");
        victim.arg("600").stdin(Stdio::null());
        if is_root() {
            for name in ["ws", "home", "tmp", "sibling", "sibling/secret", "ws/mine"] {
                chown(at(name), Some(uid), Some(uid)).unwrap();
            }
            copy(&program(), &at("ws/setuid"));
            fs::set_permissions(at("ws/setuid"), fs::Permissions::from_mode(0o4755)).unwrap();
            victim.uid(uid).gid(uid);
        }
        Some(Self {
            caller,
            uid,
            victim: victim.spawn().unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _sockets: sockets,
            dir,
        })
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn port(&self) -> String {
        self.tcp.local_addr().unwrap().port().to_string()
    }

    pub(crate) fn context(&self) -> RunContext {
        let at = |name: &str| self.dir.path().join(name);
        RunContext {
            workspace: at("ws"),
            home: at("home"),
            tmp: at("tmp"),
            read: vec![],
            execute: vec![at("bin")],
            write: vec![],
            arrangement: policies::Arrangement::default(),
            identity: (self.caller == Caller::Root).then_some(Identity { uid: self.uid, gid: self.uid }),
            work_cgroup: None,
            pid_namespace: None,
            board: BoardAccess::None,
            closed: ClosedPaths::default(),
            toolchain_home: None,
            proxy: None,
            credentials: None,
            secrets: None,
            parent: std::process::id().cast_signed(),
        }
    }

    /// The probe without any policy, as the user that the worker has.
    pub(crate) fn free(&self, probe: &[&str]) -> String {
        let mut command = Command::new(self.dir.path().join("bin/confined"));
        if is_root() {
            command.uid(self.uid).gid(self.uid);
        }
        command.arg("probe").args(probe).stdin(Stdio::null());
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn command(&self, policy: &str, context: &RunContext, more: &str, words: &[&str]) -> Command {
        let context = serde_json::to_string(context).unwrap();
        let order = format!(r#"{{"policy":"{policy}","context":{context}{more}}}"#);
        let mut command = Command::new(self.dir.path().join("bin/confined"));
        with_user(self, &mut command);
        command.arg("run").arg(order).args(words).stdin(Stdio::null());
        command
    }

    /// The words under a policy: its report, and what they print.
    pub(crate) fn run(
        &self,
        policy: &str,
        context: &RunContext,
        more: &str,
        words: &[&str],
    ) -> (Report, String) {
        let output = self.command(policy, context, more, words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (report, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let report = serde_json::from_str(report)
            .unwrap_or_else(|error| panic!("{error}: {text} {}", String::from_utf8_lossy(&output.stderr)));
        (report, rest.trim().to_owned())
    }

    pub(crate) fn probe(&self, policy: &str, probe: &[&str]) -> String {
        self.probe_in(policy, &self.context(), "", probe)
    }

    pub(crate) fn probe_in(&self, policy: &str, context: &RunContext, more: &str, probe: &[&str]) -> String {
        let own = self.path("bin/confined");
        let words: Vec<&str> = [own.as_str(), "probe"].iter().chain(probe).copied().collect();
        self.run(policy, context, more, &words).1
    }

    pub(crate) fn has_view(&self) -> bool {
        let report = self.run("default", &self.context(), "", &["/bin/true"]).0;
        report.state(Layer::Mounts) == Some(State::Enforced)
    }
}

/// Has a command begin as the user whose runs these are.
pub(crate) fn with_user(lab: &Lab, command: &mut Command) {
    if lab.caller == Caller::User && is_root() {
        command.uid(lab.uid).gid(lab.uid);
    }
}

/// The part of an order that is the text of a policy.
pub(crate) fn with_text(text: &str) -> String {
    format!(r#","text":{}"#, serde_json::to_string(text).unwrap())
}

pub(crate) fn labs() -> impl Iterator<Item = Lab> {
    [Caller::Root, Caller::User].into_iter().filter_map(Lab::new)
}

/// Each probe must be open without a policy, and blocked with it by one of the given errors.
pub(crate) fn assert_closed(lab: &Lab, policy: &str, more: &str, table: &[(&[&str], &[&str])]) {
    let mut wrong = Vec::new();
    for (probe, errors) in table {
        let free = lab.free(probe);
        let confined = lab.probe_in(policy, &lab.context(), more, probe);
        let expected = errors.iter().any(|error| confined == format!("BLOCKED {error}"));
        if free != "OPEN" || !expected {
            wrong.push(format!("{probe:?}: without {free}, with {policy} {confined}, wanted {errors:?}"));
        }
    }
    assert!(wrong.is_empty(), "{:?}\n{}", lab.caller, wrong.join("\n"));
}
