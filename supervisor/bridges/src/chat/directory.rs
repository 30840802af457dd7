//! `/kanban here DIR`: chooses the directory for the tasks of a thread, beneath the directories that the chat's file
//! names.
//!
//! The directory is a row of the board, so it survives the daemon. The path is compared with the file of the chat at
//! each use, so a change of the file holds at once.

use std::path::{Component, Path, PathBuf};

use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verb::{ChatCommand, permit};
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use host::unlinked;
use setup::automation::chat::May;
use verbs::place_of;

/// Word that removes the directory.
const OFF: &str = "off";

/// Directory of a thread. Not a verb of the API: only chats send it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct SetDirectory {
    path: Option<String>,
}

impl Verb for SetDirectory {
    verb! { "here": Operator, Write, members => bool }

    async fn run(self, mut call: Call) -> Result<bool, Failure> {
        let Some(address) = call.chat().cloned() else {
            return Err(Failure::failed("this request comes from no chat"));
        };
        if let Some(path) = &self.path {
            let tenant = call.confined().cloned();
            place_of(&mut call, tenant.as_ref(), &format!("dir:{path}")).await?;
        }
        call.write(move |board, actor| board.place_chat(&address, self.path.as_deref(), actor)).await
    }
}

/// Handles the words after `/kanban here`.
pub(super) async fn directory_command(
    command: &ChatCommand<'_>,
    words: &[String],
) -> Result<String, Failure> {
    match words {
        [] => Ok(match directory_of_thread(command).await? {
            Some(path) => format!("The tasks of this thread work in {path}"),
            None => "The tasks of this thread work in scratch directories.".to_owned(),
        }),
        [word] if word == OFF => {
            permit(command, May::Mutate, "here")?;
            command.call(SetDirectory { path: None }).await?;
            Ok("The tasks of this thread work in scratch directories.".to_owned())
        }
        [path] => {
            permit(command, May::Mutate, "here")?;
            let path = resolve(&command.chat.directories, path)?;
            // Refuses a directory that no task could use, as the creation of a task does again. The directory must also
            // exist already.
            let (looked, found) = (path.clone(), path.display().to_string());
            let is_directory = move || {
                let kind = unlinked::status(&looked).map(|stat| FileType::from_raw_mode(stat.st_mode));
                kind.is_ok_and(|kind| kind == FileType::Directory)
            };
            if !api::blocking("the directory was not looked at", is_directory).await? {
                return Err(Failure::new(Code::NotFound, format!("{found} is not a directory")));
            }
            command.call(SetDirectory { path: Some(found.clone()) }).await?;
            Ok(format!("The tasks of this thread work in {found}"))
        }
        [..] => Err(Failure::usage("/kanban here takes one directory, or off")),
    }
}

/// Returns the directory of the thread, if the chat's file still permits it.
pub(super) async fn directory_of_thread(command: &ChatCommand<'_>) -> Result<Option<String>, Failure> {
    let address = command.address();
    let call = command.call_for::<SetDirectory>().await?;
    let place = call.read(move |view| view.chat_place(&address)).await?;
    match place {
        None => Ok(None),
        Some(path) => resolve(&command.chat.directories, &path).map(|_| Some(path)),
    }
}

/// Resolves a sender's directory: an absolute path, or one relative to the first directory of the file. The result must
/// lie beneath a directory of the file.
fn resolve(directories: &[PathBuf], requested: &str) -> Result<PathBuf, Failure> {
    let first = directories.first().ok_or_else(|| {
        Failure::new(Code::NotPermitted, "this chat has no directories")
            .hint("an operator names some in the file of the chat: directories = [\"/srv/sites\"]")
    })?;
    // `join` replaces the base if the path is absolute.
    let path: PathBuf = first.join(requested).components().collect();
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_beneath = |directory: &PathBuf| path.starts_with(directory);
    if is_plain && !requested.contains(char::is_control) && directories.iter().any(is_beneath) {
        return Ok(path);
    }
    let allowed: Vec<String> =
        directories.iter().map(|path: &PathBuf| Path::new(path).display().to_string()).collect();
    Err(Failure::new(
        Code::NotPermitted,
        format!("the tasks of this chat work beneath {}", allowed.join(", ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_beneath_one_of_the_file_however_it_is_written() {
        let directories = [PathBuf::from("/srv/sites"), PathBuf::from("/home/ann")];
        let of =
            |requested: &str| resolve(&directories, requested).ok().map(|path| path.display().to_string());
        assert_eq!(of("site").as_deref(), Some("/srv/sites/site"));
        assert_eq!(of("./site/").as_deref(), Some("/srv/sites/site"));
        assert_eq!(of("/home/ann/notes").as_deref(), Some("/home/ann/notes"));
        for outside in ["/etc", "..", "site/../..", "/srv/sites-old", "/srv/sites/../x", "a\nb"] {
            assert_eq!(of(outside), None, "{outside}");
        }
        assert!(resolve(&[], "site").is_err());
    }
}
