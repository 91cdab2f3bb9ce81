//! What a token costs and what a stream carries, as polynomials of dk and dv; for a history also of T, the tokens
//! so far.

mod history;

use crate::plan::Schedule;
use miras_base::Dim;
use miras_base::scalar::Fn2;
use miras_rule::{Retained, UpdateRule};
use miras_spec::{Algo, Step};
use miras_term::{Op, Reduce, Shape, TermId, Terms};
use std::collections::BTreeSet;

/// A tensor that a stream carries.
#[derive(Clone, Debug)]
pub struct StatePart {
    /// The tensor's name in files, e.g. `state.memory.W1`.
    pub tensor: String,
    /// Its shape for one stream and head.
    pub shape: Shape,
    /// Number of entries, at most so many for a window over the history; None where it grows with the sequence.
    pub entries: Option<Dim>,
}

/// Operations per token and head, of the recurrence; for a history in terms of `T`, the number of tokens so far, or
/// for a full window.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Multiply-adds of products of a matrix with a vector, of outer and of inner products.
    pub multiply_adds: Dim,
    /// Other element-wise operations and reductions, one per entry.
    pub element_wise: Dim,
}

/// Tokens of one stretch of a stream of so many tokens when gradients are computed: carries are kept between
/// stretches, and before each token of the stretch at hand. About the root, so that both together are fewest.
pub fn stretch(tokens: usize) -> usize {
    tokens.isqrt().next_multiple_of(8).max(16)
}

/// The same of a stream of so many blocks, of each of which so many numbers are carried: all of them, written down on
/// the way forwards, up to 2^24 numbers (64 MiB); beyond, as many as that, or the root.
pub fn stretch_of_blocks(blocks: usize, carried: usize) -> usize {
    let held = (1 << 24) / carried.max(1);
    blocks.min(held.max(blocks.isqrt())).max(1)
}

/// What a stream of this rule carries.
///
/// Inside a chunk with frozen gradients that is also the carried value at the chunk's start, and for a
/// proximal step the threshold since then (docs/mathematics.md).
pub(crate) fn state(rule: &UpdateRule, schedule: Schedule) -> Vec<StatePart> {
    let mut parts = Vec::new();
    let mut add = |tensor: String, shape: &Shape| {
        parts.push(StatePart { tensor, shape: shape.clone(), entries: Some(entries(shape)) });
    };
    for weight in &rule.layer.memory.weights {
        add(format!("state.memory.{}", weight.name), &weight.shape);
    }
    if let Schedule::ChunkedFrozen(_) = schedule {
        for (l, weight) in rule.layer.memory.weights.iter().enumerate() {
            add(format!("state.anchor.{}", weight.name), &weight.shape);
            for part in rule.remembered(l) {
                add(part.tensor(&weight.name), &part.shape(&weight.shape));
            }
        }
    }
    if let Algo::Step(step) = &rule.layer.algo {
        for s in &step.states {
            add(format!("state.algo.{}", s.name), &rule.terms().var(s.old).shape);
        }
    }
    if rule.layer.memory.history {
        for (name, dim) in [("k", Dim::dk()), ("v", Dim::dv())] {
            let kept = history::window(rule).map(|n| Dim::constant(i64::from(n) - 1));
            parts.push(StatePart {
                tensor: format!("state.cache.{name}"),
                entries: kept.map(|kept| times(&kept, &dim)),
                shape: Shape::vector(dim),
            });
        }
    }
    parts
}

