//! Findings about a board's automation, and about open runs that do not end.

use kernel::{
    Clock as _, Counted, Finding, FindingCode, Hold, HoldKind, HoldScope, Mail, PluginCursor, Remedy,
    ScheduleName, ScheduleTick, Seen, Severity, Status, StuckSchedule, SystemClock, Tenant, View,
};
use serde_json::json;

use super::live::Phase;
use base::time::timestamp;

/// Returns the open runs that do not end, by phase.
pub fn of_runs(phases: impl Iterator<Item = Phase>) -> Vec<Finding> {
    let (mut unkillable, mut unknown, mut settling) = (0, 0, 0);
    for phase in phases {
        match phase {
            Phase::Unkillable => unkillable += 1,
            Phase::Unknown => unknown += 1,
            Phase::Settling => settling += 1,
            Phase::Starting | Phase::Running | Phase::Ending => {}
        }
    }
    let runs = |count| Counted(count, "run");
    let problems = [
        (unkillable, FindingCode::Unkillable, format!("SIGKILL does not end {}", runs(unkillable))),
        (unknown, FindingCode::SurvivorsUnknown, format!("the end of {} is unknown", runs(unknown))),
        (settling, FindingCode::RunNotEnded, format!("the end of {} is not recorded yet", runs(settling))),
    ];
    let problems = problems.into_iter().filter(|(count, ..)| *count > 0);
    problems.map(|(_, code, text)| Finding::new(code, Severity::Critical, text).about("")).collect()
}

/// Returns the problems of a board beside its tasks: spent budgets, open breakers, and failing channels, plugins and
/// schedules. A member of a tenant sees the budget and the channels of the tenant.
pub fn of_board(view: &View<'_>, member: Option<&Tenant>) -> Result<Vec<Finding>, kernel::Error> {
    let now = view.now();
    let mut holds = view.holds()?;
    holds.retain(|hold| !hold.is_over(now));
    let is_own = |hold: &&Hold| {
        member.is_none_or(|tenant| hold.scope == HoldScope::Tenant && hold.name == tenant.as_str())
    };
    let mut findings: Vec<Finding> =
        holds.iter().filter(|hold| hold.kind == HoldKind::Budget).filter(is_own).map(spent).collect();
    findings.extend(view.mail(member)?.iter().filter(|mail| mail.fails()).map(undelivered));
    if member.is_some() {
        return Ok(findings);
    }
    findings.extend(holds.iter().filter(|hold| hold.kind == HoldKind::Breaker).map(breaker));
    findings.extend(view.plugin_cursors()?.iter().filter(|cursor| cursor.attempts > 0).map(plugin));
    findings.extend(view.failed_schedules()?.iter().map(|(name, tick)| failed_schedule(name, tick)));
    findings.extend(view.stuck_schedules()?.iter().map(stuck_schedule));
    Ok(findings)
}

/// Returns the channels and plugins of a board that need an operator. Cheaper than [`of_board`].
pub(crate) fn of_deliveries(view: &View<'_>) -> Result<Vec<Finding>, kernel::Error> {
    let channels = view.troubled_channels()?.into_iter();
    let channels = channels.map(|name| not_accepting(Severity::Error, &name));
    let cursors = view.plugin_cursors()?;
    let plugins = cursors.iter().filter(|cursor| cursor.paused_at.is_some()).map(plugin);
    Ok(channels.chain(plugins).collect())
}

/// Reports a daily budget that is spent. It is no defect, and its tasks wait for the next day.
fn spent(hold: &Hold) -> Finding {
    let text = "its budget of today is spent, and its tasks wait for the next day";
    of_hold(hold, Finding::warning(FindingCode::BudgetSpent, text))
        .remedy(Remedy::command("see what was used", "stats"))
        .remedy(
            Remedy::command("grant as much again today", format!("release {}", hold.release_arguments()))
                .suggested(),
        )
}

/// Reports an open breaker that a board has stored.
fn breaker(hold: &Hold) -> Finding {
    let text = "it failed repeatedly, and the pauses between tries are long";
    of_hold(hold, Finding::error(FindingCode::BreakerOpen, text))
        .remedy(Remedy::command("see what is broken", "status"))
        .remedy(
            Remedy::command("have it tried at once", format!("release {}", hold.release_arguments()))
                .suggested(),
        )
}

/// Completes a finding about a hold.
fn of_hold(hold: &Hold, finding: Finding) -> Finding {
    let data = json!({ "scope": hold.scope, "name": hold.name, "until": hold.until });
    let until = hold.until.map(|at| format!(" (until {})", timestamp::soon(at, SystemClock.now())));
    let run_id = hold.run_id;
    finding
        .about(hold.on().to_string())
        .detail(format!("{}{}", hold.reason, until.unwrap_or_default()))
        .seen(Seen { data, run_id, ..lasting(Some(hold.created_at)) })
}

