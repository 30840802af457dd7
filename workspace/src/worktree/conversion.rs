//! The conversion of files at a checkout: line ends, and the name of the blob in a file (gitattributes(5)).
//!
//! libgit2 looks for the attributes of each file in every directory above it: 27 system calls for each file at a
//! checkout, and 58 for each comparison. So a checkout uses no filters if no attribute or setting names a conversion. A
//! comparison reads each file once: a file with the bytes of its blob is unchanged under every attribute.

use std::path::PathBuf;

use git2::{Config, Repository, TreeWalkMode, TreeWalkResult};

use crate::links;

/// File with attributes of the files beside and beneath it.
const ATTRIBUTES: &[u8] = b".gitattributes";
/// File with the attributes of all repositories of the host.
const OF_HOST: &str = "/etc/gitattributes";

/// Returns true if a checkout of HEAD may write a file with other bytes than its blob has. External filters such as
/// git-lfs's do not count, because libgit2 runs no program.
pub(super) fn is_possible(git: &Repository) -> Result<bool, git2::Error> {
    let config = git.config()?;
    if is_converting_by_itself(&config) {
        return Ok(true);
    }
    let mut files = vec![PathBuf::from(OF_HOST), git.commondir().join("info/attributes")];
    match config.get_path("core.attributesFile") {
        Ok(path) => files.push(path),
        Err(_) => files.extend(Config::find_xdg().ok().map(|path| path.with_file_name("attributes"))),
    }
    if files.iter().filter_map(|path| links::read_bytes(path)).any(|text| names_conversion(&text)) {
        return Ok(true);
    }
    let tree = git.head()?.peel_to_tree()?;
    let mut is_named = false;
    let walked = tree.walk(TreeWalkMode::PreOrder, |_, entry| {
        if entry.name_bytes() == ATTRIBUTES {
            // An entry that is no readable blob counts as a conversion, so that git decides.
            is_named |= git.find_blob(entry.id()).map_or(true, |blob| names_conversion(blob.content()));
        }
        if is_named { TreeWalkResult::Abort } else { TreeWalkResult::Ok }
    });
    Ok(is_named || walked.is_err())
}

/// Returns true if the settings alone convert the ends of lines.
fn is_converting_by_itself(config: &Config) -> bool {
    // `input` converts only committed files.
    config.get_bool("core.autocrlf").unwrap_or(false)
        || config.get_string("core.eol").is_ok_and(|eol| !eol.eq_ignore_ascii_case("lf"))
}

/// Returns true if a line gives an attribute by which a checkout changes files, or if the line is hard to parse.
fn names_conversion(text: &[u8]) -> bool {
    let is_converting = |word: &[u8]| {
        let word = word.trim_ascii();
        (word.starts_with(b"eol") && word != b"eol=lf")
            || word.starts_with(b"ident")
            || word.starts_with(b"crlf")
    };
    text.split(|byte| matches!(byte, b'\n' | b' ' | b'\t' | b'\r')).any(is_converting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    #[test]
    fn attributes_that_change_no_byte_at_a_checkout_cost_no_look_at_each_file() {
        for (text, converts) in [
            ("* text=auto\n*.png binary\n*.sh text eol=lf\n*.bin filter=lfs diff=lfs -text\n", false),
            ("*.rs linguist-generated\n", false),
            ("*.bat text eol=crlf\n", true),
            ("[attr]windows text eol=crlf\n*.bat windows\n", true),
            ("*.c ident\n", true),
            ("*.txt crlf", true),
        ] {
            let fixture = Fixture::new();
            fs_err::create_dir(fixture.root.join("deep")).unwrap();
            fs_err::write(fixture.root.join("deep/.gitattributes"), text).unwrap();
            fixture.commit(&fixture.root, "attributes");
            let git = Repository::open(&fixture.root).unwrap();
            assert_eq!(is_possible(&git).unwrap(), converts, "{text}");
        }
        for (setting, value, converts) in
            [("core.autocrlf", "true", true), ("core.autocrlf", "input", false), ("core.eol", "crlf", true)]
        {
            let fixture = Fixture::new();
            fixture.git(&["config", setting, value]);
            let git = Repository::open(&fixture.root).unwrap();
            assert_eq!(is_possible(&git).unwrap(), converts, "{setting} {value}");
        }
    }

    #[test]
    fn line_ends_are_converted_as_the_attributes_of_the_repository_say() {
        let fixture = Fixture::new();
        fs_err::write(fixture.root.join(".gitattributes"), "*.bat eol=crlf\n").unwrap();
        fs_err::write(fixture.root.join("run.bat"), "echo\n").unwrap();
        fixture.commit(&fixture.root, "line ends");
        let tree = fixture.worktree("t_1").prepare(&crate::Base::Head, None).unwrap().path;
        assert_eq!(fs_err::read_to_string(tree.join("run.bat")).unwrap(), "echo\r\n");
        assert_eq!(fixture.git_in(&tree, &["status", "--porcelain"]), "");
    }
}
