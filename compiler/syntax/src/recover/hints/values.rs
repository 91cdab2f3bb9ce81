//! Expressions and blocks.

use super::syntax;
use crate::grammar::Rule;
use crate::lex::TokenKind;
use crate::recover::message::{Mistake, found, shown};
use base::Diagnostic;
use miras_base as base;

/// An `if` without `then` or `else`, or with braces in their place.
pub(super) fn branches(m: &Mistake<'_>) -> Option<Diagnostic> {
    let word = match (m.expects(Rule::kw_then), m.expects(Rule::kw_else)) {
        (true, _) => "then",
        (_, true) => "else",
        _ => return None,
    };
    let problem = syntax(format!("an `if` without `{word}`"))
        .at(m.words.span(m.at), format!("expected `{word}`, found {}", found(m.words, m.at)));
    let start = (m.piece.start..m.at).rev().find(|i| m.words.text(*i) == "if");
    let problem = problem.at_opt(start.map(|i| m.words.span(i)), "the `if`");
    Some(problem.with_help("write `if c then a else b`: every `if` has both branches, without braces"))
}

/// An `if` as an operand.
pub(super) fn inner_if(m: &Mistake<'_>) -> Option<Diagnostic> {
    (m.words.text(m.at) == "if" && m.expects_value()).then(|| {
        syntax("an `if` beside an operator needs parentheses")
            .at(m.words.span(m.at), "this `if`")
            .with_help("write `a + (if c then x else y)`")
    })
}

/// `if a = b`
pub(super) fn assignment_as_comparison(m: &Mistake<'_>) -> Option<Diagnostic> {
    let compared = m.words.text(m.at) == "=" && m.expects(Rule::operator);
    compared.then(|| {
        syntax("`=` cannot stand inside an expression")
            .at(m.words.span(m.at), "sets a name, does not compare")
            .with_help("write `==` to compare; end the statement before with `;` to set a name")
    })
}

/// `{ let h = x; h = h + 1; }`
pub(super) fn block_without_value(m: &Mistake<'_>) -> Option<Diagnostic> {
    let ends = m.words.text(m.at) == "}" && m.expects_value();
    let before = m.at.checked_sub(1).filter(|b| ends && matches!(m.words.text(*b), ";" | "{" | "}"))?;
    let problem = syntax("a block must end with its value")
        .at(m.words.span(m.at), "expected an expression before this")
        .at(m.words.span(before), "after this")
        .with_help("end the block with an expression, without a `;`");
    Some(problem)
}

/// `a b`, `2 (x)`
pub(super) fn side_by_side(m: &Mistake<'_>) -> Option<Diagnostic> {
    let value = m.words.is_name(m.at)
        || m.words.is(m.at, TokenKind::Primed)
        || m.words.is(m.at, TokenKind::Number)
        || m.words.text(m.at) == "(";
    if !value || !m.expects(Rule::operator) || m.words.starts_line(m.at) {
        return None;
    }
    let (left, right) = (shown(m.words.text(m.at.checked_sub(1)?)), shown(m.words.text(m.at)));
    let problem = syntax(format!("an operator is missing between `{left}` and `{right}`"))
        .at(m.words.span(m.at - 1).to(m.words.span(m.at)), "two values side by side")
        .with_help(format!(
            "write `{left} * {right}` for a product, `{left} @ {right}` for a matrix product"
        ));
    Some(problem)
}
