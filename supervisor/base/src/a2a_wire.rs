//! Constants and task states of the A2A protocol 1.0, shared by the A2A service of this root and by the lane for
//! remote A2A agents.

pub const VERSION: &str = "1.0";

/// Task states of A2A 1.0, section 4.1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
}

impl State {
    const ALL: [State; 8] = [
        State::Submitted,
        State::Working,
        State::InputRequired,
        State::AuthRequired,
        State::Completed,
        State::Failed,
        State::Canceled,
        State::Rejected,
    ];

    /// Returns the state for a word of the protocol; none for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            State::Submitted => "TASK_STATE_SUBMITTED",
            State::Working => "TASK_STATE_WORKING",
            State::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            State::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
            State::Completed => "TASK_STATE_COMPLETED",
            State::Failed => "TASK_STATE_FAILED",
            State::Canceled => "TASK_STATE_CANCELED",
            State::Rejected => "TASK_STATE_REJECTED",
        }
    }

    /// Returns true if the state is final.
    pub fn is_over(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Canceled | State::Rejected)
    }

    /// Returns true if a stream of the task ends at this state, because the state is final or the task waits for a
    /// person.
    pub fn rests(self) -> bool {
        self.is_over() || matches!(self, State::InputRequired | State::AuthRequired)
    }
}
