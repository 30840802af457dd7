//! State of each board in the dispatcher: its reads and promotions, and the handling of boards that are removed, damaged or
//! unreadable.

use kernel::{BoardName, Timestamp};

use super::{Action, Dispatcher};
use base::exit::Code;
use base::failure::Failure;

/// State of the read of a board's startable tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReadState {
    /// The board was not read yet.
    #[default]
    Due,
    /// The last read is up to date.
    Done,
    /// A read is in progress.
    UnderWay,
    /// A read is in progress, and the board has changed since the read began.
    Overtaken,
}

#[derive(Debug)]
pub(super) struct BoardState {
    pub(super) read: ReadState,
    /// True while the board promotes the tasks that are due.
    pub(super) waking: bool,
    /// Time of the next promotion; none if no task waits for a time.
    pub(super) next_wake: Option<Timestamp>,
    /// Number of ready tasks that were not started after the last read.
    pub(super) waiting: u64,
    /// True if tasks were left after the last read that only live runs or failures keep from starting.
    pub(super) left: bool,
    /// True if the board has, or had, a tenant. None until its first read.
    pub(super) has_tenants: Option<bool>,
    /// Time up to which it has been recorded on changed tasks that no lane runs them.
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
    /// Has a board promote the tasks that are due, unless a promotion is in progress.
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
        // The tenants of this board are left out: the read itself finds them.
        let capacity = self.capacity_with(Some(&board));
        Some(Action::Read(board, Box::new(capacity), noted))
    }

    /// Starts a read of every board.
    pub(super) fn read_all(&mut self) -> Vec<Action> {
        let boards: Vec<BoardName> = self.boards.keys().cloned().collect();
        boards.into_iter().filter_map(|board| self.read(board)).collect()
    }

    /// Records the end of a read. Starts another one if the board has changed since the read began.
    pub(super) fn board_done(&mut self, board: BoardName) -> Vec<Action> {
        let state = self.boards.entry(board.clone()).or_default();
        let before = std::mem::replace(&mut state.read, ReadState::Done);
        if before == ReadState::Overtaken { self.read(board).into_iter().collect() } else { Vec::new() }
    }

    /// Stops serving a damaged board. No task of it is started. Its runs continue, and their ends are recorded as far as
    /// possible.
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
        // A promotion without a change makes no commit, which would start a read. So the read is started here.
        self.read(board).into_iter().collect()
    }

    /// Handles a failed read of a board.
    pub(super) fn unreadable(&mut self, board: BoardName, failure: &Failure, now: Timestamp) -> Vec<Action> {
        if failure.code == Code::NotFound {
            // The board was removed, which is no problem of the host, so starts are not paused.
            self.boards.remove(&board);
            return Vec::new();
        }
        self.backoff.pause(failure.to_string(), now);
        self.board_done(board)
    }

    /// Forgets a board.
    ///
    /// # Errors
    /// [`Code::Conflict`] if a run of the board is live or is being started.
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