/// Operations of one token of the recurrence: every distinct term that its state or its output needs, counted once
/// (and once for each repeated step of the algorithm).
pub(crate) fn cost(rule: &UpdateRule) -> Cost {
    let terms = rule.terms();
    let mut total = Cost { multiply_adds: Dim::constant(0), element_wise: Dim::constant(0) };
    match &rule.layer.algo {
        Algo::Step(step) => {
            let repeats = Dim::constant(i64::from(step.repeats));
            let (mut each, mut once) = (moving(rule, step, &repeats, &mut total), at_once(rule, step));
            if step.repeats > 1 {
                each.extend(rule.retention.iter().filter_map(|r| r.value));
                let weights = rule.layer.memory.weights.iter();
                let added = weights.fold(Dim::constant(0), |sum, w| plus(&sum, &entries(&w.shape)));
                total.element_wise = plus(&total.element_wise, &times(&added, &repeats));
            } else {
                each.append(&mut once);
            }
            for r in asked(rule, step, &each).filter(|r| r.retained.is_none()) {
                total.add(terms, &[r.advance], &repeats, |id| terms.uses(id, r.update));
                total
                    .add(terms, &r.finish.into_iter().chain(r.value).collect::<Vec<_>>(), &repeats, |_| true);
            }
            total.add(terms, &each, &repeats, |_| true);
            total.add(terms, &once, &Dim::one(), |_| true);
        }
        Algo::Weigh(weigh) => history::count(rule, weigh, &mut total),
    }
    total
}

/// The terms of one step of the algorithm: its states and its update, the gradients that these use, and the points
/// where those are taken. Adds the outer products of these gradients, and their sums, to the total, `repeats` times.
fn moving(rule: &UpdateRule, step: &Step, repeats: &Dim, total: &mut Cost) -> Vec<TermId> {
    let terms = rule.terms();
    let mut roots: Vec<TermId> = step.states.iter().map(|s| s.next).chain(step.direction.clone()).collect();
    let (used, mut outers) = (terms.vars_of(&roots), BTreeSet::new());
    for (point, gradient) in step.points.iter().zip(&rule.gradients) {
        let mut needed = Vec::new();
        let sums = gradient.by_weight.iter().zip(&rule.layer.memory.weights);
        for (_, (sum, weight)) in point.gradients.iter().zip(sums).filter(|(g, _)| used.contains(g)) {
            needed.extend(sum.products.iter().flat_map(|(a, b)| [*a, *b]).chain(sum.rest));
            outers.extend(sum.products.iter().copied());
            let added = (sum.products.len() + usize::from(sum.rest.is_some())).saturating_sub(1);
            for _ in 0..added {
                total.element_wise = plus(&total.element_wise, &times(&entries(&weight.shape), repeats));
            }
        }
        let at = terms.vars_of(&needed);
        let moved = gradient.at_vars.iter().zip(&point.at).filter(|(var, _)| at.contains(var));
        roots.extend(moved.map(|(_, term)| *term));
        roots.append(&mut needed);
    }
    for (left, right) in outers {
        let product = times(&entries(terms.shape(left)), &entries(terms.shape(right)));
        total.multiply_adds = plus(&total.multiply_adds, &times(&product, repeats));
    }
    let still = asked(rule, step, &roots).filter_map(|r| r.retained).collect::<Vec<_>>();
    roots.extend(still);
    roots
}

/// The retentions whose weights with u = 0 the terms use.
fn asked<'a>(rule: &'a UpdateRule, step: &'a Step, roots: &[TermId]) -> impl Iterator<Item = &'a Retained> {
    let used = rule.terms().vars_of(roots);
    let pairs = step.retained.iter().zip(&rule.retention);
    pairs.filter(move |(var, _)| used.contains(var)).map(|(_, retained)| retained)
}

/// The terms that a token has once however often the algorithm steps: retention and the read. Before several steps
/// retention acts with u = 0.
fn at_once(rule: &UpdateRule, step: &Step) -> Vec<TermId> {
    let mut roots: Vec<TermId> = rule.layer.memory.read.into_iter().collect();
    for r in &rule.retention {
        match r.retained {
            Some(still) if step.repeats > 1 && r.value.is_none() => roots.push(still),
            Some(_) | None => roots.extend([Some(r.advance), r.finish, r.value].into_iter().flatten()),
        }
    }
    roots
}

