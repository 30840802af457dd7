//! Parses the words of a command in the file of a lane: single words, and groups that are omitted as a whole.

use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A word, or a group of words that is omitted if one of its placeholders has no value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Words {
    One(String),
    Group(Vec<String>),
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a word in quotes, or a list of words, as in [\"wren\", [\"--model\", \"{model}\"], \"5\"]",
        )
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Words, E> {
        Ok(Words::One(word.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut words: A) -> Result<Words, A::Error> {
        let mut group = Vec::new();
        while let Some(word) = words.next_element()? {
            group.push(word);
        }
        Ok(Words::Group(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct File {
        argv: Vec<Words>,
    }

    #[test]
    fn what_is_no_word_is_refused_with_what_one_is() {
        let file: File = toml::from_str("argv = ['wren', ['-m', '{model}']]").unwrap();
        let group = Words::Group(vec!["-m".to_owned(), "{model}".to_owned()]);
        assert_eq!(file.argv, [Words::One("wren".to_owned()), group]);
        for argv in ["['wren', 5]", "['wren', ['-n', 5]]", "['wren', {}]"] {
            let error = toml::from_str::<File>(&format!("argv = {argv}")).unwrap_err();
            let message = error.message();
            assert!(
                message.contains("in quotes") || message.contains("expected a string"),
                "{argv}: {message}"
            );
        }
        let error = toml::from_str::<File>("argv = ['wren', 5]").unwrap_err();
        assert!(
            error.message().starts_with("invalid type: integer `5`, expected a word in quotes"),
            "{error}"
        );
    }
}
