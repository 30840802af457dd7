//! Problems beside the board, each as a short text, shown by `status` and the line for the service manager.

use kernel::{Actor, Counted, Mail, PluginCursor, View};

use super::live::Phase;

/// Describes the problems of open runs, by phase.
pub fn of_runs(phases: impl Iterator<Item = Phase>) -> Vec<String> {
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
    let troubles = [
        (unkillable, format!("SIGKILL does not end {}", runs(unkillable))),
        (unknown, format!("the end of {} is unknown", runs(unknown))),
        (settling, format!("the end of {} is not recorded yet", runs(settling))),
    ];
    troubles.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect()
}

/// Describes the policies that the host cannot enforce, and the configured parts that receive nothing.
pub fn of_host<'a>(
    unheld_policies: impl Iterator<Item = &'a String>,
    unreachable: impl Iterator<Item = &'a String>,
) -> Vec<String> {
    let unheld = unheld_policies.map(|policy| format!("this host cannot enforce the policy {policy}"));
    unheld.chain(unreachable.map(|name| format!("{name} hears nothing"))).collect()
}

/// Describes the channels that have not accepted messages for long, and the paused plugins.
pub fn of_messages<'a>(
    channels: impl Iterator<Item = &'a String>,
    paused: impl Iterator<Item = &'a PluginCursor>,
) -> Vec<String> {
    let channels = channels.map(|channel| format!("the channel {channel} does not take its messages"));
    channels.chain(paused.map(|cursor| format!("the plugin {} is paused", cursor.plugin))).collect()
}

/// Returns the failing channels of a board that a caller may see.
pub fn failing(view: &View<'_>, actor: &Actor) -> Result<Vec<Mail>, kernel::Error> {
    let mut mail = view.mail(actor)?;
    mail.retain(Mail::fails);
    Ok(mail)
}

/// Returns the plugins that get no more events of a board.
pub fn paused(view: &View<'_>) -> Result<Vec<PluginCursor>, kernel::Error> {
    let mut cursors = view.plugin_cursors()?;
    cursors.retain(|cursor| cursor.paused_at.is_some());
    Ok(cursors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_do_not_end_are_counted_by_what_keeps_them() {
        let phases = [Phase::Running, Phase::Unknown, Phase::Unkillable, Phase::Unknown];
        assert_eq!(
            of_runs(phases.into_iter()),
            ["SIGKILL does not end 1 run", "the end of 2 runs is unknown"]
        );
        assert_eq!(of_runs([Phase::Starting, Phase::Ending].into_iter()), Vec::<String>::new());
    }

    #[test]
    fn policies_and_chats_are_named() {
        let (policy, chat) = ("strict".to_owned(), "telegram".to_owned());
        assert_eq!(
            of_host([&policy].into_iter(), [&chat].into_iter()),
            ["this host cannot enforce the policy strict", "telegram hears nothing"]
        );
    }
}
