//! Weights inside a block of tokens: never arrays for each token.

use crate::ir::{AxisId, Op, ValueId};
use crate::lower::term::TermLowering;
use miras_base::scalar::{Cmp, Fn2};

/// A factor of each entry of a weight: a product of one that may vary by row and one that varies by column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Factor {
    /// With or without the axis of rows; None: 1.
    pub rows: Option<ValueId>,
    /// With the axis of columns; None: 1.
    pub cols: Option<ValueId>,
}

/// The axes of one weight and of its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axes {
    /// Rows of a matrix.
    pub row: AxisId,
    /// The same of a vector.
    pub rows: AxisId,
    /// Columns of a matrix, and entries of a vector that it is applied to.
    pub cols: AxisId,
    /// Tokens that wrote.
    pub from: AxisId,
    /// Tokens that read.
    pub to: AxisId,
}

/// For each token t of a block, `W_t = sum of factor_t * whole + sum over i of factor_ti * left_i (x) right_i`.
#[derive(Debug)]
pub(in crate::lower) struct LowRank {
    pub(super) axes: Axes,
    /// Matrices with their factors over `to`.
    pub(super) wholes: Vec<(ValueId, Factor)>,
    /// Outer products.
    pub(super) parts: Vec<Part>,
    /// Whether a token sees what it wrote itself.
    pub(super) own: bool,
    /// What multiplies the whole; a scalar.
    pub(super) scale: Option<ValueId>,
}

/// An outer product for each token that wrote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// [from, rows]
    pub left: ValueId,
    /// [from, cols]
    pub right: ValueId,
    /// Over `to` and `from`; used only where `from` is not after `to`.
    pub factor: Factor,
}

impl LowRank {
    /// `W_t @ x_t` for each token, [to, rows]; turned, `transpose(W_t) @ x_t`, [to, cols].
    pub(in crate::lower) fn apply(&self, at: &mut TermLowering<'_>, x: ValueId, turned: bool) -> ValueId {
        let x = at.spread(x, &[if turned { self.axes.rows } else { self.axes.cols }]);
        let mut sum: Option<ValueId> = None;
        let mut add = |at: &mut TermLowering<'_>, y: ValueId| {
            sum = Some(sum.map_or(y, |sum| at.fn2(Fn2::Add, sum, y)));
        };
        for (matrix, factor) in &self.wholes {
            let y = match turned {
                false => self.axes.whole(at, *matrix, *factor, x),
                true => self.axes.whole_turned(at, *matrix, *factor, x),
            };
            add(at, y);
        }
        for part in &self.parts {
            let y = match turned {
                false => self.axes.part(at, part, x, self.own),
                true => self.axes.part_turned(at, part, x, self.own),
            };
            add(at, y);
        }
        let sum = sum.unwrap_or_else(|| at.number(0.0));
        match self.scale {
            Some(scale) => at.fn2(Fn2::Mul, sum, scale),
            None => sum,
        }
    }
}

impl Axes {
    /// `(factor * matrix) @ x`
    pub(super) fn whole(
        &self,
        at: &mut TermLowering<'_>,
        matrix: ValueId,
        factor: Factor,
        x: ValueId,
    ) -> ValueId {
        let x = times(at, x, factor.cols);
        let y = at.add(Op::Einsum(x, matrix, vec![self.cols]));
        let y = at.rename(y, self.row, self.rows);
        times(at, y, factor.rows)
    }

    /// `sum over i of (factor_ti * left_i (x) right_i) @ x_t`, over i before t, or also i = t.
    fn part(&self, at: &mut TermLowering<'_>, part: &Part, x: ValueId, own: bool) -> ValueId {
        let scores = self.scores(at, part.right, part.factor, x);
        let (scores, rows) = self.masked(at, scores, part.factor, own);
        let scores = times(at, scores, rows);
        at.add(Op::Einsum(scores, part.left, vec![self.from]))
    }

