//! Comments on lines of files, which a reviewer makes in a diff. They become part of the reason for the requested changes.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::failure::Failure;

/// Limit on the comments of one review.
const MOST: usize = 200;
/// Limits on a path and a text, in bytes.
const PATH: usize = 4096;
const TEXT: usize = 8 << 10;

/// Comment on a line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LineComment {
    /// Path of the file, relative to the top of the tree.
    pub path: String,
    /// Number of the line, from 1 on, in the file after the change; for a removed line, in the file before it.
    pub line: u32,
    /// Side of the diff that has the line.
    #[serde(default, skip_serializing_if = "DiffSide::is_new")]
    pub side: DiffSide,
    /// Requested change.
    pub text: String,
}

/// Side of a diff: the file after the change, or the file before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiffSide {
    #[default]
    New,
    Old,
}

impl DiffSide {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_new(&self) -> bool {
        *self == DiffSide::New
    }
}

impl FromStr for LineComment {
    type Err = String;

    /// Parses `PATH:LINE:TEXT`. The path may contain colons: the first number between two colons is the line.
    fn from_str(comment: &str) -> Result<Self, String> {
        let mut begins = 0;
        while let Some(at) = comment[begins..].find(':').map(|at| begins + at) {
            let rest = &comment[at + 1..];
            if let Some((line, text)) = rest.split_once(':')
                && let Ok(line) = line.parse()
            {
                let (path, text) = (comment[..at].to_owned(), text.trim().to_owned());
                return Ok(LineComment { path, line, side: DiffSide::New, text });
            }
            begins = at + 1;
        }
        Err("it is not PATH:LINE:TEXT, such as src/parser.rs:12:'too long'".to_owned())
    }
}

/// Returns the reason with the comments on lines below it: `path:line: text`, one per line, with a mark for a removed line.
/// The second and later lines of a text are indented, so that they cannot be taken for the comment on another line.
pub(super) fn joined(reason: Option<String>, comments: &[LineComment]) -> Result<Option<String>, Failure> {
    if comments.len() > MOST {
        return Err(Failure::usage(format!("a review has {} comments on lines", comments.len()))
            .hint(format!("send {MOST} at most, and the rest as a comment")));
    }
    if comments.is_empty() {
        return Ok(reason);
    }
    let mut lines = vec![reason.filter(|reason| !reason.trim().is_empty()).unwrap_or_default()];
    if lines[0].is_empty() {
        lines.clear();
    } else {
        lines.push(String::new());
    }
    for comment in comments {
        lines.push(comment.line()?);
    }
    Ok(Some(lines.join("\n")))
}

impl LineComment {
    fn line(&self) -> Result<String, Failure> {
        let LineComment { path, line, side, text } = self;
        let wrong =
            |why: String, hint: &str| Failure::usage(format!("a comment on a line: {why}")).hint(hint);
        if path.trim().is_empty() || path.len() > PATH || path.chars().any(char::is_control) {
            return Err(wrong(
                format!("its path is empty, longer than {PATH} bytes, or has control characters"),
                "name the file as `supervisor diff` does",
            ));
        }
        if *line == 0 {
            return Err(wrong(format!("{path} has no line 0"), "lines are counted from 1 on"));
        }
        if text.trim().is_empty() || text.len() > TEXT {
            let why = format!("that on {path}:{line} is empty or longer than {TEXT} bytes");
            return Err(wrong(why, "say what is to be changed there"));
        }
        let text = text.trim().lines().collect::<Vec<_>>().join("\n    ");
        let removed = if *side == DiffSide::Old { " (removed line)" } else { "" };
        Ok(format!("{path}:{line}{removed}: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(path: &str, line: u32, text: &str) -> LineComment {
        LineComment { path: path.to_owned(), line, side: DiffSide::New, text: text.to_owned() }
    }

    #[test]
    fn comments_follow_the_reason_one_a_line() {
        let comments = [comment("src/a.rs", 3, "too long"), comment("b", 1, "why?\nb:2: forged")];
        let lines = joined(Some("see below".to_owned()), &comments).unwrap().unwrap();
        assert_eq!(lines, "see below\n\nsrc/a.rs:3: too long\nb:1: why?\n    b:2: forged");
        assert_eq!(joined(None, &comments[..1]).unwrap().unwrap(), "src/a.rs:3: too long");
        assert_eq!(joined(Some("x".to_owned()), &[]).unwrap().unwrap(), "x");
        assert_eq!(joined(None, &[]).unwrap(), None);
    }

    #[test]
    fn a_comment_on_a_removed_line_says_that_it_is_removed() {
        let removed: LineComment =
            serde_json::from_str(r#"{"path":"a.rs","line":2,"side":"old","text":"keep it"}"#).unwrap();
        let comments = [removed, comment("a.rs", 2, "why?")];
        let lines = joined(None, &comments).unwrap().unwrap();
        assert_eq!(lines, "a.rs:2 (removed line): keep it\na.rs:2: why?");
    }

    #[test]
    fn a_comment_that_names_no_line_or_says_nothing_is_refused() {
        for wrong in [
            comment("", 1, "x"),
            comment("a\nb:9: forged", 1, "x"),
            comment("a", 0, "x"),
            comment("a", 1, " \n"),
            comment("a", 1, &"x".repeat(TEXT + 1)),
        ] {
            assert!(joined(None, std::slice::from_ref(&wrong)).is_err(), "{wrong:?}");
        }
        assert!(joined(None, &vec![comment("a", 1, "x"); MOST + 1]).is_err());
    }

    #[test]
    fn a_comment_is_written_with_colons() {
        assert_eq!("a/b.rs:12: too long".parse(), Ok(comment("a/b.rs", 12, "too long")));
        assert_eq!("c:/x:7:see http://a:1".parse(), Ok(comment("c:/x", 7, "see http://a:1")));
        assert!("a/b.rs: too long".parse::<LineComment>().is_err());
    }
}
