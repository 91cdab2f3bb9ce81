//! Gates in an objective: `alpha * sum(W^2)` with a gate that varies within the weight.
//!
//! A retention is written once for every granularity of its gates (docs/guide.md). In its objective a
//! gate of one number per row, column or entry that multiplies or divides a sum over the weight's entries
//! weighs these entries: `alpha * sum(X)` is `sum(alpha * X)`, which for one number is the same.

use super::{Eval, Tensor};
use crate::elaborate::Builder;
use base::diagnostic::code;
use base::scalar::{Fn1, Fn2};
use base::{Diagnostic, Span};
use miras_base as base;
use miras_term::{Axis, Op, Reduce, TermId};

/// A gate that goes into a sum.
#[derive(Clone, Copy)]
struct Gate {
    tensor: Tensor,
    span: Span,
    /// Mul, or Div where the sum is divided by it.
    f: Fn2,
}

impl Builder<'_> {
    /// The product (or quotient) of a sum over weights and a gate that varies within them, where this is one.
    pub(super) fn weigh_sum(&mut self, f: Fn2, ops: &[(Tensor, Span)]) -> Eval<Option<Tensor>> {
        let [(a, a_at), (b, b_at)] = *ops else { return Ok(None) };
        if self.objective.is_empty() || !matches!(f, Fn2::Mul | Fn2::Div) {
            return Ok(None);
        }
        let (sum, sum_at, gate) = match (self.is_sum(a), self.is_sum(b), f) {
            (true, false, _) => (a, a_at, Gate { tensor: b, span: b_at, f }),
            (false, true, Fn2::Mul) => (b, b_at, Gate { tensor: a, span: a_at, f }),
            _ => return Ok(None),
        };
        if self.terms.shape(gate.tensor.term).rank() == 0 || self.is_about_weights(gate.tensor.term) {
            return Ok(None);
        }
        self.push_gate(sum.term, sum_at, gate).map(|term| Some(Tensor::plain(term)))
    }

    fn is_sum(&self, t: Tensor) -> bool {
        self.terms.shape(t.term).rank() == 0 && self.is_about_weights(t.term)
    }

    fn is_about_weights(&self, term: TermId) -> bool {
        let vars = self.terms.vars_of(&[term]);
        self.objective.iter().any(|w| vars.contains(w))
    }

    fn push_gate(&mut self, sum: TermId, at: Span, gate: Gate) -> Eval<TermId> {
        self.budget.enter(at)?;
        let pushed = self.push_kind(sum, at, gate);
        self.budget.leave();
        pushed
    }

    fn push_kind(&mut self, sum: TermId, at: Span, gate: Gate) -> Eval<TermId> {
        let built = match self.terms.op(sum).clone() {
            Op::Reduce(Reduce::Sum, Axis::All, entries) => {
                let (ops, _) = self.align(&[(Tensor::plain(entries), at), (gate.tensor, gate.span)], at)?;
                let weighed = self.terms.fn2(gate.f, ops[0].0.term, ops[1].0.term);
                let weighed = self.built(weighed, &ops, at)?;
                self.terms.sum(weighed)
            }
            Op::Fn2(f @ (Fn2::Add | Fn2::Sub), a, b)
                if self.is_about_weights(a) && self.is_about_weights(b) =>
            {
                let (a, b) = (self.push_gate(a, at, gate)?, self.push_gate(b, at, gate)?);
                self.terms.fn2(f, a, b)
            }
            Op::Fn1(Fn1::Neg, a) => {
                let a = self.push_gate(a, at, gate)?;
                self.terms.neg(a)
            }
            Op::Fn2(f @ (Fn2::Mul | Fn2::Div), a, b)
                if self.is_about_weights(a) && !self.is_about_weights(b) =>
            {
                let a = self.push_gate(a, at, gate)?;
                self.terms.fn2(f, a, b)
            }
            Op::Fn2(Fn2::Mul, a, b) if self.is_about_weights(b) && !self.is_about_weights(a) => {
                let b = self.push_gate(b, at, gate)?;
                self.terms.mul(a, b)
            }
            Op::Const(_)
            | Op::Size(_)
            | Op::Place(_)
            | Op::Var(_)
            | Op::Fn1(..)
            | Op::Fn2(..)
            | Op::Compare(..)
            | Op::Select(..)
            | Op::MatMul(..)
            | Op::Outer(..)
            | Op::Transpose(_)
            | Op::Row(_)
            | Op::Col(_)
            | Op::Flat(_)
            | Op::Spread(..)
            | Op::Reduce(..)
            | Op::Norm(..)
            | Op::Softmax(..)
            | Op::LogSoftmax(..)
            | Op::LayerNorm(_)
            | Op::InverseDeviation(_)
            | Op::Eye(_)
            | Op::Stop(_)
            | Op::Root(_) => {
                let shape = self.terms.shape(gate.tensor.term);
                let message =
                    format!("a gate {shape} cannot weigh the entries of this, which is no sum over them");
                let diagnostic = Diagnostic::new(code::GATE_AXIS, message)
                    .at(gate.span, format!("this is {shape}"))
                    .at(at, "not a sum over the weight's entries")
                    .with_help("let the gate vary by token only (`learned`)");
                return Err(Box::new(diagnostic));
            }
        };
        self.built(built, &[], at)
    }
}
