//! # miras-syntax: text to tree, and text to well-set text
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
mod build;
mod depth;
mod format;
mod grammar;
mod lex;
pub mod print;
mod recover;

pub use format::format;

use base::{Diagnostic, FileId, Span};
use build::{Built, Source, Top};
use grammar::{Grammar, Rule};
use miras_base as base;
use pest::Parser;

/// The greatest depth of brackets in a text and of an expression in a tree.
pub const MAX_DEPTH: usize = 128;

/// The greatest length of a text in bytes.
pub const MAX_LENGTH: usize = 4 << 20;

/// Reads one file. The tree holds whatever could be read; it is complete exactly where no diagnostic is
/// an error, and what is missing from it otherwise should not be complained of again.
pub fn parse(file: FileId, text: &str) -> (ast::File, Vec<Diagnostic>) {
    let mut tree = ast::File {
        uses: Vec::new(),
        items: Vec::new(),
        anonymous: None,
        span: Span::new(file, 0, text.len()),
    };
    if let Some(refused) = too_long(file, text) {
        return (tree, vec![refused]);
    }
    let start = body_start(text);
    let tokens = lex::lex(text, start);
    if let Some(refused) = depth::check(file, text, &tokens) {
        return (tree, vec![refused]);
    }
    let source = Source { file, text, tokens: &tokens, offset: start };
    let read = match Grammar::parse(Rule::file, &text[start..]) {
        Ok(pairs) => build::tops(source, pairs),
        Err(error) => Ok(recover::recover(source, &error)),
    };
    match read {
        Ok(Built { tree: tops, problems }) => {
            tops.into_iter().for_each(|top| add(&mut tree, top));
            (tree, problems)
        }
        Err(bug) => (tree, vec![bug]),
    }
}

/// Reads one expression, such as a value given on a command line.
pub fn parse_expr(file: FileId, text: &str) -> Result<ast::Expr, Vec<Diagnostic>> {
    if let Some(refused) = too_long(file, text) {
        return Err(vec![refused]);
    }
    let tokens = lex::lex(text, 0);
    if let Some(refused) = depth::check(file, text, &tokens) {
        return Err(vec![refused]);
    }
    let source = Source { file, text, tokens: &tokens, offset: 0 };
    let pairs =
        Grammar::parse(Rule::expr_piece, text).map_err(|e| vec![recover::explain_expr(source, &e)])?;
    let Built { tree, problems } = build::expression(source, pairs).map_err(|bug| vec![bug])?;
    if problems.is_empty() { Ok(tree) } else { Err(problems) }
}

/// Where the text starts, past a byte order mark.
fn body_start(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

/// A longer text is refused before it is read: it is data, or made by a program, and would take minutes.
fn too_long(file: FileId, text: &str) -> Option<Diagnostic> {
    (text.len() > MAX_LENGTH).then(|| refuse_length("the text").at(Span::new(file, 0, 0), "starts here"))
}

/// The refusal (E0004) of a text longer than [`MAX_LENGTH`]; `what` it is.
pub fn refuse_length(what: &str) -> Diagnostic {
    let message = format!("{what} is longer than {} MiB", MAX_LENGTH >> 20);
    Diagnostic::new(base::diagnostic::code::TOO_LONG, message)
        .with_help("give Miras source text; a long program can be cut into files that `use` one another")
}

fn add(tree: &mut ast::File, top: Top) {
    match top {
        Top::Use(used) => tree.uses.push(used),
        Top::Item(item) => tree.items.push(item),
        Top::Stmt(stmt) => {
            let span = stmt.span;
            let layer = tree.anonymous.get_or_insert_with(|| ast::LayerBody { stmts: Vec::new(), span });
            layer.span = layer.span.to(span);
            layer.stmts.push(stmt);
        }
    }
}
