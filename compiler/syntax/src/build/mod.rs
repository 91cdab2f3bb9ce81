//! Parse pairs to tree. One file a construct: items, statements, expressions, operators.
//!
//! What the grammar promises but a pair does not hold is a bug diagnostic, never a panic.

mod expr;
mod item;
mod operators;
mod stmt;

use crate::ast;
use crate::grammar::Rule;
use crate::lex::{Token, TokenKind};
use base::{Diagnostic, FileId, Span};
use miras_base as base;
use pest::iterators::{Pair, Pairs};

/// A text, or a piece of one, that pest has read.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The file.
    pub file: FileId,
    /// Its whole text.
    pub text: &'a str,
    /// Its tokens, comments included.
    pub tokens: &'a [Token],
    /// Where in the text the piece starts.
    pub offset: usize,
}

/// A tree or, where an expression of it is refused, the reasons too.
pub struct Built<T> {
    /// The tree; where there are problems, with placeholders for what was refused.
    pub tree: T,
    /// What was refused.
    pub problems: Vec<Diagnostic>,
}

/// What one top-level construct is.
pub enum Top {
    /// A `use` line.
    Use(ast::Use),
    /// A definition, function or layer.
    Item(ast::Item),
    /// A clause or declaration of the anonymous layer.
    Stmt(ast::Stmt),
}

/// Reads all top-level constructs of the pairs of `file` or `top_piece`.
pub fn tops(source: Source<'_>, pairs: Pairs<'_, Rule>) -> Result<Built<Vec<Top>>, Diagnostic> {
    let mut builder = Builder::new(source);
    let mut tree = Vec::new();
    for pair in pairs.flat_map(|whole| whole.into_inner()) {
        if pair.as_rule() != Rule::EOI {
            tree.push(builder.top(pair)?);
        }
    }
    Ok(Built { tree, problems: builder.problems })
}

/// Reads the pairs of `statement_piece`, for what is wrong in it.
pub fn statement_problems(source: Source<'_>, pairs: Pairs<'_, Rule>) -> Result<Vec<Diagnostic>, Diagnostic> {
    let mut builder = Builder::new(source);
    for pair in pairs.flat_map(|whole| whole.into_inner()) {
        if pair.as_rule() != Rule::EOI {
            builder.stmt(pair)?;
        }
    }
    Ok(builder.problems)
}

/// Reads the pairs of `expr_piece`.
pub fn expression(source: Source<'_>, pairs: Pairs<'_, Rule>) -> Result<Built<ast::Expr>, Diagnostic> {
    let mut builder = Builder::new(source);
    let whole = pairs.flat_map(|whole| whole.into_inner()).next();
    let tree = builder.expr(whole.ok_or_else(|| Diagnostic::bug("an expression was read as nothing"))?)?;
    Ok(Built { tree, problems: builder.problems })
}

struct Builder<'a> {
    source: Source<'a>,
    problems: Vec<Diagnostic>,
    /// Whether the statement being read was already found too deep.
    too_deep: bool,
}

impl<'a> Builder<'a> {
    fn new(source: Source<'a>) -> Self {
        Builder { source, problems: Vec::new(), too_deep: false }
    }

    fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        let span = pair.as_span();
        let start = self.source.offset + span.start();
        Span::new(self.source.file, start, self.end_before(self.source.offset + span.end()).max(start))
    }

    /// The end of the last token before byte `at` that is no comment: pest counts the blanks and comments
    /// before an absent optional part as part of the whole.
    fn end_before(&self, at: usize) -> usize {
        let tokens = self.source.tokens;
        let before = &tokens[..tokens.partition_point(|t| t.start < at)];
        before.iter().rev().find(|t| t.kind != TokenKind::Comment).map_or(at, |t| t.end.min(at))
    }

    fn ident(&self, pair: &Pair<'_, Rule>) -> ast::Ident {
        ast::Ident { text: pair.as_str().to_string(), span: self.span(pair) }
    }

    /// The comment lines directly above the construct that starts at `span`.
    fn doc(&self, span: Span) -> Vec<String> {
        let text = self.source.text;
        let tokens = self.source.tokens;
        let at = tokens.partition_point(|t| t.start < span.start as usize);
        let mut breaks = tokens.get(at).map_or(0, |t| t.breaks);
        let mut lines = Vec::new();
        for token in tokens[..at].iter().rev() {
            if token.kind != TokenKind::Comment || breaks != 1 || !token.first {
                break;
            }
            let line = token.text(text).trim_start_matches('/');
            lines.push(line.strip_prefix(' ').unwrap_or(line).trim_end().to_string());
            breaks = token.breaks;
        }
        lines.reverse();
        lines
    }
}

/// The inner pairs of a pair without its marks and keywords.
struct Parts<'i> {
    pairs: std::iter::Peekable<std::vec::IntoIter<Pair<'i, Rule>>>,
}

impl<'i> Parts<'i> {
    fn of(pair: Pair<'i, Rule>) -> Self {
        let kept: Vec<_> = pair.into_inner().filter(|p| !is_mark(p.as_rule())).collect();
        Parts { pairs: kept.into_iter().peekable() }
    }

    /// The next part, which the grammar promises.
    fn next(&mut self) -> Result<Pair<'i, Rule>, Diagnostic> {
        self.pairs.next().ok_or_else(|| Diagnostic::bug("the grammar and the tree builder disagree"))
    }

    /// The next part if it was read by `rule`.
    fn take(&mut self, rule: Rule) -> Option<Pair<'i, Rule>> {
        self.pairs.next_if(|p| p.as_rule() == rule)
    }

    /// All next parts that were read by `rule`.
    fn all(&mut self, rule: Rule) -> Vec<Pair<'i, Rule>> {
        std::iter::from_fn(|| self.take(rule)).collect()
    }
}

fn is_mark(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::kw_use
            | Rule::kw_fn
            | Rule::kw_layer
            | Rule::kw_on
            | Rule::kw_dual
            | Rule::kw_history
            | Rule::kw_require
            | Rule::kw_let
            | Rule::kw_for
            | Rule::kw_in
            | Rule::kw_if
            | Rule::kw_then
            | Rule::kw_else
            | Rule::open_paren
            | Rule::close_paren
            | Rule::open_bracket
            | Rule::close_bracket
            | Rule::open_brace
            | Rule::close_brace
            | Rule::semicolon
            | Rule::colon
            | Rule::comma
            | Rule::equals
            | Rule::dot
    )
}

fn unexpected(pair: &Pair<'_, Rule>) -> Diagnostic {
    Diagnostic::bug(format!(
        "the tree builder met {:?} where the grammar has no place for it",
        pair.as_rule()
    ))
}
