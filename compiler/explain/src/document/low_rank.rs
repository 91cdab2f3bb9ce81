//! What is read from weights: the products of a read, in the order in which they are needed.

use miras_rule::UpdateRule;
use miras_term::{Op, TermId};
use std::collections::HashMap;

/// `weight @ input` inside a read.
pub(super) struct Read {
    /// What it is called.
    pub name: String,
    /// Index of the weight.
    pub weight: usize,
    /// The product.
    pub term: TermId,
    /// What the weight is applied to.
    pub input: TermId,
}

/// The read of q.
pub(super) struct Reads {
    /// Its products with weights, operands first.
    pub products: Vec<Read>,
    /// The whole answer.
    pub answer: TermId,
}

/// The read of q taken apart. Adds terms to a copy of the rule's arena; the answer's ids are valid in the rule
/// only where they were there before, so that a copy with the read's argument replaced is made by [`with_query`].
pub(super) fn reads(rule: &UpdateRule) -> Option<Reads> {
    let read = rule.layer.memory.read?;
    let terms = &rule.layer.terms;
    let weights = &rule.layer.memory.weights;
    let mut products = Vec::new();
    for id in terms.reachable(&[read]) {
        let Op::MatMul(a, input) = terms.op(id) else { continue };
        let Op::Var(v) = terms.op(*a) else { continue };
        let Some(weight) = weights.iter().position(|w| w.var == *v) else { continue };
        let several = weights.len() > 1;
        let name = if several { format!("r[{}]", weight + 1) } else { "r".into() };
        products.push(Read { name, weight, term: id, input: *input });
    }
    Some(Reads { products, answer: read })
}

/// A copy of a rule whose read is that of the query.
pub(super) fn with_query(rule: &UpdateRule) -> UpdateRule {
    let mut rule = rule.clone();
    let layer = &mut rule.layer;
    if let Some(read) = layer.memory.read {
        let query = layer.terms.use_var(layer.query);
        let replace = HashMap::from([(layer.memory.argument, query)]);
        layer.memory.read = layer.terms.substitute_one(read, &replace).ok().or(Some(read));
    }
    rule
}
