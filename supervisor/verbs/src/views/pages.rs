//! Verbs with paged replies: a reply has at most the rows of a page, and few more bytes. The command line fetches all
//! pages if all rows are wanted.

use std::fmt;
use std::marker::PhantomData;

use kernel::limits::REPLY_ROWS;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use api::command::Command;
use base::failure::Failure;
use base::terminal::Screen;

/// Default page of an agent, in rows.
const OF_AN_AGENT: u32 = 50;

/// A type that a list consists of.
pub trait PagedRow: Serialize + for<'de> Deserialize<'de> {
    /// The key of the rows in a page.
    const ROWS: &'static str;
}

/// All rows as an array, which scripts of `hermes kanban` expect, or a page of them.
#[derive(Debug)]
pub enum Listed<T> {
    Rows(Vec<T>),
    Page {
        rows: Vec<T>,
        /// Cursor of the next page; none if this is the last.
        next: Option<String>,
    },
}

impl<T> Listed<T> {
    /// Returns the rows and the cursor of the next page.
    pub fn split(self) -> (Vec<T>, Option<String>) {
        match self {
            Listed::Rows(rows) => (rows, None),
            Listed::Page { rows, next } => (rows, next),
        }
    }

    /// Returns the rows and the cursor of the next page.
    pub(crate) fn parts(&self) -> (&[T], Option<&str>) {
        match self {
            Listed::Rows(rows) => (rows, None),
            Listed::Page { rows, next } => (rows, next.as_deref()),
        }
    }
}

impl<T: PagedRow> Serialize for Listed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Listed::Rows(rows) => rows.serialize(serializer),
            Listed::Page { rows, next } => {
                let mut page = serializer.serialize_map(Some(2))?;
                page.serialize_entry(T::ROWS, rows)?;
                page.serialize_entry("next", next)?;
                page.end()
            }
        }
    }
}

impl<'de, T: PagedRow> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// Visitor for both forms.
struct Either<T>(PhantomData<T>);

impl<'de, T: PagedRow> Visitor<'de> for Either<T> {
    type Value = Listed<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array, or an object with `{}` and `next`", T::ROWS)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, rows: A) -> Result<Listed<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(rows)).map(Listed::Rows)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut page: A) -> Result<Listed<T>, A::Error> {
        let (mut rows, mut next) = (None, None);
        while let Some(key) = page.next_key::<String>()? {
            match key.as_str() {
                key if key == T::ROWS => rows = Some(page.next_value()?),
                "next" => next = page.next_value()?,
                _ => drop(page.next_value::<IgnoredAny>()?),
            }
        }
        let rows = rows.ok_or_else(|| serde::de::Error::missing_field(T::ROWS))?;
        Ok(Listed::Page { rows, next })
    }
}

/// A verb with pages. A request for all rows gets an array of them, or the first page if there are too many.
pub trait Pages: Command<Reply = Listed<Self::Row>> {
    type Row: PagedRow;

    /// Returns true if the caller wants the position of the next page.
    fn asks_for_pages(&self) -> bool;

    /// Returns the request for a page of at most `limit` rows after a cursor.
    #[must_use]
    fn part(self, limit: Option<u32>, cursor: Option<String>) -> Self;

    /// Returns the number of rows wanted; none means all.
    fn limit(&self) -> Option<u32>;
}

/// Implements [`Pages`] for a verb with the fields `limit`, `page` and `cursor`.
macro_rules! pages {
    ($verb:ident, $row:ty) => {
        impl crate::views::pages::Pages for $verb {
            type Row = $row;

            fn asks_for_pages(&self) -> bool {
                self.page || self.cursor.is_some()
            }

            fn part(mut self, limit: Option<u32>, cursor: Option<String>) -> Self {
                self.page = true;
                self.limit = limit;
                self.cursor = cursor.or(self.cursor);
                self
            }

            fn limit(&self) -> Option<u32> {
                self.limit
            }
        }
    };
}

pub(crate) use pages;

/// The requested form of a list, and its number of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRequest {
    pages: bool,
    rows: usize,
}

impl PageRequest {
    /// Reads both from a request.
    pub(crate) fn by<V: Pages>(verb: &V) -> Self {
        let rows = verb.limit().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        PageRequest { pages: verb.asks_for_pages(), rows }
    }

    /// Returns the reply with these rows and the cursor of the next ones. A reply with fewer rows than requested is a
    /// page: a mere array would look complete.
    pub(crate) fn reply<T>(self, rows: Vec<T>, next: Option<String>) -> Listed<T> {
        let is_cut = next.is_some() && rows.len() < self.rows;
        if self.pages || is_cut { Listed::Page { rows, next } } else { Listed::Rows(rows) }
    }
}

/// Number of rows of a page.
pub(crate) fn limit(wanted: Option<u32>) -> Result<u32, Failure> {
    match wanted {
        Some(0) => {
            Err(Failure::usage("a limit of 0 would list nothing").hint("leave the limit out to see all"))
        }
        wanted => Ok(wanted.unwrap_or(REPLY_ROWS).min(REPLY_ROWS)),
    }
}

/// Asks for a page, of a size that suits an agent unless the request has a limit.
pub(crate) fn of_an_agent(page: &mut bool, limit: &mut Option<u32>) {
    *page = true;
    limit.get_or_insert(OF_AN_AGENT);
}

/// Tells a person how to get the next page.
pub fn show_next(next: Option<&str>, screen: &mut Screen) {
    if let Some(next) = next {
        screen.line(format!("There are more: repeat the command with --cursor {next}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Number(u32);

    impl PagedRow for Number {
        const ROWS: &'static str = "numbers";
    }

    #[test]
    fn rows_alone_are_an_array_and_a_page_names_them_and_both_are_read_back() {
        for (text, next) in [
            ("[1,2]", None),
            (r#"{"numbers":[1,2],"next":"c"}"#, Some("c")),
            (r#"{"numbers":[1,2],"next":null}"#, None),
        ] {
            let listed: Listed<Number> = serde_json::from_str(text).unwrap();
            assert_eq!(listed.parts(), (&[Number(1), Number(2)][..], next), "{text}");
            assert_eq!(serde_json::to_string(&listed).unwrap(), text);
        }
        let refused = serde_json::from_str::<Listed<Number>>(r#"{"next":null}"#).unwrap_err().to_string();
        assert!(refused.contains("missing field `numbers`"), "{refused}");
    }
}
