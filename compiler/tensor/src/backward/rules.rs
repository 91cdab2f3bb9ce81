//! The table: what each operation makes of the cotangent of its result.

use super::reverse::Reverse;
use crate::ir::{AxisId, Op, ValueId};
use miras_base::Diagnostic;
use miras_base::scalar::{Cmp, Expr, Fn1, Fn2, derivative2, num, row};
use miras_term::Reduce;

/// Gives the cotangents of the operands of `id`, whose own is `g`.
///
/// `g` has some of the axes of the value and is the same along the others; an operand's cotangent is summed
/// over the axes that the operand lacks.
pub(super) fn pull(at: &mut Reverse<'_>, id: ValueId, g: ValueId) -> Result<(), Diagnostic> {
    let axes = at.axes(id);
    match at.source.value(id).op.clone() {
        Op::Given
        | Op::Number(_)
        | Op::Place(_)
        | Op::Kept
        | Op::Step(_)
        | Op::Index(_)
        | Op::Diagonal(..)
        | Op::Compare(..)
        | Op::Stop(_)
        // The scan as a whole gives the cotangents of what it takes.
        | Op::Final(..)
        | Op::Stacked(..) => {}
        Op::Fn1(f, a) => {
            if !at.cuts(a) {
                let part = by_function(at, f, a, g)?;
                at.give(a, part);
            }
        }
        Op::Fn2(f, a, b) => {
            for (n, operand) in [(0, a), (1, b)] {
                if !at.cuts(operand) {
                    let part = by_argument(at, f, n, [a, b, id], g)?;
                    at.give(operand, part);
                }
            }
        }
        Op::Select(condition, a, b) => {
            let condition = at.primal(condition)?;
            for (first, operand) in [(true, a), (false, b)] {
                let to = at.axes(operand);
                let mut build = at.build();
                let zero = build.number(0.0);
                let (yes, no) = if first { (g, zero) } else { (zero, g) };
                let chosen = build.select(condition, yes, no);
                let part = build.sum_to(chosen, &axes, &to)?;
                at.give(operand, part);
            }
        }
        Op::Einsum(a, b, over) => {
            let all: Vec<AxisId> = axes.iter().chain(&over).copied().collect();
            for (operand, other) in [(a, b), (b, a)] {
                if !at.cuts(operand) {
                    let (to, other) = (at.axes(operand), at.primal(other)?);
                    let part = at.build().product_to([g, other], &all, &to)?;
                    at.give(operand, part);
                }
            }
        }
        Op::Reduce(Reduce::Sum, _, a) => at.give(a, g),
        Op::Reduce(Reduce::Max | Reduce::Min, over, a) => {
            if !at.cuts(a) {
                let part = to_extremes(at, &over, [a, id], g)?;
                at.give(a, part);
            }
        }
        Op::Rename { value, from, to } => {
            let mut build = at.build();
            let named = build.axes(g).contains(&to);
            let part = if named { build.add(Op::Rename { value: g, from: to, to: from }) } else { g };
            at.give(value, part);
        }
        Op::Spread(a, _) => {
            let to = at.axes(a);
            let part = at.build().sum_to(g, &axes, &to)?;
            at.give(a, part);
        }
        Op::At(a, axis, place) => {
            let mut build = at.build();
            let (index, place, zero) = (build.add(Op::Index(axis)), build.number(place as f64), build.number(0.0));
            let here = build.compare(Cmp::Eq, index, place);
            let part = build.select(here, g, zero);
            at.give(a, part);
        }
    }
    Ok(())
}

/// g f'(a).
fn by_function(at: &mut Reverse<'_>, f: Fn1, a: ValueId, g: ValueId) -> Result<ValueId, Diagnostic> {
    let a = at.primal(a)?;
    let mut build = at.build();
    let slope = build.expr(&(row(f).derivative)(), &[a])?;
    Ok(times_slope(at, g, slope, bounded(f)))
}

