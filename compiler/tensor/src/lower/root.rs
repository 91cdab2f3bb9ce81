//! Roots of equations as a fixed number of safeguarded Newton steps.

use super::Failure;
use super::term::TermLowering;
use crate::ir::{Carry, Op, Order, Scan, Size, ValueId};
use miras_base::scalar::{Cmp, Fn2};
use miras_term::{self as term, Root, TermId};
use std::collections::BTreeSet;

/// The root's value. Each step keeps a bracket [low, high] around it and takes Newton's step where that
/// stays inside, else the middle. The last step is taken outside the scan from a point that gradients do
/// not pass, with the slope held: its derivative is that of the exact root (implicit function theorem).
pub(super) fn lower_root(at: &mut TermLowering<'_>, root: &Root) -> Result<ValueId, Failure> {
    lower_outside(at, root)?;
    let shape = at.terms.var(root.unknown).shape.clone();
    let zero = at.number(0.0);
    let (low, high) = (at.lower(root.low)?, at.lower(root.high)?);
    let axes: Vec<_> = at.axes.of_shape(at.graph, &shape)?.into_iter().flatten().collect();
    let (low, high) = (full(at, low, &axes), full(at, high, &axes));
    let at_high = evaluate(at, root, high)?.0;
    let rises = at.graph.add(at.block, Op::Compare(Cmp::Gt, at_high, zero));
    let middle = midpoint(at, low, high);

    let steps = at.graph.add_axis("newton", Size::Fixed(root.steps as usize));
    let (outer, body) = (at.block, at.graph.add_block(at.block));
    let carry = |at: &mut TermLowering<'_>, name: &str| at.graph.given(body, axes.clone(), name);
    let (low_in, high_in, x_in) = (carry(at, "low"), carry(at, "high"), carry(at, "x"));
    at.block = body;
    let (residual, slope) = evaluate(at, root, x_in)?;
    let positive = at.graph.add(body, Op::Compare(Cmp::Gt, residual, zero));
    let below = at.graph.add(body, Op::Select(rises, x_in, low_in));
    let above = at.graph.add(body, Op::Select(rises, high_in, x_in));
    let falls_low = at.graph.add(body, Op::Select(rises, low_in, x_in));
    let falls_high = at.graph.add(body, Op::Select(rises, x_in, high_in));
    // A positive residual lies above the root of a rising equation and below that of a falling one.
    let low_out = at.graph.add(body, Op::Select(positive, falls_low, below));
    let high_out = at.graph.add(body, Op::Select(positive, falls_high, above));
    let quotient = at.fn2(Fn2::Div, residual, slope);
    let newton = at.fn2(Fn2::Sub, x_in, quotient);
    let halved = midpoint(at, low_out, high_out);
    // The ends belong to it: at a residual of exactly 0 the step stays where it is, which is an end by now.
    let over_low = at.graph.add(body, Op::Compare(Cmp::Ge, newton, low_out));
    let kept = at.graph.add(body, Op::Select(over_low, newton, halved));
    let under_high = at.graph.add(body, Op::Compare(Cmp::Le, newton, high_out));
    let x_out = at.graph.add(body, Op::Select(under_high, kept, halved));
    at.block = outer;

    let carries = vec![
        Carry { first: low, before: low_in, after: low_out },
        Carry { first: high, before: high_in, after: high_out },
        Carry { first: middle, before: x_in, after: x_out },
    ];
    let scan =
        Scan { axis: steps, order: Order::Ascending, body, carries, slices: Vec::new(), stacked: Vec::new() };
    let (finals, _) = at.graph.add_scan(outer, scan);
    corrected(at, root, finals[2], zero)
}

/// x - residual(x) / slope(x), with x and the slope cut from gradients; x where the slope is 0.
fn corrected(at: &mut TermLowering<'_>, root: &Root, x: ValueId, zero: ValueId) -> Result<ValueId, Failure> {
    let x = at.graph.add(at.block, Op::Stop(x));
    let (residual, slope) = evaluate(at, root, x)?;
    let slope = at.graph.add(at.block, Op::Stop(slope));
    let flat = at.graph.add(at.block, Op::Compare(Cmp::Eq, slope, zero));
    let quotient = at.fn2(Fn2::Div, residual, slope);
    let step = at.graph.add(at.block, Op::Select(flat, zero, quotient));
    Ok(at.fn2(Fn2::Sub, x, step))
}

/// Lowers, in the block around the steps, every part of the equation that does not use the unknown.
fn lower_outside(at: &mut TermLowering<'_>, root: &Root) -> Result<(), Failure> {
    let terms = at.terms;
    let mut dependent: BTreeSet<TermId> = BTreeSet::new();
    for id in terms.reachable(&[root.residual, root.slope]) {
        let uses = match terms.op(id) {
            term::Op::Var(v) => *v == root.unknown,
            _ => terms.operands(id).iter().any(|o| dependent.contains(o)),
        };
        if uses {
            dependent.insert(id);
        } else {
            at.lower(id)?;
        }
    }
    Ok(())
}

/// Residual and slope at a value of the unknown, lowered into the current block.
fn evaluate(at: &mut TermLowering<'_>, root: &Root, x: ValueId) -> Result<(ValueId, ValueId), Failure> {
    let mut inner = at.inner();
    inner.vars.insert(root.unknown, x);
    Ok((inner.lower(root.residual)?, inner.lower(root.slope)?))
}

fn midpoint(at: &mut TermLowering<'_>, low: ValueId, high: ValueId) -> ValueId {
    let half = at.number(0.5);
    let width = at.fn2(Fn2::Sub, high, low);
    let step = at.fn2(Fn2::Mul, width, half);
    at.fn2(Fn2::Add, low, step)
}

/// The value with all these axes, by adding zeros that have them.
fn full(at: &mut TermLowering<'_>, value: ValueId, axes: &[crate::ir::AxisId]) -> ValueId {
    at.spread(value, axes)
}
