//! Tokens to lines.

use super::WIDTH;
use super::columns::{Column, columns};
use super::outline::{Holds, Outline};
use super::space::{self, Seen};
use crate::lex::{Token, TokenKind};
use std::collections::{BTreeMap, BTreeSet};

/// The setting of one text, with the braces that must be opened up.
pub struct Layout<'a> {
    text: &'a str,
    tokens: &'a [Token],
    outline: &'a Outline,
    /// Opening braces whose inside goes on lines of its own.
    opened: BTreeSet<usize>,
    /// Whether the file's statements go on lines of their own: not where the author wrote clauses on one line.
    file_opened: bool,
    /// Blanks before tokens that stand in columns, besides those that they need.
    pads: BTreeMap<usize, usize>,
    /// Where each token begins in its line, its own blanks in `pads` not counted.
    places: Vec<usize>,
    /// Of each line that was set: its width, and the first brace in it that could be opened up.
    lines: Vec<Line>,
}

#[derive(Clone, Copy, Default)]
struct Line {
    width: usize,
    brace: Option<usize>,
}

/// What comes before a token.
enum Gap {
    Nothing,
    Blank,
    BeforeComment,
    Line { empty: bool },
}

impl<'a> Layout<'a> {
    pub fn new(text: &'a str, tokens: &'a [Token], outline: &'a Outline) -> Self {
        let layout = Layout {
            text,
            tokens,
            outline,
            opened: BTreeSet::new(),
            file_opened: true,
            pads: BTreeMap::new(),
            places: Vec::new(),
            lines: Vec::new(),
        };
        let opened = (0..tokens.len()).filter(|at| layout.written_open(*at)).collect();
        let several = tokens.iter().skip(1).any(|t| t.breaks > 0);
        let holds = (0..tokens.len()).any(|at| outline.of(at).holds == Some(Holds::Statements));
        Layout { opened, file_opened: several || holds, ..layout }
    }

    /// Whether the author wrote braces that hold statements over several lines.
    fn written_open(&self, at: usize) -> bool {
        let facts = self.outline.of(at);
        let braces = self.word(at) == "{" && matches!(facts.holds, Some(Holds::Statements | Holds::Block));
        let inside = at + 1..facts.close.max(at + 1);
        let closed_later = self.tokens.get(facts.close).is_some_and(|t| t.breaks > 0);
        braces && !inside.is_empty() && (closed_later || self.tokens[inside].iter().any(|t| t.breaks > 0))
    }

    /// Opens the braces of lines that are too long, and a file of one line that is; whether there were any.
    pub fn break_long_lines(&mut self) -> bool {
        let long: Vec<&Line> = self.lines.iter().filter(|l| l.width > WIDTH).collect();
        let file = !self.file_opened && !long.is_empty();
        self.file_opened |= file;
        let braces: Vec<_> = long.into_iter().filter_map(|l| l.brace).filter(|_| !file).collect();
        self.opened.extend(&braces);
        file || !braces.is_empty()
    }

    /// The whole text, with what the author set in columns in columns.
    pub fn set_in_columns(&mut self) -> String {
        let mut set = self.set();
        // Comments come last: how long their lines are depends on the others.
        for columns in columns(self.text, self.tokens, self.outline) {
            for column in &columns {
                self.align(column);
            }
            if !columns.is_empty() {
                set = self.set();
            }
        }
        set
    }

    fn align(&mut self, column: &Column) {
        let natural = |(start, token): &(usize, usize)| {
            let from = if self.is_comment(*token) { 0 } else { self.places[*start] };
            self.places[*token].saturating_sub(from)
        };
        let widest = column.entries.iter().map(natural).max().unwrap_or(0);
        let pads: Vec<_> = column.entries.iter().map(|e| (e.1, widest - natural(e))).collect();
        self.pads.extend(pads);
    }

    /// The whole text.
    fn set(&mut self) -> String {
        let mut setter = Setter {
            layout: self,
            text: String::new(),
            levels: Vec::new(),
            line: Line::default(),
            lines: Vec::new(),
            places: Vec::new(),
        };
        for at in 0..setter.layout.tokens.len() {
            setter.token(at);
        }
        let (text, lines, places) = setter.finish();
        (self.lines, self.places) = (lines, places);
        text
    }

    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |t| t.text(self.text))
    }

    fn seen(&self, at: usize) -> Seen<'a> {
        let kind = self.tokens.get(at).map_or(TokenKind::Stray, |t| t.kind);
        Seen { text: self.word(at), kind, facts: self.outline.of(at) }
    }

    fn is_comment(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|t| t.kind == TokenKind::Comment)
    }
}