/// The cotangent of argument `n` of `f(a, b)`, which is `out`.
fn by_argument(
    at: &mut Reverse<'_>,
    f: Fn2,
    n: u8,
    [a, b, out]: [ValueId; 3],
    g: ValueId,
) -> Result<ValueId, Diagnostic> {
    let (axes, to) = (at.axes(out), at.axes(if n == 0 { a } else { b }));
    let [a, b, out] = [at.primal(a)?, at.primal(b)?, at.primal(out)?];
    let mut build = at.build();
    let whole = match (f, n) {
        (Fn2::Add, _) | (Fn2::Sub, 0) => g,
        (Fn2::Sub, _) => build.neg(g),
        (Fn2::Mul, 0) => return build.product_to([g, b], &axes, &to),
        (Fn2::Mul, _) => return build.product_to([g, a], &axes, &to),
        (Fn2::Div, 0) => {
            let inverse = build.expr(&reciprocal(&build, b), &[b])?;
            return build.product_to([g, inverse], &axes, &to);
        }
        (Fn2::Div, _) => {
            let inverse = build.expr(&reciprocal(&build, b), &[b])?;
            let (scaled, minus) = (build.mul(out, inverse), build.neg(g));
            return build.product_to([minus, scaled], &axes, &to);
        }
        (Fn2::Min | Fn2::Max, _) => {
            let (cmp, zero) = (if f == Fn2::Min { Cmp::Le } else { Cmp::Ge }, build.number(0.0));
            let first = build.compare(cmp, a, b);
            let (yes, no) = if n == 0 { (g, zero) } else { (zero, g) };
            build.select(first, yes, no)
        }
        (Fn2::Pow, _) => {
            let args = [argument(&build, a, 0), argument(&build, b, 1)];
            let slope = derivative2(f, n).substitute(&[&args[0], &args[1]]);
            let slope = build.expr(&slope, &[a, b])?;
            times_slope(at, g, slope, false)
        }
    };
    at.build().sum_to(whole, &axes, &to)
}

/// An argument as the table sees it: a number where it is one.
fn argument(build: &super::build::Build<'_>, id: ValueId, n: u8) -> Expr {
    match build.graph.value(id).op {
        Op::Number(x) => num(x),
        _ => Expr::Arg(n),
    }
}

/// 1 / x, and 0 where x is 0.
fn reciprocal(build: &super::build::Build<'_>, id: ValueId) -> Expr {
    miras_base::scalar::reciprocal(argument(build, id, 0)).substitute(&[])
}

/// A product with a slope that may be infinite in float32: what is not asked for stays 0.
fn times_slope(at: &mut Reverse<'_>, g: ValueId, slope: ValueId, bounded: bool) -> ValueId {
    let mut build = at.build();
    let product = build.mul(g, slope);
    if bounded || matches!(build.graph.value(slope).op, Op::Number(_)) {
        return product;
    }
    let zero = build.number(0.0);
    let nothing = build.compare(Cmp::Eq, g, zero);
    build.select(nothing, zero, product)
}

/// An extreme gives its cotangent to the entries that attain it, in equal parts.
fn to_extremes(
    at: &mut Reverse<'_>,
    over: &[AxisId],
    [a, out]: [ValueId; 2],
    g: ValueId,
) -> Result<ValueId, Diagnostic> {
    let (a, out) = (at.primal(a)?, at.primal(out)?);
    let mut build = at.build();
    let attained = build.compare(Cmp::Eq, a, out);
    let (zero, one) = (build.number(0.0), build.number(1.0));
    let counted = build.select(attained, one, zero);
    let count = build.add(Op::Reduce(Reduce::Sum, over.to_vec(), counted));
    let share = build.add(Op::Fn2(Fn2::Div, g, count));
    Ok(build.select(attained, share, zero))
}

/// Whether the derivative is bounded on the reals.
fn bounded(f: Fn1) -> bool {
    match f {
        Fn1::Neg
        | Fn1::Abs
        | Fn1::Sign
        | Fn1::Tanh
        | Fn1::Sigmoid
        | Fn1::Softplus
        | Fn1::Gelu
        | Fn1::GeluTanh
        | Fn1::Silu
        | Fn1::Relu
        | Fn1::Erf
        | Fn1::Sin
        | Fn1::Cos
        | Fn1::Asinh
        | Fn1::Atan => true,
        Fn1::Exp
        | Fn1::Expm1
        | Fn1::Log
        | Fn1::Log1p
        | Fn1::Sqrt
        | Fn1::Atanh
        | Fn1::Logit
        | Fn1::Tan
        | Fn1::Sinh
        | Fn1::Cosh => false,
    }
}
