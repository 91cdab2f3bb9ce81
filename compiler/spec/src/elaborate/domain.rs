//! Where a retention lets weights lie: `on simplex(row, mass)`, `on ball(radius)`, `on interval(a, b)`.

use super::Builder;
use super::retention::Subject;
use crate::eval::{Eval, Scope, Value, axis_word, fail_help};
use crate::layer::Domain;
use crate::program::did_you_mean;
use base::Span;
use base::diagnostic::code;
use miras_base as base;
use miras_syntax::ast;
use miras_term::{Shape, TermId};

const DOMAINS: [&str; 3] = ["simplex", "ball", "interval"];

impl Builder<'_> {
    pub(super) fn domain(
        &mut self,
        scope: &mut Scope,
        definition: &ast::Definition,
        s: &Subject,
    ) -> Eval<Option<(Domain, Span)>> {
        let Some(domain) = &definition.domain else { return Ok(None) };
        let args: Vec<&ast::Expr> = domain.args.iter().map(|a| &a.value).collect();
        let found = match (domain.name.text.as_str(), args.as_slice()) {
            ("simplex", [axis, mass]) => {
                let axis = self.simplex_axis(scope, axis, s)?;
                Domain::Simplex { axis, mass: self.scalar(scope, mass, "the mass of a simplex")? }
            }
            ("ball", [radius]) => {
                Domain::Ball { radius: self.scalar(scope, radius, "the radius of a ball")? }
            }
            ("interval", [low, high]) => self.interval(scope, low, high)?,
            (name, _) if DOMAINS.contains(&name) => {
                let help = "write `on simplex(row, mass)`, `on ball(radius)` or `on interval(low, high)`";
                return fail_help(
                    code::BAD_ARGUMENT,
                    domain.span,
                    format!("`{name}` needs other arguments"),
                    "here",
                    help,
                );
            }
            (name, _) => {
                let help = did_you_mean(name, DOMAINS.into_iter())
                    .unwrap_or_else(|| "domains are `simplex`, `ball` and `interval`".to_string());
                let message = format!("there is no domain called `{name}`");
                return fail_help(code::UNKNOWN_NAME, domain.name.span, message, "not a domain", help);
            }
        };
        Ok(Some((found, domain.span)))
    }

    fn simplex_axis(&mut self, scope: &mut Scope, e: &ast::Expr, s: &Subject) -> Eval<miras_term::Axis> {
        let passed = match &e.kind {
            ast::ExprKind::Name(name) => match scope.get(&name.text) {
                Some(Value::Word(word, _)) => Some(word.to_string()),
                _ => None,
            },
            _ => None,
        };
        let axis = match passed {
            Some(word) => {
                let kind = ast::ExprKind::Name(ast::Ident { text: word, span: e.span });
                axis_word(&ast::Expr { kind, span: e.span })?
            }
            None => axis_word(e)?,
        };
        if axis == miras_term::Axis::Column && s.shape.rank() == 1 {
            let message = format!("a weight {} is a vector and has no columns", s.shape);
            return fail_help(code::SHAPE, e.span, message, "columns", "write `row` or `all`");
        }
        Ok(axis)
    }

    fn interval(&mut self, scope: &mut Scope, low: &ast::Expr, high: &ast::Expr) -> Eval<Domain> {
        let at = low.span.to(high.span);
        let low = self.scalar(scope, low, "the lower end of an interval")?;
        let high = self.scalar(scope, high, "the upper end of an interval")?;
        if let (Some(a), Some(b)) = (self.constant(low), self.constant(high))
            && a >= b
        {
            let message = format!("the interval from {a} to {b} is empty");
            return fail_help(code::BAD_ARGUMENT, at, message, "empty", "give the smaller number first");
        }
        Ok(Domain::Interval { low, high })
    }

    /// A term that must be one number.
    pub(super) fn scalar(&mut self, scope: &mut Scope, e: &ast::Expr, what: &str) -> Eval<TermId> {
        let operand = self.operand(scope, e)?;
        let tensor = self.tensor(&operand)?;
        if self.terms.shape(tensor.term).rank() > 0 {
            let message = format!("{what} must be one number, found {}", self.describe(&operand.value));
            return fail_help(code::SHAPE, e.span, message, "not one number", "let it vary by token only");
        }
        self.fit(tensor, &Shape::scalar(), e.span, what)
    }
}
