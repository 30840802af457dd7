//! Export and import of boards: as JSON Lines, and from another program. Blocks.

pub(crate) mod attached;
mod export;
mod import;
mod peer_files;

pub(crate) use export::{Exported, to_file, to_stream};
pub(crate) use import::{Imported, Importer, Places, Source, read};
