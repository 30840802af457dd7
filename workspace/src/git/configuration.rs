//! Finds the git configuration files of this process's user, for the policy of a git that is confined to a repository
//! and still has to read them.

use std::path::{Path, PathBuf};

use git2::Config;

/// Keys of the configuration whose values are paths of files that git reads.
const FILES: [&str; 3] = ["core.excludesfile", "core.attributesfile", "include.path"];

/// Returns the existing configuration files of the user, and the existing files that these name, sorted. The files are
/// opened as git opens them, which may block, as at a FIFO. So the caller must be a process that is not confined yet,
/// and that may be ended at any time.
pub fn own_configuration() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for file in [Config::find_global(), Config::find_xdg()].into_iter().flatten() {
        paths.extend(named_by(&file));
        paths.push(file);
    }
    // Paths that git reads by default (git-config(1), gitignore(5), gitattributes(5)).
    if let Some(xdg) =
        std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".config")))
    {
        // The directory itself is not returned, because it may hold passwords (git-credential-store(1)).
        paths.extend(["config", "ignore", "attributes"].map(|name| xdg.join("git").join(name)));
    }
    paths.retain(|path| path.exists());
    paths.sort();
    paths.dedup();
    paths
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

/// Returns the files that a configuration file and its includes name. Relative paths count from the directory of
/// `file`.
fn named_by(file: &Path) -> Vec<PathBuf> {
    let mut named = Vec::new();
    let Ok(config) = Config::open(file) else { return named };
    let Ok(entries) = config.entries(None) else { return named };
    let read = entries.for_each(|entry| {
        let (Ok(name), Ok(value)) = (entry.name(), entry.value()) else { return };
        let key = name.rsplit_once('.').map_or("", |(_, key)| key);
        let conditional = name.starts_with("includeif.") && key == "path";
        if !conditional && !FILES.contains(&name) {
            return;
        }
        let value = Path::new(value);
        named.extend(match (value.strip_prefix("~"), file.parent()) {
            (Ok(rest), _) => home().map(|home| home.join(rest)),
            (Err(_), Some(directory)) => Some(directory.join(value)),
            (Err(_), None) => None,
        });
    });
    // An incomplete list is better than none: git reports a file that it cannot read.
    drop(read);
    named
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_file_of_the_configuration_names_what_it_includes_and_what_that_includes() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::write(dir.join("a"), "[include]\n\tpath = b\n[core]\n\texcludesFile = /x/ignored\n")
            .unwrap();
        std::fs::write(dir.join("b"), format!("[include]\n\tpath = {}/c\n", dir.display())).unwrap();
        std::fs::write(dir.join("c"), "[user]\n\tname = a\n").unwrap();
        let named: BTreeSet<PathBuf> = named_by(&dir.join("a")).into_iter().collect();
        assert_eq!(named, BTreeSet::from([PathBuf::from("/x/ignored"), dir.join("b"), dir.join("c")]));
    }
}
