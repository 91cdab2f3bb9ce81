//! What multiplies a variable in terms that are linear in it entry by entry.

use super::low_rank::{Axes, times};
use crate::ir::{AxisId, Op, Size, ValueId};
use crate::lower::Failure;
use crate::lower::term::TermLowering;
use miras_base::scalar::{Fn1, Fn2};
use miras_term::{self as term, Shape, TermId, VarId};

/// Factors of a weight's entries, with rows called as a vector's.
pub(super) struct Factors<'a, 'g> {
    pub at: &'a mut TermLowering<'g>,
    pub axes: &'a Axes,
    pub shape: &'a Shape,
}

impl Factors<'_, '_> {
    pub fn term(&mut self, id: TermId) -> Result<ValueId, Failure> {
        let own = self.at.terms.shape(id).clone();
        let value = self.at.lower(id)?;
        let value = self.at.fit_value(value, &own, self.shape)?;
        Ok(self.at.rename(value, self.axes.row, self.axes.rows))
    }

    /// What multiplies a variable in a term that is linear in it entry by entry; None: 1.
    pub fn of(&mut self, id: TermId, var: VarId) -> Result<Option<ValueId>, Failure> {
        let terms = self.at.terms;
        let uses = |t: &TermId| terms.uses(*t, var);
        Ok(match terms.op(id) {
            term::Op::Fn1(Fn1::Neg, a) => {
                let inner = self.of(*a, var)?;
                let one = self.at.number(1.0);
                Some(self.at.fn1(Fn1::Neg, inner.unwrap_or(one)))
            }
            term::Op::Spread(a, _) => self.of(*a, var)?,
            term::Op::Fn2(f @ (Fn2::Add | Fn2::Sub), a, b) => {
                let one = self.at.number(1.0);
                let zero = self.at.number(0.0);
                let left = if uses(a) { Some(self.of(*a, var)?.unwrap_or(one)) } else { None };
                let right = if uses(b) { Some(self.of(*b, var)?.unwrap_or(one)) } else { None };
                match (left, right) {
                    (Some(left), None) => Some(left),
                    (left, Some(right)) if left.is_some() || *f == Fn2::Sub => {
                        Some(self.at.fn2(*f, left.unwrap_or(zero), right))
                    }
                    (_, right) => right,
                }
            }
            term::Op::Fn2(Fn2::Mul, a, b) => {
                let (linear, factor) = if uses(a) { (*a, *b) } else { (*b, *a) };
                let inner = self.of(linear, var)?;
                let factor = self.term(factor)?;
                Some(times(self.at, factor, inner))
            }
            term::Op::Fn2(Fn2::Div, a, b) => {
                let inner = self.of(*a, var)?;
                let one = self.at.number(1.0);
                let divisor = self.term(*b)?;
                Some(self.at.fn2(Fn2::Div, inner.unwrap_or(one), divisor))
            }
            term::Op::Select(c, a, b) => {
                let (one, zero) = (self.at.number(1.0), self.at.number(0.0));
                let condition = self.term(*c)?;
                let mut branch = |t: &TermId| match uses(t) {
                    true => Ok(self.of(*t, var)?.unwrap_or(one)),
                    false => Ok(zero),
                };
                let (yes, no) = (branch(a)?, branch(b)?);
                Some(self.at.add(Op::Select(condition, yes, no)))
            }
            _ => None,
        })
    }

    /// Outer products times a factor, on the side that it varies with, else on the shorter.
    pub fn fold(&mut self, products: &mut [(ValueId, ValueId)], factor: ValueId) {
        let size = |axis: AxisId| self.at.graph.axis(axis).size;
        let by_col = self.at.has(factor, self.axes.cols) && !self.at.has(factor, self.axes.rows);
        let shorter = match (size(self.axes.rows), size(self.axes.cols)) {
            (Size::Fixed(rows), Size::Fixed(cols)) => cols < rows,
            _ => false,
        };
        let to_right = by_col || (shorter && !self.at.has(factor, self.axes.rows));
        for (left, right) in products {
            let side = if to_right { right } else { left };
            *side = self.at.fn2(Fn2::Mul, *side, factor);
        }
    }
}
