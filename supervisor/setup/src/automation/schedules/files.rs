//! Reads, writes and removes the files of `schedules.d/`.
//!
//! See decision 0268.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kernel::ScheduleName;

use super::crontab::{ENDINGS, installed};
use super::text::{Planned, SavedBy};
use crate::config::settings::{self, Authored};
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use base::paths::definition_file::{self, TextForm};

/// Returns the path of a schedule's file in the own format.
pub fn path_of(root: &Root, name: &ScheduleName) -> PathBuf {
    root.schedules_dir().join(format!("{name}.toml"))
}

/// Returns the existing file of a schedule, in the own format or in the format of Hermes Kanban; none if there is
/// none.
pub fn file_of(root: &Root, name: &ScheduleName) -> Option<PathBuf> {
    let toml = path_of(root, name);
    let exists = |path: &PathBuf| path.symlink_metadata().is_ok();
    Some(toml).filter(exists).or_else(|| foreign(root, name).find(exists))
}

/// Returns the possible files of a schedule in the format of Hermes Kanban.
fn foreign(root: &Root, name: &ScheduleName) -> impl Iterator<Item = PathBuf> {
    let dir = root.schedules_dir();
    ENDINGS.into_iter().map(move |ending| dir.join(format!("{name}.{ending}")))
}

/// Returns the text of a schedule's file with its author; none if there is no file. A file in the format of Hermes Kanban
/// is converted.
pub fn authored_of(root: &Root, name: &ScheduleName) -> Result<Option<Authored>, Failure> {
    let path = path_of(root, name);
    let read = |path: &PathBuf| match settings::read_authored(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|e| Failure::file("read", path, &e)),
    };
    if let Some(file) = read(&path)? {
        return Ok(Some(file));
    }
    let Some(path) = file_of(root, name) else { return Ok(None) };
    let Some(file) = read(&path)? else { return Ok(None) };
    let schedule = installed(name, &path, &file.text).map_err(|why| Failure::new(Code::Conflict, why))?;
    Ok(Some(Authored { text: schedule.to_toml()?, ..file }))
}

/// Returns the text of a schedule's file; none if there is no file.
pub fn text_of(root: &Root, name: &ScheduleName) -> Result<Option<String>, Failure> {
    Ok(authored_of(root, name)?.map(|file| file.text))
}

/// Text of a schedule's file, and its content.
#[derive(Debug)]
pub struct PlannedText {
    pub text: String,
    pub planned: Planned,
}

/// Parses the text of a schedule that is to be saved.
pub fn to_save(name: &ScheduleName, text: String, path: &Path) -> Result<PlannedText, Failure> {
    let planned = Planned::parse(name, &text, path).map_err(|defect| {
        Failure::usage(defect.to_string())
            .hint("`supervisor help docs/schedules.md` describes the file; nothing was written")
    })?;
    Ok(PlannedText { text, planned })
}

/// Returns the text of a schedule as its file has it once a user has saved it; none stands for a caller without a known
/// user. All other lines stay, comments included.
pub fn saved_text(
    name: &ScheduleName,
    file: PlannedText,
    path: &Path,
    saver: Option<u32>,
) -> Result<PlannedText, Failure> {
    let saved_by = SavedBy::for_saver(saver);
    let PlannedText { text, planned: mut wanted } = file;
    if wanted.text.saved_by == saved_by {
        return Ok(PlannedText { text, planned: wanted });
    }
    wanted.text.saved_by = saved_by;
    let (form, text) = TextForm::split(&text);
    let (remaining, end) = (without_key(text, "saved_by"), form.line_end());
    let text = form.marked(&match saved_by {
        None => remaining,
        Some(SavedBy::Uid(uid)) => format!("saved_by = {uid}{end}{remaining}"),
        Some(SavedBy::Word(_)) => format!("saved_by = \"unknown\"{end}{remaining}"),
    });
    // The lines were changed without regard to the syntax around them.
    match to_save(name, text, path) {
        Ok(file) if file.planned == wanted => Ok(file),
        Ok(_) | Err(_) => {
            Err(Failure::usage(format!("the entry `saved_by` of {} cannot be replaced", path.display()))
                .hint("leave it out; the supervisor sets it"))
        }
    }
}

/// Replaces the file of a schedule atomically. A concurrent reader sees the old text or the new.
pub fn write(root: &Root, name: &ScheduleName, file: &PlannedText) -> Result<(), Failure> {
    definition_file::write(&path_of(root, name), &file.text)?;
    // Otherwise two files would define the name.
    remove_each(foreign(root, name))
}

/// Removes the file of a schedule. Returns its path.
pub fn remove(root: &Root, name: &ScheduleName) -> Result<PathBuf, Failure> {
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

/// Returns the text with the schedule paused or resumed; all other lines stay, comments included, and so do the byte
/// order mark and the line ends.
pub fn with_pause(text: &str, paused: bool) -> String {
    let (form, text) = TextForm::split(text);
    let remaining = without_key(text, "paused");
    form.marked(&if paused { format!("paused = true{}{remaining}", form.line_end()) } else { remaining })
}

/// Returns the text without the lines that set a key of the file's top level.
fn without_key(text: &str, left_out: &str) -> String {
    let mut in_table = false;
    text.split_inclusive('\n')
        .filter(|line| {
            in_table |= line.trim_start().starts_with('[');
            let key = line.split('=').next().unwrap_or_default().trim();
            in_table || key != left_out || !line.contains('=')
        })
        .collect()
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
        let marked = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let paused = with_pause(&marked, true);
        assert_eq!(paused, format!("\u{feff}paused = true\r\n{}", marked.trim_start_matches('\u{feff}')));
        assert_eq!(with_pause(&paused, false), marked);
    }
}