/// Reports a channel that does not accept its messages. Until it needs an operator, that is a warning.
fn undelivered(mail: &Mail) -> Finding {
    let is_error = mail.is_in_trouble(SystemClock.now());
    let finding = not_accepting(if is_error { Severity::Error } else { Severity::Warning }, &mail.channel);
    let counts = format!("{} waiting, {} dead", mail.waiting, mail.dead);
    let detail = match &mail.last_error {
        Some(error) => format!("{counts}: {error}"),
        None => counts,
    };
    let data = json!({ "channel": mail.channel, "waiting": mail.waiting, "dead": mail.dead });
    finding.detail(detail).seen(Seen { data, ..lasting(mail.failing_since) })
}

fn not_accepting(severity: Severity, name: &str) -> Finding {
    Finding::new(FindingCode::MessagesUndelivered, severity, "it does not take its messages")
        .about(format!("channel {name}"))
        .remedy(Remedy::command("see what fails", format!("notify test {name}")).suggested())
        .remedy(
            Remedy::command("try the messages again", format!("notify retry --channel {name}")).suggested(),
        )
        .remedy(Remedy::command("drop those that are dead", format!("notify drop --channel {name}")))
}

/// Reports a plugin that fails to handle an event.
fn plugin(cursor: &PluginCursor) -> Finding {
    let tries = Counted(u64::from(cursor.attempts), "try");
    let finding = match cursor.paused_at {
        Some(_) => Finding::error(
            FindingCode::PluginFails,
            "it is paused: it failed too often, and gets no more events",
        ),
        None => {
            Finding::warning(FindingCode::PluginFails, format!("it does not take an event: {tries} failed"))
        }
    };
    let name = &cursor.plugin;
    let data = json!({ "plugin": name, "event": cursor.event, "attempts": cursor.attempts });
    finding
        .about(format!("plugin {name}"))
        .detail(cursor.last_error.clone().unwrap_or_default())
        .remedy(Remedy::command("see what fails", format!("plugin check {name}")))
        .remedy(Remedy::command("have it try again", format!("plugin resume {name}")).suggested())
        .remedy(Remedy::command("leave the event out", format!("plugin resume {name} --skip")))
        .seen(Seen { data, ..lasting(cursor.failing_since) })
}

/// Reports a schedule whose latest tick failed.
fn failed_schedule(name: &ScheduleName, tick: &ScheduleTick) -> Finding {
    let text = "its latest tick failed, and what it was to make was not made";
    of_tick(name, tick, Finding::error(FindingCode::ScheduleFails, text))
        .remedy(Remedy::command("see its ticks", format!("schedules show {name}")))
        .remedy(
            Remedy::command("make them now, once it is mended", format!("schedules run {name}")).suggested(),
        )
        .remedy(Remedy::command("let its ticks pass by", format!("schedules pause {name}")))
}

/// Reports a schedule whose ticks make nothing, because a task of an earlier tick waits for a person.
fn stuck_schedule(StuckSchedule { name, tick, task, status }: &StuckSchedule) -> Finding {
    let text = format!("its ticks make nothing while {task} of an earlier tick waits for a person");
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
    let show = Remedy::command("see what the task waits for", format!("show {task}")).suggested();
    let mut finding = of_tick(name, tick, Finding::error(FindingCode::ScheduleStuck, text)).remedy(show);
    finding.remedies.extend(goes_on);
    if let Some(seen) = &mut finding.seen {
        seen.data["task"] = json!(task);
    }
    finding.remedy(Remedy::command("give the task up", format!("archive {task}")))
}

/// Completes a finding about a tick of a schedule.
fn of_tick(name: &ScheduleName, tick: &ScheduleTick, finding: Finding) -> Finding {
    let data = json!({ "schedule": name, "tick": tick.tick });
    finding
        .about(format!("schedule {name}"))
        .detail(tick.note.clone().unwrap_or_default())
        .seen(Seen { data, ..lasting(Some(tick.decided_at)) })
}

/// Returns the history of a problem that lasts since a time, or was found just now.
fn lasting(since: Option<kernel::Timestamp>) -> Seen {
    let now = SystemClock.now();
    Seen::lasting(since.unwrap_or(now), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_do_not_end_are_counted_by_what_keeps_them() {
        let phases = [Phase::Running, Phase::Unknown, Phase::Unkillable, Phase::Unknown];
        assert_eq!(
            Finding::errors_in_lines(&of_runs(phases.into_iter())),
            ["SIGKILL does not end 1 run", "the end of 2 runs is unknown"]
        );
        assert_eq!(of_runs([Phase::Starting, Phase::Ending].into_iter()), []);
    }
}
