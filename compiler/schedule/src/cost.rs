//! What a token costs and what a stream carries, as polynomials of dk and dv.

use crate::plan::Schedule;
use miras_base::Dim;
use miras_rule::{Inside, UpdateRule};
use miras_spec::Algo;
use miras_term::{Op, Shape, TermId, Terms};
use std::collections::BTreeSet;

/// A tensor that a stream carries.
#[derive(Clone, Debug)]
pub struct StatePart {
    /// The tensor's name in files, e.g. `state.memory.W1`.
    pub tensor: String,
    /// Its shape for one stream and head.
    pub shape: Shape,
    /// Number of entries; None where it grows with the sequence.
    pub entries: Option<Dim>,
}

/// Operations per token and head.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Multiply-adds of products of a matrix with a vector and of outer products.
    pub multiply_adds: Dim,
    /// Other element-wise operations and reductions, one per entry.
    pub element_wise: Dim,
}

/// Tokens of one stretch of a stream of so many tokens when gradients are computed: carries are kept between
/// stretches, and before each token of the stretch at hand. About the root, so that both together are fewest.
pub fn stretch(tokens: usize) -> usize {
    tokens.isqrt().next_multiple_of(8).max(16)
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
        for (weight, retained) in rule.layer.memory.weights.iter().zip(&rule.retention) {
            add(format!("state.anchor.{}", weight.name), &weight.shape);
            if let Inside::Threshold(_) = retained.inside {
                add(format!("state.anchor.threshold.{}", weight.name), &weight.shape);
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
            parts.push(StatePart {
                tensor: format!("state.cache.{name}"),
                shape: Shape::vector(dim),
                entries: None,
            });
        }
    }
    parts
}

/// Operations of one token: every distinct term of the step, counted once (and once for each repeated
/// step of the algorithm).
pub(crate) fn cost(rule: &UpdateRule) -> Cost {
    let terms = rule.terms();
    let mut once: Vec<TermId> = rule.layer.memory.read.into_iter().collect();
    let mut each: Vec<TermId> = Vec::new();
    for r in &rule.retention {
        once.push(r.advance);
        once.extend(r.value);
        once.extend(r.finish);
    }
    for g in &rule.gradients {
        each.push(g.answer);
        for sum in &g.by_weight {
            each.extend(sum.products.iter().flat_map(|(a, b)| [*a, *b]));
            each.extend(sum.rest);
        }
    }
    if let Algo::Step(step) = &rule.layer.algo {
        each.extend(step.direction.iter().copied());
        each.extend(step.states.iter().map(|s| s.next));
    }
    let mut total = Cost { multiply_adds: Dim::constant(0), element_wise: Dim::constant(0) };
    let repeats = Dim::constant(i64::from(rule.layer.repeats()));
    for (roots, times) in [(once, Dim::one()), (each, repeats)] {
        let ids: BTreeSet<TermId> = terms.reachable(&roots).into_iter().collect();
        for id in ids {
            count(terms, id, &times, &mut total);
        }
    }
    total
}

fn count(terms: &Terms, id: TermId, times: &Dim, total: &mut Cost) {
    let (products, others) = match terms.op(id) {
        Op::MatMul(a, b) => {
            let columns = terms.shape(*b).0.get(1).cloned().unwrap_or_else(Dim::one);
            (saturating(entries(terms.shape(*a)).mul(&columns)), Dim::constant(0))
        }
        Op::Outer(..) => (entries(terms.shape(id)), Dim::constant(0)),
        Op::Reduce(_, _, a) | Op::Norm(a, _) | Op::Softmax(_, a) | Op::LogSoftmax(_, a) => {
            (Dim::constant(0), entries(terms.shape(*a)))
        }
        Op::LayerNorm(a) | Op::InverseDeviation(a) => (Dim::constant(0), entries(terms.shape(*a))),
        Op::Fn1(..) | Op::Fn2(..) | Op::Compare(..) | Op::Select(..) => {
            (Dim::constant(0), entries(terms.shape(id)))
        }
        Op::Root(root) => {
            let root = terms.root(*root);
            let steps = Dim::constant(i64::from(root.steps));
            (Dim::constant(0), saturating(entries(terms.shape(root.residual)).mul(&steps)))
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
        | Op::Stop(_) => (Dim::constant(0), Dim::constant(0)),
    };
    let more = |sum: &Dim, part: Dim| saturating(part.mul(times).and_then(|p| sum.add(&p)));
    total.multiply_adds = more(&total.multiply_adds, products);
    total.element_wise = more(&total.element_wise, others);
}

fn entries(shape: &Shape) -> Dim {
    shape.0.iter().fold(Dim::one(), |product, d| saturating(product.mul(d)))
}

/// Counts beyond 64 bits are shown as the largest number.
fn saturating(dim: Option<Dim>) -> Dim {
    dim.unwrap_or_else(|| Dim::constant(i64::MAX))
}
