//! Export and import of boards: as JSON Lines, and from another program. Blocks.

pub mod attached;
mod export;
mod import;
mod peer_files;

mod spec;

pub use export::{ExportReport, to_file, to_stream};
pub use import::{AllowedDirectories, ImportReport, ImportSource, Importer, read};
pub use spec::unfit_workspace;
