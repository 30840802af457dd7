//! Runs a command under a policy: `confine [OPTIONS] POLICY -- COMMAND [ARGUMENT]…`.
//!
//! The program starts itself anew. The second process begins a session of its own, restricts itself and executes the command; the
//! first waits, removes the private directories and passes the exit status on.
#![expect(clippy::print_stderr, clippy::print_stdout, reason = "it is a command line program")]

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use policies::{Identity, PlanError, Policy, RunContext, Support};

const USAGE: &str = "\
usage: confine [OPTIONS] POLICY -- COMMAND [ARGUMENT]…

Runs COMMAND under POLICY: a file, or the name of a built-in policy. A word with a `/` or
the ending `.toml` is a file.

  --report          print the state of each layer to standard error
  --user UID[:GID]  become this user; needed for root, and possible for root alone
  --workspace DIR   the directory that the policy calls {workspace} [default: .]

The command has a home and a directory for temporary files of its own, which are removed
at its end.

Exit status: the command's, or 128 and the number of the signal that ended it; 2 for wrong
usage, 125 if the command could not be confined, 126 if it could not be executed, 127 if
it was not found.";

const USAGE_STATUS: u8 = 2;
const NOT_CONFINED: u8 = 125;
const NOT_EXECUTED: u8 = 126;
const NOT_FOUND: u8 = 127;

/// First words by which the program asks itself for a part of the work.
const PROBE: &str = "--probe-view";
const INNER: &str = "--confined";

/// Failure before the command runs.
struct Failure {
    status: u8,
    text: String,
}

impl Failure {
    fn usage(text: impl Into<String>) -> Self {
        Self { status: USAGE_STATUS, text: format!("{}\n\n{USAGE}", text.into()) }
    }

    fn confine(text: impl std::fmt::Display) -> Self {
        Self { status: NOT_CONFINED, text: format!("failed to {text}") }
    }
}

/// Arguments of the command line.
struct Arguments {
    policy: PathBuf,
    workspace: PathBuf,
    identity: Option<Identity>,
    report: bool,
    program: OsString,
    words: Vec<OsString>,
}

fn main() -> ExitCode {
    let mut words: Vec<OsString> = env::args_os().skip(1).collect();
    let done = match words.first().and_then(|word| word.to_str()) {
        Some(PROBE) => policies::probe_view().map(|()| ExitCode::SUCCESS).map_err(Failure::confine),
        Some(INNER) => Err(inner(words.split_off(1))),
        Some("-h" | "--help") => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => outer(words),
    };
    done.unwrap_or_else(|failure| {
        eprintln!("confine: {}", failure.text);
        ExitCode::from(failure.status)
    })
}

fn parse(words: Vec<OsString>) -> Result<Arguments, Failure> {
    let (mut policy, mut workspace, mut identity, mut report) = (None, PathBuf::from("."), None, false);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value =
            |what: &str| words.next().ok_or_else(|| Failure::usage(format!("{what} needs a value")));
        match word.to_str() {
            Some("--") => break,
            Some("--report") => report = true,
            Some("--user") => identity = Some(user(&value("--user")?)?),
            Some("--workspace") => workspace = value("--workspace")?.into(),
            Some(option) if option.starts_with('-') => {
                return Err(Failure::usage(format!("there is no option {option}")));
            }
            _ if policy.is_none() => policy = Some(PathBuf::from(word)),
            _ => {
                let text = format!("a command follows after `--`, and {} stands before it", word.display());
                return Err(Failure::usage(text));
            }
        }
    }
    let policy = policy.ok_or_else(|| Failure::usage("the policy is missing"))?;
    let program = words.next().ok_or_else(|| Failure::usage("the command is missing after `--`"))?;
    Ok(Arguments { policy, workspace, identity, report, program, words: words.collect() })
}

/// Parses `UID` or `UID:GID`. Without a gid, the group has the number of the user.
fn user(word: &OsStr) -> Result<Identity, Failure> {
    let text = word.to_string_lossy();
    let (uid, gid) = text.split_once(':').unwrap_or((&text, &text));
    match (uid.parse(), gid.parse()) {
        (Ok(uid), Ok(gid)) => Ok(Identity { uid, gid }),
        _ => Err(Failure::usage(format!("--user {text} is not UID or UID:GID"))),
    }
}

