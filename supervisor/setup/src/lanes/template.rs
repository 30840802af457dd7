//! Texts of a lane's file with placeholders that are filled in for each run: `{workspace}`, `{task}` and others.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

/// Text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

/// Part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(Placeholder),
}

/// Variable of a lane's command that the start of a run replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    PromptFile,
    PromptText,
    Workspace,
    Task,
    Home,
    Tmp,
    /// Model of the lane; a group of words with it is omitted if there is none.
    Model,
    /// Configuration of the board's tools, in the form of the lane.
    Tools,
    /// Session that the agent resumes; none in a run that starts one.
    Session,
    /// Path of the program `supervisor`.
    Supervisor,
    Service,
    /// Address of the lane's first broker; none in a run without this broker.
    BaseUrl,
}

impl Placeholder {
    const ALL: [(&str, Placeholder); 12] = [
        ("prompt_file", Placeholder::PromptFile),
        ("prompt_text", Placeholder::PromptText),
        ("workspace", Placeholder::Workspace),
        ("task", Placeholder::Task),
        ("home", Placeholder::Home),
        ("tmp", Placeholder::Tmp),
        ("model", Placeholder::Model),
        ("tools", Placeholder::Tools),
        ("session", Placeholder::Session),
        ("supervisor", Placeholder::Supervisor),
        ("service", Placeholder::Service),
        ("base_url", Placeholder::BaseUrl),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, place)| *place)
    }
}

/// Values of the placeholders for one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    pub(super) prompt_file: &'a Path,
    pub(super) prompt_text: &'a str,
    pub(super) workspace: &'a Path,
    pub(super) task: &'a str,
    pub(super) home: &'a Path,
    pub(super) tmp: &'a Path,
    pub(super) model: Option<&'a str>,
    pub(super) tools: Option<&'a str>,
    pub(super) session: Option<&'a str>,
    pub(super) supervisor: &'a str,
    pub(super) service: Option<&'a str>,
    pub(super) base_url: Option<&'a str>,
}

impl Values<'_> {
    fn value(&self, place: Placeholder) -> Option<Cow<'_, str>> {
        match place {
            Placeholder::PromptFile => Some(self.prompt_file.to_string_lossy()),
            Placeholder::PromptText => Some(Cow::Borrowed(self.prompt_text)),
            Placeholder::Workspace => Some(self.workspace.to_string_lossy()),
            Placeholder::Task => Some(Cow::Borrowed(self.task)),
            Placeholder::Home => Some(self.home.to_string_lossy()),
            Placeholder::Tmp => Some(self.tmp.to_string_lossy()),
            Placeholder::Model => self.model.map(Cow::Borrowed),
            Placeholder::Tools => self.tools.map(Cow::Borrowed),
            Placeholder::Session => self.session.map(Cow::Borrowed),
            Placeholder::Supervisor => Some(Cow::Borrowed(self.supervisor)),
            Placeholder::Service => self.service.map(Cow::Borrowed),
            Placeholder::BaseUrl => self.base_url.map(Cow::Borrowed),
        }
    }
}

/// Invalid placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    Unknown(String),
    /// Placeholder without its closing brace.
    Open(&'static str),
}

impl NoPlace {
    /// Returns the words as written in the file.
    pub(super) fn in_braces(&self) -> String {
        match self {
            NoPlace::Unknown(name) => format!("{{{name}}}"),
            NoPlace::Open(name) => format!("{{{name}"),
        }
    }

    pub(super) fn message(&self) -> String {
        let known: Vec<String> = Placeholder::ALL.iter().map(|(name, _)| format!("{{{name}}}")).collect();
        let known = known.join(", ");
        match self {
            NoPlace::Unknown(name) => format!(
                "`{{{name}}}` is not a placeholder; the known ones are {known} (write {{{{{name}}}}} for the text itself)"
            ),
            NoPlace::Open(name) => format!("`{{{name}` is not closed; the placeholder is `{{{name}}}`"),
        }
    }
}

/// The text, with its placeholders in braces.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Place(place) => {
                let name =
                    Placeholder::ALL.iter().find(|(_, known)| known == place).map_or("", |(name, _)| *name);
                write!(f, "{{{name}}}")
            }
        })
    }
}

