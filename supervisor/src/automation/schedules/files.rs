//! The files of `schedules.d/`: read, written and removed as a whole.

use std::io::ErrorKind;
use std::path::PathBuf;

use kernel::ScheduleName;

use super::crontab::{ENDINGS, installed};
use super::text::Planned;
use crate::config::settings;
use crate::exit::Code;
use crate::failure::Failure;
use crate::paths::{Root, definition_file};

/// The file of a schedule.
pub(crate) fn path_of(root: &Root, name: &ScheduleName) -> PathBuf {
    root.schedules_dir().join(format!("{name}.toml"))
}

/// The file that a schedule has: its own form, or that of the established program; none where there is none.
pub(crate) fn file_of(root: &Root, name: &ScheduleName) -> Option<PathBuf> {
    let toml = path_of(root, name);
    let found = |path: &PathBuf| path.symlink_metadata().is_ok();
    Some(toml).filter(found).or_else(|| foreign(root, name).find(found))
}

/// Where the files of a schedule in the form of the established program are.
fn foreign(root: &Root, name: &ScheduleName) -> impl Iterator<Item = PathBuf> {
    let dir = root.schedules_dir();
    ENDINGS.into_iter().map(move |ending| dir.join(format!("{name}.{ending}")))
}

/// The text of the file of a schedule; none where there is no file. One of the established program is read as what it means here.
pub(crate) fn text_of(root: &Root, name: &ScheduleName) -> Result<Option<String>, Failure> {
    let path = path_of(root, name);
    let read = |path: &PathBuf| settings::read_if_any(path).map_err(|e| Failure::file("read", path, &e));
    if let Some(text) = read(&path)? {
        return Ok(Some(text));
    }
    let Some(path) = file_of(root, name) else { return Ok(None) };
    let Some(text) = read(&path)? else { return Ok(None) };
    let said = installed(name, &path, &text).map_err(|why| Failure::new(Code::Conflict, why))?;
    said.to_toml().map(Some)
}

/// Writes the file of a schedule, unless its text cannot be used. Whatever reads it meanwhile has the old text or the new one.
pub(crate) fn write(root: &Root, name: &ScheduleName, text: &str) -> Result<Planned, Failure> {
    let path = path_of(root, name);
    let planned = Planned::parse(name, text, &path).map_err(|defect| {
        Failure::usage(defect.to_string())
            .hint("`supervisor help docs/schedules.md` describes the file; nothing was written")
    })?;
    definition_file::write(&path, text)?;
    // Otherwise there were two of its name.
    remove_each(foreign(root, name))?;
    Ok(planned)
}

/// Removes the file of a schedule, and returns which it was.
pub(crate) fn remove(root: &Root, name: &ScheduleName) -> Result<PathBuf, Failure> {
    let path = path_of(root, name);
    let found = file_of(root, name).ok_or_else(|| {
        Failure::new(Code::NotFound, format!("there is no file {}", path.display()))
            .hint("`supervisor schedules list` shows the schedules")
    })?;
    remove_each(std::iter::once(path).chain(foreign(root, name)))?;
    Ok(found)
}

fn remove_each(paths: impl Iterator<Item = PathBuf>) -> Result<(), Failure> {
    for path in paths {
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(Failure::file("remove", &path, &e)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// The text of a schedule that is paused, or goes on; all else of it stays, comments included.
pub(crate) fn with_pause(text: &str, paused: bool) -> String {
    let mut in_table = false;
    let kept: String = text
        .split_inclusive('\n')
        .filter(|line| {
            in_table |= line.trim_start().starts_with('[');
            let key = line.split('=').next().unwrap_or_default().trim();
            in_table || key != "paused" || !line.contains('=')
        })
        .collect();
    if paused { format!("paused = true\n{kept}") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_a_line_of_the_file_and_leaves_all_else() {
        let text = "# mine\nevery = \"1h\"\n[task]\ntitle = \"x\"\nbody = '''\npaused = true\n'''\n";
        let paused = with_pause(text, true);
        assert_eq!(paused, format!("paused = true\n{text}"));
        assert_eq!(with_pause(&paused, true), paused);
        assert_eq!(with_pause(&paused, false), text);
    }
}
