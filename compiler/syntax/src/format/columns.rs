//! Columns: what an author put under each other on neighbouring lines stays under each other.
//!
//! A column is meant where the same thing (what follows a statement's `:`, its `=`, or the comment behind it) begins
//! at one place on neighbouring lines and some line has more blanks before it than it needs. Such a column is set at
//! the first place that all of its lines can reach.

use super::outline::Outline;
use crate::lex::{Token, TokenKind};

/// Tokens that stand under each other, each with the first token of what is counted as its line.
#[derive(Debug, Default)]
pub struct Column {
    /// (start, token): the column of `token` is counted from `start`.
    pub entries: Vec<(usize, usize)>,
}

/// Something that may stand in a column.
struct Entry {
    start: usize,
    token: usize,
    /// What it is; only equals stand under each other.
    kind: Kind,
    /// Characters from `start` to `token` in the text.
    place: usize,
    /// Whether there are more blanks before it than are needed.
    spread: bool,
    /// Whether it is on the line below the entry before it, and the same statements hold both.
    below: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Value,
    Equals,
    Comment,
}

/// The columns that the author of a text set: of statements, and of comments.
pub fn columns(text: &str, tokens: &[Token], outline: &Outline) -> [Vec<Column>; 2] {
    let reader = Reader { text, tokens, outline };
    [grouped(reader.statements()), grouped(reader.comments())]
}

/// Neighbours of one kind and place, where some line shows that it is meant.
fn grouped(entries: Vec<Entry>) -> Vec<Column> {
    let mut found = Vec::new();
    let mut rest = entries.as_slice();
    while let Some(first) = rest.first() {
        let same = |e: &&Entry| e.below && e.kind == first.kind && e.place == first.place;
        let count = 1 + rest[1..].iter().take_while(same).count();
        let (column, after) = rest.split_at(count);
        if count > 1 && column.iter().any(|e| e.spread) {
            found.push(Column { entries: column.iter().map(|e| (e.start, e.token)).collect() });
        }
        rest = after;
    }
    found
}

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    outline: &'a Outline,
}

impl Reader<'_> {
    fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |t| t.text(self.text))
    }

    /// Statements that begin a line, with what may stand in a column.
    fn statements(&self) -> Vec<Entry> {
        let mut found: Vec<Entry> = Vec::new();
        let (mut depth, mut last) = (0_usize, None);
        for at in 0..self.tokens.len() {
            match self.word(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if !self.outline.of(at).starts {
                continue;
            }
            let below = last.is_some_and(|(start, held)| held == depth && self.follows(start, at));
            last = Some((at, depth));
            match self.anchor(at) {
                Some((token, kind)) if self.begins_line(at) => {
                    let needed = 1;
                    found.extend(self.entry(at, token, kind, needed).map(|e| Entry { below, ..e }));
                }
                // Nothing stands below a statement without a column.
                _ => last = None,
            }
        }
        found
    }

    /// Comments behind something, counted from the first token of their line.
    fn comments(&self) -> Vec<Entry> {
        let mut found: Vec<Entry> = Vec::new();
        let (mut line, mut number) = (0, 0);
        let mut above = None;
        for (at, token) in self.tokens.iter().enumerate() {
            number += token.breaks;
            if token.first {
                line = at;
            }
            if token.kind == TokenKind::Comment && !token.first {
                let needed = 2;
                let below = above.is_some_and(|above| above + 1 == number);
                above = Some(number);
                found.extend(self.entry(line, at, Kind::Comment, needed).map(|e| Entry { below, ..e }));
            }
        }
        found
    }

    /// What of a statement may stand in a column: what follows its first `:`, or its first `=`.
    fn anchor(&self, start: usize) -> Option<(usize, Kind)> {
        let mut at = start + 1;
        while at < self.tokens.len() && !self.outline.of(at).starts {
            match self.word(at) {
                ":" => return Some((at + 1, Kind::Value)),
                "=" => return Some((at, Kind::Equals)),
                "{" | "}" | ";" => return None,
                "(" | "[" => at = self.outline.of(at).close.max(at),
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// None where a line break or a comment is between.
    fn entry(&self, start: usize, token: usize, kind: Kind, needed: usize) -> Option<Entry> {
        let between = self.tokens.get(start + 1..=token)?;
        let broken = between.iter().any(|t| t.breaks > 0);
        let comment = self.tokens[token].kind == TokenKind::Comment;
        if broken || comment != (kind == Kind::Comment) {
            return None;
        }
        let from = match kind {
            // Indents may still be wrong; comments are counted from the edge, so that lines of all depths compare.
            Kind::Comment => self.text[..self.tokens[start].start].rfind('\n').map_or(0, |n| n + 1),
            Kind::Value | Kind::Equals => self.tokens[start].start,
        };
        let place = self.text.get(from..self.tokens[token].start)?.chars().count();
        let blanks = self.tokens[token].start - self.tokens[token - 1].end;
        Some(Entry { start, token, kind, place, spread: blanks > needed, below: false })
    }

    /// Whether the statement at `start` has one line, and the one at `next` is on the line below.
    fn follows(&self, start: usize, next: usize) -> bool {
        self.tokens[next].breaks == 1 && self.tokens[start + 1..next].iter().all(|t| t.breaks == 0)
    }

    fn begins_line(&self, at: usize) -> bool {
        at == 0 || self.tokens[at].first
    }
}
