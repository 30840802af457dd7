//! Parsers of texts that people give to verbs, shared by the verbs: files, words, paths with `~`, ids of tasks.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, TypedValueParser};
use kernel::{Profile, Status, TaskId};

use base::environment::with_home;
use base::failure::Failure;
use base::invocation::Invocation;

/// Limit on the size of a read text, in bytes. It exceeds the limit of every field, so that the kernel refuses a text
/// that is too long for its field and names the field.
const READ_LIMIT: u64 = 3 << 20;

/// Returns a parser of a flag with a fixed set of words, which help and completions list.
pub(crate) fn word<
    T: std::str::FromStr<Err: std::error::Error + Send + Sync> + Clone + Send + Sync + 'static,
>(
    words: impl IntoIterator<Item = &'static str>,
) -> impl TypedValueParser<Value = T> {
    clap::builder::PossibleValuesParser::new(words).try_map(|word| word.parse::<T>())
}

/// Parser of a flag for a status. Accepts capital letters and blanks around the word.
#[derive(Clone, Copy)]
pub(crate) struct TypedStatus;

impl TypedValueParser for TypedStatus {
    type Value = Status;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Status, clap::Error> {
        let typed = value.to_string_lossy().trim().to_lowercase();
        statuses().parse_ref(command, argument, OsStr::new(&typed))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Status::ALL.iter().map(|status| PossibleValue::new(status.as_str()))))
    }
}

fn statuses() -> impl TypedValueParser<Value = Status> {
    word(Status::ALL.iter().map(|status| status.as_str()))
}

/// Reads a text of a task from a file, or from standard input for `-`.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    read_text_of(path, "a task", "put the text into a file in the workspace and name that file in the body")
}

/// Reads the text of a profile from a file, or from standard input for `-`.
pub fn read_profile(path: &Path) -> Result<String, Failure> {
    read_text_of(path, "a profile", "name a Markdown file with front matter and a prompt of up to 48 KiB")
}

/// Reads a text file, or standard input for `-`, without its byte order mark. If the text exceeds [`READ_LIMIT`], the
/// error names `what` it is too large for, and has the hint `put_right`.
fn read_text_of(path: &Path, what: &str, put_right: &str) -> Result<String, Failure> {
    let fail = |e: std::io::Error| Failure::named_file("read", path, &e, "a file, or `-` for standard input");
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(READ_LIMIT + 1).read_to_end(&mut bytes).map_err(fail)?;
    } else {
        std::fs::File::open(path)
            .and_then(|file| file.take(READ_LIMIT + 1).read_to_end(&mut bytes))
            .map_err(fail)?;
    }
    if bytes.len() as u64 > READ_LIMIT {
        return Err(Failure::usage(format!(
            "{} is too large for {what}: it has more than 3 MiB",
            path.display()
        ))
        .hint(put_right));
    }
    // The text may become a script, in which a shell would read a byte order mark as a part of the first command.
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(.."\u{feff}".len());
    }
    String::from_utf8(bytes).map_err(|e| {
        Failure::usage(format!(
            "{} is not UTF-8 text: byte {} is invalid",
            path.display(),
            e.utf8_error().valid_up_to()
        ))
        .hint("convert it first, as with: iconv -t UTF-8")
    })
}

/// Makes a workspace independent of the caller: expands `~`, and adds the repository to `worktree`.
///
/// The daemon does not know the caller's current directory, so the request names the repository. In a linked worktree,
/// this is the main repository, because a worktree inside of another worktree would be removed with it.
pub fn local_workspace(workspace: &str) -> Result<String, Failure> {
    if workspace != "worktree" {
        return Ok(with_home(workspace));
    }
    let here = std::env::current_dir()
        .map_err(|e| Failure::failed(format!("failed to find the current directory: {e}")))?;
    let job = workspace::Job::Discover { path: here.clone() };
    match host::job::work(None, Vec::new(), Vec::new(), job)? {
        workspace::Outcome::Discovered(Some(repository)) => Ok(format!("worktree:{}", repository.display())),
        _ => Err(Failure::usage(format!("{} is not in a git repository", here.display()))
            .hint("change to one, or name it: --workspace worktree:/path/to/repository")),
    }
}

/// Expands a leading `~` of a path to the caller's home, as a shell does. `~user` stays as it is.
pub(crate) fn expanded(path: &Path) -> PathBuf {
    let home = || base::environment::text("HOME").map(PathBuf::from);
    path.strip_prefix("~").ok().and_then(|rest| Some(home()?.join(rest))).unwrap_or_else(|| path.to_owned())
}

/// Parses a priority: any whole number of 64 bits with a sign.
pub(crate) fn priority(text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|_| "it is not a whole number: write one such as 10 or -5; greater goes first".to_owned())
}

