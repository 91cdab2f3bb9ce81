//! The grammar's refusal of a piece as a diagnostic.

use super::expected;
use super::hints;
use super::split::Container;
use super::words::Words;
use crate::grammar::Rule;
use crate::lex::TokenKind;
use base::Diagnostic;
use base::diagnostic::code;
use miras_base as base;
use pest::error::Error;
use std::ops::Range;

/// A mistake: where the grammar stopped, in which piece, and what it would have taken.
pub struct Mistake<'a> {
    pub words: &'a Words<'a>,
    /// The piece.
    pub piece: Range<usize>,
    /// What the piece lies in.
    pub container: Container,
    /// The word that was not expected; the piece's end where words are missing.
    pub at: usize,
    /// What was tried there.
    pub rules: &'a [Rule],
}

impl Mistake<'_> {
    pub fn expects(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// Whether a value was wanted.
    pub fn expects_value(&self) -> bool {
        [Rule::expr, Rule::operation, Rule::operand, Rule::number].iter().any(|r| self.expects(*r))
    }
}

/// The diagnostic for a piece that the grammar refused at the word `at`.
pub fn explain(
    words: &Words<'_>,
    piece: Range<usize>,
    container: Container,
    at: usize,
    error: &Error<Rule>,
) -> Diagnostic {
    let mistake = Mistake { words, piece, container, at, rules: expected::rules(error) };
    hints::known(&mistake).unwrap_or_else(|| plain(&mistake, &expected::list(error)))
}

/// The statement before the word `next` lacks its semicolon.
pub fn missing_semicolon(words: &Words<'_>, next: usize) -> Diagnostic {
    let last = next.saturating_sub(1);
    Diagnostic::new(code::SYNTAX, format!("`;` is missing after `{}`", shown(words.text(last))))
        .at(words.span(last), "expected `;` after this")
        .at(words.span(next), "the next statement starts here")
        .with_help(format!("write `{};`", shown(words.text(last))))
}

/// The value of a block, up to the word `semicolon`, is ended like a statement.
pub fn value_as_statement(words: &Words<'_>, semicolon: usize) -> Diagnostic {
    Diagnostic::new(code::SYNTAX, "a block must end with its value, not with a statement")
        .at(words.span(semicolon), "this `;` ends a statement")
        .with_help("remove this `;`")
}

fn plain(mistake: &Mistake<'_>, wanted: &[&'static str]) -> Diagnostic {
    let words = mistake.words;
    let wanted_text = expected::prose(wanted);
    let found = found(words, mistake.at);
    let problem = Diagnostic::new(code::SYNTAX, format!("expected {wanted_text}, found {found}"))
        .at(words.span(mistake.at), format!("expected {wanted_text}"));
    let before = mistake.at.checked_sub(1).filter(|b| *b >= mistake.piece.start);
    let problem = match before {
        Some(before) if words.starts_line(mistake.at) || mistake.at >= words.count() => {
            problem.at(words.span(before), "after this")
        }
        _ => problem,
    };
    let mark = wanted.first().is_some_and(|w| w.starts_with('`'));
    let help = match before {
        Some(before) if mark => {
            format!("write {wanted_text} after `{}`", shown(words.text(before)))
        }
        _ if mistake.at >= words.count() => format!("write {wanted_text} at the end"),
        _ => format!("write {wanted_text} here, or remove {found}"),
    };
    problem.with_help(help)
}

/// The word at `at` in a sentence.
pub fn found(words: &Words<'_>, at: usize) -> String {
    let Some(token) = words.get(at) else {
        return "the end of the file".into();
    };
    let text = shown(words.text(at));
    match token.kind {
        TokenKind::Name if words.is_reserved(at) => format!("the reserved word `{text}`"),
        TokenKind::Name | TokenKind::Primed => format!("the name `{text}`"),
        TokenKind::Number => format!("the number `{text}`"),
        TokenKind::Text => "a text in quotes".to_string(),
        TokenKind::Mark | TokenKind::Comment | TokenKind::Stray => format!("`{text}`"),
    }
}

/// A word, cut short where it is long.
pub fn shown(word: &str) -> String {
    const LONGEST: usize = 30;
    if word.chars().count() <= LONGEST {
        return word.to_string();
    }
    word.chars().take(LONGEST - 3).chain("...".chars()).collect()
}