/// One bracket that is open where the setter stands.
struct Level {
    open: usize,
    /// Whether it is a brace that was opened up.
    opened: bool,
}

struct Setter<'s, 'a> {
    layout: &'s Layout<'a>,
    text: String,
    levels: Vec<Level>,
    line: Line,
    lines: Vec<Line>,
    places: Vec<usize>,
}

impl Setter<'_, '_> {
    fn token(&mut self, at: usize) {
        let closes =
            self.layout.outline.of(at).holds.is_some() && matches!(self.layout.word(at), ")" | "]" | "}");
        let gap = self.gap(at, closes);
        match gap {
            Gap::Nothing => {}
            Gap::Blank => self.put(" "),
            Gap::BeforeComment => self.text.push_str("  "),
            Gap::Line { empty } => self.new_line(at, closes, empty),
        }
        self.places.push(self.line.width);
        let pad = " ".repeat(self.layout.pads.get(&at).copied().unwrap_or(0));
        if closes {
            self.levels.pop();
        }
        if self.layout.is_comment(at) {
            self.text.push_str(&pad);
            self.text.push_str(self.layout.word(at).trim_end());
            return;
        }
        self.put(&pad);
        self.put(self.layout.word(at));
        if self.layout.outline.of(at).lacks_semicolon {
            self.put(";");
        }
        self.opening(at);
    }

    fn opening(&mut self, at: usize) {
        let facts = self.layout.outline.of(at);
        if !matches!(self.layout.word(at), "(" | "[" | "{") {
            return;
        }
        let opened = self.layout.opened.contains(&at);
        let could = matches!(facts.holds, Some(Holds::Statements | Holds::Block)) && facts.close > at + 1;
        if could && !opened {
            self.line.brace.get_or_insert(at);
        }
        self.levels.push(Level { open: at, opened });
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.line.width += text.chars().count();
    }

    fn gap(&self, at: usize, closes: bool) -> Gap {
        let layout = self.layout;
        let (Some(before), Some(token)) = (at.checked_sub(1), layout.tokens.get(at)) else {
            return Gap::Nothing;
        };
        let facts = layout.outline.of(at);
        let opened = self.levels.last().map_or(layout.file_opened, |level| level.opened);
        let after_open = self.levels.last().is_some_and(|level| level.opened && level.open == before);
        let empty = token.breaks > 1 && !after_open && !closes;
        let braces = closes && layout.word(at) == "}" && facts.holds != Some(Holds::Words);
        match () {
            () if layout.is_comment(at) && !token.first => Gap::BeforeComment,
            () if layout.is_comment(at) => Gap::Line { empty },
            () if facts.starts && opened => Gap::Line { empty },
            () if layout.is_comment(before) => Gap::Line { empty: false },
            () if braces && opened => Gap::Line { empty: false },
            () if token.breaks > 0 && self.keeps_break(at) => Gap::Line { empty: false },
            () if space::between(layout.seen(before), layout.seen(at)) => Gap::Blank,
            () => Gap::Nothing,
        }
    }

    /// Whether a line break that the author put before a token inside a statement stays.
    fn keeps_break(&self, at: usize) -> bool {
        let facts = self.layout.outline.of(at);
        let joined = matches!(self.layout.word(at), "," | ";") || facts.holds == Some(Holds::Statements);
        let empty_braces = self.layout.word(at) == "}" && self.layout.word(at - 1) == "{";
        !joined && !empty_braces
    }

    fn new_line(&mut self, at: usize, closes: bool, empty: bool) {
        self.text.push_str(if empty { "\n\n" } else { "\n" });
        self.lines.push(std::mem::take(&mut self.line));
        let indent = self.indent(at, closes);
        self.put(&" ".repeat(indent));
    }

    /// The indent of a line that starts with the token `at`: two for each opened brace, and in a statement that
    /// goes on, two for each other bracket that is open, but at least two.
    fn indent(&self, at: usize, closes: bool) -> usize {
        let facts = self.layout.outline.of(at);
        let outer = &self.levels[..self.levels.len() - usize::from(closes && !self.levels.is_empty())];
        let braces = outer.iter().filter(|l| l.opened).count();
        let inner = outer.iter().rev().take_while(|l| !l.opened).count();
        let goes_on = match () {
            () if closes => inner,
            () if facts.starts || facts.between => 0,
            () => inner.max(1),
        };
        2 * (braces + goes_on)
    }

    fn finish(mut self) -> (String, Vec<Line>, Vec<usize>) {
        if !self.text.is_empty() {
            self.text.push('\n');
            self.lines.push(self.line);
        }
        (self.text, self.lines, self.places)
    }
}
