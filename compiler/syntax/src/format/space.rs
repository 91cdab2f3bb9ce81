//! Blanks between two tokens on one line.

use super::outline::{Facts, Holds};
use crate::lex::TokenKind;

/// A token as the rules see it.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    pub text: &'a str,
    pub kind: TokenKind,
    pub facts: Facts,
}

/// Whether a blank stands between two tokens of one line. Neither is a comment.
pub fn between(left: Seen<'_>, right: Seen<'_>) -> bool {
    if left.facts.unary {
        return false;
    }
    match (left.text, right.text) {
        ("(" | "[", _) | (_, ")" | "]" | "," | ";" | ":") => false,
        ("." | ".." | "..=" | "^", _) | (_, "." | ".." | "..=" | "^") => false,
        ("{", "}") => false,
        ("{", _) => left.facts.holds != Some(Holds::Words),
        (_, "}") => right.facts.holds != Some(Holds::Words),
        (_, "(") => !callable(left),
        (_, "[") => right.facts.shape || !indexable(left),
        _ => true,
    }
}

fn reserved(word: &str) -> bool {
    matches!(word, "if" | "then" | "else" | "let" | "for" | "in")
}

fn callable(left: Seen<'_>) -> bool {
    left.kind == TokenKind::Name && !reserved(left.text)
}

fn indexable(left: Seen<'_>) -> bool {
    callable(left) || left.kind == TokenKind::Primed || matches!(left.text, ")" | "]" | "}")
}
