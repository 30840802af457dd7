//! `markdown`: renders text of people or agents as HTML for a page. Tags of the text itself are escaped: the output has
//! only the tags that this file or the renderer writes.
//!
//! A sanitizer parses foreign HTML as a browser does, and passes a list; without foreign HTML nothing is left to
//! remove. An image is a link: a page fetches nothing that a text names.

use std::fmt::{self, Write};

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd, html};
use pulldown_cmark_escape::{escape_href, escape_html};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::{Call, Verb, blocking, verb};
use base::exit::Code;
use base::failure::Failure;

/// Limit on the text, in bytes: the limit of a task's body.
const LONGEST: usize = kernel::limits::BODY;
/// Limit on the HTML, in bytes.
const LONGEST_HTML: usize = 4 * LONGEST;
/// Limit on nested lists and quotations; deeper ones are shown at this depth.
const DEEPEST: usize = 32;
/// Limit on the tags: a browser needs seconds to lay out more.
const MOST_TAGS: usize = 5000;
/// Schemes that the target of a link may have; other links lose their target.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// Render Markdown as HTML without scripts
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Markdown {
    /// The text, up to 1 MiB
    pub text: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Rendered {
    pub html: String,
}

impl Verb for Markdown {
    verb! { "markdown": Operator, Read, on(None), members => Rendered }

    async fn run(self, _: Call) -> Result<Rendered, Failure> {
        let too_long = |what: &str, most: usize| {
            Failure::new(Code::TooLarge, format!("{what} has more than {most} bytes"))
                .hint("show it as it is")
        };
        if self.text.len() > LONGEST {
            return Err(too_long("the text", LONGEST));
        }
        let html = blocking("the text was not rendered", move || rendered(&self.text)).await?;
        html.map(|html| Rendered { html }).ok_or_else(|| too_long("the HTML of this text", LONGEST_HTML))
    }
}

/// Renders a text; none if its HTML is too long.
pub(super) fn rendered(text: &str) -> Option<String> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut state = RenderState::default();
    let events = Parser::new_ext(text, options).filter_map(|event| state.safe(event));
    let mut html = BoundedHtml(String::new());
    let is_written = html::write_html_fmt(&mut html, events).is_ok();
    (is_written && state.tags <= MOST_TAGS).then_some(html.0)
}

/// A string of at most [`LONGEST_HTML`] bytes.
struct BoundedHtml(String);

impl Write for BoundedHtml {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.0.len() + piece.len() > LONGEST_HTML {
            return Err(fmt::Error);
        }
        self.0.push_str(piece);
        Ok(())
    }
}

/// State of the renderer at a position in the text.
#[derive(Default)]
struct RenderState {
    /// Number of tags so far.
    tags: usize,
    /// Number of open lists and quotations.
    depth: usize,
    /// The open links and images; true for each that was rendered as a tag.
    links: Vec<bool>,
}

impl RenderState {
    /// Renders the named events of a text and drops all others.
    fn safe<'a>(&mut self, event: Event<'a>) -> Option<Event<'a>> {
        match event {
            Event::Start(tag) => {
                let kept = self.start(tag);
                self.tags += usize::from(kept.is_some());
                kept
            }
            Event::End(tag) => self.end(tag),
            // HTML in the text becomes plain text.
            Event::Html(text) | Event::InlineHtml(text) | Event::Text(text) => Some(Event::Text(text)),
            Event::Code(_) | Event::SoftBreak | Event::HardBreak | Event::Rule | Event::TaskListMarker(_) => {
                Some(event)
            }
            Event::InlineMath(_) | Event::DisplayMath(_) | Event::FootnoteReference(_) => None,
        }
    }

    fn start<'a>(&mut self, tag: Tag<'a>) -> Option<Event<'a>> {
        match tag {
            // An autolink such as `<a@b.example>` is a mail address without `mailto:`.
            Tag::Link { link_type: LinkType::Email, dest_url, title, .. } => {
                self.link(&format!("mailto:{dest_url}"), &title, "")
            }
            Tag::Link { dest_url, title, .. } => self.link(&dest_url, &title, ""),
            // The page must not load anything that a text names, so an image becomes a link to it.
            Tag::Image { dest_url, title, .. } => self.link(&dest_url, &title, "image: "),
            Tag::BlockQuote(_) | Tag::List(_) | Tag::Item => {
                self.depth += 1;
                (self.depth <= DEEPEST).then_some(Event::Start(tag))
            }
            Tag::CodeBlock(kind) => Some(Event::Start(Tag::CodeBlock(plain(kind)))),
            // An alignment would need a `style` attribute, which the page's content security policy blocks.
            Tag::Table(_) => Some(Event::Start(Tag::Table(Vec::new()))),
            Tag::HtmlBlock => Some(Event::Start(Tag::Paragraph)),
            Tag::Heading { level, .. } => {
                Some(Event::Start(Tag::Heading { level, id: None, classes: Vec::new(), attrs: Vec::new() }))
            }
            Tag::Paragraph
            | Tag::TableHead
            | Tag::TableRow
            | Tag::TableCell
            | Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough => Some(Event::Start(tag)),
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => None,
        }
    }

    fn end<'a>(&mut self, tag: TagEnd) -> Option<Event<'a>> {
        match tag {
            TagEnd::Link | TagEnd::Image => {
                self.links.pop().unwrap_or_default().then_some(Event::InlineHtml("</a>".into()))
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => {
                self.depth -= 1;
                (self.depth < DEEPEST).then_some(Event::End(tag))
            }
            TagEnd::HtmlBlock => Some(Event::End(TagEnd::Paragraph)),
            TagEnd::CodeBlock
            | TagEnd::Table
            | TagEnd::Heading(_)
            | TagEnd::Paragraph
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::TableCell
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough => Some(Event::End(tag)),
            TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => None,
        }
    }

    /// Renders the start tag of a link; none if its target is not allowed, or if it is inside of another link.
    fn link<'a>(&mut self, to: &str, title: &str, before: &str) -> Option<Event<'a>> {
        let is_tag = leads_out(to) && !self.links.contains(&true);
        self.links.push(is_tag);
        if !is_tag {
            return None;
        }
        let mut tag = "<a href=\"".to_owned();
        // Writing to a `String` does not fail.
        escape_href(&mut tag, to).ok()?;
        if !title.is_empty() {
            tag.push_str("\" title=\"");
            escape_html(&mut tag, title).ok()?;
        }
        tag.push_str("\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">");
        tag.push_str(before);
        Some(Event::InlineHtml(tag.into()))
    }
}

/// Returns true if a link may be followed: an address of one of the schemes, without characters that a browser skips.
fn leads_out(to: &str) -> bool {
    let begins =
        |scheme: &&str| to.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    SCHEMES.iter().any(begins) && !to.chars().any(char::is_control)
}

/// Keeps the language of a code block if it is one word.
fn plain(kind: CodeBlockKind<'_>) -> CodeBlockKind<'_> {
    let is_word = |word: &str| {
        (1..=32).contains(&word.len())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "_+#.-".contains(c))
    };
    match kind {
        CodeBlockKind::Fenced(word) if is_word(&word) => CodeBlockKind::Fenced(word),
        CodeBlockKind::Fenced(_) | CodeBlockKind::Indented => CodeBlockKind::Indented,
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
