//! Algebra on terms: a normal form (sums of products of powers) under side conditions.
//!
//! Terms are read as sums of products over a commutative ring in which everything that is no sum, product
//! or power is an atom. Repeated scalars, rows and columns need no care in it: shapes are put back when
//! a result is written. Work is bounded: what would grow too long is left as it is.

mod bounds;
mod dice;
mod facts;
mod linear;
pub(crate) mod poly;
mod product;
mod read;
mod relabel;
pub(crate) mod ring;
pub mod rules;
mod write;

#[cfg(test)]
pub(crate) mod witness;

pub use bounds::Bounds;
pub(crate) use dice::Dice;
pub use facts::Facts;
pub use linear::collect_linear;

use miras_term::{Op, TermId, Terms, VarId};
use ring::Ring;

/// The term in simplest form, of the same shape; the term itself where that is not shorter.
///
/// Under the facts the two have the same value; at singular points (0 in a denominator) the values of the
/// scalar table are kept.
pub fn simplify(terms: &mut Terms, id: TermId, facts: &Facts) -> TermId {
    let shape = terms.shape(id).clone();
    if terms.ty(id).truth {
        return id;
    }
    let mut ring = Ring::new(terms, facts.clone());
    let written = ring.poly(id).and_then(|p| ring.write_factored(&p));
    match written.map(|t| terms.spread(t, &shape)) {
        Ok(Ok(t)) if *terms.shape(t) == shape && size(terms, t) <= size(terms, id) => t,
        _ => id,
    }
}

/// Whether two terms are the same sum of products.
pub fn equal(terms: &mut Terms, a: TermId, b: TermId, facts: &Facts) -> bool {
    let mut ring = Ring::new(terms, facts.clone());
    match (ring.poly(a), ring.poly(b)) {
        (Ok(a), Ok(b)) => a.same(&b),
        _ => false,
    }
}

/// How often a variable stands in a term when it is written out, up to a thousand times.
pub fn occurrences(terms: &Terms, id: TermId, var: VarId) -> u32 {
    const MANY: u32 = 1000;
    let mut count = std::collections::HashMap::new();
    for t in terms.reachable(&[id]) {
        let below = terms.operands(t).iter().map(|o| count.get(o).copied().unwrap_or(0)).sum::<u32>();
        let own = if is_var(terms, t, var) { 1 } else { below.min(MANY) };
        count.insert(t, own);
    }
    count.get(&id).copied().unwrap_or(0)
}

/// Whether a term is just this variable.
pub(crate) fn is_var(terms: &Terms, id: TermId, var: VarId) -> bool {
    matches!(terms.op(id), Op::Var(v) if *v == var)
}

/// Number of distinct terms, repetitions to a shape not counted.
fn size(terms: &Terms, id: TermId) -> usize {
    terms.reachable(&[id]).into_iter().filter(|t| !matches!(terms.op(*t), Op::Spread(..))).count()
}
