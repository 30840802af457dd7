//! `metrics`: returns metrics for a monitoring system in the text format of `OpenMetrics`.
//!
//! All figures are read when they are asked for: a counter of the daemon would start from zero with each daemon, and
//! each change would have to update it. The counter of events is the id of the last event.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use base::terminal::Screen;
use daemon::{Event, OwnerLink, Phase, Snapshot};
use net::telemetry::ExportCounts;
use service::{BoardHandle, Service};

/// Print metrics for a monitoring system
#[derive(Clone, Copy, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
All boards of the root are counted, and printed in the text format of OpenMetrics.
Operators get the same text from the daemon's socket: GET /api/v1/metrics. Without a
daemon supervisor_up is 0.

Examples:
  supervisor metrics
  supervisor metrics > /var/lib/node_exporter/supervisor.prom
  supervisor --system metrics | promtool check metrics")]
pub struct Metrics {}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub(crate) families: Vec<Family>,
}

/// The samples of one name.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Family {
    /// Name of the family. The samples of a counter have the suffix `_total`.
    pub name: String,
    pub kind: MetricKind,
    pub help: String,
    pub(crate) samples: Vec<Sample>,
}

/// Meaning of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MetricKind {
    /// A number that goes up and down.
    Gauge,
    /// A number that only grows while a process lives.
    Counter,
}

/// A value.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    pub value: i64,
}

impl Verb for Metrics {
    verb! { "metrics": Operator, Read, on(None) => Measured }

    async fn run(self, call: Call) -> Result<Measured, Failure> {
        let snapshot = match OwnerLink::from_service(&call.service) {
            Some(daemon) => Some(daemon.ask(Event::Look).await?),
            None => None,
        };
        let service = Arc::clone(&call.service);
        let measured = move || {
            let mut measured = measure(&service, snapshot.as_ref())?;
            if let Some(daemon) = OwnerLink::from_service(&service) {
                of_traces(&mut measured, daemon.tracer().counts());
            }
            Ok(measured)
        };
        blocking("the boards could not be counted", measured).await?
    }
}

impl Command for Metrics {
    fn show(reply: &Measured, screen: &mut Screen) {
        for line in reply.to_string().lines() {
            screen.line(line);
        }
    }
}

impl Measured {
    fn add(&mut self, kind: MetricKind, name: &str, help: &str, samples: impl IntoIterator<Item = Sample>) {
        let samples: Vec<Sample> = samples.into_iter().collect();
        self.families.push(Family {
            name: format!("supervisor_{name}"),
            kind,
            help: help.to_owned(),
            samples,
        });
    }

    fn gauge(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = Sample>) {
        self.add(MetricKind::Gauge, name, help, samples);
    }

    fn counter(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = Sample>) {
        self.add(MetricKind::Counter, name, help, samples);
    }
}

impl Sample {
    fn labelled<const N: usize>(labels: [(&str, &str); N], value: impl TryInto<i64>) -> Self {
        let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        // A value that does not fit counts as the maximum.
        Sample { labels, value: value.try_into().unwrap_or(i64::MAX) }
    }
}

