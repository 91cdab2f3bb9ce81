//! Characters, operators and numbers.

use super::syntax;
use crate::grammar::Rule;
use crate::lex::TokenKind;
use crate::recover::message::{Mistake, shown};
use crate::recover::touching;
use base::Diagnostic;
use miras_base as base;

/// A character that no construct uses.
pub(super) fn stray(m: &Mistake<'_>) -> Option<Diagnostic> {
    if !m.words.is(m.at, TokenKind::Stray) {
        return None;
    }
    let text = m.words.text(m.at);
    let (message, help) = match text {
        "&&" | "||" => (
            format!("there is no operator `{text}`"),
            "nest the conditions: `if a then (if b then x else y) else y`".into(),
        ),
        "!" => (
            "there is no operator `!`".into(),
            "turn the comparison round, or swap the branches of the `if`".into(),
        ),
        "'" => {
            ("a prime must follow a name directly".into(), "write the value after this token as `S'`".into())
        }
        "#" => ("`#` has no meaning here".into(), "start a comment with `//`".into()),
        _ if text.starts_with('"') => {
            ("a text in quotes is not closed".into(), "add `\"` on the same line".into())
        }
        _ => foreign_character(text),
    };
    Some(syntax(message).at(m.words.span(m.at), "not part of the language").with_help(help))
}

fn foreign_character(text: &str) -> (String, String) {
    let meant = match text {
        "\u{d7}" | "\u{22c5}" | "\u{b7}" => Some("*"),
        "\u{f7}" => Some("/"),
        "\u{2212}" | "\u{2013}" => Some("-"),
        "\u{2264}" => Some("<="),
        "\u{2265}" => Some(">="),
        "\u{2260}" => Some("!="),
        "\u{2032}" | "\u{2019}" => Some("'"),
        "\u{201c}" | "\u{201d}" => Some("\""),
        "\u{2295}" | "\u{2297}" => Some("outer(a, b)"),
        _ => None,
    };
    match meant {
        Some(meant) => (format!("`{text}` is not part of the language"), format!("write `{meant}`")),
        None if text.chars().any(char::is_alphanumeric) => (
            format!("the name `{}` holds a letter that is not ASCII", shown(text)),
            "write names with the letters a-z, A-Z, digits and `_`".into(),
        ),
        None => {
            let codes: Vec<_> = text.chars().map(|c| format!("U+{:04X}", u32::from(c))).collect();
            (format!("the character {} is not part of the language", codes.join(" ")), "remove it".into())
        }
    }
}

/// Operators of other languages made of marks that exist: `**`, `+=`, `/*`.
pub(super) fn foreign_operator(m: &Mistake<'_>) -> Option<Diagnostic> {
    foreign_pair(m, m.at).or_else(|| foreign_pair(m, m.at.checked_sub(1)?))
}

fn foreign_pair(m: &Mistake<'_>, at: usize) -> Option<Diagnostic> {
    if !touching(m.words.get(at)?, m.words.get(at + 1)?) {
        return None;
    }
    let both = [m.words.text(at), m.words.text(at + 1)].concat();
    let help = match both.as_str() {
        "**" => "write the power as `x^2`",
        "/*" | "*/" => "start each comment line with `//`",
        "+=" | "-=" | "*=" | "/=" => "write the operation out: `x = x + 1;`",
        "=>" | "->" => "write `if c then a else b`, or `name = value;`",
        "=<" => "write `<=`",
        "===" => "write `==`",
        "<>" => "write `!=`",
        "::" => "write `input.name` for a field",
        _ => return None,
    };
    let span = m.words.span(at).to(m.words.span(at + 1));
    Some(syntax(format!("there is no `{both}`")).at(span, "not part of the language").with_help(help))
}

/// `2x`, `3rd`
pub(super) fn number_and_name(m: &Mistake<'_>) -> Option<Diagnostic> {
    let (number, name) = (m.words.get(m.at)?, m.words.get(m.at + 1)?);
    let joined = number.kind == TokenKind::Number
        && matches!(name.kind, TokenKind::Name | TokenKind::Primed)
        && touching(number, name);
    joined.then(|| {
        let (n, x) = (m.words.text(m.at), m.words.text(m.at + 1));
        let help = if m.expects_value() {
            format!("write `{n} * {x}`")
        } else {
            "begin a name with a letter".into()
        };
        syntax(format!("`{}` is neither a number nor a name", shown(&format!("{n}{x}"))))
            .at(m.words.span(m.at).to(m.words.span(m.at + 1)), "a number runs into a name")
            .with_help(help)
    })
}

/// `2.`
pub(super) fn unfinished_number(m: &Mistake<'_>) -> Option<Diagnostic> {
    let number = m.at.checked_sub(1).filter(|b| m.words.is(*b, TokenKind::Number))?;
    let dot = m.words.text(m.at) == "." && touching(m.words.get(number)?, m.words.get(m.at)?);
    dot.then(|| {
        let n = m.words.text(number);
        syntax(format!("the number `{n}.` has no digit after its dot"))
            .at(m.words.span(number).to(m.words.span(m.at)), "a digit is missing")
            .with_help(format!("write `{n}` or `{n}.0`"))
    })
}

/// A text in quotes anywhere but after `use`.
pub(super) fn quoted_text(m: &Mistake<'_>) -> Option<Diagnostic> {
    (m.words.is(m.at, TokenKind::Text) && !m.expects(Rule::string)).then(|| {
        syntax("a text in quotes can only follow `use`")
            .at(m.words.span(m.at), "not a value")
            .with_help("write names without quotes")
    })
}
