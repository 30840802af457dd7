//! What is known of each board: when to look at it, boards that come and go, and that cannot be read.

use kernel::{BoardName, Timestamp};

use super::{Action, Dispatcher};
use crate::exit::Code;
use crate::failure::Failure;

/// The look at what a board has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Look {
    /// There was none yet.
    #[default]
    Due,
    /// It shows the board as it is.
    Done,
    UnderWay,
    /// It is under way, and the board has changed since.
    Overtaken,
}

#[derive(Debug)]
pub(super) struct BoardState {
    pub(super) look: Look,
    pub(super) waking: bool,
    pub(super) next_wake: Option<Timestamp>,
    /// How many ready tasks the last look left.
    pub(super) waiting: u64,
    /// Whether it left some that could start but for what runs or broke.
    pub(super) left: bool,
    /// Until when tasks whose assignee is no lane are noted.
    pub(super) noted: Timestamp,
}

impl Default for BoardState {
    fn default() -> Self {
        BoardState {
            look: Look::default(),
            waking: false,
            next_wake: None,
            waiting: 0,
            left: false,
            noted: Timestamp::from_micros(0),
        }
    }
}

impl BoardState {
    /// Lets a board promote what is due, once at a time.
    pub(super) fn wake_if_due(&mut self, board: &BoardName, now: Timestamp) -> Option<Action> {
        if self.waking || self.next_wake.is_none_or(|at| now < at) {
            return None;
        }
        self.waking = true;
        self.next_wake = None;
        Some(Action::Wake(board.clone()))
    }
}

impl Dispatcher {
    /// Has a board read, unless that is under way: then once more after that.
    pub(super) fn read(&mut self, board: BoardName) -> Option<Action> {
        if self.damaged.contains(&board) {
            return None;
        }
        let state = self.boards.entry(board.clone()).or_default();
        if matches!(state.look, Look::UnderWay | Look::Overtaken) {
            state.look = Look::Overtaken;
            return None;
        }
        state.look = Look::UnderWay;
        let noted = state.noted;
        Some(Action::Read(board, Box::new(self.room()), noted))
    }

    /// Has every board read.
    pub(super) fn read_all(&mut self) -> Vec<Action> {
        let boards: Vec<BoardName> = self.boards.keys().cloned().collect();
        boards.into_iter().filter_map(|board| self.read(board)).collect()
    }

    /// A look is over.
    pub(super) fn board_done(&mut self, board: BoardName) -> Vec<Action> {
        let state = self.boards.entry(board.clone()).or_default();
        let before = std::mem::replace(&mut state.look, Look::Done);
        if before == Look::Overtaken { self.read(board).into_iter().collect() } else { Vec::new() }
    }

    /// A board was found to be damaged. Runs on it go on, and their ends are recorded as far as that works; nothing new
    /// is started.
    pub(super) fn damaged(&mut self, board: BoardName, failure: Failure) -> Action {
        self.boards.remove(&board);
        self.backoff.forget_board(&board);
        self.damaged.insert(board.clone());
        Action::Withdraw(board, failure)
    }

    /// A board has promoted what was due, or could not.
    pub(super) fn woken(
        &mut self,
        board: BoardName,
        outcome: Result<(), Failure>,
        now: Timestamp,
    ) -> Vec<Action> {
        if let Err(failure) = outcome {
            if failure.code == Code::NotFound {
                return self.unreadable(board, &failure, now);
            }
            self.backoff.pause(failure.to_string(), now);
        }
        self.boards.entry(board.clone()).or_default().waking = false;
        // A wake-up that changed nothing commits nothing, and the next moment must be asked for all the same.
        self.read(board).into_iter().collect()
    }

    /// A board cannot be read.
    pub(super) fn unreadable(&mut self, board: BoardName, failure: &Failure, now: Timestamp) -> Vec<Action> {
        if failure.code == Code::NotFound {
            // It was taken away, and is no trouble of the host's.
            self.boards.remove(&board);
            return Vec::new();
        }
        self.backoff.pause(failure.to_string(), now);
        self.board_done(board)
    }

    /// Forgets a board, unless a run of it is live or being started.
    pub(super) fn forget(&mut self, board: &BoardName) -> Result<(), Failure> {
        if let Some(key) = self.slots.keys().find(|key| key.board == *board) {
            return Err(Failure::new(
                Code::Conflict,
                format!("{} of board `{board}` has a worker", key.task),
            )
            .hint(format!(
                "wait until it ends, or take it back: supervisor --board {board} reclaim {}",
                key.task
            )));
        }
        self.boards.remove(board);
        self.backoff.forget_board(board);
        Ok(())
    }
}
