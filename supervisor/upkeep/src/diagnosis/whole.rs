//! Problems that concern the whole root and no single task: unusable configuration files, spent budgets, open breakers,
//! channels, plugins and schedules that fail, and a daemon that starts nothing.

use kernel::{
    Clock as _, Counted, Diagnostic, Hold, HoldKind, Mail, PluginCursor, Remedy, ScheduleName, ScheduleTick,
    Severity, Status, StuckSchedule, SystemClock,
};
use serde_json::json;

use super::{DiagnosedSubject, DiagnosticText, now};
use api::Call;
use base::failure::Failure;
use daemon::{Event, OwnerLink};
use service::BRIDGE;
use setup::automation::chat::ChatConnection;
use setup::config::definitions::{Defect, Effect};
use setup::roster::LooseName;

pub(super) async fn wrong(call: &Call) -> Result<Vec<DiagnosedSubject>, Failure> {
    let mut findings: Vec<DiagnosedSubject> = call.service.defects().iter().map(defective).collect();
    findings.extend(call.service.roster().loose_names(&call.service.config()).iter().map(loose));
    let now = SystemClock.now();
    let mut holds = call.read(|view| view.holds()).await?;
    holds.retain(|hold| !hold.is_over(now));
    findings.extend(holds.iter().filter(|hold| hold.kind == HoldKind::Budget).map(spent));
    findings.extend(holds.iter().filter(|hold| hold.kind == HoldKind::Breaker).map(open));
    let actor = call.actor.clone();
    let mail = call.read(move |view| view.mail(&actor)).await?;
    findings.extend(mail.iter().filter(|mail| mail.is_in_trouble(now)).map(undelivered));
    if call.service.daemon().is_some() {
        findings.extend(call.service.chats().disconnected().iter().map(|(name, line)| deaf(name, line)));
        findings.extend(call.service.bridge_trouble().map(not_offered));
    }
    let cursors = call.read(|view| view.plugin_cursors()).await?;
    findings.extend(cursors.iter().filter(|cursor| cursor.attempts > 0).map(refusing));
    let failed = call.read(|view| view.failed_schedules()).await?;
    findings.extend(failed.iter().map(|(name, tick)| untimely(name, tick)));
    let stuck = call.read(|view| view.stuck_schedules()).await?;
    findings.extend(stuck.iter().map(waits_for_person));
    if let Some(daemon) = OwnerLink::from_service(&call.service) {
        let why = daemon.ask(Event::Look).await?.paused;
        let of_whom = if call.service.config().dispatch.enabled { paused } else { disabled };
        findings.extend(why.as_deref().map(of_whom));
    }
    Ok(findings)
}

/// Reports a configuration file that cannot be used.
fn defective(defect: &Defect) -> DiagnosedSubject {
    let severity = match defect.effect {
        Effect::Disabled => Severity::Error,
        Effect::KeptLast => Severity::Warning,
    };
    let text = DiagnosticText { title: defect.consequence(), detail: format!("{defect}; {}", defect.hint()) };
    let actions = vec![Remedy::command("check the files again", "doctor").suggested()];
    let diagnostic = Diagnostic {
        first_seen_at: defect.seen_at,
        data: json!({ "path": defect.path, "line": defect.line, "key": defect.key }),
        ..now("configuration_defect", severity, text, actions)
    };
    DiagnosedSubject::of_root(defect.subject.to_string(), diagnostic)
}

/// Reports a name in the configuration that refers to nothing.
fn loose(name: &LooseName) -> DiagnosedSubject {
    let actions = vec![Remedy::command("read the configuration again", "service reload").suggested()];
    let text = DiagnosticText { title: name.text.clone(), detail: name.hint.clone() };
    DiagnosedSubject::of_root(
        "the configuration".to_owned(),
        now("unknown_name", Severity::Warning, text, actions),
    )
}

