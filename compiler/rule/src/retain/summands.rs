//! An objective as a sum over entries, plus powers of norms.

use super::refuse::{Tried, refuse};
use crate::algebra::is_var;
use miras_base::scalar::{Fn1, Fn2};
use miras_term::{Axis, Mismatch, Op, Reduce, TermId, Terms, VarId, print_within};
use std::collections::HashSet;

/// sum over all entries of each of `entries`, plus `norms`. Parts without the unknown are left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Summands {
    /// Terms whose entry (i, j) depends on entry (i, j) of the unknown only.
    pub entries: Vec<TermId>,
    pub norms: Vec<NormPower>,
}

/// coefficient * norm(inner, order)^power, summed over the slices that the axis makes.
#[derive(Clone, Debug)]
pub(super) struct NormPower {
    pub coefficient: TermId,
    pub inner: TermId,
    pub order: TermId,
    pub power: f64,
    pub axis: Axis,
}

/// A part still to be looked at: factor * term, and whether a sum is taken of it.
struct Part {
    term: TermId,
    factor: TermId,
    summed: bool,
}

/// Parts that are looked at: sums within sums could be exponentially many.
const PARTS: usize = 2000;

/// Splits a scalar objective of the unknown.
pub(super) fn split(terms: &mut Terms, objective: TermId, unknown: VarId) -> Tried<Summands> {
    let one = terms.num(1.0);
    let mut found = Summands::default();
    let mut open = vec![Part { term: objective, factor: one, summed: false }];
    let mut seen = 0;
    while let Some(part) = open.pop() {
        seen += 1;
        if seen > PARTS {
            return refuse(format!("the objective is a sum of more than {PARTS} parts"));
        }
        if terms.uses(part.term, unknown) {
            let parts = look(terms, part, unknown, &mut found)?;
            open.extend(parts.into_iter().rev());
        }
    }
    Ok(found)
}

fn look(terms: &mut Terms, part: Part, unknown: VarId, found: &mut Summands) -> Tried<Vec<Part>> {
    let Part { term, factor, summed } = part;
    let free = |terms: &Terms, t: TermId| !terms.uses(t, unknown);
    let to = |term, factor| vec![Part { term, factor, summed }];
    match terms.op(term).clone() {
        Op::Fn2(Fn2::Add, a, b) => Ok([to(a, factor), to(b, factor)].into_iter().flatten().collect()),
        Op::Fn2(Fn2::Sub, a, b) => {
            let minus = terms.neg(factor)?;
            Ok([to(a, factor), to(b, minus)].into_iter().flatten().collect())
        }
        Op::Fn1(Fn1::Neg, a) => {
            let minus = terms.neg(factor)?;
            Ok(to(a, minus))
        }
        Op::Fn2(Fn2::Mul, a, b) if free(terms, a) => Ok(to(b, terms.mul(factor, a)?)),
        Op::Fn2(Fn2::Mul, a, b) if free(terms, b) => Ok(to(a, terms.mul(factor, b)?)),
        Op::Fn2(Fn2::Div, a, b) if free(terms, b) => Ok(to(a, terms.div(factor, b)?)),
        Op::Spread(a, _) if !summed || terms.shape(a) == terms.shape(term) => Ok(to(a, factor)),
        Op::Reduce(Reduce::Sum, axis, a) if constant_along(terms, factor, axis) => {
            Ok(vec![Part { term: a, factor, summed: true }])
        }
        Op::Norm(x, order) => {
            let axis = Axis::All;
            norm_part(terms, NormPower { coefficient: factor, inner: x, order, power: 1.0, axis }, found)
        }
        Op::Fn2(Fn2::Max, a, b) => larger(terms, Part { term, factor, summed }, [a, b], unknown, found),
        Op::Fn2(Fn2::Min, a, b) => {
            // -min(a, b) = max(-a, -b).
            let opposite = [terms.neg(a)?, terms.neg(b)?];
            let minus = terms.neg(factor)?;
            larger(terms, Part { term, factor: minus, summed }, opposite, unknown, found)
        }
        Op::Fn1(Fn1::Relu, a) => {
            let zero = terms.num(0.0);
            larger(terms, Part { term, factor, summed }, [a, zero], unknown, found)
        }
        op => {
            if let Some((inner, axis)) = norms_of_slices(terms, term).filter(|n| summed || n.1 == Axis::All) {
                let order = terms.num(2.0);
                let norm = NormPower { coefficient: factor, inner, order, power: 1.0, axis };
                return norm_part(terms, norm, found);
            }
            if let Op::Fn2(Fn2::Pow, a, e) = op
                && let (Op::Norm(x, order), Some(power)) = (terms.op(a).clone(), terms.as_num(e))
            {
                let axis = Axis::All;
                return norm_part(
                    terms,
                    NormPower { coefficient: factor, inner: x, order, power, axis },
                    found,
                );
            }
            entry(terms, Part { term, factor, summed }, unknown, found)
        }
    }
}

/// max(a, b) = (a + b + abs(a - b)) / 2; max(a, -a) = abs(a).
fn larger(
    terms: &mut Terms,
    part: Part,
    [a, b]: [TermId; 2],
    unknown: VarId,
    found: &mut Summands,
) -> Tried<Vec<Part>> {
    let Part { factor, summed, .. } = part;
    if terms.neg(a)? == b || terms.neg(b)? == a {
        let size = terms.fn1(Fn1::Abs, a)?;
        found.entries.push(entry_of(terms, Part { term: size, factor, summed }, unknown)?);
        return Ok(Vec::new());
    }
    let half = terms.num(0.5);
    let factor = terms.mul(half, factor)?;
    let between = terms.sub(a, b)?;
    let between = terms.fn1(Fn1::Abs, between)?;
    found.entries.push(entry_of(terms, Part { term: between, factor, summed }, unknown)?);
    Ok([a, b].map(|term| Part { term, factor, summed }).into())
}

