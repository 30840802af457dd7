//! Applies a policy to itself and executes a command, or tries one forbidden thing and says how it went.
//!
//! `confined run '<json>' <command>…` prints the report as a line of JSON before the command runs; the JSON names a
//! shipped `policy`, or its `text`, the `context`, and optionally a lower Landlock `abi` and `view: false`.
//! `confined probe <what> [<argument>]` prints `OPEN` or `BLOCKED <errno>`; `confined helper <uid> <readable>
//! <writable> <what> [<argument>]` does so as a helper of the supervisor; `confined view` tries a mount namespace; `confined
//! first <words>…` has a process of its own carry out the other words, the first one of a pid namespace; `confined domain <what>
//! [<argument>]` tries out one thing in a Landlock domain of its own.
#![expect(clippy::print_stdout, reason = "it is a command line program")]

use std::fs::{File, OpenOptions};
use std::io::{self, Error, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::sched::{CloneFlags, unshare};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use policies::{Identity, PidNamespace, Policy, Report, RunContext, Secret, SecretStores, Support};
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketType, ipproto, sendto, socket};
use rustix::process::{Resource, Rlimit, prlimit};
use serde::Deserialize;

#[derive(Deserialize)]
struct Order {
    policy: String,
    text: Option<String>,
    context: RunContext,
    abi: Option<u32>,
    view: Option<bool>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["run", order, command @ ..] => run(order, command),
        ["probe", what, rest @ ..] => {
            try_out(what, rest);
            Ok(())
        }
        ["first", rest @ ..] => first(rest),
        ["domain", what, rest @ ..] => {
            policies::enter_own_domain().map(|()| try_out(what, rest)).map_err(Into::into)
        }
        ["view"] => policies::probe_view().map(|()| println!("OPEN")).map_err(Into::into),
        ["helper", uid, read, write, what, rest @ ..] => help(uid, read, write).map(|()| try_out(what, rest)),
        _ => Err("usage: confined run <json> <command>… | confined probe <what> [<argument>]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: failed to {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(order: &str, command: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let order: Order = serde_json::from_str(order)?;
    let policy = match &order.text {
        Some(text) => Policy::from_toml(text, std::path::Path::new("test.toml"))?,
        None => Policy::builtin(&order.policy).ok_or("find the policy")?,
    };
    let mut host = Support::detect();
    if let Some(abi) = order.abi {
        host = host.with_abi(abi);
    }
    if order.view == Some(false) {
        host = host.without_view("switched off");
    }
    let report: Report = policy.plan(&order.context, &host)?.apply()?;
    println!("{}", serde_json::to_string(&report)?);
    io::stdout().flush()?;
    let (program, args) = command.split_first().ok_or("find a command")?;
    Err(Command::new(program).args(args).exec().into())
}

/// Executes itself with other words, as the first process of a pid namespace.
fn first(words: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let namespace = PidNamespace::for_view(&Support::detect().view).ok_or("have a pid namespace")?;
    namespace.enter()?;
    namespace.pass_on()?;
    let status = Command::new(std::env::current_exe()?).args(words).status()?;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}

/// Becomes a user that may read one place and write another, as a helper of the supervisor does.
fn help(uid: &str, read: &str, write: &str) -> Result<(), Box<dyn std::error::Error>> {
    let uid = uid.parse()?;
    policies::become_user(Identity { uid, gid: uid })?;
    Ok(policies::confine_paths(&[read.into()], &[write.into()])?)
}

fn try_out(what: &str, rest: &[&str]) {
    let argument = rest.first().copied().unwrap_or_default();
    match probe(what, argument) {
        Ok(()) => println!("OPEN"),
        Err(error) => match error.raw_os_error() {
            Some(code) => println!("BLOCKED {:?}", nix::errno::Errno::from_raw(code)),
            None => println!("BROKEN {error}"),
        },
    }
}

/// Tries one thing. Whatever succeeds does no harm.
fn probe(what: &str, argument: &str) -> io::Result<()> {
    let local = |port: &str| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port.parse().unwrap_or(0));
    let pid = || argument.parse().map(Pid::from_raw).map_err(Error::other);
    match what {
        "read" => io::copy(&mut File::open(argument)?, &mut io::sink()).map(drop),
        "open" => File::open(argument).map(drop),
        "list" => std::fs::read_dir(argument).map(drop),
        "stat" => std::fs::symlink_metadata(argument).map(drop),
        "write" => OpenOptions::new().append(true).open(argument)?.write_all(b"x"),
        "create" => File::create(argument).map(drop),
        "truncate" => OpenOptions::new().write(true).truncate(true).open(argument).map(drop),
        "chmod" => std::fs::set_permissions(argument, std::fs::Permissions::from_mode(0o644)),
        "watch" => {
            Inotify::init(InitFlags::empty())?.add_watch(argument, AddWatchFlags::IN_CREATE)?;
            Ok(())
        }
        "terminal" => OpenOptions::new().read(true).write(true).open("/dev/ptmx").map(drop),
        "execute" => Command::new(argument).output().map(drop),
        "tcp-connect" => TcpStream::connect(local(argument)).map(drop),
        "tcp-pair" => {
            let listener = TcpListener::bind(local("0"))?;
            TcpStream::connect(listener.local_addr()?).map(drop)
        }
        "tcp-bind" => TcpListener::bind(local(argument)).map(drop),
        "udp" => UdpSocket::bind(local("0"))?.send_to(b"x", local(argument)).map(drop),
        "mptcp" => {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::MPTCP))?;
            Ok(rustix::net::connect(socket, &local(argument))?)
        }
        "fast-open" => {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            let flags = SendFlags::from_bits_retain(nix::libc::MSG_FASTOPEN.cast_unsigned());
            Ok(sendto(socket, b"x", flags, &local(argument)).map(drop)?)
        }
        "vsock" => family(AddressFamily::VSOCK, None),
        "netlink" => family(AddressFamily::NETLINK, None),
        "uevent" => family(AddressFamily::NETLINK, Some(rustix::net::netlink::KOBJECT_UEVENT)),
        "abstract" => UnixStream::connect_addr(&SocketAddr::from_abstract_name(argument)?).map(drop),
        "socket" => UnixStream::connect(argument).map(drop),
        "own-abstract" => {
            let address = SocketAddr::from_abstract_name(argument)?;
            let _listener = UnixListener::bind_addr(&address)?;
            UnixStream::connect_addr(&address).map(drop)
        }
        "own-socket" => {
            let _listener = UnixListener::bind(argument)?;
            UnixStream::connect(argument).map(drop)
        }
        "pair" => UnixStream::pair().map(drop),
        "signal" => Ok(kill(pid()?, Signal::SIGCONT)?),
        "trace" => {
            ptrace::attach(pid()?)?;
            waitpid(pid()?, None)?;
            Ok(ptrace::detach(pid()?, None)?)
        }
        "prlimit" => {
            let other = rustix::process::Pid::from_raw(pid()?.as_raw());
            let limit = Rlimit { current: Some(0), maximum: Some(0) };
            Ok(prlimit(other, Resource::Core, limit).map(drop)?)
        }
        "user-namespace" => Ok(unshare(CloneFlags::CLONE_NEWUSER)?),
        "mount" => {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
            Ok(nix::mount::mount(
                Some("x"),
                "/usr",
                Some("tmpfs"),
                nix::mount::MsFlags::empty(),
                None::<&str>,
            )?)
        }
        "root" => {
            let root = rustix::process::geteuid().is_root();
            if root { Ok(()) } else { Err(Error::from_raw_os_error(nix::libc::EPERM)) }
        }
        "secret" => {
            let read = Secret::File(argument.into()).fetch("KEY", &SecretStores::default());
            read.map(drop).map_err(|error| Error::new(io::ErrorKind::InvalidData, error))
        }
        "secure-bits" => {
            // All of securebits.h but `SECURE_KEEP_CAPS`: none can be changed any more.
            let locked = rustix::thread::capabilities_secure_bits()?.bits() == 0xef;
            if locked { Err(Error::from_raw_os_error(nix::libc::EPERM)) } else { Ok(()) }
        }
        "descriptor" => {
            let inherited = std::fs::read_dir("/proc/self/fd")?.filter_map(Result::ok);
            let target = inherited.filter_map(|entry| std::fs::read_link(entry.path()).ok());
            let found = target.into_iter().any(|target| target.ends_with(argument));
            if found { Ok(()) } else { Err(Error::from_raw_os_error(nix::libc::EBADF)) }
        }
        _ => Err(Error::other(format!("no probe is named {what}"))),
    }
}

fn family(family: AddressFamily, protocol: Option<Protocol>) -> io::Result<()> {
    Ok(socket(family, SocketType::DGRAM, protocol).map(drop)?)
}