/// Counts all boards of a root and adds the daemon's own values. Blocking.
fn measure(service: &Service, snapshot: Option<&Snapshot>) -> Result<Measured, Failure> {
    let mut measured = Measured::default();
    let version = env!("CARGO_PKG_VERSION");
    measured.gauge(
        "build_info",
        "The version of the program.",
        [Sample::labelled([("version", version)], 1)],
    );
    measured.gauge(
        "up",
        "1 if a daemon serves the root, else 0.",
        [Sample::labelled([], i64::from(snapshot.is_some()))],
    );
    if let Some(snapshot) = snapshot {
        of_daemon(&mut measured, service, snapshot);
    }
    let names = service.board_names()?;
    // A board that cannot be opened is counted as faulty; the others are counted anyway.
    let boards: Vec<Arc<BoardHandle>> = names.iter().filter_map(|name| service.board(name).ok()).collect();
    let (mut tasks, mut events, mut commits, mut well) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut automatic = Automatic::default();
    for board in &boards {
        let name = board.name().as_str();
        let counted =
            board.readers().with(|view| Ok((view.tasks_by_status(None, None)?, view.last_event()?)));
        let Ok((counts, last)) = counted else { continue };
        well += 1;
        tasks.extend(
            counts
                .iter()
                .map(|(status, n)| Sample::labelled([("board", name), ("status", status.as_str())], *n)),
        );
        events.push(Sample::labelled([("board", name)], last.get()));
        commits.push(Sample::labelled([("board", name)], board.commits()));
        automatic.count(name, board, last.get());
    }
    let troubled = names.len() - well;
    measured.gauge("boards", "The boards of the root.", [Sample::labelled([], names.len())]);
    measured.gauge("boards_troubled", "Boards that cannot be read.", [Sample::labelled([], troubled)]);
    measured.gauge("tasks", "Tasks by board and status.", tasks);
    measured.counter("events", "Events of a board since it was made.", events);
    if snapshot.is_some() {
        measured.counter("commits", "Commits of the daemon that changed a board.", commits);
    }
    automatic.measure(&mut measured);
    let defects = service.defects().len();
    measured.gauge(
        "configuration_defects",
        "Files of the configuration that cannot be used.",
        [Sample::labelled([], defects)],
    );
    Ok(measured)
}

/// Metrics of automatic work: plugins that get events, and notifications.
#[derive(Default)]
struct Automatic {
    behind: Vec<Sample>,
    paused: Vec<Sample>,
    waiting: Vec<Sample>,
    dead: Vec<Sample>,
}

impl Automatic {
    /// Counts the events of one board. `last` is its latest event.
    fn count(&mut self, name: &str, board: &BoardHandle, last: i64) {
        let counted = board.readers().with(|view| Ok((view.plugin_cursors()?, view.mail(None)?)));
        let Ok((cursors, mail)) = counted else { return };
        for cursor in cursors {
            let labels = [("board", name), ("plugin", cursor.plugin.as_str())];
            self.behind.push(Sample::labelled(labels, last.saturating_sub(cursor.event.get()).max(0)));
            self.paused.push(Sample::labelled(labels, i64::from(cursor.paused_at.is_some())));
        }
        for mail in mail {
            let labels = [("board", name), ("channel", mail.channel.as_str())];
            self.waiting.push(Sample::labelled(labels, mail.waiting));
            self.dead.push(Sample::labelled(labels, mail.dead));
        }
    }

    fn measure(self, measured: &mut Measured) {
        measured.gauge("plugin_events_left", "Events that a plugin has not looked at.", self.behind);
        measured.gauge(
            "plugin_paused",
            "1 if a plugin gets no events because it failed too often, else 0.",
            self.paused,
        );
        measured.gauge("messages_waiting", "Messages that a channel is to take.", self.waiting);
        measured.gauge("messages_dead", "Messages that a channel did not take in time.", self.dead);
    }
}

fn of_traces(measured: &mut Measured, counts: &ExportCounts) {
    measured.counter(
        "spans_exported",
        "Spans that the collector has taken.",
        [Sample::labelled([], counts.exported())],
    );
    measured.counter(
        "spans_dropped",
        "Spans that no collector has taken.",
        [Sample::labelled([], counts.dropped())],
    );
}

