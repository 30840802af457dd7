//! `dispatch-fleet` at the command line: lists the directories with the caller's rights, and sends them to the daemon
//! in parts.

use std::path::Path;

use kernel::FLEET_BATCH;

use crate::client::Client;
use crate::output::Output;
use api::command::Command as _;
use base::failure::Failure;
use base::terminal::complain;
use verbs::{DispatchFleet, FleetDispatched};

/// Limit on the number of entries of the fleet's directory.
const ENTRIES: usize = 200_000;

pub(super) async fn run(client: &Client, mut verb: DispatchFleet, output: Output) -> Result<u8, Failure> {
    verb.localize(client.here())?;
    let FleetDirectories { names, unnamed, links } = FleetDirectories::list(&verb)?;
    let tick = verb.tick.clone().ok_or_else(|| Failure::failed("the dispatch has no tick"))?;
    let mut all = FleetDispatched::none(verb.profile.clone(), verb.root.clone(), tick, verb.dry_run);
    for name in unnamed {
        let why = Failure::usage("the directory's name is not UTF-8 text").hint("rename it");
        all.refuse(name, why);
    }
    let parts: Vec<&[String]> = names.chunks(FLEET_BATCH).collect();
    let mut sent = 0;
    for part in &parts {
        let request = DispatchFleet { directories: part.to_vec(), ..verb.clone() };
        all.extend(client.call(&request).await?);
        sent += part.len();
        if parts.len() > 1 && !output.json() {
            complain(&format!("{sent} of {} directories", names.len()));
        }
    }
    if names.is_empty() {
        let pattern =
            verb.matching.as_ref().map(|glob| format!(" that matches `{glob}`")).unwrap_or_default();
        all.warnings.push(format!("{} has no directory{pattern}: nothing was created", verb.root.display()));
    }
    if !links.is_empty() {
        all.warnings.push(format!("symbolic links are not followed: {}", links.join(", ")));
    }
    all.sort();
    output.reply::<DispatchFleet>(&all)
}

/// Entries of a fleet's directory.
#[derive(Debug, Default)]
struct FleetDirectories {
    /// Names of the directories, sorted.
    names: Vec<String>,
    /// Names of directories that are not UTF-8 text, with replacement characters.
    unnamed: Vec<String>,
    /// Names of the first matching symbolic links.
    links: Vec<String>,
}

impl FleetDirectories {
    /// Lists the matching directories, without hidden ones.
    fn list(verb: &DispatchFleet) -> Result<Self, Failure> {
        let root = &verb.root;
        let wanted = "a directory with one subdirectory for each task";
        let fail = |e: std::io::Error| Failure::named_file("list", root, &e, wanted);
        require_no_link(root)?;
        let glob: Vec<char> = verb.matching.as_deref().unwrap_or("*").chars().collect();
        let mut directories = FleetDirectories::default();
        for (seen, entry) in std::fs::read_dir(root).map_err(fail)?.enumerate() {
            if seen >= ENTRIES {
                return Err(Failure::usage(format!("{} has more than {ENTRIES} entries", root.display()))
                    .hint("split it: put the directories of the fleet under several roots"));
            }
            let entry = entry.map_err(fail)?;
            let shown = entry.file_name().to_string_lossy().into_owned();
            if shown.starts_with('.') || !matches(&glob, &shown.chars().collect::<Vec<_>>()) {
                continue;
            }
            let kind = entry.file_type().map_err(fail)?;
            match entry.file_name().into_string() {
                // A link may lead out of the root, so it is reported and not used.
                _ if kind.is_symlink() => directories.links.push(shown),
                _ if !kind.is_dir() => {}
                Ok(name) => directories.names.push(name),
                Err(_) => directories.unnamed.push(shown),
            }
        }
        let count = directories.names.len();
        if count > verb.limit as usize {
            return Err(Failure::usage(format!(
                "{} has {count} directories, and this call takes {}",
                root.display(),
                verb.limit
            ))
            .hint("choose some with --match GLOB, or raise --limit; nothing was created"));
        }
        directories.names.sort();
        directories.links.sort();
        directories.links.truncate(10);
        Ok(directories)
    }
}

/// Refuses a root that is a symbolic link, which may have another target at the next tick.
fn require_no_link(root: &Path) -> Result<(), Failure> {
    if root.is_symlink() {
        return Err(Failure::usage(format!("{} is a symbolic link", root.display()))
            .hint("name the directory that it leads to"));
    }
    Ok(())
}

/// Returns true if a name matches a pattern: `*` stands for any text, `?` for one character. The number of steps is at
/// most the product of both lengths.
fn matches(glob: &[char], name: &[char]) -> bool {
    let (mut at, mut seen, mut star) = (0, 0, None);
    while seen < name.len() {
        match glob.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(c) if *c == '?' || *c == name[seen] => (at, seen) = (at + 1, seen + 1),
            Some(_) | None => {
                // Backtracks: the last star takes one more character.
                let Some((of_star, taken)) = star else { return false };
                star = Some((of_star, taken + 1));
                (at, seen) = (of_star + 1, taken + 1);
            }
        }
    }
    glob[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_is_stars_and_question_marks() {
        let matches = |glob: &str, name: &str| {
            matches(&glob.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        };
        for (glob, name) in
            [("*", ""), ("*", "a"), ("acct-*", "acct-1"), ("a?c", "abc"), ("*-1*", "a-1-12"), ("a", "a")]
        {
            assert!(matches(glob, name), "{glob} {name}");
        }
        for (glob, name) in [("", "a"), ("acct-?", "acct-12"), ("a*b", "abc"), ("?", "")] {
            assert!(!matches(glob, name), "{glob} {name}");
        }
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49)));
    }
}
