//! `lane test`: runs a small task with the real program of a lane, in a temporary root.
//!
//! The temporary root has the lanes and policies of the configuration, and the same range of users. The commands on it are
//! executed by this same program, so a trial meets the problems that a daemon would meet.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use kernel::{Finding, FindingCode, Outcome, Profile, Run, Severity};
use serde::Deserialize;
use tokio::process::Command;

use crate::client::Client;
use crate::demo::DemoDirectory;
use base::failure::Failure;
use base::findings::failed;
use base::paths::Root;
use setup::config::Config;
use upkeep::doctor::DoctorReport;
use verbs::{CheckLane, amounts};

/// Task for the lane's worker.
const TITLE: &str = "Report that you are there";
const BODY: &str =
    "Run `supervisor complete --summary 'the lane works'` in a shell, and stop. Do nothing else.";

/// Time limit of a command, in addition to the time of the run.
const AROUND: Duration = Duration::from_mins(1);

/// Limit on the log lines in a report.
const LOG_LINES: usize = 8;

/// Limit on a copied file, in bytes. A larger file is neither a lane nor a policy.
const FILE_BYTES: u64 = 1024 * 1024;

#[derive(Deserialize)]
struct CreatedTask {
    id: String,
}

#[derive(Deserialize)]
struct TrialTask {
    runs: Vec<Run>,
    why: Option<kernel::Waiting>,
}

/// Checks the requirements of a lane, and runs a small task in it.
pub(crate) async fn of_lane(
    client: &Client,
    lane: &Profile,
    timeout: Duration,
) -> Result<DoctorReport, Failure> {
    let path = base::environment::text("PATH");
    let DoctorReport { ok, mut checks } = client.call(&CheckLane { name: lane.clone(), path }).await?;
    if !ok {
        let check = Finding::error(FindingCode::Run, "not tried: something that it needs is missing");
        checks.push(check);
        return Ok(DoctorReport::new(checks));
    }
    if checks.iter().any(|check| check.code == FindingCode::Claims) {
        let check = Finding::ok(FindingCode::Run, "not tried: nothing here starts its workers");
        checks.push(check);
        return Ok(DoctorReport::new(checks));
    }
    let place = DemoDirectory::make("supervisor-lane-")?;
    let tried = try_lane(client.root(), &place, lane, timeout).await;
    place.remove()?;
    checks.extend(tried?);
    Ok(DoctorReport::new(checks))
}

async fn try_lane(
    from: &Root,
    place: &DemoDirectory,
    lane: &Profile,
    timeout: Duration,
) -> Result<Vec<Finding>, Failure> {
    let root = place.dir().join("r");
    configure(from, &root)?;
    let seconds = timeout.as_secs().max(1).to_string();
    let create = [
        "create",
        TITLE,
        "--assignee",
        lane.as_str(),
        "--body",
        BODY,
        "--max-retries",
        "1",
        "--max-runtime",
        &seconds,
        "--json",
    ];
    let created: CreatedTask = json(&root, &create, AROUND).await?;
    let dispatched = supervisor(&root, &["dispatch"], timeout + AROUND).await;
    let shown: TrialTask = json(&root, &["show", &created.id, "--json"], AROUND).await?;
    let log = supervisor(&root, &["log", &created.id], AROUND).await;
    let log = log.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    // A run records its own timeout, so the failure of the command matters only without a run.
    if let (Err(failure), true) = (dispatched, shown.runs.is_empty()) {
        return Ok(vec![failed(FindingCode::Run, failure)]);
    }
    Ok(read(&shown, &log))
}

