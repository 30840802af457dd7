//! Completions and manual pages, from the same definitions as the command line itself.

use std::path::Path;

use super::{Output, command};
use crate::failure::Failure;

/// Prints the completions for a shell.
pub(super) fn completions(shell: clap_complete::Shell, output: Output) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "supervisor", &mut text);
    output.text(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

/// Writes a manual page for the program and one for each verb.
pub(super) fn man(dir: &Path, output: Output) -> Result<u8, Failure> {
    std::fs::create_dir_all(dir).map_err(|e| Failure::file("make the directory", dir, &e))?;
    clap_mangen::generate_to(command(), dir).map_err(|e| Failure::file("write the manual to", dir, &e))?;
    output.text(&format!("Wrote the manual to {}\n", dir.display()))?;
    Ok(0)
}