fn of_daemon(measured: &mut Measured, service: &Service, snapshot: &Snapshot) {
    let mut workers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for run in &snapshot.live {
        *workers.entry((run.board.as_str(), word(run.phase))).or_default() += 1;
    }
    let workers = workers.into_iter();
    let workers =
        workers.map(|((board, phase), n)| Sample::labelled([("board", board), ("state", phase)], n));
    measured.gauge(
        "slots",
        "Workers that may run at once.",
        [Sample::labelled([], service.config().limits.total())],
    );
    measured.gauge("workers", "Live runs by board and state.", workers);
    let pools = || {
        snapshot.pools.iter().map(|pool| (pool.name.as_str(), pool.taken, pool.places.unwrap_or_default()))
    };
    measured.gauge(
        "pool_places",
        "Places of a pool.",
        pools().map(|(pool, _, places)| Sample::labelled([("pool", pool)], places)),
    );
    measured.gauge(
        "pool_taken",
        "Places of a pool that runs have.",
        pools().map(|(pool, taken, _)| Sample::labelled([("pool", pool)], taken)),
    );
    let paused = i64::from(snapshot.paused.is_some());
    measured.gauge(
        "paused",
        "1 if nothing is started because the host lacks a resource or dispatch is disabled, else 0.",
        [Sample::labelled([], paused)],
    );
    let stopping = i64::from(snapshot.stopping.is_some());
    measured.gauge("stopping", "1 if the daemon is being stopped, else 0.", [Sample::labelled([], stopping)]);
    let broken = snapshot.broken.len();
    measured.gauge(
        "environments_broken",
        "Resources that tasks need and that do not work.",
        [Sample::labelled([], broken)],
    );
    let open = snapshot.broken.iter().filter(|broken| broken.release.is_some()).count();
    measured.gauge(
        "breakers_open",
        "Resources that tasks need and that have failed five times in a row.",
        [Sample::labelled([], open)],
    );
    measured.counter(
        "wakeups",
        "Events that the owner loop has decided.",
        [Sample::labelled([], snapshot.wakeups)],
    );
    let Ok(process) = procfs::process::Process::myself() else { return };
    if let Ok(stat) = process.stat() {
        let resident = stat.rss.saturating_mul(procfs::page_size());
        measured.gauge("resident_memory_bytes", "Memory of the daemon.", [Sample::labelled([], resident)]);
    }
    if let Ok(count) = process.fd_count() {
        measured.gauge("open_fds", "Descriptors of the daemon.", [Sample::labelled([], count)]);
    }
}

/// The name of a phase, as in `status`.
fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "starting",
        Phase::Running => "running",
        Phase::Ending => "ending",
        Phase::Settling => "settling",
        Phase::Unkillable => "unkillable",
        Phase::Unknown => "unknown",
    }
}

impl fmt::Display for Measured {
    /// The text format (`OpenMetrics` 1.0, "Text format").
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Family { name, kind, help, samples } in &self.families {
            let (word, suffix) = match kind {
                MetricKind::Gauge => ("gauge", ""),
                MetricKind::Counter => ("counter", "_total"),
            };
            writeln!(f, "# TYPE {name} {word}\n# HELP {name} {}", escaped(help))?;
            for Sample { labels, value } in samples {
                let labels: Vec<String> =
                    labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
                let labels =
                    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
                writeln!(f, "{name}{suffix}{labels} {value}")?;
            }
        }
        writeln!(f, "# EOF")
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn the_text_is_that_of_openmetrics() {
        let mut measured = Measured::default();
        measured.gauge("up", "Help with \"quotes\".", [Sample::labelled([], 1)]);
        measured.counter(
            "events",
            "Events.",
            [Sample::labelled([("board", "a\\b\n\"c\""), ("kind", "x")], 7_u64)],
        );
        measured.gauge("tasks", "None.", []);
        assert_snapshot!(measured.to_string(), @r#"
        # TYPE supervisor_up gauge
        # HELP supervisor_up Help with \"quotes\".
        supervisor_up 1
        # TYPE supervisor_events counter
        # HELP supervisor_events Events.
        supervisor_events_total{board="a\\b\n\"c\"",kind="x"} 7
        # TYPE supervisor_tasks gauge
        # HELP supervisor_tasks None.
        # EOF
        "#);
    }
}
