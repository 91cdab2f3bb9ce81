//! Reverse mode: what each operation makes of the cotangent of its result.

use crate::ops::{Ops, Prim};
use crate::slope::{slope1, slope2};
use crate::trouble::Made;
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_term::Reduce;

/// A norm in a denominator of a slope is never taken to be smaller than this (docs/mathematics.md).
const SMALLEST_NORM: f64 = 1e-12;

/// The cotangents of those operands (by position) that `want` asks for; what is left out is zero.
pub(crate) fn pull<O: Ops>(
    ops: &mut O,
    prim: &Prim<O::Value>,
    out: &O::Value,
    cotangent: &O::Value,
    want: &dyn Fn(usize) -> bool,
) -> Made<Vec<(usize, O::Value)>> {
    let mut given = Vec::new();
    let g = cotangent;
    match prim {
        Prim::Fn1(f, a) => {
            if let Some(slope) = slope1(ops, *f, a, out)? {
                given.push((0, ops.mul(g, &slope)?));
            }
        }
        Prim::Fn2(f, a, b) => {
            for (n, operand) in [(0, a), (1, b)] {
                if want(n) {
                    given.push((n, pull2(ops, *f, n == 0, [a, b, out], operand, g)?));
                }
            }
        }
        Prim::Select(c, a, b) => {
            let zero = ops.num(0.0);
            if want(1) {
                let chosen = ops.select(c, g, &zero)?;
                given.push((1, sum_like(ops, &chosen, a)?));
            }
            if want(2) {
                let chosen = ops.select(c, &zero, g)?;
                given.push((2, sum_like(ops, &chosen, b)?));
            }
        }
        Prim::MatMul(a, b) => {
            if want(0) {
                given.push((0, by_left(ops, g, b)?));
            }
            if want(1) {
                let turned = ops.transpose(a)?;
                given.push((1, ops.matmul(&turned, g)?));
            }
        }
        Prim::Outer(a, b) => {
            if want(0) {
                given.push((0, ops.matmul(g, b)?));
            }
            if want(1) {
                let turned = ops.transpose(g)?;
                given.push((1, ops.matmul(&turned, a)?));
            }
        }
        Prim::Transpose(_) => given.push((0, ops.transpose(g)?)),
        Prim::Reshape(a, _) => {
            let shape = ops.array(a).shape.clone();
            given.push((0, ops.reshape(g, &shape)?));
        }
        Prim::Spread(a, _) => given.push((0, sum_like(ops, g, a)?)),
        Prim::ReduceTo(op, a, _) => given.push((0, pull_reduction(ops, *op, a, out, g)?)),
        Prim::Norm(x, p) => {
            if want(0) {
                let slope = norm_slope(ops, x, p, out)?;
                given.push((0, ops.mul(g, &slope)?));
            }
            if want(1) {
                let slope = norm_slope_by_p(ops, x, p, out)?;
                given.push((1, ops.mul(g, &slope)?));
            }
        }
        Prim::Stack(items) => {
            for n in (0..items.len()).filter(|n| want(*n)) {
                given.push((n, ops.apply(Prim::Pick(g.clone(), n))?));
            }
        }
        Prim::Pick(a, n) => {
            let count = ops.array(a).shape.first().copied().unwrap_or(0);
            given.push((0, ops.apply(Prim::Scatter(g.clone(), *n, count))?));
        }
        Prim::Scatter(_, n, _) => given.push((0, ops.apply(Prim::Pick(g.clone(), *n))?)),
        Prim::Alias(_) => given.push((0, g.clone())),
        Prim::Compare(..) | Prim::Stop(_) => {}
    }
    given.retain(|(n, _)| want(*n));
    Ok(given)
}

fn pull2<O: Ops>(
    ops: &mut O,
    f: Fn2,
    first: bool,
    [a, b, out]: [&O::Value; 3],
    operand: &O::Value,
    g: &O::Value,
) -> Made<O::Value> {
    let whole = match (f, first) {
        (Fn2::Add, _) | (Fn2::Sub, true) => g.clone(),
        (Fn2::Sub, false) => ops.fn1(Fn1::Neg, g)?,
        (Fn2::Mul | Fn2::Div | Fn2::Pow | Fn2::Min | Fn2::Max, _) => {
            let slope = slope2(ops, f, first, a, b, out)?;
            ops.mul(g, &slope)?
        }
    };
    sum_like(ops, &whole, operand)
}

/// Sums over the axes along which `like` was repeated.
fn sum_like<O: Ops>(ops: &mut O, g: &O::Value, like: &O::Value) -> Made<O::Value> {
    let shape = ops.array(like).shape.clone();
    ops.sum_to(g, &shape)
}

/// The cotangent of a in a @ b.
fn by_left<O: Ops>(ops: &mut O, g: &O::Value, b: &O::Value) -> Made<O::Value> {
    if ops.array(b).shape.len() == 1 {
        return ops.outer(g, b);
    }
    let turned = ops.transpose(b)?;
    ops.matmul(g, &turned)
}

/// A sum gives its cotangent to every entry; an extreme gives it to the entries that attain it, in equal parts.
fn pull_reduction<O: Ops>(
    ops: &mut O,
    op: Reduce,
    a: &O::Value,
    out: &O::Value,
    g: &O::Value,
) -> Made<O::Value> {
    let shape = ops.array(a).shape.clone();
    let spread = ops.spread(g, &shape)?;
    match op {
        Reduce::Sum => Ok(spread),
        Reduce::Max | Reduce::Min => {
            let attained = ops.compare(Cmp::Eq, a, out)?;
            let reduced = ops.array(out).shape.clone();
            let count = ops.sum_to(&attained, &reduced)?;
            let share = ops.div(&spread, &count)?;
            ops.mul(&share, &attained)
        }
    }
}

/// x |x|^(p-2) / max(norm, floor)^(p-1), as r |r|^(p-2) with r = x / max(norm, floor).
fn norm_slope<O: Ops>(ops: &mut O, x: &O::Value, p: &O::Value, norm: &O::Value) -> Made<O::Value> {
    let floor = ops.num(SMALLEST_NORM);
    let bottom = ops.fn2(Fn2::Max, norm, &floor)?;
    let r = ops.div(x, &bottom)?;
    match ops.array(p).data.first() {
        Some(1.0) => return ops.fn1(Fn1::Sign, x),
        Some(2.0) => return Ok(r),
        _ => {}
    }
    let size = ops.fn1(Fn1::Abs, &r)?;
    let two = ops.num(2.0);
    let exponent = ops.sub(p, &two)?;
    let weight = ops.fn2(Fn2::Pow, &size, &exponent)?;
    ops.mul(&r, &weight)
}

/// norm / p * sum r^p log r with r = |x| / norm.
fn norm_slope_by_p<O: Ops>(ops: &mut O, x: &O::Value, p: &O::Value, norm: &O::Value) -> Made<O::Value> {
    let size = ops.fn1(Fn1::Abs, x)?;
    let r = ops.div(&size, norm)?;
    let (log, power) = (ops.fn1(Fn1::Log, &r)?, ops.fn2(Fn2::Pow, &r, p)?);
    let product = ops.mul(&power, &log)?;
    let total = ops.sum(&product)?;
    let scale = ops.div(norm, p)?;
    ops.mul(&scale, &total)
}
