//! The tokens of a text without its comments, by number.

use crate::build::Source;
use crate::lex::{self, Token, TokenKind};
use base::Span;
use miras_base as base;
use std::ops::Range;

/// Words that can be no name.
const RESERVED: &[&str] = &["if", "then", "else", "let", "for", "in"];

/// The words of a text. Any number may be asked for; past the end there is nothing.
pub struct Words<'a> {
    source: Source<'a>,
    tokens: Vec<Token>,
}

impl<'a> Words<'a> {
    pub fn new(source: Source<'a>) -> Self {
        Words { source, tokens: lex::without_comments(source.tokens) }
    }

    pub fn count(&self) -> usize {
        self.tokens.len()
    }

    pub fn get(&self, at: usize) -> Option<Token> {
        self.tokens.get(at).copied()
    }

    pub fn text(&self, at: usize) -> &'a str {
        self.get(at).map_or("", |t| t.text(self.source.text))
    }

    pub fn is(&self, at: usize, kind: TokenKind) -> bool {
        self.get(at).is_some_and(|t| t.kind == kind)
    }

    /// Whether a word can be a name.
    pub fn is_name(&self, at: usize) -> bool {
        self.is(at, TokenKind::Name) && !self.is_reserved(at)
    }

    pub fn is_reserved(&self, at: usize) -> bool {
        RESERVED.contains(&self.text(at))
    }

    /// Whether a value can end with this word.
    pub fn ends_value(&self, at: usize) -> bool {
        self.get(at).is_some_and(|t| lex::ends_value(t, self.source.text)) && !self.is_reserved(at)
    }

    /// Whether a word is the first of its line.
    pub fn starts_line(&self, at: usize) -> bool {
        at == 0 || self.get(at).is_some_and(|t| t.breaks > 0)
    }

    /// The word that holds a byte, or the first after it.
    pub fn at_byte(&self, byte: usize) -> usize {
        self.tokens.partition_point(|t| t.end <= byte)
    }

    /// The place of a word; past the end, the place just behind the last one.
    pub fn span(&self, at: usize) -> Span {
        match self.get(at) {
            Some(token) => Span::new(self.source.file, token.start, token.end),
            None => {
                let end = self.tokens.last().map_or(self.source.offset, |t| t.end);
                Span::new(self.source.file, end, end)
            }
        }
    }

    /// The text of some words and where it starts.
    pub fn slice(&self, range: Range<usize>) -> (usize, &'a str) {
        let start = self.get(range.start).map_or(self.source.text.len(), |t| t.start);
        let last = range.end.checked_sub(1).and_then(|last| self.get(last));
        let end = last.map_or(start, |t| t.end).max(start);
        (start, self.source.text.get(start..end).unwrap_or(""))
    }
}
