//! Whole numbers and sizes: what is known when the program is compiled.

use super::{Eval, Scope, Tensor, Value, budget, fail_help};
use crate::elaborate::Builder;
use base::diagnostic::code;
use base::{Diagnostic, Dim, DimEnv, Span};
use miras_base as base;
use miras_syntax::ast::{BinaryOp, Expr, Shape as ShapeExpr};
use miras_term::Shape;
use std::sync::Arc;

/// Whole numbers up to here are exact in float64.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Builder<'_> {
    /// A literal: a whole number where it is one.
    pub(super) fn number(&mut self, value: f64) -> Value {
        if value.fract() == 0.0 && value.abs() <= EXACT {
            Value::Size(Dim::constant(value as i64))
        } else {
            Value::Tensor(Tensor::plain(self.terms.num(value)))
        }
    }

    /// The sizes written in brackets.
    pub(crate) fn shape(&mut self, scope: &mut Scope, shape: &ShapeExpr) -> Eval<Shape> {
        if shape.dims.len() > 2 {
            let message = format!("a tensor has at most 2 axes, this one has {}", shape.dims.len());
            return fail_help(
                code::TYPE,
                shape.span,
                message,
                "too many axes",
                "use a scalar, a vector or a matrix",
            );
        }
        let mut dims = Vec::new();
        for e in &shape.dims {
            dims.push(self.size(scope, e)?);
        }
        Ok(Shape(dims))
    }

    /// The size that an expression must be.
    pub(super) fn size(&mut self, scope: &mut Scope, e: &Expr) -> Eval<Dim> {
        let value = self.eval(scope, e)?;
        let Value::Size(dim) = value else {
            let message =
                "a size must be a whole-number expression of `dk`, `dv` and parameters of kind `nat`";
            let label = format!("this is {}", self.describe(&value));
            return fail_help(
                code::NOT_CONSTANT,
                e.span,
                message,
                label,
                "use `dk`, `dv`, numbers, `+`, `-` and `*`",
            );
        };
        self.check_size(&dim, e.span)?;
        Ok(dim)
    }

    /// Refuses a size that is positive for no dk and dv, and warns of one that is so for some only.
    fn check_size(&mut self, dim: &Dim, span: Span) -> Eval<()> {
        let ones = DimEnv::from([(Arc::from("dk"), 1), (Arc::from("dv"), 1)]);
        match dim.is_positive() {
            Some(true) => {}
            Some(false) => {
                let message = format!("a size must be positive, this one is {}", dim.formula());
                let help = "give every axis at least one entry";
                return fail_help(code::TYPE, span, message, "not positive", help);
            }
            None => self.perhaps_no_size(dim, span),
        }
        if dim.eval(&ones).is_some_and(|n| n > budget::MAX_NAT as u64) {
            let message = format!("the size {} has a factor over {}", dim.formula(), budget::MAX_NAT);
            return fail_help(code::UNROLL, span, message, "too large", "make it smaller");
        }
        Ok(())
    }

    fn perhaps_no_size(&mut self, dim: &Dim, span: Span) {
        let message = format!("the size {} is positive for some dk and dv only", dim.formula());
        let warning = Diagnostic::new(code::PERHAPS_NO_SIZE, message)
            .at(span, "0 or less for others")
            .with_help("write a size that is at least 1 for any dk and dv, e.g. with `+` and `*` only");
        if !self.said.contains(&warning) {
            self.said.push(warning);
        }
    }
}

/// The result of an operator on two sizes where it is a size (or a truth value) again.
pub(super) fn of_sizes(op: BinaryOp, a: &Dim, b: &Dim) -> Option<Value> {
    let numbers = a.as_constant().zip(b.as_constant());
    let truth = |f: fn(&i64, &i64) -> bool| numbers.map(|(a, b)| Value::Bool(f(&a, &b)));
    let size = match op {
        BinaryOp::Add => a.add(b),
        BinaryOp::Sub => a.add(&b.neg()?),
        BinaryOp::Mul => a.mul(b),
        BinaryOp::Div => numbers
            .filter(|(a, b)| *b != 0 && a.checked_rem(*b) == Some(0))
            .map(|(a, b)| Dim::constant(a / b)),
        BinaryOp::Pow => numbers.and_then(|(a, b)| a.checked_pow(u32::try_from(b).ok()?)).map(Dim::constant),
        BinaryOp::MatMul => None,
        BinaryOp::Lt => return truth(i64::lt),
        BinaryOp::Le => return truth(i64::le),
        BinaryOp::Gt => return truth(i64::gt),
        BinaryOp::Ge => return truth(i64::ge),
        BinaryOp::Eq if a == b => return Some(Value::Bool(true)),
        BinaryOp::Ne if a == b => return Some(Value::Bool(false)),
        BinaryOp::Eq => return truth(i64::eq),
        BinaryOp::Ne => return truth(i64::ne),
    };
    size.filter(|d| d.as_constant().is_none_or(|n| n.unsigned_abs() <= EXACT as u64)).map(Value::Size)
}
