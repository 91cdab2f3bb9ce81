//! Matrices that are applied to vectors by way of the weights in them, which are sums of outer products: neither those
//! nor what is made of them is ever an array.

use super::Failure;
use super::term::TermLowering;
use crate::ir::{Op, ValueId};
use miras_base::scalar::{Fn1, Fn2};
use miras_term::{self as term, Shape, TermId};

impl TermLowering<'_> {
    /// Whether a matrix is made of such weights.
    pub(super) fn is_operator(&self, id: TermId) -> bool {
        !self.low_rank.is_empty() && self.low_rank.keys().any(|v| self.terms.uses(id, *v))
    }

    /// The terms in an operator that are lowered before it is applied: what is made of no such weight.
    pub(super) fn operator_parts(&self, id: TermId, parts: &mut Vec<TermId>) {
        if !self.is_operator(id) {
            parts.push(id);
            return;
        }
        for operand in self.terms.operands(id) {
            self.operator_parts(operand, parts);
        }
    }

    /// `a @ x` for a vector x.
    pub(super) fn operate(&mut self, a: TermId, x: TermId) -> Result<ValueId, Failure> {
        let value = self.get(x)?;
        let given = self.terms.shape(x).clone();
        self.applied(a, value, &given, false)
    }

    /// `a @ x`, or `transpose(a) @ x`, for a value of the shape `given`, named as a vector of a's own sizes.
    fn applied(&mut self, a: TermId, x: ValueId, given: &Shape, turned: bool) -> Result<ValueId, Failure> {
        let terms = self.terms;
        let (input, output) = sides(terms.shape(a), turned);
        let x = self.fit_value(x, given, &input)?;
        if !self.is_operator(a) {
            return self.plain(a, x, turned);
        }
        // What an operand gives, called as this gives it.
        let of = |at: &mut Self, b: TermId, x: ValueId, given: &Shape, turned: bool, own: &Shape| {
            let y = at.applied(b, x, given, turned)?;
            at.fit_value(y, &sides(terms.shape(b), turned).1, own)
        };
        match terms.op(a) {
            term::Op::Var(v) => match self.low_rank.get(v).cloned() {
                Some(weight) => Ok(weight.apply(self, x, turned)),
                None => Err(Failure::bug("a weight that is no sum of outer products")),
            },
            term::Op::Transpose(b) => of(self, *b, x, &input, !turned, &output),
            term::Op::Fn1(Fn1::Neg, b) => {
                let y = of(self, *b, x, &input, turned, &output)?;
                Ok(self.fn1(Fn1::Neg, y))
            }
            term::Op::Fn2(f @ (Fn2::Add | Fn2::Sub), b, c) => {
                let left = of(self, *b, x, &input, turned, &output)?;
                let right = of(self, *c, x, &input, turned, &output)?;
                Ok(self.fn2(*f, left, right))
            }
            term::Op::MatMul(b, c) => {
                let (first, second) = if turned { (b, c) } else { (c, b) };
                let between = sides(terms.shape(*first), turned).1;
                let inner = of(self, *first, x, &input, turned, &between)?;
                of(self, *second, inner, &between, turned, &output)
            }
            term::Op::Fn2(Fn2::Mul, b, c) => {
                let (inner, factor) = if self.is_operator(*b) { (*b, *c) } else { (*c, *b) };
                let (by_row, by_col) = self.factor(factor, terms.shape(a))?;
                let (before, after) = if turned { (by_row, by_col) } else { (by_col, by_row) };
                let x = before.map_or(x, |f| self.fn2(Fn2::Mul, x, f));
                let y = of(self, inner, x, &input, turned, &output)?;
                Ok(after.map_or(y, |f| self.fn2(Fn2::Mul, y, f)))
            }
            _ => Err(Failure::bug("a matrix of weights that cannot be applied to a vector")),
        }
    }

    /// A factor of a matrix's entries as one of its rows or one of its columns, called as vectors; a number is one of
    /// the rows.
    fn factor(&mut self, id: TermId, shape: &Shape) -> Result<(Option<ValueId>, Option<ValueId>), Failure> {
        let own = self.terms.shape(id).clone();
        let value = self.get(id)?;
        let value = self.fit_value(value, &own, shape)?;
        let (row, rows) = (self.axis(&shape.0[0], 1)?, self.axis(&shape.0[0], 0)?);
        let cols = self.axis(&shape.0[1], 0)?;
        Ok(match (self.has(value, row), self.has(value, cols)) {
            (true, true) => return Err(Failure::bug("a factor for each entry of a sum of outer products")),
            (false, true) => (None, Some(value)),
            (true | false, false) => (Some(self.rename(value, row, rows)), None),
        })
    }

    /// The same for a matrix that is there.
    fn plain(&mut self, a: TermId, x: ValueId, turned: bool) -> Result<ValueId, Failure> {
        let [rows, cols] = self.terms.shape(a).0.as_slice() else {
            return Err(Failure::bug("a vector in place of a matrix"));
        };
        let (rows, cols) = (rows.clone(), cols.clone());
        let matrix = self.get(a)?;
        let (row, of_rows) = (self.axis(&rows, 1)?, self.axis(&rows, 0)?);
        let (col, meeting) = (self.axis(&cols, 0)?, self.axis(if turned { &rows } else { &cols }, 2)?);
        let (inner, vector) = if turned { (row, of_rows) } else { (col, col) };
        let matrix = self.spread(matrix, &[row, col]);
        let (matrix, x) = (self.rename(matrix, inner, meeting), self.spread(x, &[vector]));
        let x = self.rename(x, vector, meeting);
        let y = self.add(Op::Einsum(x, matrix, vec![meeting]));
        Ok(if turned { y } else { self.rename(y, row, of_rows) })
    }
}

/// The shapes that a matrix takes and gives.
fn sides(shape: &Shape, turned: bool) -> (Shape, Shape) {
    let side = |i: usize| Shape::vector(shape.0[i].clone());
    if turned { (side(0), side(1)) } else { (side(1), side(0)) }
}
