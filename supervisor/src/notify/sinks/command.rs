//! A program of the operator's: the message as JSON on its standard input, confined by a policy, for a time, with little of its output kept.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kernel::BoardId;
use policies::{Arrangement, BoardAccess, Closed, Identity, Policy, Surroundings};
use shim::rundir::{RunDir, RunSpec, Stdin, VERSION};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::Sending;
use crate::config::notify::program;
use crate::failure::{Failure, with_causes};
use crate::host::examine::{detect_pid_namespace, detect_support};
use crate::host::home::toolchain_home;
use crate::host::neighbours;
use crate::host::remove::remove_forgotten;
use crate::notify::form;
use crate::notify::trail::{Trail, Undelivered};
use crate::paths::make_dir;

/// How much of its output is read.
const OUTPUT: u64 = 4096;
/// Whose users the programs of channels have: a number that no board has.
const CHANNELS: u128 = 1;

/// The places of one delivery.
struct Places {
    dir: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
    run: PathBuf,
}

pub(super) async fn send(sending: &Sending<'_>, trail: &mut Trail) -> Result<(), Undelivered> {
    let policy = policy(sending);
    let policy = trail.note("policy", policy, sending.wire.channel.policy.clone().unwrap_or_default())?;
    let prepared = prepare(sending, &policy).await.map_err(|failure| Undelivered::later(failure.message));
    let places = trail.note("prepare", prepared, "a directory of its own")?;
    let outcome = execute(sending, &places).await;
    let removed = remove_forgotten(&places.dir);
    let shown = outcome.clone().unwrap_or_default();
    trail.note("run", outcome, shown)?;
    if let Err(stays) = removed {
        tracing::warn!(dir = %places.dir.display(), %stays, "channel_home_not_removed");
    }
    Ok(())
}

fn policy(sending: &Sending<'_>) -> Result<Policy, Undelivered> {
    let roster = sending.wire.service.roster();
    let name = sending.wire.channel.policy.as_deref().unwrap_or_default();
    let policy = roster.policies().find(name).map_err(|why| Undelivered::later(why.to_string()))?.clone();
    if policy.has_proxy() {
        return Err(Undelivered::later(format!(
            "the policy {name} lets a run out through a proxy, which the program of a channel has not; name a policy with mode \"none\" or \"host\""
        )));
    }
    Ok(policy)
}

async fn prepare(sending: &Sending<'_>, policy: &Policy) -> Result<Places, Failure> {
    let (service, config) = (sending.wire.service, sending.wire.service.config());
    let root = service.root();
    let dir = root.channel_home(sending.wire.name);
    let gone = |stays: &dyn std::fmt::Display| {
        Failure::failed(format!("failed to remove {}: {stays}", dir.display()))
    };
    remove_forgotten(&dir).map_err(|stays| gone(&stays))?;
    let identity = if nix::unistd::geteuid().is_root() {
        let range = service.worker_uids().range(BoardId(uuid::Uuid::from_u128(CHANNELS)), &config.worker)?;
        Some(Identity { uid: range.first, gid: range.first })
    } else {
        None
    };
    let places = Places { home: dir.join("home"), tmp: dir.join("tmp"), run: dir.join("run"), dir };
    std::fs::create_dir_all(&places.dir).map_err(|e| Failure::file("make", &places.dir, &e))?;
    for parent in [places.dir.parent(), Some(places.dir.as_path())].into_iter().flatten() {
        make_dir(parent, 0o711)?;
    }
    for path in [&places.home, &places.tmp] {
        make_dir(path, 0o700)?;
        if let Some(identity) = identity {
            std::os::unix::fs::lchown(path, Some(identity.uid), Some(identity.gid))
                .map_err(|e| Failure::file("give away", path, &e))?;
        }
    }
    let support = detect_support().await?;
    let namespace = detect_pid_namespace(&support).await.ok();
    let namespace = namespace
        .filter(|namespace| *namespace == policies::PidNamespace::Privileged || policy.has_view(&support));
    let surroundings = Surroundings {
        workspace: places.home.clone(),
        home: places.home.clone(),
        tmp: places.tmp.clone(),
        read: Vec::new(),
        execute: program(sending.wire.channel).into_iter().collect(),
        write: Vec::new(),
        arrangement: Arrangement::default(),
        identity,
        work_cgroup: None,
        pid_namespace: namespace,
        board: BoardAccess::None,
        closed: Closed {
            places: neighbours::closed(root, &config.worker)?,
            own: vec![places.dir.clone()],
            tasks: Vec::new(),
        },
        toolchain_home: toolchain_home(policy, identity),
        proxy: None,
        credentials: root.secret_stores().credentials,
        secrets: root.secret_stores().directory,
        // Known to the process that attends the command alone, which fills it in.
        parent: 0,
    };
    let spec = spec(sending, policy, surroundings, support);
    RunDir::create(&places.run, &spec)
        .map_err(|e| Failure::failed(format!("failed to {}", with_causes(&e))))?;
    Ok(places)
}

