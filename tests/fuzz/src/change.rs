//! Changes of an input: of its bytes, of its words and lines, and of the tree that it is.

use std::collections::BTreeSet;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::tree;

/// Kind of a target's inputs. Inputs of every kind are also mutated as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Bytes.
    Bytes,
    /// Text.
    Text,
    /// A single JSON value.
    Json,
    /// A JSON value in each line.
    Lines,
    /// A TOML document.
    Toml,
}

/// Difficult inputs for parsers of text.
const TEXTS: [&[u8]; 40] = [
    b"",
    b" ",
    b"\n",
    b"\r\n",
    b"\0",
    b"\t",
    b"\xff",
    b"\xc3",
    b"\xe2\x80\xae",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x98\x80",
    b"\"",
    b"'",
    b"\\",
    b"`",
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b")",
    b":",
    b"=",
    b",",
    b"#",
    b"---\n",
    b"&a ",
    b"*a",
    b"!!binary ",
    b"<<: ",
    b"%00",
    b"..",
    b"/",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"{}",
    b"[]",
    b"\r\n\r\n",
    b"\"\"\"",
];

/// Difficult inputs for parsers of numbers.
const NUMBERS: [&[u8]; 24] = [
    b"0",
    b"-1",
    b"-0",
    b"1",
    b"127",
    b"255",
    b"256",
    b"65535",
    b"65536",
    b"2147483647",
    b"2147483648",
    b"4294967295",
    b"4294967296",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"1e308",
    b"1e309",
    b"-1e-400",
    b"0.1",
    b"00",
    b"0x7f",
];

/// Makes changes.
#[derive(Debug)]
pub(crate) struct Changer {
    shape: Shape,
    longest: usize,
    /// Words of the inputs, of which each may be where another stands.
    words: Vec<Vec<u8>>,
    known: BTreeSet<Vec<u8>>,
}

impl Changer {
    pub(crate) fn new(shape: Shape, longest: usize, pool: &[Vec<u8>]) -> Self {
        let mut changer = Changer { shape, longest, words: Vec::new(), known: BTreeSet::new() };
        for input in pool {
            changer.learn(input);
        }
        changer
    }

    /// Takes up the words of an input.
    pub(crate) fn learn(&mut self, input: &[u8]) {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:/@".contains(byte);
        for word in input.split(|byte| !is_word(byte)) {
            if (1..=64).contains(&word.len()) && self.words.len() < 4096 && self.known.insert(word.to_vec()) {
                self.words.push(word.to_vec());
            }
        }
    }

    /// Makes one change. `other` is another input, for what is put in.
    pub(crate) fn change(&mut self, input: &mut Vec<u8>, other: &[u8], rng: &mut StdRng) {
        let as_tree = match self.shape {
            Shape::Bytes | Shape::Text => None,
            _ if rng.random_bool(0.4) => None,
            Shape::Json => tree::change_json(input, other, &self.words, rng),
            Shape::Lines => self.change_line(input, other, rng),
            Shape::Toml => tree::change_toml(input, other, &self.words, rng),
        };
        match as_tree {
            Some(changed) => *input = changed,
            None if self.shape != Shape::Bytes && rng.random_bool(0.5) => {
                self.change_words(input, other, rng);
            }
            None => change_bytes(input, other, self.longest, rng),
        }
        input.truncate(self.longest);
    }

    /// Changes a line as a value, or the order of lines.
    fn change_line(&self, input: &[u8], other: &[u8], rng: &mut StdRng) -> Option<Vec<u8>> {
        let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let others: Vec<&[u8]> = other.split(|byte| *byte == b'\n').collect();
        let (at, from) = (rng.random_range(0..lines.len()), others.choose(rng)?);
        match rng.random_range(0..8) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => lines.insert(at, from.to_vec()),
            3 => {
                let to = rng.random_range(0..lines.len());
                lines.swap(at, to);
            }
            _ => lines[at] = tree::change_json(&lines[at], from, &self.words, rng)?,
        }
        Some(lines.join(&b'\n'))
    }

    /// Puts a word, a text or a number where another word stands, or a line somewhere else.
    fn change_words(&self, input: &mut Vec<u8>, other: &[u8], rng: &mut StdRng) {
        let (begin, end) = word_at(input, rng);
        let word: &[u8] = match rng.random_range(0..6) {
            0 | 1 => self.words.choose(rng).map_or(b"", Vec::as_slice),
            2 => NUMBERS.choose(rng).copied().unwrap_or_default(),
            3 => TEXTS.choose(rng).copied().unwrap_or_default(),
            4 => {
                let lines: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
                let line = lines.choose(rng).copied().unwrap_or_default().to_vec();
                let at = input[..begin].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                drop(input.splice(at..at, line));
                return;
            }
            _ => {
                let word = input[begin..end].repeat(rng.random_range(2..300));
                drop(input.splice(begin..end, word));
                return;
            }
        };
        let begin = if rng.random_bool(0.3) { end } else { begin };
        drop(input.splice(begin..end, word.iter().copied()));
    }
}

/// The word that begins or goes on at a random place.
fn word_at(input: &[u8], rng: &mut StdRng) -> (usize, usize) {
    let at = rng.random_range(0..=input.len());
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let begin = input[..at].iter().rposition(|byte| !is_word(byte)).map_or(0, |at| at + 1);
    let end = input[at..].iter().position(|byte| !is_word(byte)).map_or(input.len(), |length| at + length);
    (begin, end)
}

fn change_bytes(input: &mut Vec<u8>, other: &[u8], longest: usize, rng: &mut StdRng) {
    let (begin, end) = range(input.len(), rng);
    match rng.random_range(0..10) {
        0 | 1 => {
            if let Some(byte) = input.get_mut(begin) {
                *byte ^= 1 << rng.random_range(0..8);
            }
        }
        2 => {
            if let Some(byte) = input.get_mut(begin) {
                *byte = rng.random();
            }
        }
        3 => drop(input.drain(begin..end)),
        4 => input.truncate(begin),
        5 => {
            let piece = input[begin..end].to_vec();
            let at = rng.random_range(0..=input.len());
            drop(input.splice(at..at, piece));
        }
        6 => {
            let (from, to) = range(other.len(), rng);
            drop(input.splice(begin..end, other[from..to].to_vec()));
        }
        7 => {
            let text = TEXTS.choose(rng).copied().unwrap_or_default();
            drop(input.splice(begin..begin, text.to_vec()));
        }
        8 => {
            // Much of one thing: what is deep, and what is long.
            let piece = if rng.random() {
                TEXTS.choose(rng).copied().unwrap_or_default().to_vec()
            } else {
                input[begin..end].to_vec()
            };
            let most = longest / piece.len().max(1);
            let times = rng.random_range(0..=most.max(1));
            drop(input.splice(begin..begin, piece.repeat(times)));
        }
        _ => {
            let (from, _) = range(other.len(), rng);
            input.truncate(begin);
            input.extend_from_slice(&other[from..]);
        }
    }
}

/// A range, most often a short one.
fn range(length: usize, rng: &mut StdRng) -> (usize, usize) {
    let begin = rng.random_range(0..=length);
    let most = if rng.random_bool(0.7) { (length - begin).min(16) } else { length - begin };
    (begin, begin + rng.random_range(0..=most))
}
