//! Schedules as the files of `schedules.d/` define them, one file a schedule: `*.toml`, or `*.yaml` in the format of
//! Hermes Kanban. The board decides about ticks (`kernel/src/board/schedules.rs`), and gets each definition whenever
//! the files are read.

mod crontab;
mod files;
mod registry;
mod span;
mod task_text;
mod text;
mod times_text;

pub use self::crontab::{ENDINGS, imported, installed};
pub use self::files::{
    PlannedText, authored_of, file_of, path_of, remove, saved_text, text_of, to_save, with_pause, write,
};
pub use self::registry::{OfBoard, Schedules};
pub use self::task_text::TaskText;
pub use self::text::{Planned, ScheduleText, require_command};
pub use self::times_text::TimesText;
