//! Writes the example plugin of `plugin create`, which works and includes a test.

use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use kernel::PluginName;

use super::names::is_ours;
use base::exit::Code;
use base::failure::Failure;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// A shell script.
    #[default]
    Sh,
    /// A Python 3 script.
    Python,
}

const MANIFEST: &str = include_str!("template/plugin.toml");
const SH: &str = include_str!("template/plugin.sh");
const PYTHON: &str = include_str!("template/plugin.py");
const TEST: &str = include_str!("template/test.sh");

/// Writes the example as a new directory of `parent`, and returns the directory. Refuses names of the program's own
/// commands, and an existing directory.
pub fn create(parent: &Path, name: &PluginName, language: Language) -> Result<PathBuf, Failure> {
    if is_ours(name.as_str()) {
        return Err(Failure::usage(format!("`{name}` is a command of this program"))
            .hint("give the plugin another name"));
    }
    let dir = parent.join(name.as_str());
    let fail = |e: io::Error| Failure::file("write the plugin to", &dir, &e);
    match std::fs::create_dir(&dir) {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            return Err(Failure::new(Code::Conflict, format!("{} exists already", dir.display()))
                .hint("choose another name, or another directory with --directory"));
        }
        Err(e) => return Err(fail(e)),
    }
    let (program, script) = match language {
        Language::Sh => ("plugin.sh", SH),
        Language::Python => ("plugin.py", PYTHON),
    };
    let filled = |text: &str| text.replace("@NAME@", name.as_str()).replace("@PROGRAM@", program);
    for (file, text, mode) in
        [("plugin.toml", MANIFEST, 0o644), (program, script, 0o755), ("test.sh", TEST, 0o755)]
    {
        let mut made = std::fs::OpenOptions::new();
        let mut made = made.write(true).create_new(true).mode(mode).open(dir.join(file)).map_err(fail)?;
        made.write_all(filled(text).as_bytes()).map_err(fail)?;
    }
    Ok(dir)
}
