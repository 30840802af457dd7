//! Export and import of boards: as JSON Lines, and from another program. Blocks.

pub mod attached;
mod export;
mod import;
mod peer_files;

mod spec;

pub use export::{Exported, to_file, to_stream};
pub use import::{Imported, Importer, Places, Source, read};
pub use spec::unfit_workspace;
