//! Layouts of a repository whose `.git` is not a directory, each with the reason why no run can work in it, and with
//! the remedy.

use std::path::{Path, PathBuf};

use git2::Repository;

/// Reason why `.git` leads elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// `.git` is a symbolic link.
    Link,
    /// A submodule, whose files are in the `.git` of the repository that contains it.
    Submodule,
    /// A linked worktree of a repository with a working tree.
    Worktree {
        /// The working tree of the repository.
        main: PathBuf,
    },
    /// A linked worktree of a bare repository, or the directory around one.
    Bare { bare: PathBuf },
    /// A repository made with `--separate-git-dir`.
    Apart,
}

impl Layout {
    /// Returns the layout by the path of the repository's files, which this user may not be permitted to read.
    pub(super) fn from_path(git: &Path) -> Self {
        let is = |path: &Path, name: &str| path.file_name().is_some_and(|found| found == name);
        let common = git.parent().filter(|above| is(above, "worktrees")).and_then(Path::parent);
        match common {
            Some(common) if is(common, ".git") => {
                Self::Worktree { main: common.parent().unwrap_or(common).to_owned() }
            }
            Some(common) => Self::Bare { bare: common.to_owned() },
            None if git.ancestors().skip(1).any(|above| is(above, "modules")) => Self::Submodule,
            None if is_bare(git) => Self::Bare { bare: git.to_owned() },
            None => Self::Apart,
        }
    }

    /// Returns the reason for the refusal.
    pub(super) fn explanation(&self, path: &Path, git: &Path) -> String {
        let (path, git) = (path.display(), git.display());
        match self {
            Self::Link => format!("{path}/.git is a symbolic link to {git}, and a run's view follows none"),
            Self::Submodule => {
                format!("{path} is a submodule: its `.git` leads to {git}, where a run's commits would be")
            }
            Self::Worktree { .. } => {
                format!(
                    "{path} is a linked worktree: its `.git` leads to {git}, where a run's commits would be"
                )
            }
            Self::Bare { bare } => {
                format!("{path} belongs to the bare repository {}, and no run works in one", bare.display())
            }
            Self::Apart => {
                format!("the files of the repository {path} are in {git}, apart from its working tree")
            }
        }
    }

    /// Returns commands with which a person gets a usable repository.
    pub(super) fn hint(&self, path: &Path, git: &Path) -> String {
        // The paths are quoted because a worker can write the file `.git`, and so choose the path in it.
        let (path, git) = (quoted(path), quoted(git));
        match self {
            Self::Link | Self::Apart => format!(
                "put them in their place (rm {path}/.git && mv {git} {path}/.git), or use a clone (git clone {path} /path/of/the/clone)"
            ),
            Self::Submodule => format!(
                "name the repository itself, or use a clone (git clone {path} /path/of/the/clone) or dir:{path}"
            ),
            Self::Worktree { main } => format!(
                "name the repository itself (worktree:{}, with --branch for the branch of this worktree), or use a clone (git clone {path} /path/of/the/clone) or dir:{path}",
                quoted(main)
            ),
            Self::Bare { bare } => {
                format!("use a clone with a working tree: git clone {} /path/of/the/clone", quoted(bare))
            }
        }
    }
}

/// Returns a path as a word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-')) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn is_bare(git: &Path) -> bool {
    git.file_name().is_some_and(|name| name == ".bare")
        || Repository::open(git).is_ok_and(|git| git.is_bare())
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;
    use crate::git::GitError;
    use crate::testing::Fixture;

    /// The refusal of `path`, and what it advises.
    fn refusal(path: &Path) -> (Layout, String) {
        match super::super::usable(path).unwrap_err() {
            GitError::Elsewhere { path, git, layout } => {
                let hint = layout.hint(&path, &git);
                (layout, hint)
            }
            other => panic!("{other}"),
        }
    }

    /// Runs the command of a hint that stands in parentheses, and returns the repository as it is used then.
    fn follow(hint: &str) {
        let command = hint.split(['(', ')']).nth(1).unwrap();
        assert!(
            std::process::Command::new("sh").args(["-c", command]).status().unwrap().success(),
            "{command}"
        );
    }

    #[test]
    fn a_repository_whose_files_are_elsewhere_can_be_used_after_its_hint() {
        let fixture = Fixture::new();
        let at = |name: &str| fixture.root.join(name);
        fixture.git(&["clone", "-q", "--separate-git-dir", at("apart.git").to_str().unwrap(), ".", "apart"]);
        fixture.git(&["clone", "-q", ".", "linked"]);
        fs::rename(at("linked/.git"), at("linked.git")).unwrap();
        std::os::unix::fs::symlink("../linked.git", at("linked/.git")).unwrap();
        for (name, expected) in [("apart", Layout::Apart), ("linked", Layout::Link)] {
            let (layout, hint) = refusal(&at(name));
            assert_eq!(layout, expected);
            follow(&hint);
            crate::git::usable(&at(name)).unwrap();
            assert_eq!(fixture.git_in(&at(name), &["status", "--porcelain"]), "", "{name}");
        }
    }

    #[test]
    fn a_command_of_a_hint_has_the_paths_as_words_of_a_shell() {
        let hint = Layout::Apart.hint(Path::new("/p"), Path::new("/x; touch it's"));
        assert!(hint.contains(r"mv '/x; touch it'\''s' /p/.git"), "{hint}");
    }

    #[test]
    fn a_bare_repository_with_worktrees_beside_it_is_named_with_a_clone_of_it() {
        let fixture = Fixture::new();
        fixture.git(&["clone", "-q", "--bare", ".", "project/.bare"]);
        let project = fixture.root.join("project");
        fs::write(project.join(".git"), "gitdir: ./.bare\n").unwrap();
        let bare = project.join(".bare");
        let (layout, hint) = refusal(&project);
        assert_eq!(layout, Layout::Bare { bare: bare.clone() });
        assert!(hint.contains(&format!("git clone {} ", bare.display())), "{hint}");
        let of = |path: &str| Layout::from_path(Path::new(path));
        assert_eq!(of("/p/.bare/worktrees/feature"), Layout::Bare { bare: "/p/.bare".into() });
        assert_eq!(of("/p/.git/worktrees/feature"), Layout::Worktree { main: "/p".into() });
        assert_eq!(of("/p/.git/modules/sub"), Layout::Submodule);
    }
}
