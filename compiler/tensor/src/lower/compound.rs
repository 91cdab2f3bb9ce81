//! Reductions and the compound functions of terms, spelled out in primitive operations.

use super::Failure;
use super::term::TermLowering;
use crate::ir::{AxisId, Op, ValueId};
use miras_base::Dim;
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_term::{Axis, Reduce, Root, TermId};

/// Entries below this have no reciprocal in float32; a norm of such entries alone is taken as it is.
const SMALLEST_SCALE: f64 = 1e-37;

/// docs/mathematics.md: eps of layernorm.
const LAYERNORM_EPS: f64 = 1e-5;

impl TermLowering<'_> {
    /// The axes that a reduction of a term runs over, and the number of entries along those of them
    /// that the value lacks.
    fn reduced_axes(
        &mut self,
        axis: Axis,
        id: TermId,
        value: ValueId,
    ) -> Result<(Vec<AxisId>, f64), Failure> {
        let shape = self.terms.shape(id).clone();
        let all = self.axes.of_shape(self.graph, &shape)?;
        let chosen: Vec<(usize, AxisId)> = all
            .into_iter()
            .enumerate()
            .filter(|(i, _)| match axis {
                Axis::All => true,
                Axis::Row => *i == shape.rank() - 1,
                Axis::Column => *i == 0,
            })
            .filter_map(|(i, a)| a.map(|a| (i, a)))
            .collect();
        let (mut over, mut repeated) = (Vec::new(), 1.0);
        for (i, a) in chosen {
            if self.has(value, a) { over.push(a) } else { repeated *= self.axes.size(&shape.0[i])? as f64 }
        }
        Ok((over, repeated))
    }

    pub(super) fn reduce(&mut self, op: Reduce, axis: Axis, a: TermId) -> Result<ValueId, Failure> {
        let value = self.get(a)?;
        self.reduce_value(op, axis, a, value)
    }

    /// Reduces `value`, which is shaped like the term `like`.
    fn reduce_value(
        &mut self,
        op: Reduce,
        axis: Axis,
        like: TermId,
        value: ValueId,
    ) -> Result<ValueId, Failure> {
        let (over, repeated) = self.reduced_axes(axis, like, value)?;
        let reduced = if over.is_empty() { value } else { self.add(Op::Reduce(op, over, value)) };
        match op {
            Reduce::Sum if repeated != 1.0 => {
                let n = self.number(repeated);
                Ok(self.fn2(Fn2::Mul, reduced, n))
            }
            Reduce::Sum | Reduce::Max | Reduce::Min => Ok(reduced),
        }
    }

    /// x - max and the sum of its exponentials, along the axes.
    pub(super) fn shifted_exponentials(
        &mut self,
        axis: Axis,
        a: TermId,
    ) -> Result<(ValueId, ValueId), Failure> {
        let x = self.get(a)?;
        let largest = self.reduce_value(Reduce::Max, axis, a, x)?;
        let largest = self.add(Op::Stop(largest));
        let shifted = self.fn2(Fn2::Sub, x, largest);
        let exponentials = self.fn1(Fn1::Exp, shifted);
        let total = self.reduce_value(Reduce::Sum, axis, a, exponentials)?;
        Ok((shifted, total))
    }

    /// x - mean and 1 / sqrt(var + eps), along the last axis.
    pub(super) fn moments(&mut self, a: TermId) -> Result<(ValueId, ValueId), Failure> {
        let x = self.get(a)?;
        let dim = self.terms.shape(a).0.last().cloned().unwrap_or_else(Dim::one);
        let count = self.axes.size(&dim)? as f64;
        let count = self.number(count);
        let sum = self.reduce_value(Reduce::Sum, Axis::Row, a, x)?;
        let mean = self.fn2(Fn2::Div, sum, count);
        let centred = self.fn2(Fn2::Sub, x, mean);
        let squares = self.fn2(Fn2::Mul, centred, centred);
        let sum = self.reduce_value(Reduce::Sum, Axis::Row, a, squares)?;
        let variance = self.fn2(Fn2::Div, sum, count);
        let eps = self.number(LAYERNORM_EPS);
        let raised = self.fn2(Fn2::Add, variance, eps);
        let root = self.fn1(Fn1::Sqrt, raised);
        let one = self.number(1.0);
        Ok((centred, self.fn2(Fn2::Div, one, root)))
    }

    /// (sum |x|^p)^(1/p), scaled by the largest entry so that no power over- or underflows; 0 at 0. The
    /// scale cancels, so no gradient need pass through it.
    pub(super) fn norm(&mut self, x: TermId, p: TermId) -> Result<ValueId, Failure> {
        let power = self.terms.as_num(p);
        let (value, p) = (self.get(x)?, self.get(p)?);
        let size = self.fn1(Fn1::Abs, value);
        let largest = self.reduce_value(Reduce::Max, Axis::All, x, size)?;
        let largest = self.add(Op::Stop(largest));
        let (smallest, one) = (self.number(SMALLEST_SCALE), self.number(1.0));
        let vanishes = self.add(Op::Compare(Cmp::Lt, largest, smallest));
        let scale = self.add(Op::Select(vanishes, one, largest));
        let scaled = self.fn2(Fn2::Div, size, scale);
        let squared = power == Some(2.0);
        let powers = if squared { self.fn2(Fn2::Mul, scaled, scaled) } else { self.fn2(Fn2::Pow, scaled, p) };
        let sum = self.reduce_value(Reduce::Sum, Axis::All, x, powers)?;
        let root = if squared {
            self.fn1(Fn1::Sqrt, sum)
        } else {
            let inverse = self.fn2(Fn2::Div, one, p);
            self.fn2(Fn2::Pow, sum, inverse)
        };
        Ok(self.fn2(Fn2::Mul, root, scale))
    }

    /// Safeguarded Newton steps as a scan; then one exact Newton correction whose gradient is that of
    /// the exact root.
    pub(super) fn root(&mut self, root: &Root) -> Result<ValueId, Failure> {
        super::root::lower_root(self, root)
    }
}
