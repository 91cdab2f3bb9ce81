//! Text to well-set text: one statement a line, two blanks an indent, comments kept.
//!
//! Works on tokens, so nothing that was written is lost. Line breaks inside a statement stay where the author
//! put them; braces written on one line stay on it while they fit, and so does a file of clauses; columns that the
//! author set stay columns. Setting a text twice changes nothing more, and the tree stays the same, which is checked
//! before the text is given.

mod columns;
mod layout;
mod outline;
mod space;

use crate::{ast, lex, print};
use base::{Diagnostic, FileId};
use layout::Layout;
use miras_base as base;
use outline::Outline;

/// The longest line that braces are kept on, comments not counted.
const WIDTH: usize = 100;

/// Sets a text. The errors are those of [`crate::parse`]: a text with mistakes is left alone.
pub fn format(text: &str, file: FileId) -> Result<String, Vec<Diagnostic>> {
    let tree = accepted(text, file)?;
    let tokens = lex::lex(text, crate::body_start(text));
    let outline = Outline::new(text, &tokens);
    let mut layout = Layout::new(text, &tokens, &outline);
    let mut set = layout.set_in_columns();
    while layout.break_long_lines() {
        set = layout.set_in_columns();
    }
    match accepted(&set, file) {
        Ok(again) if print::file(&again) == print::file(&tree) => Ok(set),
        _ => Err(vec![Diagnostic::bug("formatting would change what the program means")]),
    }
}

fn accepted(text: &str, file: FileId) -> Result<ast::File, Vec<Diagnostic>> {
    let (tree, problems) = crate::parse(file, text);
    if problems.iter().any(Diagnostic::is_error) { Err(problems) } else { Ok(tree) }
}