/// sqrt(sum(A)), sqrt(sum(A, row)) or sqrt(A @ ones) with A the squares of a tensor's entries, and the same by columns:
/// the tensor, and along which slices its 2-norms are taken.
fn norms_of_slices(terms: &Terms, id: TermId) -> Option<(TermId, Axis)> {
    let Op::Fn1(Fn1::Sqrt, sums) = *terms.op(id) else { return None };
    let (squares, axis) = match *terms.op(sums) {
        Op::Reduce(Reduce::Sum, Axis::All, squares) => (squares, Axis::All),
        Op::Flat(sums) => match *terms.op(sums) {
            Op::Reduce(Reduce::Sum, axis @ (Axis::Row | Axis::Column), squares) => (squares, axis),
            _ => return None,
        },
        Op::MatMul(a, ones) if terms.as_num(ones) == Some(1.0) && terms.shape(ones).rank() == 1 => {
            match *terms.op(a) {
                Op::Transpose(inner) => (inner, Axis::Column),
                _ => (a, Axis::Row),
            }
        }
        _ => return None,
    };
    match *terms.op(squares) {
        Op::Fn2(Fn2::Pow, x, two) if terms.as_num(two) == Some(2.0) => Some((x, axis)),
        Op::Fn2(Fn2::Mul, x, y) if x == y => Some((x, axis)),
        _ => None,
    }
}

/// A norm to the power of its own order is a sum over entries.
fn norm_part(terms: &mut Terms, n: NormPower, found: &mut Summands) -> Tried<Vec<Part>> {
    if terms.shape(n.coefficient).rank() > 0 {
        return refuse("a norm of the weights has a factor that is not one number");
    }
    if terms.as_num(n.order) == Some(n.power) && n.power > 0.0 && n.axis == Axis::All {
        let base = if n.power == 2.0 { n.inner } else { terms.fn1(Fn1::Abs, n.inner)? };
        let power = terms.fn2(Fn2::Pow, base, n.order)?;
        found.entries.push(terms.mul(n.coefficient, power)?);
    } else {
        found.norms.push(n);
    }
    Ok(Vec::new())
}

fn entry(terms: &mut Terms, part: Part, unknown: VarId, found: &mut Summands) -> Tried<Vec<Part>> {
    found.entries.push(entry_of(terms, part, unknown)?);
    Ok(Vec::new())
}

/// A part as a term whose entries are summed.
fn entry_of(terms: &mut Terms, part: Part, unknown: VarId) -> Tried<TermId> {
    let text = |t: TermId| print_within(terms, t, &Default::default(), 60);
    if !part.summed && terms.shape(part.term).rank() > 0 {
        return refuse(format!("`{}` is not summed over the entries", text(part.term)));
    }
    if let Err(culprit) = entry_wise(terms, part.term, unknown) {
        return refuse(format!("`{}` mixes the entries of the weights", text(culprit)));
    }
    Ok(terms.mul(part.factor, part.term)?)
}

/// Whether every entry of a term depends on that entry of a variable only; else the part that mixes.
pub(super) fn entry_wise(terms: &Terms, id: TermId, var: VarId) -> Result<(), TermId> {
    let mut depends = HashSet::new();
    for t in terms.reachable(&[id]) {
        let below = terms.operands(t).iter().any(|o| depends.contains(o));
        if !below && !is_var(terms, t, var) {
            continue;
        }
        depends.insert(t);
        let keeps = match terms.op(t) {
            Op::Var(_) | Op::Fn1(..) | Op::Fn2(..) | Op::Compare(..) | Op::Select(..) | Op::Stop(_) => true,
            Op::Spread(a, _) => terms.shape(*a) == terms.shape(t),
            Op::Const(_) | Op::Size(_) | Op::Place(_) | Op::Eye(_) => true,
            Op::MatMul(..)
            | Op::Outer(..)
            | Op::Transpose(_)
            | Op::Row(_)
            | Op::Col(_)
            | Op::Flat(_)
            | Op::Reduce(..)
            | Op::Norm(..)
            | Op::Softmax(..)
            | Op::LogSoftmax(..)
            | Op::LayerNorm(_)
            | Op::InverseDeviation(_)
            | Op::Root(_) => false,
        };
        if !keeps {
            return Err(t);
        }
    }
    Ok(())
}

/// Whether a term has one value along the axes (it may vary across them).
pub(super) fn constant_along(terms: &Terms, id: TermId, axis: Axis) -> bool {
    let shape = terms.shape(id);
    match (axis, shape.0.as_slice()) {
        (_, []) => true,
        (Axis::All, axes) => axes.iter().all(|d| d.is_one()),
        (Axis::Row, axes) => axes.last().is_some_and(|d| d.is_one()),
        (Axis::Column, axes) => axes.first().is_some_and(|d| d.is_one()),
    }
}

/// A sum of terms; 0 where there are none.
pub(super) fn add_up(terms: &mut Terms, parts: &[TermId]) -> Result<TermId, Mismatch> {
    let mut sum = terms.num(0.0);
    for part in parts {
        sum = terms.add(sum, *part)?;
    }
    Ok(sum)
}
