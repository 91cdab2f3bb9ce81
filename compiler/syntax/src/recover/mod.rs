//! What is told of a file that does not follow the grammar.
//!
//! The grammar stops at the first mistake. So the text is cut by its brackets and semicolons into pieces
//! (`nest`, `split`), each piece is given to the grammar alone, and each refusal becomes one diagnostic
//! (`message`, with the known slips in `hints`). Pieces that can be read go into the tree.

mod expected;
mod hints;
mod message;
mod nest;
mod split;
mod words;

use crate::build::{self, Built, Source, Top};
use crate::grammar::{Grammar, Rule};
use crate::lex::Token;
use base::Diagnostic;
use miras_base as base;
use nest::Nest;
use pest::Parser;
use pest::error::{Error, InputLocation};
use split::{Container, End, Piece};
use std::ops::Range;
use words::Words;

/// So many mistakes are told of at most: more do not help, and each costs time.
const MOST: usize = 50;

/// Reads what can be read of a text that the rule `file` refused with `error`.
pub fn recover(source: Source<'_>, error: &Error<Rule>) -> Built<Vec<Top>> {
    let words = Words::new(source);
    let nest = Nest::new(&words);
    let mut recovery = Recovery { source, problems: nest.problems.clone(), tops: Vec::new(), words, nest };
    recovery.walk(0..recovery.words.count(), Container::File);
    if recovery.problems.is_empty() {
        let whole = 0..recovery.words.count();
        recovery.explain(whole, Container::File, source.offset, error);
    }
    let mut problems = recovery.problems;
    problems.sort_by_key(|p| p.labels.first().map(|l| l.span.start));
    problems.truncate(MOST);
    Built { tree: recovery.tops, problems }
}

/// The diagnostic for a text that is one expression and was refused with `error`.
pub fn explain_expr(source: Source<'_>, error: &Error<Rule>) -> Diagnostic {
    let words = Words::new(source);
    if let Some(problem) = Nest::new(&words).problems.first() {
        return problem.clone();
    }
    let at = words.at_byte(source.offset + position(error));
    message::explain(&words, 0..words.count(), Container::Block, at, error)
}

fn position(error: &Error<Rule>) -> usize {
    match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    }
}

/// The grammar's refusal of a piece that starts at byte `offset`.
struct Refused {
    offset: usize,
    error: Box<Error<Rule>>,
}

struct Recovery<'a> {
    source: Source<'a>,
    words: Words<'a>,
    nest: Nest,
    problems: Vec<Diagnostic>,
    tops: Vec<Top>,
}

impl Recovery<'_> {
    /// Goes through the pieces of a container whose words are `range`.
    fn walk(&mut self, range: Range<usize>, container: Container) {
        let mut at = range.start;
        while at < range.end && self.problems.len() < MOST {
            let piece = split::next(&self.words, &self.nest, at..range.end, container);
            at = self.piece(&piece, container, piece.end >= range.end).max(at + 1);
        }
    }

    /// Reads one piece; gives the word to go on with.
    fn piece(&mut self, piece: &Piece, container: Container, last: bool) -> usize {
        let before = self.problems.len();
        if piece.broken {
            self.inside(piece, container);
            return piece.end;
        }
        let Err(Refused { offset, error }) = self.read(piece, container, last) else {
            if piece.ended == End::Missing {
                self.problems.push(message::missing_semicolon(&self.words, piece.end));
            }
            return piece.end;
        };
        if container == Container::Block && last && self.is_value(piece) {
            self.problems.push(message::value_as_statement(&self.words, piece.end - 1));
            return piece.end;
        }
        self.inside(piece, container);
        if self.problems.len() > before || self.nest.broken_in(piece.start..piece.end) {
            return piece.end;
        }
        let at = self.words.at_byte(offset + position(&error));
        if let Some(block) = self.nest.block_around(&self.words, piece.start..piece.end, at) {
            self.walk(block, Container::Block);
            if self.problems.len() > before {
                return piece.end;
            }
        }
        self.explain(piece.start..piece.end, container, offset, &error);
        split::resume(&self.words, &self.nest, piece, at)
    }

    /// Gives a whole piece to the grammar, and what it reads to the tree.
    fn read(&mut self, piece: &Piece, container: Container, last: bool) -> Result<(), Refused> {
        let (offset, text) = self.words.slice(piece.start..piece.end);
        let source = Source { offset, ..self.source };
        let result = container == Container::Block && last && piece.ended != End::Semicolon;
        let rule = match container {
            _ if result => Rule::expr_piece,
            Container::File => Rule::top_piece,
            Container::Body | Container::Block => Rule::statement_piece,
        };
        let pairs = Grammar::parse(rule, text).map_err(|error| Refused { offset, error: Box::new(error) })?;
        let built = match container {
            _ if result => build::expression(source, pairs).map(|b| b.problems),
            Container::File => build::tops(source, pairs).map(|mut b| {
                self.tops.append(&mut b.tree);
                b.problems
            }),
            Container::Body | Container::Block => build::statement_problems(source, pairs),
        };
        match built {
            Ok(mut problems) => self.problems.append(&mut problems),
            Err(bug) => self.problems.push(bug),
        }
        Ok(())
    }

    /// Whether a piece with a semicolon would be an expression without it.
    fn is_value(&self, piece: &Piece) -> bool {
        let (_, text) = self.words.slice(piece.start..piece.end - 1);
        piece.ended == End::Semicolon && Grammar::parse(Rule::expr_piece, text).is_ok()
    }

    /// Looks into a piece that has a head and a body in braces.
    fn inside(&mut self, piece: &Piece, container: Container) {
        let Some(body) = piece.body.clone() else {
            return;
        };
        let head = piece.start..body.start;
        let (offset, text) = self.words.slice(head.clone());
        let rule = split::head_rule(self.words.text(piece.start));
        if !self.nest.broken_in(piece.start..body.start - 1)
            && let Err(error) = Grammar::parse(rule, text)
        {
            self.explain(head, container, offset, &error);
        }
        self.walk(body, Container::Body);
    }

    fn explain(&mut self, range: Range<usize>, container: Container, offset: usize, error: &Error<Rule>) {
        let at = self.words.at_byte(offset + position(error));
        self.problems.push(message::explain(&self.words, range, container, at, error));
    }
}

/// Whether two words stand directly side by side.
fn touching(left: Token, right: Token) -> bool {
    left.end == right.start
}