fn spec(
    sending: &Sending<'_>,
    policy: &Policy,
    surroundings: Surroundings,
    support: policies::Support,
) -> RunSpec {
    let mut set = BTreeMap::new();
    set.insert("HOME".to_owned(), surroundings.home.display().to_string());
    set.insert("TMPDIR".to_owned(), surroundings.tmp.display().to_string());
    let programs: Vec<PathBuf> = program(sending.wire.channel).into_iter().collect();
    let env =
        policy.environment(|name| std::env::var_os(name), &surroundings, &programs, &BTreeMap::new(), set);
    let env = env.into_iter().filter_map(|(name, value)| Some((name, value.into_string().ok()?))).collect();
    RunSpec {
        version: VERSION,
        board: String::new(),
        board_name: String::new(),
        task: String::new(),
        run: 0,
        nonce: String::new(),
        argv: sending.wire.channel.run.clone().unwrap_or_default(),
        env,
        cwd: surroundings.home.clone(),
        stdin: Stdin::Null,
        log: PathBuf::new(),
        log_cap: 0,
        stdout_cap: 0,
        deadline_us: None,
        grace_ms: 0,
        idle_ms: None,
        conversation: None,
        policy: policy.clone(),
        surroundings,
        cgroup: None,
        poke: PathBuf::new(),
        host: Some(support),
        lease: None,
    }
}

/// Runs it. Its exit code 0 says that it has taken the message.
async fn execute(sending: &Sending<'_>, places: &Places) -> Result<String, Undelivered> {
    let failed =
        |step: &str, e: std::io::Error| Undelivered::later(format!("failed to {step} the program: {e}"));
    let output = places.dir.join("output");
    let sink = File::create(&output).map_err(|e| failed("keep the output of", e))?;
    let error = sink.try_clone().map_err(|e| failed("keep the output of", e))?;
    let mut child = Command::new("/proc/self/exe")
        .arg0("supervisor-attend")
        .arg("__attend")
        .arg(&places.run)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(sink)
        .stderr(error)
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| failed("start", e))?;
    let body = form::of(sending.parcel).to_string();
    let limit = sending.wire.channel.timeout.duration();
    let ended = tokio::time::timeout(limit, async {
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read its input may have taken the message all the same: its exit code says it.
            stdin.write_all(body.as_bytes()).await.ok();
            stdin.shutdown().await.ok();
        }
        child.wait().await
    })
    .await;
    let Ok(ended) = ended else {
        end(&mut child).await;
        return Err(Undelivered::later(format!(
            "the program was not done after {} s and was ended",
            limit.as_secs()
        )));
    };
    let status = ended.map_err(|e| failed("wait for", e))?;
    let said = beginning(&output).await;
    match status.code() {
        Some(0) => Ok("exit code 0".to_owned()),
        code => {
            let how = code.map_or("was ended".to_owned(), |code| format!("ended with code {code}"));
            Err(Undelivered::later(format!("the program {how}{said}")))
        }
    }
}

/// Ends the program with all that it has started: who attends it does that when it is asked to end.
async fn end(child: &mut Child) {
    let asked = child.id().and_then(|pid| i32::try_from(pid).ok()).map(|pid| {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM)
    });
    if matches!(asked, Some(Ok(()))) {
        drop(tokio::time::timeout(std::time::Duration::from_secs(10), child.wait()).await);
    }
    child.kill().await.ok();
}

/// The last line of the beginning of what it wrote, for an error.
async fn beginning(output: &Path) -> String {
    let mut text = Vec::new();
    if let Ok(file) = tokio::fs::File::open(output).await {
        file.take(OUTPUT).read_to_end(&mut text).await.ok();
    }
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map(|line| format!(": {}", line.chars().filter(|c| !c.is_control()).take(200).collect::<String>()))
        .unwrap_or_default()
}