/// Returns the results of a trial, one per step.
fn read(shown: &TrialTask, log: &str) -> Vec<Finding> {
    let Some(run) = shown.runs.last() else {
        let why = shown.why.as_ref().map_or("nothing says why", |why| why.text.as_str());
        return vec![Finding::error(FindingCode::Start, format!("it was not started: {why}"))];
    };
    let mut checks = Vec::new();
    checks.push(match run.spawned_at {
        Some(_) => Finding::ok(FindingCode::Start, "its program was executed under its policy"),
        None => Finding::error(FindingCode::Start, run.error.clone().unwrap_or_default()),
    });
    let outcome = run.outcome.map_or("it has not ended", Outcome::as_str);
    let text = match &run.error {
        Some(error) => format!("{outcome}: {error}"),
        None => outcome.to_owned(),
    };
    let is_well = matches!(run.outcome, Some(Outcome::Completed | Outcome::ReviewRequested));
    let severity = if is_well { Severity::Ok } else { Severity::Error };
    let ending = Finding::new(FindingCode::Ending, severity, text);
    let in_lane = match run.outcome {
        Some(Outcome::Unreported) => {
            "for a program that does not report: on_clean_exit = \"complete\" in its lane\n"
        }
        Some(_) | None => "",
    };
    checks.push(if is_well { ending } else { ending.advice(format!("{in_lane}{}", tail(log))) });
    if is_well {
        checks.push(match &run.verdict {
            Some(verdict) => Finding::ok(FindingCode::Report, format!("by `{}`", verdict.kind())),
            None => Finding::ok(FindingCode::Report, "by its exit, as `on_clean_exit` says"),
        });
    }
    checks.push(match &run.spent {
        Some(spent) => Finding::ok(FindingCode::Usage, amounts(spent)),
        None => Finding::warning(FindingCode::Usage, "its output says nothing of what it has used"),
    });
    checks
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return "it wrote nothing".to_owned();
    }
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    let short: Vec<String> = last.iter().map(|line| line.chars().take(300).collect()).collect();
    format!("the end of what it wrote:\n{}", short.join("\n"))
}

/// Makes the configuration of the trial's root: the lanes and policies of `from`, and its range of users.
fn configure(from: &Root, to: &Path) -> Result<(), Failure> {
    let Config { worker, proxy, .. } = Config::load(from)?;
    let mut worker_config = toml::Table::new();
    worker_config.insert("first_uid".to_owned(), i64::from(worker.first_uid).into());
    worker_config.insert("uid_count".to_owned(), i64::from(worker.uid_count).into());
    worker_config.insert("uid_ledger".to_owned(), worker.uid_ledger.display().to_string().into());
    worker_config.insert("policy".to_owned(), worker.policy.into());
    let mut config = toml::Table::from_iter([("worker".to_owned(), toml::Value::Table(worker_config))]);
    if let Some(ca) = proxy.ca {
        let ca = toml::Table::from_iter([("ca".to_owned(), ca.display().to_string().into())]);
        config.insert("proxy".to_owned(), ca.into());
    }
    for (source, name) in [(from.lanes_dir(), "lanes.d"), (from.policies_dir(), "policies.d")] {
        let dir = to.join(name);
        std::fs::create_dir_all(&dir).map_err(|e| Failure::file("make", &dir, &e))?;
        let Ok(files) = std::fs::read_dir(&source) else { continue };
        for file in files.filter_map(Result::ok) {
            let is_file = file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES);
            if is_file {
                let copy = dir.join(file.file_name());
                std::fs::copy(file.path(), &copy).map_err(|e| Failure::file("copy", &file.path(), &e))?;
            }
        }
    }
    // The directories are linked and not copied, so that no second copy of a secret or login exists.
    let secrets = from.secret_stores().directory.map(|dir| (dir, "secrets"));
    for (source, name) in
        secrets.into_iter().chain([(from.retained_homes(), "kept")]).filter(|(dir, _)| dir.is_dir())
    {
        let link = to.join(name);
        std::os::unix::fs::symlink(&source, &link).map_err(|e| Failure::file("make", &link, &e))?;
    }
    let file = to.join("supervisor.toml");
    std::fs::write(&file, config.to_string()).map_err(|e| Failure::file("write", &file, &e))
}

/// Runs this program on the trial's root, and parses its JSON output.
async fn json<T: for<'de> Deserialize<'de>>(
    root: &Path,
    words: &[&str],
    limit: Duration,
) -> Result<T, Failure> {
    let output = supervisor(root, words, limit).await?;
    serde_json::from_slice(&output.stdout).map_err(|e| {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Failure::failed(format!("`supervisor {}` in the trial's root failed: {e}: {message}", words[0]))
    })
}

/// Runs this program on the trial's root, without variables of a surrounding service or run.
async fn supervisor(root: &Path, words: &[&str], limit: Duration) -> Result<Output, Failure> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("supervisor").arg("--root").arg(root).args(words).env("NO_COLOR", "1").kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["SUPERVISOR_", "HERMES_", "WATCHDOG_", "NOTIFY_"].iter().any(|own| name.starts_with(own)) {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |e: std::io::Error| Failure::failed(format!("failed to run `supervisor {}`: {e}", words[0]));
    match tokio::time::timeout(limit, command.output()).await {
        Ok(output) => output.map_err(failed),
        Err(_) => Err(Failure::failed(format!(
            "`supervisor {}` has not ended in {}",
            words[0],
            kernel::brief(limit)
        ))),
    }
}
