//! How a term depends on variables: not at all, affinely, or otherwise.

use miras_base::scalar::{Fn1, Fn2};
use miras_term::{Op, Reduce, TermId, Terms, VarId};
use std::collections::{BTreeSet, HashMap};

/// How a term depends on a set of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Degree {
    /// Not at all.
    Constant,
    /// As an affine function of all of them together.
    Affine,
    /// Otherwise, as far as the structure shows.
    Other,
}

/// How `id` depends on `vars`, judged by structure alone.
pub fn degree(terms: &Terms, id: TermId, vars: &BTreeSet<VarId>) -> Degree {
    let mut known: HashMap<TermId, Degree> = HashMap::new();
    for t in terms.reachable(&[id]) {
        let d = of_op(terms, t, vars, &known);
        known.insert(t, d);
    }
    known.get(&id).copied().unwrap_or(Degree::Other)
}

fn of_op(terms: &Terms, id: TermId, vars: &BTreeSet<VarId>, known: &HashMap<TermId, Degree>) -> Degree {
    let get = |t: &TermId| known.get(t).copied().unwrap_or(Degree::Other);
    let product = |a: &TermId, b: &TermId| match (get(a), get(b)) {
        (Degree::Constant, d) | (d, Degree::Constant) => d,
        _ => Degree::Other,
    };
    let constant = |parts: &[TermId]| {
        if parts.iter().all(|p| get(p) == Degree::Constant) { Degree::Constant } else { Degree::Other }
    };
    match terms.op(id) {
        Op::Const(_) | Op::Size(_) | Op::Place(_) | Op::Eye(_) => Degree::Constant,
        Op::Var(v) => {
            if vars.contains(v) {
                Degree::Affine
            } else {
                Degree::Constant
            }
        }
        Op::Fn1(Fn1::Neg, a)
        | Op::Transpose(a)
        | Op::Row(a)
        | Op::Col(a)
        | Op::Flat(a)
        | Op::Spread(a, _)
        | Op::Reduce(Reduce::Sum, _, a)
        | Op::Stop(a) => get(a),
        Op::Fn2(Fn2::Add | Fn2::Sub, a, b) => get(a).max(get(b)),
        Op::Fn2(Fn2::Mul, a, b) | Op::MatMul(a, b) | Op::Outer(a, b) => product(a, b),
        Op::Fn2(Fn2::Div, a, b) if get(b) == Degree::Constant => get(a),
        Op::Select(c, a, b) if get(c) == Degree::Constant => get(a).max(get(b)),
        Op::Fn1(..)
        | Op::Fn2(..)
        | Op::Select(..)
        | Op::Compare(..)
        | Op::Reduce(Reduce::Max | Reduce::Min, ..)
        | Op::Norm(..)
        | Op::Softmax(..)
        | Op::LogSoftmax(..)
        | Op::LayerNorm(_)
        | Op::InverseDeviation(_)
        | Op::Root(_) => constant(&terms.operands(id)),
    }
}
