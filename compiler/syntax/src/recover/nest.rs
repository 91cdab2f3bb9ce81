//! Which bracket closes which, in a text where some may be missing.

use super::words::Words;
use crate::lex::TokenKind;
use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;
use std::collections::BTreeMap;
use std::ops::Range;

/// The brackets of a text.
pub struct Nest {
    /// For each opening bracket: the closing one, or the word before which it should have been closed.
    closed: BTreeMap<usize, Close>,
    /// Brackets without a partner.
    broken: Vec<usize>,
    /// One for each of them.
    pub problems: Vec<Diagnostic>,
}

/// Where an opening bracket ends.
#[derive(Clone, Copy)]
pub struct Close {
    /// The closing bracket, or the word before which one is missing.
    pub at: usize,
    /// Whether there is one.
    pub real: bool,
}

impl Nest {
    pub fn new(words: &Words<'_>) -> Nest {
        let nest = Nest { closed: BTreeMap::new(), broken: Vec::new(), problems: Vec::new() };
        let mut matching = Matching { words, nest, open: Vec::new(), forgiven: Vec::new() };
        for at in 0..words.count() {
            matching.step(at);
        }
        matching.close_while(words.count(), |_| true);
        matching.nest.broken.sort_unstable();
        matching.nest
    }

    /// Where the opening bracket `at` ends.
    pub fn close(&self, at: usize) -> Close {
        self.closed.get(&at).copied().unwrap_or(Close { at: at + 1, real: false })
    }

    /// Whether some bracket in the range has no partner.
    pub fn broken_in(&self, range: Range<usize>) -> bool {
        let first = self.broken.partition_point(|b| *b < range.start);
        self.broken.get(first).is_some_and(|b| *b < range.end)
    }

    /// The inside of the outermost braces within `range` that hold the word `at`.
    pub fn block_around(&self, words: &Words<'_>, range: Range<usize>, at: usize) -> Option<Range<usize>> {
        let around = self.closed.range(range.start..range.end.min(at));
        let mut braces = around.filter(|(open, close)| words.text(**open) == "{" && close.at >= at);
        braces.next().map(|(open, close)| open + 1..close.at)
    }
}

/// Whether the words at `at` can only be the start of a definition, so that everything before must have ended.
fn starts_item(words: &Words<'_>, at: usize) -> bool {
    if !words.starts_line(at) || words.starts_line(at + 1) {
        return false;
    }
    match words.text(at) {
        "use" => words.is(at + 1, TokenKind::Text),
        "fn" => words.is_name(at + 1),
        "bias" | "retention" | "memory" | "algo" | "layer" | "block" | "model" => {
            words.is_name(at + 1) && has_brace(words, at)
        }
        _ => false,
    }
}

/// Whether an opening brace comes before the next semicolon or closing brace.
fn has_brace(words: &Words<'_>, at: usize) -> bool {
    let mut ahead = (at..words.count()).map(|i| words.text(i));
    ahead.find(|w| matches!(*w, "{" | ";" | "}")) == Some("{")
}

struct Matching<'a> {
    words: &'a Words<'a>,
    nest: Nest,
    /// The opening brackets that are still open.
    open: Vec<usize>,
    /// Closing brackets that were missed once already: when they come late they are not complained of.
    forgiven: Vec<&'static str>,
}

impl Matching<'_> {
    fn step(&mut self, at: usize) {
        match self.words.text(at) {
            "(" | "[" | "{" => self.open.push(at),
            ")" | "]" | "}" => self.closing(at),
            ";" => self.close_while(at, |open| open != "{"),
            _ if starts_item(self.words, at) => {
                self.close_while(at, |_| true);
                self.forgiven.retain(|f| *f == "}");
            }
            _ => {}
        }
    }

    fn closing(&mut self, at: usize) {
        let closing = self.words.text(at);
        let reach = self.open.iter().rev().take_while(|o| closing == "}" || self.words.text(**o) != "{");
        if !reach.into_iter().any(|o| partner(self.words.text(*o)) == closing) {
            self.stray(at);
            return;
        }
        self.close_while(at, |open| partner(open) != closing);
        if let Some(open) = self.open.pop() {
            self.nest.closed.insert(open, Close { at, real: true });
        }
    }

    /// Gives up the innermost open brackets before the word `at`, as long as `unclosed` says so.
    fn close_while(&mut self, at: usize, unclosed: impl Fn(&str) -> bool) {
        while let Some(open) = self.open.pop_if(|o| unclosed(self.words.text(*o))) {
            self.nest.closed.insert(open, Close { at, real: false });
            self.nest.broken.push(open);
            self.forgiven.push(partner(self.words.text(open)));
            self.nest.problems.push(self.unclosed(open, at));
        }
    }

    fn unclosed(&self, open: usize, at: usize) -> Diagnostic {
        let words = self.words;
        let (opening, closing) = (words.text(open), partner(words.text(open)));
        let problem = Diagnostic::new(code::SYNTAX, format!("`{opening}` is never closed"))
            .at(words.span(open), format!("this `{opening}` has no `{closing}`"));
        if at >= words.count() {
            return problem.with_help(format!("add `{closing}` before the end of the file"));
        }
        problem
            .at(words.span(at), format!("`{closing}` expected before this"))
            .with_help(format!("add `{closing}` before `{}`", words.text(at)))
    }

    fn stray(&mut self, at: usize) {
        let closing = self.words.text(at);
        self.nest.broken.push(at);
        if let Some(known) = self.forgiven.iter().rposition(|f| *f == closing) {
            self.forgiven.remove(known);
            return;
        }
        let problem = Diagnostic::new(code::SYNTAX, format!("`{closing}` closes nothing"))
            .at(self.words.span(at), format!("no `{}` is open here", opening(closing)))
            .with_help(format!(
                "remove this `{closing}`, or add the `{}` that it should close",
                opening(closing)
            ));
        self.nest.problems.push(problem);
    }
}

fn partner(opening: &str) -> &'static str {
    match opening {
        "(" => ")",
        "[" => "]",
        _ => "}",
    }
}

fn opening(closing: &str) -> &'static str {
    match closing {
        ")" => "(",
        "]" => "[",
        _ => "{",
    }
}
