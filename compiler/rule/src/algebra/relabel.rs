//! Rows, columns, transposes: the same entries under other indices.
//!
//! They commute with every entry-wise function, so they are moved inwards to the atoms.

use super::poly::{Monomial, Poly};
use super::ring::{Out, Ring};
use miras_term::{Op, TermId};
use std::collections::BTreeMap;

/// Functions within functions through which a layout is moved.
const DEEPEST: u32 = 64;

/// Ways to lay out the same entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relabel {
    Transpose,
    Row,
    Col,
    Flat,
}

impl Ring<'_> {
    /// A term laid out anew.
    pub(super) fn relabel(&mut self, id: TermId, how: Relabel) -> Out<Poly> {
        let p = self.poly(id)?;
        let relabelled = self.relabel_poly(&p, how)?;
        for factor in self.factors.clone() {
            if p.len() > factor.len() && p.divide(&factor).is_some() {
                let factor = self.relabel_poly(&factor, how)?;
                self.note_factor(&factor.into());
            }
        }
        Ok(relabelled)
    }

    fn relabel_poly(&mut self, p: &Poly, how: Relabel) -> Out<Poly> {
        let mut sum = Poly::zero();
        for (m, c) in &p.monomials {
            let mut powers = BTreeMap::new();
            for (t, e) in &m.0 {
                powers.insert(self.relabel_term(*t, how, 0)?, e.clone());
            }
            sum.put(Monomial(powers.into_iter().collect()), *c);
        }
        Ok(sum)
    }

    /// An atom (or a sum below a power) laid out anew, its entry-wise functions outermost.
    fn relabel_term(&mut self, id: TermId, how: Relabel, depth: u32) -> Out<TermId> {
        self.spend(1)?;
        let shape = self.terms.shape(id).clone();
        if shape.rank() == 0 {
            return Ok(id);
        }
        Ok(match self.terms.op(id).clone() {
            Op::Fn1(f, a) if depth < DEEPEST => {
                let a = self.relabel_term(a, how, depth + 1)?;
                self.terms.fn1(f, a)?
            }
            Op::Fn2(f, a, b) if depth < DEEPEST => {
                let (a, b) = (self.relabel_term(a, how, depth + 1)?, self.relabel_term(b, how, depth + 1)?);
                self.terms.fn2(f, a, b)?
            }
            Op::Row(a) if how == Relabel::Transpose => self.terms.col(a)?,
            Op::Col(a) if how == Relabel::Transpose => self.terms.row(a)?,
            Op::Spread(a, _) if self.terms.shape(a).rank() == 0 => a,
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
            | Op::Root(_) => match how {
                Relabel::Transpose => self.terms.transpose(id)?,
                Relabel::Row => self.terms.row(id)?,
                Relabel::Col => self.terms.col(id)?,
                Relabel::Flat => self.terms.flat(id)?,
            },
        })
    }
}