/// Reports a spent daily budget.
fn spent(hold: &Hold) -> DiagnosedSubject {
    let title = "its budget of today is spent, and its tasks wait for the next day".to_owned();
    let actions = vec![
        Remedy::command("see what was used", "stats"),
        Remedy::command("grant as much again today", format!("release {}", hold.release_arguments()))
            .suggested(),
    ];
    let diagnostic = Diagnostic {
        first_seen_at: hold.created_at,
        run_id: hold.run_id,
        data: json!({ "scope": hold.scope, "name": hold.name, "until": hold.until }),
        ..now(
            "budget_spent",
            Severity::Warning,
            DiagnosticText { title, detail: hold.reason.clone() },
            actions,
        )
    };
    DiagnosedSubject::of_root(hold.on().to_string(), diagnostic)
}

/// Reports a channel that does not accept its messages.
fn undelivered(mail: &Mail) -> DiagnosedSubject {
    let title = match mail.dead {
        0 => format!("it takes no messages; waiting: {}", mail.waiting),
        dead => format!("{} could not be delivered", Counted(u64::from(dead), "message")),
    };
    let name = &mail.channel;
    let actions = vec![
        Remedy::command("see what fails", format!("notify test {name}")).suggested(),
        Remedy::command("try the messages again", format!("notify retry --channel {name}")).suggested(),
        Remedy::command("drop those that are dead", format!("notify drop --channel {name}")),
    ];
    let text = DiagnosticText { title, detail: mail.last_error.clone().unwrap_or_default() };
    let mut diagnostic = Diagnostic {
        data: json!({ "channel": name, "waiting": mail.waiting, "dead": mail.dead }),
        ..now("messages_undelivered", Severity::Error, text, actions)
    };
    if let Some(since) = mail.failing_since {
        diagnostic.first_seen_at = since;
    }
    DiagnosedSubject::of_root(format!("channel {name}"), diagnostic)
}

/// Reports that the A2A bridge does not listen.
fn not_offered(why: String) -> DiagnosedSubject {
    let actions = vec![Remedy::command("look at the address", "doctor").suggested()];
    let text = DiagnosticText { title: "no other agent reaches it".to_owned(), detail: why };
    DiagnosedSubject::of_root(BRIDGE.to_owned(), now("a2a_not_served", Severity::Error, text, actions))
}

/// Reports a chat whose service does not respond.
fn deaf(name: &str, line: &ChatConnection) -> DiagnosedSubject {
    let actions = vec![Remedy::command("see what fails", format!("chat check {name}")).suggested()];
    let detail = line.last_error.clone().unwrap_or_default();
    let text = DiagnosticText { title: "it receives no messages".to_owned(), detail };
    let mut diagnostic = now("chat_not_connected", Severity::Error, text, actions);
    if let Some(since) = line.since {
        diagnostic.first_seen_at = since;
    }
    DiagnosedSubject::of_root(format!("chat {name}"), diagnostic)
}

/// Reports a plugin that fails to handle an event.
fn refusing(cursor: &PluginCursor) -> DiagnosedSubject {
    let tries = Counted(u64::from(cursor.attempts), "try");
    let (severity, title) = match cursor.paused_at {
        Some(_) => (Severity::Error, "it failed too often, and gets no more events".to_owned()),
        None => (Severity::Warning, format!("it does not take an event: {tries} failed")),
    };
    let name = &cursor.plugin;
    let actions = vec![
        Remedy::command("see what fails", format!("plugin check {name}")),
        Remedy::command("have it try again", format!("plugin resume {name}")).suggested(),
        Remedy::command("leave the event out", format!("plugin resume {name} --skip")),
    ];
    let text = DiagnosticText { title, detail: cursor.last_error.clone().unwrap_or_default() };
    let mut diagnostic = Diagnostic {
        data: json!({ "plugin": name, "event": cursor.event, "attempts": cursor.attempts }),
        ..now("plugin_fails", severity, text, actions)
    };
    if let Some(since) = cursor.failing_since {
        diagnostic.first_seen_at = since;
    }
    DiagnosedSubject::of_root(format!("plugin {name}"), diagnostic)
}