    /// `transpose(factor * matrix) @ x`
    fn whole_turned(
        &self,
        at: &mut TermLowering<'_>,
        matrix: ValueId,
        factor: Factor,
        x: ValueId,
    ) -> ValueId {
        let x = times(at, x, factor.rows);
        let x = at.rename(x, self.rows, self.row);
        let y = at.add(Op::Einsum(x, matrix, vec![self.row]));
        times(at, y, factor.cols)
    }

    /// `sum over i of transpose(factor_ti * left_i (x) right_i) @ x_t`, over i before t, or also i = t.
    fn part_turned(&self, at: &mut TermLowering<'_>, part: &Part, x: ValueId, own: bool) -> ValueId {
        let by_row = part.factor.rows.filter(|r| at.has(*r, self.rows));
        let left = times(at, part.left, by_row);
        let scores = at.add(Op::Einsum(x, left, vec![self.rows]));
        // The factor of rows is in the scores already, where it is one for each row.
        let rest = Factor { rows: part.factor.rows.filter(|_| by_row.is_none()), cols: None };
        let (scores, _) = self.masked(at, scores, rest, own);
        let scores = times(at, scores, part.factor.cols);
        at.add(Op::Einsum(scores, part.right, vec![self.from]))
    }

    /// `right_i . x_t` with the factor of columns, [to, from].
    pub(super) fn scores(
        &self,
        at: &mut TermLowering<'_>,
        right: ValueId,
        factor: Factor,
        x: ValueId,
    ) -> ValueId {
        let right = match factor.cols {
            Some(cols) => at.fn2(Fn2::Mul, cols, right),
            None => right,
        };
        at.add(Op::Einsum(x, right, vec![self.cols]))
    }

    /// Scores with the scalar part of the factor where `from` is not after `to` (or before it), else 0; and the
    /// factor of rows that is left.
    pub(super) fn masked(
        &self,
        at: &mut TermLowering<'_>,
        scores: ValueId,
        factor: Factor,
        own: bool,
    ) -> (ValueId, Option<ValueId>) {
        let by_row = factor.rows.filter(|r| at.has(*r, self.rows));
        let scores = match factor.rows {
            Some(scalar) if by_row.is_none() => at.fn2(Fn2::Mul, scores, scalar),
            _ => scores,
        };
        let zero = at.number(0.0);
        let mask = self.mask(at, own);
        (at.add(Op::Select(mask, scores, zero)), by_row)
    }

    /// Where `from` is before `to`, or also where it is the same.
    fn mask(&self, at: &mut TermLowering<'_>, own: bool) -> ValueId {
        let (from, to) = (at.add(Op::Index(self.from)), at.add(Op::Index(self.to)));
        at.add(Op::Compare(if own { Cmp::Le } else { Cmp::Lt }, from, to))
    }

    /// `factor * matrix`, with the factor's rows called as a matrix's.
    pub(super) fn kept(&self, at: &mut TermLowering<'_>, matrix: ValueId, factor: Factor) -> ValueId {
        let rows = factor.rows.map(|r| at.rename(r, self.rows, self.row));
        let kept = times(at, matrix, rows);
        times(at, kept, factor.cols)
    }

    /// `sum over i of factor_i * left_i (x) right_i`, a matrix.
    pub(super) fn gathered(
        &self,
        at: &mut TermLowering<'_>,
        left: ValueId,
        right: ValueId,
        factor: Factor,
    ) -> ValueId {
        let (left, right) = (times(at, left, factor.rows), times(at, right, factor.cols));
        let left = at.rename(left, self.rows, self.row);
        at.add(Op::Einsum(left, right, vec![self.from]))
    }
}

/// A product with what may be 1.
pub(super) fn times(at: &mut TermLowering<'_>, value: ValueId, factor: Option<ValueId>) -> ValueId {
    match factor {
        Some(factor) => at.fn2(Fn2::Mul, value, factor),
        None => value,
    }
}

impl Factor {
    /// Each part changed.
    pub(super) fn map(self, mut f: impl FnMut(ValueId) -> ValueId) -> Factor {
        Factor { rows: self.rows.map(&mut f), cols: self.cols.map(&mut f) }
    }
}
