//! The guard before the grammar: pest recurses once per bracket and per `if`, so a text that nests deeper
//! than [`MAX_DEPTH`] is refused before it is parsed.

use crate::MAX_DEPTH;
use crate::lex::Token;
use base::diagnostic::code;
use base::{Diagnostic, FileId, Span};
use miras_base as base;

/// The place where the text first nests too deeply, as a diagnostic.
///
/// Counts open brackets and, in each, the `if`s since the last `,` or `;`: an upper bound of the depth to
/// which the grammar can recurse at that place.
pub fn check(file: FileId, text: &str, tokens: &[Token]) -> Option<Diagnostic> {
    // `if`s in each open bracket, and their sum.
    let mut open = vec![0_usize];
    let mut ifs = 0;
    for token in tokens {
        match token.text(text) {
            "(" | "[" | "{" => open.push(0),
            ")" | "]" | "}" if open.len() > 1 => ifs -= open.pop().unwrap_or(0),
            "if" => {
                ifs += 1;
                if let Some(last) = open.last_mut() {
                    *last += 1;
                }
            }
            "," | ";" => {
                if let Some(last) = open.last_mut() {
                    ifs -= std::mem::take(last);
                }
            }
            _ => {}
        }
        if open.len() - 1 + ifs > MAX_DEPTH {
            return Some(refusal(Span::new(file, token.start, token.end)));
        }
    }
    None
}

fn refusal(span: Span) -> Diagnostic {
    Diagnostic::new(code::NESTING, format!("brackets and `if`s nest more than {MAX_DEPTH} deep"))
        .at(span, "this one is too deep")
        .with_help("give inner parts a name with `let`, or move them to a function with `fn`")
}