fn read_policy(named: &Path) -> Result<Policy, Failure> {
    let is_file = named.extension().is_some_and(|ending| ending == "toml") || named.components().count() > 1;
    if is_file {
        let text = fs::read_to_string(named)
            .map_err(|error| Failure::confine(format!("read policy {}: {error}", named.display())))?;
        return Policy::from_toml(&text, named).map_err(Failure::confine);
    }
    let name = named.to_string_lossy();
    Policy::builtin(&name).ok_or_else(|| {
        let known = Policy::builtin_names().join(", ");
        Failure::confine(format!("find the policy {name}: built-in are {known}; a file has a `/` or `.toml`"))
    })
}

/// Starts the process that becomes the command, and waits for it.
fn outer(words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let arguments = parse(words.clone())?;
    // Before any directory is made.
    read_policy(&arguments.policy)?;
    let dir = private_directories(arguments.identity)
        .map_err(|error| Failure::confine(format!("make the private directories: {error}")))?;
    let program =
        env::current_exe().map_err(|error| Failure::confine(format!("find this program: {error}")))?;
    let support = support(&program)?;
    let mut child = Command::new(program);
    child.arg(INNER).arg(std::process::id().to_string()).arg(dir.path()).arg(support).args(words);
    let status = child.status().map_err(|error| Failure::confine(format!("start a process: {error}")))?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// Makes a home and a directory for temporary files that the command's user alone can enter.
fn private_directories(identity: Option<Identity>) -> io::Result<tempfile::TempDir> {
    let dir = tempfile::Builder::new().prefix("confine-").tempdir()?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711))?;
    for name in ["home", "tmp"] {
        let path = dir.path().join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        if let Some(Identity { uid, gid }) = identity {
            chown(&path, Some(uid), Some(gid)).or_else(|error| match error.kind() {
                // Only root can give files away. The plan refuses another user with its reason.
                io::ErrorKind::PermissionDenied => Ok(()),
                _ => Err(error),
            })?;
        }
    }
    Ok(dir)
}

/// Examines the host. Only an attempt shows if a file system view can be made, and the process of the attempt must end.
fn support(program: &Path) -> Result<String, Failure> {
    let mut support = Support::detect();
    let probe = Command::new(program).arg(PROBE).output();
    let probe = probe.map_err(|error| Failure::confine(format!("probe the file system view: {error}")))?;
    if !probe.status.success() {
        support = support.without_view(String::from_utf8_lossy(&probe.stderr).trim().to_owned());
    }
    serde_json::to_string(&support).map_err(Failure::confine)
}

/// Restricts this process and executes the command. Returns only a failure.
fn inner(words: Vec<OsString>) -> Failure {
    match prepare(words) {
        Ok(mut command) => {
            let error = command.exec();
            let status = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTED };
            let program = command.get_program().display();
            Failure { status, text: format!("failed to execute {program}: {error}") }
        }
        Err(failure) => failure,
    }
}

fn prepare(words: Vec<OsString>) -> Result<Command, Failure> {
    let mut words = words.into_iter();
    let (Some(parent), Some(dir), Some(support)) = (words.next(), words.next(), words.next()) else {
        return Err(Failure::usage(format!("{INNER} is not for people")));
    };
    let parent = parent.to_string_lossy().parse().map_err(Failure::confine)?;
    let support: Support = serde_json::from_str(&support.to_string_lossy()).map_err(Failure::confine)?;
    let arguments = parse(words.collect())?;
    let policy = read_policy(&arguments.policy)?;
    let real = |path: &Path| {
        fs::canonicalize(path).map_err(|error| Failure::confine(format!("find {}: {error}", path.display())))
    };
    let dir = real(Path::new(&dir))?;
    let context = RunContext {
        identity: arguments.identity,
        toolchain_home: if arguments.identity.is_none() { env::home_dir() } else { None },
        ..RunContext::new(real(&arguments.workspace)?, dir.join("home"), dir.join("tmp"), parent)
    };
    let set = [("HOME", &context.home), ("TMPDIR", &context.tmp)];
    let set = set.map(|(name, path)| (name.to_owned(), path.display().to_string())).into();
    let env = policy.environment(|name| env::var_os(name), &context, &[], &[].into(), set);
    let plan = policy.plan(&context, &support).map_err(|error| match error {
        PlanError::Root => Failure::confine(format!("{error} (--user UID)")),
        error => Failure::confine(error),
    })?;
    let confined = plan.confine(&arguments.program, &arguments.words, env).map_err(Failure::confine)?;
    if arguments.report {
        eprintln!("policy {}, Landlock ABI {}", confined.report.policy, confined.report.landlock_abi);
        for layer in &confined.report.layers {
            let why = layer.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            eprintln!("{:<13} {}{why}", layer.layer, layer.state);
        }
    }
    Ok(confined.command)
}
