//! Matrices as sums of outer products.

use crate::calculus::fold::{matmul, negated, over, plus, times, transpose};
use miras_base::scalar::{Fn1, Fn2};
use miras_term::{Mismatch, Op, TermId, Terms};

/// Sums are taken apart into at most this many pieces: shared parts would make more without end.
const MANY: usize = 256;

/// How deep products are searched for an outer product.
const DEPTH: usize = 12;

/// The summands of a term: `a - b` is a and -b.
///
/// # Errors
/// A mismatch of shapes, which a well-formed term cannot show.
pub fn summands(terms: &mut Terms, id: TermId) -> Result<Vec<TermId>, Mismatch> {
    let (mut open, mut found) = (vec![id], Vec::new());
    while let Some(t) = open.pop() {
        if open.len() + found.len() >= MANY {
            found.push(t);
            continue;
        }
        match terms.op(t).clone() {
            Op::Fn2(Fn2::Add, a, b) if same_shape(terms, &[a, b, t]) => open.extend([b, a]),
            Op::Fn2(Fn2::Sub, a, b) if same_shape(terms, &[a, b, t]) => {
                let b = negated(terms, b)?;
                open.push(b);
                open.push(a);
            }
            _ => found.push(t),
        }
    }
    Ok(found)
}

/// (left, right) with `left (x) right` equal to the term, where it is an outer product, whatever
/// scalars, rows and columns scale it.
///
/// # Errors
/// As for [`summands`].
pub fn as_outer(terms: &mut Terms, id: TermId) -> Result<Option<(TermId, TermId)>, Mismatch> {
    within(terms, id, DEPTH)
}

fn within(terms: &mut Terms, id: TermId, depth: usize) -> Result<Option<(TermId, TermId)>, Mismatch> {
    if depth == 0 || terms.shape(id).rank() != 2 {
        return Ok(None);
    }
    Ok(match terms.op(id).clone() {
        Op::Outer(a, b) => Some((a, b)),
        Op::Fn1(Fn1::Neg, x) => match within(terms, x, depth - 1)? {
            Some((a, b)) => Some((negated(terms, a)?, b)),
            None => None,
        },
        Op::Fn2(Fn2::Mul, x, y) => match within(terms, x, depth - 1)? {
            Some(pair) => scaled(terms, pair, y, times)?,
            None => match within(terms, y, depth - 1)? {
                Some(pair) => scaled(terms, pair, x, times)?,
                None => None,
            },
        },
        Op::Fn2(Fn2::Div, x, y) => match within(terms, x, depth - 1)? {
            Some(pair) => scaled(terms, pair, y, over)?,
            None => None,
        },
        Op::Transpose(x) => within(terms, x, depth - 1)?.map(|(a, b)| (b, a)),
        Op::MatMul(x, y) => match (within(terms, x, depth - 1)?, within(terms, y, depth - 1)?) {
            (_, Some((a, b))) => Some((matmul(terms, x, a)?, b)),
            (Some((a, b)), None) => {
                let turned = transpose(terms, y)?;
                Some((a, matmul(terms, turned, b)?))
            }
            (None, None) => None,
        },
        _ => None,
    })
}

/// Adds an outer product to a list; one with the same right side is joined to it.
///
/// # Errors
/// As for [`summands`].
pub fn join(
    terms: &mut Terms,
    products: &mut Vec<(TermId, TermId)>,
    left: TermId,
    right: TermId,
) -> Result<(), Mismatch> {
    match products.iter_mut().find(|(_, r)| *r == right) {
        Some((l, _)) => *l = plus(terms, *l, left)?,
        None => products.push((left, right)),
    }
    Ok(())
}

type Scale = fn(&mut Terms, TermId, TermId) -> Result<TermId, Mismatch>;

/// An outer product scaled by a factor that is a scalar, one value for each row, or one for each column.
fn scaled(
    terms: &mut Terms,
    (a, b): (TermId, TermId),
    factor: TermId,
    scale: Scale,
) -> Result<Option<(TermId, TermId)>, Mismatch> {
    let factor = match terms.op(factor) {
        Op::Spread(inner, _) => *inner,
        _ => factor,
    };
    let shape = terms.shape(factor).clone();
    Ok(match shape.0.as_slice() {
        [] => Some((scale(terms, a, factor)?, b)),
        [_, one] if one.is_one() => {
            let per_row = terms.flat(factor)?;
            Some((scale(terms, a, per_row)?, b))
        }
        [one, _] if one.is_one() => {
            let per_column = terms.flat(factor)?;
            Some((a, scale(terms, b, per_column)?))
        }
        _ => None,
    })
}

fn same_shape(terms: &Terms, ids: &[TermId]) -> bool {
    ids.windows(2).all(|p| terms.shape(p[0]) == terms.shape(p[1]))
}
