//! Boards that come and go, and that cannot be read.

use kernel::{BoardName, Timestamp};

use super::{Action, Dispatcher};
use crate::exit::Code;
use crate::failure::Failure;

impl Dispatcher {
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
