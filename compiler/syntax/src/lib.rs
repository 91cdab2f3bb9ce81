//! # miras-syntax: text to tree, and tree-preserving text to text
//!
//! **Purpose.** Reads a `.miras` file into an [`ast::File`], telling of as many independent mistakes as
//! it can in one go, and formats such text.
//!
//! **Takes** text. **Gives** [`ast`] and diagnostics. **May touch** pest and the grammar in `grammar/`.
//! **Must not** resolve names, judge where a statement is legal, or read files.
//!
//! **Invariants.** Any text gives a tree and diagnostics, never a panic and never a stack overflow: no
//! tree is deeper than [`MAX_DEPTH`]. A file without an error diagnostic is represented whole.

pub mod ast;

use miras_base as base;

/// The greatest depth of brackets in a text and of an expression in a tree.
pub const MAX_DEPTH: usize = 200;

/// Reads one file. The tree holds whatever could be read; it is complete exactly where no diagnostic is
/// an error.
pub fn parse(file: base::FileId, text: &str) -> (ast::File, Vec<base::Diagnostic>) {
    let span = base::Span::new(file, 0, text.len());
    let limit = base::Diagnostic::new(
        base::diagnostic::code::SYNTAX,
        "the parser is not there yet",
    )
    .at(span, "here");
    (
        ast::File {
            uses: Vec::new(),
            items: Vec::new(),
            anonymous: None,
            span,
        },
        vec![limit],
    )
}
