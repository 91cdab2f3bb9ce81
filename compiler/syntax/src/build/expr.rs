//! Expressions, except for the precedence of their operators.

use super::operators::{Item, Operators};
use super::{Builder, Parts, unexpected};
use crate::MAX_DEPTH;
use crate::ast::{self, ExprKind};
use crate::grammar::Rule;
use base::diagnostic::code;
use base::{Diagnostic, Span};
use miras_base as base;
use pest::iterators::Pair;

/// An expression and its depth (a leaf has 1).
pub(super) type Deep = (ast::Expr, usize);

impl Builder<'_> {
    pub(super) fn expr(&mut self, pair: Pair<'_, Rule>) -> Result<ast::Expr, Diagnostic> {
        Ok(self.deep_expr(pair)?.0)
    }

    pub(super) fn deep_expr(&mut self, pair: Pair<'_, Rule>) -> Result<Deep, Diagnostic> {
        let inner = Parts::of(pair).next()?;
        match inner.as_rule() {
            Rule::if_expr => self.if_expr(inner),
            Rule::operation => self.operation(inner),
            _ => Err(unexpected(&inner)),
        }
    }

    fn if_expr(&mut self, pair: Pair<'_, Rule>) -> Result<Deep, Diagnostic> {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let (cond, a) = self.deep_expr(parts.next()?)?;
        let (then, b) = self.deep_expr(parts.next()?)?;
        let (otherwise, c) = self.deep_expr(parts.next()?)?;
        let kind =
            ExprKind::If { cond: Box::new(cond), then: Box::new(then), otherwise: Box::new(otherwise) };
        Ok(self.node(kind, span, a.max(b).max(c)))
    }

    fn operation(&mut self, pair: Pair<'_, Rule>) -> Result<Deep, Diagnostic> {
        let mut operators = Operators::default();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::operand => self.operand(part, &mut operators)?,
                Rule::operator => {
                    let item =
                        Item::binary(part.as_str(), self.span(&part)).ok_or_else(|| unexpected(&part))?;
                    operators.push(self, item)?;
                }
                _ => return Err(unexpected(&part)),
            }
        }
        operators.finish(self)
    }

    fn operand(&mut self, pair: Pair<'_, Rule>, operators: &mut Operators) -> Result<(), Diagnostic> {
        let mut value: Option<Deep> = None;
        for part in pair.into_inner() {
            value = match (part.as_rule(), value) {
                (Rule::minus, None) => {
                    operators.push(self, Item::negation(self.span(&part)))?;
                    None
                }
                (Rule::index | Rule::member, Some(of)) => Some(self.postfix(of, part)?),
                (_, None) => Some(self.value(part)?),
                (_, Some(_)) => return Err(unexpected(&part)),
            };
        }
        operators.operand(value.ok_or_else(|| Diagnostic::bug("an operand without a value"))?);
        Ok(())
    }

    fn value(&mut self, pair: Pair<'_, Rule>) -> Result<Deep, Diagnostic> {
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::number => Ok((self.number(&pair), 1)),
            Rule::name => Ok((ast::Expr { kind: ExprKind::Name(self.ident(&pair)), span }, 1)),
            Rule::primed => Ok((ast::Expr { kind: ExprKind::Primed(self.unprimed(&pair)), span }, 1)),
            Rule::paren => self.paren(pair),
            Rule::block => self.block(pair),
            Rule::call => self.call(pair),
            _ => Err(unexpected(&pair)),
        }
    }

    /// What stands in the parentheses, with their place, so that messages show what was written.
    fn paren(&mut self, pair: Pair<'_, Rule>) -> Result<Deep, Diagnostic> {
        let span = self.span(&pair);
        let (inner, depth) = self.deep_expr(Parts::of(pair).next()?)?;
        Ok((ast::Expr { span, ..inner }, depth))
    }

    fn number(&mut self, pair: &Pair<'_, Rule>) -> ast::Expr {
        let span = self.span(pair);
        let text = pair.as_str().to_string();
        let value = text.parse::<f64>().unwrap_or(f64::NAN);
        let mantissa = text.split(['e', 'E']).next().unwrap_or("");
        let vanished = value == 0.0 && mantissa.bytes().any(|b| matches!(b, b'1'..=b'9'));
        if vanished || !value.is_finite() {
            self.unrepresentable(span, &text, vanished);
            return ast::Expr { kind: ExprKind::Number { value: 0.0, text }, span };
        }
        ast::Expr { kind: ExprKind::Number { value, text }, span }
    }

    fn unrepresentable(&mut self, span: Span, text: &str, vanished: bool) {
        let (size, bound) =
            if vanished { ("small", "at least 5e-324") } else { ("large", "at most 1.79e308") };
        let shown: String = text.chars().take(24).collect();
        let dots = if shown.len() < text.len() { "..." } else { "" };
        let problem =
            Diagnostic::new(code::NUMBER, format!("`{shown}{dots}` is too {size} for a 64-bit number"))
                .at(span, format!("too {size}"))
                .with_help(format!("write a number that is {bound}"));
        self.problems.push(problem);
    }

    fn block(&mut self, pair: Pair<'_, Rule>) -> Result<Deep, Diagnostic> {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let (mut stmts, mut depth) = (Vec::new(), 0);
        loop {
            let part = parts.next()?;
            if part.as_rule() == Rule::expr {
                let (result, below) = self.deep_expr(part)?;
                return Ok(self.node(
                    ExprKind::Block { stmts, result: Box::new(result) },
                    span,
                    depth.max(below),
                ));
            }
            let (stmt, below) = self.deep_stmt(part)?;
            depth = depth.max(below);
            stmts.push(stmt);
        }
    }

    fn call(&mut self, pair: Pair<'_, Rule>) -> Result<Deep, Diagnostic> {
        let span = self.span(&pair);
        let mut parts = Parts::of(pair);
        let callee = self.ident(&parts.next()?);
        let (args, depth) = self.deep_args(parts.take(Rule::args))?;
        Ok(self.node(ExprKind::Call { callee, args }, span, depth))
    }

    pub(super) fn args(&mut self, pair: Option<Pair<'_, Rule>>) -> Result<Vec<ast::Arg>, Diagnostic> {
        Ok(self.deep_args(pair)?.0)
    }

    fn deep_args(&mut self, pair: Option<Pair<'_, Rule>>) -> Result<(Vec<ast::Arg>, usize), Diagnostic> {
        let (mut args, mut depth) = (Vec::new(), 0);
        let Some(pair) = pair else {
            return Ok((args, depth));
        };
        for arg in Parts::of(pair).all(Rule::arg) {
            let span = self.span(&arg);
            let mut parts = Parts::of(arg);
            let name = parts.take(Rule::name).map(|n| self.ident(&n));
            let (value, below) = self.deep_expr(parts.next()?)?;
            depth = depth.max(below);
            args.push(ast::Arg { name, value, span });
        }
        Ok((args, depth))
    }

    fn postfix(&mut self, (of, depth): Deep, pair: Pair<'_, Rule>) -> Result<Deep, Diagnostic> {
        let span = of.span.to(self.span(&pair));
        let rule = pair.as_rule();
        let part = Parts::of(pair).next()?;
        if rule == Rule::member {
            let kind = ExprKind::Member { base: Box::new(of), field: self.ident(&part) };
            return Ok(self.node(kind, span, depth));
        }
        let (index, below) = self.deep_expr(part)?;
        Ok(self.node(ExprKind::Index { base: Box::new(of), index: Box::new(index) }, span, depth.max(below)))
    }

    /// A node over parts of depth `below`; where that is too deep, a leaf and a problem.
    pub(super) fn node(&mut self, kind: ExprKind, span: Span, below: usize) -> Deep {
        if below < MAX_DEPTH {
            return (ast::Expr { kind, span }, below + 1);
        }
        if !self.too_deep {
            self.too_deep = true;
            self.problems.push(too_deep(span));
        }
        (ast::Expr { kind: ExprKind::Number { value: 0.0, text: "0".into() }, span }, 1)
    }
}

fn too_deep(span: Span) -> Diagnostic {
    let message = format!("an expression holds more than {MAX_DEPTH} operations one inside the other");
    Diagnostic::new(code::NESTING, message)
        .at(span, "too many operations in one expression")
        .with_help("give parts of it a name with `let`; each `a + b + c + ...` counts one per operator")
}
