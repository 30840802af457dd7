//! What goes over a channel at once: one message, or a digest of several.

use kernel::{Address, BoardId, BoardName, Letter, LetterId, NoticeKind};

/// Where a message is read, and so what can be written there to act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// Somewhere without a bridge back: a terminal is where somebody acts.
    Elsewhere,
    /// In a chat that a bridge listens to.
    Chat,
}

/// One delivery.
#[derive(Clone, Debug)]
pub(super) struct Parcel {
    /// The same for each try, so that a receiver knows a message that comes twice.
    pub(super) id: String,
    pub(super) board: BoardName,
    pub(super) address: Address,
    pub(super) reader: Reader,
    /// The oldest first; none where a channel is tested.
    pub(super) letters: Vec<Letter>,
}

impl Parcel {
    pub(super) fn of(
        board: (BoardId, &BoardName),
        reader: impl Fn(&str) -> Reader,
        letters: Vec<Letter>,
    ) -> Option<Self> {
        let first = letters.first()?;
        let (id, address) = (message_id(board.0, first.id), first.address.clone());
        let id = if letters.len() > 1 { format!("{id}-digest") } else { id };
        let reader = reader(&address.channel);
        Some(Parcel { id, board: board.1.clone(), address, reader, letters })
    }

    /// A message that tests a channel.
    pub(super) fn test(board: BoardName, channel: &str) -> Self {
        let address =
            Address { channel: channel.to_owned(), chat_id: String::new(), thread_id: String::new() };
        Parcel {
            id: format!("test-{}", uuid::Uuid::new_v4()),
            board,
            address,
            reader: Reader::Elsewhere,
            letters: Vec::new(),
        }
    }

    /// Where it goes: the chat that a subscription names, or the usual one of the channel.
    pub(super) fn chat<'a>(&'a self, usual: Option<&'a str>) -> Option<&'a str> {
        Some(self.address.chat_id.as_str()).filter(|chat| !chat.is_empty()).or(usual)
    }

    /// The thread in the chat, where there is one.
    pub(super) fn thread(&self) -> Option<&str> {
        Some(self.address.thread_id.as_str()).filter(|thread| !thread.is_empty())
    }
}

fn message_id(board: BoardId, letter: LetterId) -> String {
    format!("{board}-{letter}")
}

/// Whether a person has to act on any of it.
pub(super) fn is_urgent(parcel: &Parcel) -> bool {
    parcel.letters.iter().any(|letter| letter.kind.needs_somebody() && letter.kind != NoticeKind::Test)
}
