//! Findings about a service beside its tasks: unusable configuration, unenforceable policies, chats and a bridge that
//! receive nothing, and boards that cannot be written to.

use std::sync::Arc;

use kernel::{Clock as _, Finding, FindingCode, Remedy, Seen, Severity, SystemClock};

use super::{BoardHandle, Service};
use base::findings::failed;

impl Service {
    /// Returns the problems of the configuration, of the policies on this host, and of the connections of a daemon.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.configuration_findings();
        findings.extend(self.roster().policies().unenforceable_findings());
        if self.daemon().is_some() {
            findings.extend(self.connection_findings());
        }
        findings
    }

    /// Returns the files of the configuration that cannot be used, and the names in it that refer to nothing.
    pub fn configuration_findings(&self) -> Vec<Finding> {
        let defects = self.defects().iter().map(Finding::from).collect::<Vec<_>>().into_iter();
        defects.chain(self.roster().loose_names(&self.config())).collect()
    }

    /// Returns the chats that receive nothing, and the A2A bridge if it does not listen.
    fn connection_findings(&self) -> impl Iterator<Item = Finding> {
        let now = SystemClock.now();
        let chats = self.chats().disconnected().into_iter().map(move |(name, line)| {
            let check = Remedy::command("see what fails", format!("chat check {name}")).suggested();
            Finding::error(FindingCode::ChatNotConnected, "it receives no messages")
                .about(format!("chat {name}"))
                .detail(line.last_error.unwrap_or_default())
                .remedy(check)
                .seen(Seen::lasting(line.since.unwrap_or(now), now))
        });
        let bridge = self.bridge_trouble().map(|why| {
            Finding::error(FindingCode::A2aNotServed, "no other agent reaches it")
                .about("the A2A bridge")
                .detail(why)
                .remedy(Remedy::command("look at the address", "doctor").suggested())
        });
        chats.chain(bridge)
    }

    /// Returns the boards that are not served or cannot be written to. `asked` is examined beside the open boards.
    pub fn board_findings(&self, asked: Option<&Arc<BoardHandle>>) -> Vec<Finding> {
        let code = FindingCode::BoardNotWritten;
        let refused =
            self.refusals().into_iter().map(|(name, failure)| failed(code, failure).about(subject(&name)));
        let mut open = self.served();
        if let Some(asked) = asked
            && open.iter().all(|board| board.name() != asked.name())
        {
            open.push(Arc::clone(asked));
        }
        let unwritten = open.iter().filter_map(|board| {
            let present = board.readers().require_present();
            // A process that only reads the board has no writer, and so no check of its own writes.
            let own = || board.writer().map_or(Ok(()), kernel::Writer::require_own);
            let error = present.and_then(|()| own()).err()?;
            Some(failed(code, error.into()).about(subject(board.name())))
        });
        let findings = refused.chain(unwritten);
        findings.map(|finding| Finding { severity: Severity::Critical, ..finding }).collect()
    }
}

/// Returns the subject of the findings about a board.
pub fn subject(board: &kernel::BoardName) -> String {
    format!("board {board}")
}
