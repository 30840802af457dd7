//! State of each board: pending reads, promotions, and boards that come, go or cannot be read.

use kernel::{BoardName, Timestamp};

use super::{Action, Dispatcher};
use base::exit::Code;
use base::failure::Failure;

/// State of the read of a board's pending work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReadState {
    /// Not read yet.
    #[default]
    Due,
    /// The last read is up to date.
    Done,
    UnderWay,
    /// In progress, and the board has changed since it began.
    Overtaken,
}

#[derive(Debug)]
pub(super) struct BoardState {
    pub(super) read: ReadState,
    pub(super) waking: bool,
    pub(super) next_wake: Option<Timestamp>,
    /// Number of ready tasks that the last read left.
    pub(super) waiting: u64,
    /// True if the last read left tasks that could start without the live runs and the failures.
    pub(super) left: bool,
    /// True if the board has, or had, a tenant. None until its first read.
    pub(super) has_tenants: Option<bool>,
    /// Time up to which tasks whose assignee is no lane have been recorded.
    pub(super) noted: Timestamp,
}

impl Default for BoardState {
    fn default() -> Self {
        BoardState {
            read: ReadState::default(),
            waking: false,
            next_wake: None,
            waiting: 0,
            left: false,
            has_tenants: None,
            noted: Timestamp::from_micros(0),
        }
    }
}

impl BoardState {
    /// Lets a board promote the tasks that are due, unless it is doing so.
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
    /// Starts a read of a board. If one is in progress, another follows it.
    pub(super) fn read(&mut self, board: BoardName) -> Option<Action> {
        if self.damaged.contains(&board) {
            return None;
        }
        let state = self.boards.entry(board.clone()).or_default();
        if matches!(state.read, ReadState::UnderWay | ReadState::Overtaken) {
            state.read = ReadState::Overtaken;
            return None;
        }
        state.read = ReadState::UnderWay;
        let noted = state.noted;
        // The read itself finds the tenants of its board.
        let capacity = self.capacity_with(Some(&board));
        Some(Action::Read(board, Box::new(capacity), noted))
    }

    /// Starts a read of every board.
    pub(super) fn read_all(&mut self) -> Vec<Action> {
        let boards: Vec<BoardName> = self.boards.keys().cloned().collect();
        boards.into_iter().filter_map(|board| self.read(board)).collect()
    }

    /// Ends a read, and starts the next if the board has changed meanwhile.
    pub(super) fn board_done(&mut self, board: BoardName) -> Vec<Action> {
        let state = self.boards.entry(board.clone()).or_default();
        let before = std::mem::replace(&mut state.read, ReadState::Done);
        if before == ReadState::Overtaken { self.read(board).into_iter().collect() } else { Vec::new() }
    }

    /// Stops serving a damaged board. Its runs go on, and their ends are recorded as far as possible; no task is
    /// started.
    pub(super) fn damaged(&mut self, board: BoardName, failure: Failure) -> Action {
        self.boards.remove(&board);
        self.backoff.forget_board(&board);
        self.damaged.insert(board.clone());
        Action::Withdraw(board, failure)
    }

    /// Handles the result of a promotion.
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
        // A promotion that changed nothing commits nothing, so the read must be started here.
        self.read(board).into_iter().collect()
    }

    /// Handles a failed read of a board.
    pub(super) fn unreadable(&mut self, board: BoardName, failure: &Failure, now: Timestamp) -> Vec<Action> {
        if failure.code == Code::NotFound {
            // The board was removed; the host has no problem.
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
