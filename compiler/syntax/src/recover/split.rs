//! Cuts a text into pieces that can be wrong or right each for itself.

use super::nest::Nest;
use super::words::Words;
use crate::grammar::Rule;
use crate::lex::TokenKind;
use std::ops::Range;

/// What the pieces lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// The file itself.
    File,
    /// The braces of a definition, a layer or a `for`.
    Body,
    /// The braces of an expression, which end with a value.
    Block,
}

/// How a piece ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With its semicolon.
    Semicolon,
    /// With its closing brace.
    Brace,
    /// Where the container does.
    Container,
    /// Where the next statement starts, without a semicolon.
    Missing,
}

/// A stretch of words that should be one construct.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The first word.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// What lies between its braces, if it is a head with a body.
    pub body: Option<Range<usize>>,
    /// How it ends.
    pub ended: End,
    /// Whether a bracket of it, outside the body, has no partner.
    pub broken: bool,
}

/// The first piece of the words `range`, which are not empty.
pub fn next(words: &Words<'_>, nest: &Nest, range: Range<usize>, container: Container) -> Piece {
    let start = range.start;
    let bodied = has_body(words, start, container);
    let mut piece = Piece { start, end: range.end, body: None, ended: End::Container, broken: false };
    if matches!(words.text(start), ")" | "]" | "}") {
        return Piece { end: start + 1, broken: true, ..piece };
    }
    let (mut at, mut complete) = (start, false);
    while at < range.end {
        if complete && words.starts_line(at) && words.ends_value(at - 1) && starts_statement(words, nest, at)
        {
            (piece.end, piece.ended) = (at, End::Missing);
            break;
        }
        match words.text(at) {
            ";" => {
                (piece.end, piece.ended) = (at + 1, End::Semicolon);
                break;
            }
            "{" if bodied => {
                let close = nest.close(at);
                let inner_end = close.at.clamp(at + 1, range.end);
                piece.body = Some(at + 1..inner_end);
                piece.ended = End::Brace;
                piece.end = if close.real { (inner_end + 1).min(range.end) } else { inner_end };
                piece.broken = !close.real || nest.broken_in(start..at);
                return piece;
            }
            "(" | "[" | "{" => {
                let close = nest.close(at);
                at = if close.real { close.at + 1 } else { close.at.max(at + 1) };
            }
            mark => {
                complete |= matches!(mark, "=" | ":");
                at += 1;
            }
        }
    }
    piece.broken = nest.broken_in(start..piece.end);
    piece
}

/// Where to go on after a mistake at the word `at` of a piece: at the next statement that starts inside it
/// (its semicolon was forgotten), else behind it.
pub fn resume(words: &Words<'_>, nest: &Nest, piece: &Piece, at: usize) -> usize {
    let mut next = at.max(piece.start + 1);
    while next < piece.end {
        // Two names at the start are a misspelt keyword, not two statements.
        let apart = next == at && at > piece.start + 1 || words.starts_line(next);
        if apart && words.ends_value(next - 1) && starts_statement(words, nest, next) {
            return next;
        }
        next = match words.text(next) {
            "(" | "[" | "{" => nest.close(next).at.max(next + 1),
            _ => next + 1,
        };
    }
    piece.end
}

/// Whether the words at `at` have the shape of a statement or definition.
pub fn starts_statement(words: &Words<'_>, nest: &Nest, at: usize) -> bool {
    let follows = words.text(at + 1);
    match words.text(at) {
        "let" | "for" => words.is(at + 1, TokenKind::Name),
        "use" if words.is(at + 1, TokenKind::Text) => true,
        _ if words.is(at, TokenKind::Primed) => follows == "=",
        _ if !words.is_name(at) => false,
        _ if matches!(follows, "=" | ":") => true,
        _ if follows == "(" => words.text(nest.close(at + 1).at + 1) == "=",
        _ => (words.is_name(at + 1) || words.is(at + 1, TokenKind::Primed)) && !words.starts_line(at + 1),
    }
}

/// Whether the piece that starts here should be a head with a body in braces. In a file any two names may be
/// one, since the keyword may be misspelt.
fn has_body(words: &Words<'_>, start: usize, container: Container) -> bool {
    match words.text(start) {
        "for" => true,
        "weight" | "slow" | "state" | "input" | "trained" | "history" | "require" | "dual" | "use" | "fn" => {
            false
        }
        _ => {
            let named = words.is_name(start) && words.is_name(start + 1);
            container == Container::File && named && words.text(start + 2) != "="
        }
    }
}

/// The rule for the head of a piece that starts with `word`.
pub fn head_rule(word: &str) -> Rule {
    match word {
        "for" => Rule::for_piece,
        "layer" => Rule::layer_piece,
        _ => Rule::definition_piece,
    }
}