impl Cost {
    /// Adds the distinct terms below `roots` that `counted` lets pass, so many times each.
    fn add(&mut self, terms: &Terms, roots: &[TermId], so_often: &Dim, counted: impl Fn(TermId) -> bool) {
        let ids: BTreeSet<TermId> = terms.reachable(roots).into_iter().collect();
        let fused = inside_sums(terms, roots, &ids);
        for id in ids.into_iter().filter(|id| !fused.contains(id) && counted(*id)) {
            let (products, others) = count(terms, id, &fused);
            self.multiply_adds = plus(&self.multiply_adds, &times(&products, so_often));
            self.element_wise = plus(&self.element_wise, &times(&others, so_often));
        }
    }
}

/// The products of entries that only sums use: inner products, which are counted at the sum.
fn inside_sums(terms: &Terms, roots: &[TermId], ids: &BTreeSet<TermId>) -> BTreeSet<TermId> {
    let mut fused: BTreeSet<TermId> = ids.iter().filter_map(|id| inner_product(terms, *id)).collect();
    for id in ids.iter().filter(|id| inner_product(terms, **id).is_none()) {
        for operand in terms.operands(*id) {
            fused.remove(&operand);
        }
    }
    for root in roots {
        fused.remove(root);
    }
    fused
}

/// The product of entries that this term sums up, if it is such a sum.
fn inner_product(terms: &Terms, id: TermId) -> Option<TermId> {
    let Op::Reduce(Reduce::Sum, _, product) = terms.op(id) else { return None };
    let Op::Fn2(Fn2::Mul, a, b) = terms.op(*product) else { return None };
    let rank = terms.shape(*product).rank();
    let whole = |id: &TermId| terms.shape(*id).rank() == rank && !terms.shape(*id).0.iter().any(Dim::is_one);
    (whole(a) && whole(b)).then_some(*product)
}

/// Multiply-adds and element-wise operations of one term, its operands being there except those that are fused into
/// inner products.
fn count(terms: &Terms, id: TermId, fused: &BTreeSet<TermId>) -> (Dim, Dim) {
    let none = Dim::constant(0);
    match terms.op(id) {
        Op::MatMul(a, b) => {
            let columns = terms.shape(*b).0.get(1).cloned().unwrap_or_else(Dim::one);
            (times(&entries(terms.shape(*a)), &columns), none)
        }
        Op::Outer(..) => (entries(terms.shape(id)), none),
        Op::Reduce(_, _, a) if fused.contains(a) => (entries(terms.shape(*a)), none),
        Op::Reduce(_, _, a) | Op::Norm(a, _) | Op::Softmax(_, a) | Op::LogSoftmax(_, a) => {
            (none, entries(terms.shape(*a)))
        }
        Op::LayerNorm(a) | Op::InverseDeviation(a) => (none, entries(terms.shape(*a))),
        Op::Fn1(..) | Op::Fn2(..) | Op::Compare(..) | Op::Select(..) => (none, entries(terms.shape(id))),
        Op::Root(root) => {
            let root = terms.root(*root);
            let steps = Dim::constant(i64::from(root.steps));
            (none, times(&entries(terms.shape(root.residual)), &steps))
        }
        Op::Const(_)
        | Op::Size(_)
        | Op::Place(_)
        | Op::Var(_)
        | Op::Transpose(_)
        | Op::Row(_)
        | Op::Col(_)
        | Op::Flat(_)
        | Op::Spread(..)
        | Op::Eye(_)
        | Op::Stop(_) => (none.clone(), none),
    }
}

fn entries(shape: &Shape) -> Dim {
    shape.0.iter().fold(Dim::one(), |product, d| times(&product, d))
}

fn plus(a: &Dim, b: &Dim) -> Dim {
    saturating(a.add(b))
}

fn times(a: &Dim, b: &Dim) -> Dim {
    saturating(a.mul(b))
}

/// Counts beyond 64 bits are shown as the largest number.
fn saturating(dim: Option<Dim>) -> Dim {
    dim.unwrap_or_else(|| Dim::constant(i64::MAX))
}
