//! Unit of delivery over a channel: one message, or a digest of several.

use kernel::{Address, BoardId, BoardName, Letter, LetterId, NoticeKind};

/// Place where a message is read, which decides the commands that it suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadAt {
    /// No bridge reads replies there: the reader acts at a terminal.
    Elsewhere,
    /// A chat that a bridge reads.
    Chat,
}

/// Messages of one delivery.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// Id, the same for each try, so that a receiver recognises a repetition.
    pub(super) id: String,
    pub(super) board: BoardName,
    pub(super) address: Address,
    pub(super) reader: ReadAt,
    /// Messages, oldest first; empty for a test.
    pub(super) letters: Vec<Letter>,
}

impl Batch {
    pub(super) fn from_letters(
        board_id: BoardId,
        board: &BoardName,
        reader: impl Fn(&str) -> ReadAt,
        letters: Vec<Letter>,
    ) -> Option<Self> {
        let first = letters.first()?;
        let (id, address) = (message_id(board_id, first.id), first.address.clone());
        let id = if letters.len() > 1 { format!("{id}-digest") } else { id };
        let reader = reader(&address.channel);
        Some(Batch { id, board: board.clone(), address, reader, letters })
    }

    /// Makes a test of a channel.
    pub(super) fn test(board: BoardName, channel: &str) -> Self {
        let address =
            Address { channel: channel.to_owned(), chat_id: String::new(), thread_id: String::new() };
        Batch {
            id: format!("test-{}", uuid::Uuid::new_v4()),
            board,
            address,
            reader: ReadAt::Elsewhere,
            letters: Vec::new(),
        }
    }

    /// Returns the recipient: the subscription's chat, or the channel's default.
    pub(super) fn chat<'a>(&'a self, usual: Option<&'a str>) -> Option<&'a str> {
        Some(self.address.chat_id.as_str()).filter(|chat| !chat.is_empty()).or(usual)
    }

    /// Returns the thread in the chat, if any.
    pub(super) fn thread(&self) -> Option<&str> {
        Some(self.address.thread_id.as_str()).filter(|thread| !thread.is_empty())
    }
}

fn message_id(board: BoardId, letter: LetterId) -> String {
    format!("{board}-{letter}")
}

/// Returns true if a person has to act on one of the messages.
pub(super) fn is_urgent(batch: &Batch) -> bool {
    batch.letters.iter().any(|letter| letter.kind.needs_somebody() && letter.kind != NoticeKind::Test)
}