/// Reports a schedule whose latest tick failed.
fn untimely(name: &ScheduleName, tick: &ScheduleTick) -> DiagnosedSubject {
    let title = "its latest tick failed, and what it was to make was not made".to_owned();
    let actions = vec![
        Remedy::command("see its ticks", format!("schedules show {name}")),
        Remedy::command("make them now, once it is mended", format!("schedules run {name}")).suggested(),
        Remedy::command("let its ticks pass by", format!("schedules pause {name}")),
    ];
    let text = DiagnosticText { title, detail: tick.note.clone().unwrap_or_default() };
    let diagnostic = Diagnostic {
        first_seen_at: tick.decided_at,
        data: json!({ "schedule": name, "tick": tick.tick }),
        ..now("schedule_fails", Severity::Error, text, actions)
    };
    DiagnosedSubject::of_root(format!("schedule {name}"), diagnostic)
}

/// Reports a schedule whose ticks make nothing, because a task of an earlier tick waits for a person.
fn waits_for_person(StuckSchedule { name, tick, task, status }: &StuckSchedule) -> DiagnosedSubject {
    let title = format!("its ticks make nothing while {task} of an earlier tick waits for a person");
    let goes_on = match status {
        Status::Blocked => Some(Remedy::command("let the task go on", format!("unblock {task}"))),
        Status::Triage => Some(Remedy::command("let the task begin", format!("promote {task}"))),
        Status::Review => Some(Remedy::command("accept its work", format!("approve {task}"))),
        Status::Todo
        | Status::Scheduled
        | Status::Ready
        | Status::Running
        | Status::Done
        | Status::Archived => None,
    };
    let mut actions =
        vec![Remedy::command("see what the task waits for", format!("show {task}")).suggested()];
    actions.extend(goes_on);
    actions.push(Remedy::command("give the task up", format!("archive {task}")));
    let text = DiagnosticText { title, detail: tick.note.clone().unwrap_or_default() };
    let diagnostic = Diagnostic {
        first_seen_at: tick.decided_at,
        data: json!({ "schedule": name, "tick": tick.tick, "task": task }),
        ..now("schedule_stuck", Severity::Error, text, actions)
    };
    DiagnosedSubject::of_root(format!("schedule {name}"), diagnostic)
}

/// Reports an open breaker.
fn open(hold: &Hold) -> DiagnosedSubject {
    let title = "it failed repeatedly, and the pauses between tries are long".to_owned();
    let actions = vec![
        Remedy::command("see what is broken", "status"),
        Remedy::command("have it tried at once", format!("release {}", hold.release_arguments())).suggested(),
    ];
    let diagnostic = Diagnostic {
        first_seen_at: hold.created_at,
        data: json!({ "scope": hold.scope, "name": hold.name, "until": hold.until }),
        ..now("breaker_open", Severity::Error, DiagnosticText { title, detail: hold.reason.clone() }, actions)
    };
    DiagnosedSubject::of_root(hold.on().to_string(), diagnostic)
}

/// Reports a daemon that starts nothing, with its reason.
fn paused(why: &str) -> DiagnosedSubject {
    let text = DiagnosticText { title: "nothing is started".to_owned(), detail: why.to_owned() };
    let actions = vec![Remedy::command("check the host and the root", "doctor").suggested()];
    DiagnosedSubject::of_root(
        "the daemon".to_owned(),
        now("dispatch_paused", Severity::Critical, text, actions),
    )
}

/// Reports a daemon whose configuration disables dispatch.
fn disabled(why: &str) -> DiagnosedSubject {
    let text = DiagnosticText { title: "dispatch is disabled".to_owned(), detail: why.to_owned() };
    let actions = vec![Remedy::command("read the configuration again", "service reload").suggested()];
    DiagnosedSubject::of_root(
        "the daemon".to_owned(),
        now("dispatch_disabled", Severity::Warning, text, actions),
    )
}
