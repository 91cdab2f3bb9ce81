//! Terms that multiply a weight entry by entry: how they vary, and what is linear in a weight entry by entry.

use miras_base::scalar::{Fn1, Fn2};
use miras_term::{Op, TermId, Terms, VarId};
use std::collections::HashMap;

/// A factor of each entry of a weight: a product of one that may vary by row and one that varies by column.
#[derive(Clone, Copy, Debug, Default)]
pub struct Factors {
    /// A scalar or a column [rows, 1]; None: 1.
    pub rows: Option<TermId>,
    /// A row [1, cols]; None: 1.
    pub cols: Option<TermId>,
}

/// Along which axes of a weight a term varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Varies {
    pub rows: bool,
    pub cols: bool,
}

impl Varies {
    pub fn and(self, other: Varies) -> Varies {
        Varies { rows: self.rows || other.rows, cols: self.cols || other.cols }
    }

    pub fn both(self) -> bool {
        self.rows && self.cols
    }

    pub fn any(self) -> bool {
        self.rows || self.cols
    }
}

/// How a term that multiplies a weight varies, judged as lowering judges it.
pub(super) fn varies(terms: &Terms, id: TermId) -> Varies {
    let shape = &terms.shape(id).0;
    match shape.as_slice() {
        [] => Varies::default(),
        [_, one] if one.is_one() => Varies { rows: true, cols: false },
        [one, _] if one.is_one() => Varies { rows: false, cols: true },
        [_, _] => match terms.op(id) {
            Op::Const(_) | Op::Size(_) | Op::Place(_) => Varies::default(),
            Op::Fn1(..) | Op::Fn2(..) | Op::Compare(..) | Op::Select(..) | Op::Stop(_) => {
                let parts = terms.operands(id).into_iter().map(|o| varies(terms, o));
                parts.fold(Varies::default(), Varies::and)
            }
            Op::Spread(a, _) if terms.shape(*a).rank() != 1 => varies(terms, *a),
            _ => Varies { rows: true, cols: true },
        },
        _ => Varies { rows: true, cols: true },
    }
}

/// A term as factors, where it is a product of one by row and one by column.
pub(super) fn factors(terms: &mut Terms, id: TermId) -> Option<Factors> {
    if terms.as_num(id) == Some(1.0) {
        return Some(Factors::default());
    }
    let how = varies(terms, id);
    if !how.both() {
        return Some(if how.cols {
            Factors { rows: None, cols: Some(id) }
        } else {
            Factors { rows: Some(id), cols: None }
        });
    }
    match terms.op(id).clone() {
        Op::Outer(a, b) => Some(Factors { rows: Some(terms.col(a).ok()?), cols: Some(terms.row(b).ok()?) }),
        Op::Fn2(Fn2::Mul, a, b) => {
            let (a, b) = (factors(terms, a)?, factors(terms, b)?);
            Some(Factors { rows: times(terms, a.rows, b.rows)?, cols: times(terms, a.cols, b.cols)? })
        }
        Op::Fn1(Fn1::Neg, a) => {
            let a = factors(terms, a)?;
            let minus = terms.num(-1.0);
            Some(Factors { rows: times(terms, a.rows, Some(minus))?, cols: a.cols })
        }
        Op::Spread(a, _) => factors(terms, a),
        _ => None,
    }
}

/// The product of two factors along one axis; None outside where their shapes do not meet.
fn times(terms: &mut Terms, a: Option<TermId>, b: Option<TermId>) -> Option<Option<TermId>> {
    match (a, b) {
        (Some(a), Some(b)) => terms.mul(a, b).ok().map(Some),
        (a, None) => Some(a),
        (None, b) => Some(b),
    }
}

/// Whether a term is linear in variables entry by entry, without a constant: a sum of the variables times
/// factors that do not depend on them.
pub(super) fn entrywise(terms: &Terms, id: TermId, vars: &[VarId]) -> bool {
    let mut known: HashMap<TermId, bool> = HashMap::new();
    for t in terms.reachable(&[id]) {
        let free = |x: &TermId| !vars.iter().any(|v| terms.uses(*x, *v));
        let linear = |x: &TermId| known.get(x).copied().unwrap_or(false);
        let summand = |x: &TermId| linear(x) || terms.as_num(*x) == Some(0.0);
        let is = match terms.op(t) {
            Op::Var(v) => vars.contains(v),
            Op::Fn1(Fn1::Neg, a) | Op::Spread(a, _) => linear(a),
            Op::Fn2(Fn2::Add | Fn2::Sub, a, b) => (linear(a) || linear(b)) && summand(a) && summand(b),
            Op::Fn2(Fn2::Mul, a, b) => (linear(a) && free(b)) || (linear(b) && free(a)),
            Op::Fn2(Fn2::Div, a, b) => linear(a) && free(b),
            Op::Select(c, a, b) => free(c) && (linear(a) || linear(b)) && summand(a) && summand(b),
            _ => false,
        };
        known.insert(t, is);
    }
    known.get(&id).copied().unwrap_or(false)
}