impl Template {
    /// Parses a text: `{name}` is a placeholder, `{{name}}` is the text `{name}`, and any other brace is itself.
    pub(super) fn parse(text: &str) -> Result<Self, NoPlace> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((at, name)) = braces(rest) {
            let end = at + name.len() + 2;
            let is_escaped = rest[..at].ends_with('{') && rest[end..].starts_with('}');
            let head = if is_escaped { at - 1 } else { at };
            if head > 0 {
                pieces.push(Piece::Text(rest[..head].to_owned()));
            }
            if is_escaped {
                pieces.push(Piece::Text(rest[at..end].to_owned()));
                rest = &rest[end + 1..];
            } else {
                let place = Placeholder::named(name).ok_or_else(|| NoPlace::Unknown(name.to_owned()))?;
                pieces.push(Piece::Place(place));
                rest = &rest[end..];
            }
        }
        if let Some(name) = unclosed(rest) {
            return Err(NoPlace::Open(name));
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Template(pieces))
    }

    /// Returns true if the template contains a placeholder.
    pub(super) fn has(&self, place: Placeholder) -> bool {
        self.0.contains(&Piece::Place(place))
    }

    /// Returns the text for a run; none if a placeholder has no value. Inserted values are not scanned for
    /// placeholders.
    pub(super) fn fill(&self, values: &Values<'_>) -> Option<String> {
        let fill = |piece: &Piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Place(place) => values.value(*place).map(Cow::into_owned),
        };
        self.0.iter().map(fill).collect()
    }
}

/// Returns the first name in braces, with the position of its opening brace.
fn braces(text: &str) -> Option<(usize, &str)> {
    text.match_indices('{').find_map(|(at, _)| {
        let name = text[at + 1..].split_once('}')?.0;
        is_name(name).then_some((at, name))
    })
}

/// Returns the placeholder at the end of a text whose closing brace is missing.
fn unclosed(text: &str) -> Option<&'static str> {
    let (before, behind) = text.rsplit_once('{')?;
    let is_escaped = before.ends_with('{');
    Placeholder::ALL.iter().map(|(name, _)| *name).find(|name| *name == behind && !is_escaped)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns distinct values for all placeholders.
    pub(in crate::lanes) fn values<'a>() -> Values<'a> {
        Values {
            prompt_file: Path::new("/p"),
            prompt_text: "do {task}",
            workspace: Path::new("/w{task}"),
            task: "t_1",
            home: Path::new("/h"),
            tmp: Path::new("/t"),
            model: None,
            tools: None,
            session: None,
            supervisor: "/s",
            service: None,
            base_url: None,
        }
    }

    fn fill(text: &str) -> Option<String> {
        Template::parse(text).unwrap().fill(&values())
    }

    #[test]
    fn places_are_filled_in_and_what_is_filled_in_is_not_looked_at_again() {
        assert_eq!(fill("--in={prompt_file}").as_deref(), Some("--in=/p"));
        assert_eq!(fill("{workspace}/{task}").as_deref(), Some("/w{task}/t_1"));
        assert_eq!(fill("{prompt_text}{home}{tmp}").as_deref(), Some("do {task}/h/t"));
        assert_eq!(fill("{model}"), None, "the lane has none");
        assert_eq!(fill("").as_deref(), Some(""));
    }

    #[test]
    fn braces_that_are_no_place_are_themselves() {
        let words = [
            "{print $1}",
            "{\"a\":{\"b\":1}}",
            "{}",
            "{",
            "}",
            "{A}",
            "a{{task}}b",
            "{{{task}}}",
            "{{prompt}}",
        ];
        let expected =
            ["{print $1}", "{\"a\":{\"b\":1}}", "{}", "{", "}", "{A}", "a{task}b", "{{task}}", "{prompt}"];
        for (word, text) in words.into_iter().zip(expected) {
            assert_eq!(fill(word).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_place_whose_brace_is_not_closed_is_refused() {
        for text in ["{model", "--model={model", "{task}/{home"] {
            let open = Template::parse(text).unwrap_err();
            assert!(text.ends_with(&open.in_braces()), "{text}: {open:?}");
        }
        let message = Template::parse("{model").unwrap_err().message();
        assert_eq!(message, "`{model` is not closed; the placeholder is `{model}`");
        for text in ["{modell", "{{model", "awk '{print", "{model and more"] {
            assert_eq!(fill(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn an_unknown_place_is_named_with_the_known_ones() {
        let unknown = Template::parse("--task={prompt}").unwrap_err();
        assert_eq!(unknown.in_braces(), "{prompt}");
        let message = unknown.message();
        assert!(message.starts_with("`{prompt}` is not a placeholder"), "{message}");
        assert!(message.contains("{prompt_file}, {prompt_text}, {workspace}, {task}"), "{message}");
    }
}
