//! What is known of variables, and the bounds of whole terms that follow from it.

use super::bounds::Bounds;
use miras_base::scalar::Fn2;
use miras_spec as spec;
use miras_term::{Op, Place, Reduce, TermId, Terms, VarId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Side conditions under which terms are simplified.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    vars: BTreeMap<VarId, Bounds>,
    nonzero: BTreeSet<TermId>,
}

impl Facts {
    /// Nothing is known.
    pub fn new() -> Facts {
        Facts::default()
    }

    /// What the kinds of parameters promise: [0, 1] for `unit`, [0, inf) for `positive`.
    pub fn of_params(params: &[spec::Param]) -> Facts {
        let mut facts = Facts::new();
        for p in params {
            facts.bound(p.var, Bounds::of_kind(p.kind));
        }
        facts
    }

    /// A variable lies within bounds, besides what is known already.
    pub fn bound(&mut self, var: VarId, bounds: Bounds) {
        let known = self.vars.get(&var).copied().unwrap_or(Bounds::REALS);
        self.vars.insert(var, known.meet(bounds));
    }

    /// A term is never 0.
    pub fn assume_nonzero(&mut self, term: TermId) {
        self.nonzero.insert(term);
    }

    /// Whether a term was assumed never to be 0.
    pub fn assumed_nonzero(&self, term: TermId) -> bool {
        self.nonzero.contains(&term)
    }

    /// Bounds of a variable.
    pub fn of_var(&self, var: VarId) -> Bounds {
        self.vars.get(&var).copied().unwrap_or(Bounds::REALS)
    }

    /// Bounds of the entries of a term.
    pub fn of_term(&self, terms: &Terms, id: TermId) -> Bounds {
        let mut known = HashMap::new();
        self.fill(terms, id, &mut known);
        known.get(&id).copied().unwrap_or(Bounds::REALS)
    }

    /// [`Facts::of_term`] for a term and all it is made of, kept in `known`.
    pub(crate) fn fill(&self, terms: &Terms, id: TermId, known: &mut HashMap<TermId, Bounds>) {
        if known.contains_key(&id) {
            return;
        }
        for t in terms.reachable(&[id]) {
            if !known.contains_key(&t) {
                let bounds = self.of_op(terms, t, known);
                known.insert(t, bounds);
            }
        }
    }

    fn of_op(&self, terms: &Terms, id: TermId, known: &HashMap<TermId, Bounds>) -> Bounds {
        let get = |t: &TermId| known.get(t).copied().unwrap_or(Bounds::REALS);
        match terms.op(id) {
            Op::Const(n) => Bounds::point(n.0),
            Op::Size(_) | Op::Place(Place::Heads | Place::Layers) => {
                Bounds { low: 1.0, low_open: false, ..Bounds::REALS }
            }
            Op::Place(Place::Head | Place::Layer) => Bounds::NOT_NEGATIVE,
            Op::Var(v) => self.of_var(*v),
            Op::Fn1(f, a) => get(a).fn1(*f),
            Op::Fn2(f, a, b) => get(a).fn2(*f, get(b)),
            Op::Compare(..) | Op::Eye(_) => Bounds::UNIT,
            Op::Select(_, a, b) => get(a).hull(get(b)),
            Op::MatMul(a, b) if get(a).not_negative() && get(b).not_negative() => Bounds::NOT_NEGATIVE,
            Op::MatMul(..) | Op::LayerNorm(_) | Op::Root(_) => Bounds::REALS,
            Op::Outer(a, b) => get(a).fn2(Fn2::Mul, get(b)),
            Op::Transpose(a) | Op::Row(a) | Op::Col(a) | Op::Flat(a) | Op::Spread(a, _) | Op::Stop(a) => {
                get(a)
            }
            Op::Reduce(Reduce::Sum, _, a) => of_sum(get(a)),
            Op::Reduce(Reduce::Max | Reduce::Min, _, a) => get(a),
            Op::Norm(..) => Bounds::NOT_NEGATIVE,
            Op::Softmax(..) => Bounds { low_open: true, ..Bounds::UNIT },
            Op::LogSoftmax(..) => Bounds::NOT_NEGATIVE.neg(),
            Op::InverseDeviation(_) => Bounds::POSITIVE,
        }
    }
}

fn of_sum(entry: Bounds) -> Bounds {
    if entry.positive() {
        Bounds::POSITIVE
    } else if entry.not_negative() {
        Bounds::NOT_NEGATIVE
    } else if entry.high <= 0.0 {
        of_sum(entry.neg()).neg()
    } else {
        Bounds::REALS
    }
}
