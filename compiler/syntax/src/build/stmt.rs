//! Statements.

use super::{Builder, Parts, unexpected};
use crate::ast::{self, StmtKind};
use crate::grammar::Rule;
use base::Diagnostic;
use miras_base as base;
use pest::iterators::Pair;

impl Builder<'_> {
    pub(super) fn stmt(&mut self, pair: Pair<'_, Rule>) -> Result<ast::Stmt, Diagnostic> {
        Ok(self.deep_stmt(pair)?.0)
    }

    /// A statement and the depth of its deepest expression.
    pub(super) fn deep_stmt(&mut self, pair: Pair<'_, Rule>) -> Result<(ast::Stmt, usize), Diagnostic> {
        let mut span = self.span(&pair);
        if let Some(semicolon) = pair.clone().into_inner().find(|p| p.as_rule() == Rule::semicolon) {
            let end = self.end_before(self.source.offset + semicolon.as_span().start());
            span.end = span.end.min(end as u32).max(span.start);
        }
        let rule = pair.as_rule();
        let refused = unexpected(&pair);
        let mut parts = Parts::of(pair);
        let (kind, depth) = match rule {
            Rule::for_statement => self.for_statement(&mut parts)?,
            Rule::declaration => self.declaration(&mut parts)?,
            Rule::history => (StmtKind::History { names: self.idents(&mut parts) }, 0),
            Rule::require => (StmtKind::Require { conditions: self.conditions(&mut parts)? }, 0),
            Rule::let_statement | Rule::assign | Rule::clause | Rule::define | Rule::next | Rule::dual => {
                self.named_value(rule, &mut parts)?
            }
            _ => return Err(refused),
        };
        Ok((ast::Stmt { kind, span }, depth))
    }

    /// The statements that are a name, perhaps its arguments, and an expression.
    fn named_value(&mut self, rule: Rule, parts: &mut Parts<'_>) -> Result<(StmtKind, usize), Diagnostic> {
        let head = parts.next()?;
        let name = self.unprimed(&head);
        let params = parts.take(Rule::names).map(|p| self.names(p)).unwrap_or_default();
        let (value, depth) = self.deep_expr(parts.next()?)?;
        let kind = match rule {
            Rule::let_statement => StmtKind::Let { name, value },
            Rule::assign => StmtKind::Assign { name, value },
            Rule::clause => StmtKind::Clause { key: name, value },
            Rule::define => StmtKind::Define { name, params, value },
            Rule::next => StmtKind::Next { name, value },
            Rule::dual => StmtKind::Dual { name, value },
            _ => return Err(unexpected(&head)),
        };
        Ok((kind, depth))
    }

    fn for_statement(&mut self, parts: &mut Parts<'_>) -> Result<(StmtKind, usize), Diagnostic> {
        let var = self.ident(&parts.next()?);
        let (range, mut depth) = self.range(parts.next()?)?;
        let mut body = Vec::new();
        while let Ok(part) = parts.next() {
            let (stmt, below) = self.deep_stmt(part)?;
            depth = depth.max(below);
            body.push(stmt);
        }
        Ok((StmtKind::For { var, range, body }, depth + 1))
    }

    fn range(&mut self, pair: Pair<'_, Rule>) -> Result<(ast::Range, usize), Diagnostic> {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let (from, left) = self.deep_expr(parts.next()?)?;
        let inclusive = parts.next()?.as_rule() == Rule::to_inclusive;
        let (to, right) = self.deep_expr(parts.next()?)?;
        Ok((ast::Range { from, to, inclusive, span }, left.max(right)))
    }

    fn declaration(&mut self, parts: &mut Parts<'_>) -> Result<(StmtKind, usize), Diagnostic> {
        let role = role(&parts.next()?)?;
        let name = self.ident(&parts.next()?);
        let mut depth = 0;
        let index = parts.take(Rule::index).map(|i| self.inner(i, &mut depth)).transpose()?;
        let kind = parts.take(Rule::kind).map(|k| self.kind(k)).transpose()?;
        let shape = parts.take(Rule::shape).map(|s| self.shape(s, &mut depth)).transpose()?;
        let init = parts.take(Rule::init).map(|i| self.inner(i, &mut depth)).transpose()?;
        Ok((StmtKind::Declare(ast::Declaration { role, name, index, kind, shape, init }), depth))
    }

    /// The one expression inside a pair.
    fn inner(&mut self, pair: Pair<'_, Rule>, depth: &mut usize) -> Result<ast::Expr, Diagnostic> {
        let (expr, below) = self.deep_expr(Parts::of(pair).next()?)?;
        *depth = below.max(*depth);
        Ok(expr)
    }

    fn shape(&mut self, pair: Pair<'_, Rule>, depth: &mut usize) -> Result<ast::Shape, Diagnostic> {
        let span = self.span(&pair);
        let mut dims = Vec::new();
        for dim in Parts::of(pair).all(Rule::expr) {
            let (expr, below) = self.deep_expr(dim)?;
            *depth = below.max(*depth);
            dims.push(expr);
        }
        Ok(ast::Shape { dims, span })
    }

    fn conditions(&self, parts: &mut Parts<'_>) -> Result<Vec<ast::Requirement>, Diagnostic> {
        parts.all(Rule::condition).into_iter().map(|c| self.condition(c)).collect()
    }

    fn condition(&self, pair: Pair<'_, Rule>) -> Result<ast::Requirement, Diagnostic> {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let predicate = self.ident(&parts.next()?);
        let subjects = parts.take(Rule::names).map(|n| self.names(n)).unwrap_or_default();
        Ok(ast::Requirement { predicate, subjects, span })
    }

    fn idents(&self, parts: &mut Parts<'_>) -> Vec<ast::Ident> {
        parts.all(Rule::name).iter().map(|n| self.ident(n)).collect()
    }

    /// A name without its prime, if it has one.
    pub(super) fn unprimed(&self, pair: &Pair<'_, Rule>) -> ast::Ident {
        match pair.as_rule() {
            Rule::primed => {
                let mut ident = self.ident(pair);
                ident.text.truncate(ident.text.trim_end_matches('\'').len());
                ident
            }
            _ => self.ident(pair),
        }
    }
}

fn role(pair: &Pair<'_, Rule>) -> Result<ast::Role, Diagnostic> {
    use ast::Role::{Input, Slow, State, Trained, Weight};
    let roles = [Weight, Slow, State, Input, Trained];
    roles.into_iter().find(|r| r.word() == pair.as_str()).ok_or_else(|| unexpected(pair))
}