/// Parses a JSON object, as for `--metadata`.
pub(crate) fn json_object(text: &str) -> Result<serde_json::Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ serde_json::Value::Object(_)) => Ok(value),
        Ok(_) => Err("it is JSON, but not an object: write {\"key\": …}".to_owned()),
        Err(e) => Err(format!("it is not JSON: {e}")),
    }
}

/// Returns true if the word stands for no assignee.
pub fn is_nobody(word: &str) -> bool {
    matches!(word, "none" | "-" | "null")
}

/// Parses a profile's name, or one of the words for no assignee.
pub(crate) fn profile_or_nobody(text: &str) -> Result<Option<Profile>, Failure> {
    match text {
        word if is_nobody(word) => Ok(None),
        name => name.parse().map(Some).map_err(|e: kernel::ParseError| Failure::usage(e.to_string())),
    }
}

/// Refuses paths in place of names of skills. The existence of a skill is checked later, when a run gets the skill.
pub(crate) fn require_skill_names(names: &[String]) -> Result<(), Failure> {
    match names.iter().find(|name| name.is_empty() || name.starts_with('.') || name.contains('/')) {
        None => Ok(()),
        Some(name) => Err(Failure::usage(format!("`{name}` is a path, and not the name of a skill"))
            .hint("name a skill that is shipped, or a directory of skills.d")),
    }
}

/// Joins the words of a reason; none if there are none.
pub(crate) fn sentence(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(" "))
}

/// Parses the id of a task from a word that may also be the first word of a text. Outside of a run, the word must be an
/// id, so it may lack its `t_`. Inside of a run, the id may be left out, so a word such as `deadbeef` belongs to the
/// text.
pub(crate) fn task_or_text(word: &str, here: &Invocation) -> Result<TaskId, kernel::ParseError> {
    if here.worker().is_some() { TaskId::in_full(word) } else { word.parse() }
}

/// Splits the words of a request into a task and a text. Inside a run, the task may be left out. `others` is true if
/// the request names tasks elsewhere, so that it needs no words.
pub(crate) fn task_and_text(
    mut words: Vec<String>,
    others: bool,
    here: &Invocation,
) -> Result<(Option<TaskId>, Option<String>), Failure> {
    let run_task = here.worker().map(|worker| worker.task.clone());
    let task = match words.first().map(|first| task_or_text(first, here)) {
        Some(Ok(id)) => {
            words.remove(0);
            Some(id)
        }
        Some(Err(e)) => Some(run_task.ok_or_else(|| Failure::usage(e.to_string()))?),
        None if others => None,
        None => Some(own_task(None, here)?),
    };
    Ok((task, sentence(&words)))
}

/// Adds the run's own task to an empty list.
pub fn own_task_if_none(ids: &mut Vec<TaskId>, here: &Invocation) -> Result<(), Failure> {
    if ids.is_empty() {
        ids.push(own_task(None, here)?);
    }
    Ok(())
}

/// Makes relative paths of artifacts relative to the workspace. Inside a run, the caller gives them relative to the
/// current directory. Outside of a run, does nothing.
pub(crate) fn from_the_workspace(artifacts: &mut [String], here: &Invocation) {
    let Some(workspace) = here.worker().and_then(|_| base::environment::variable("SUPERVISOR_WORKSPACE"))
    else {
        return;
    };
    // Without a current directory, the paths stay as they are.
    let Ok(here) = std::env::current_dir() else { return };
    // In a directory outside of the workspace, the paths become absolute. The kernel refuses those outside of it.
    let inside = here.strip_prefix(&workspace).unwrap_or(&here);
    for path in artifacts.iter_mut().filter(|path| Path::new(path.as_str()).is_relative()) {
        if let Some(whole) = inside.join(&path).to_str() {
            whole.clone_into(path);
        }
    }
}

/// Returns the task of a request. Fails if the request names none.
pub(crate) fn named(task: Option<TaskId>) -> Result<TaskId, Failure> {
    task.ok_or_else(|| Failure::usage("no task is named").hint("name a task, such as t_0123abcd"))
}

/// Fills in the run's own task if a request names none.
pub(crate) fn default_to_own_task(task: &mut Option<TaskId>, here: &Invocation) -> Result<(), Failure> {
    *task = Some(own_task(task.take(), here)?);
    Ok(())
}

/// Returns the named task, or the run's own task if none is named. Fails outside of a run if none is named.
pub(crate) fn own_task(named: Option<TaskId>, here: &Invocation) -> Result<TaskId, Failure> {
    named.or_else(|| here.worker().map(|worker| worker.task.clone())).ok_or_else(|| {
        Failure::usage("no task is named")
            .hint("name one, such as t_0123abcd; it may be left out only inside a run")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        for (bytes, text) in [("\u{feff}echo\n", "echo\n"), ("echo \u{feff}\n", "echo \u{feff}\n"), ("", "")]
        {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read_text(&path).unwrap(), text);
        }
    }
}
