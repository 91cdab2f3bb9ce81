//! Roots: found to the last bit by bisection, differentiated as what they are.

use crate::array::Array;
use crate::interpret::{Env, Program, Scope};
use crate::ops::{Arithmetic, Eager, Ops};
use crate::tape::Tape;
use crate::trouble::Made;
use miras_term::VarId;
use std::rc::Rc;

/// Halvings after which any bracket of float64 numbers has closed.
const HALVINGS: usize = 2200;

/// The value of `unknown` between `ends` at which `residual` vanishes, entry by entry.
///
/// Its derivative is that of the exact root, -(d residual) / (d residual / d unknown), at first order: it is
/// written as root - (r - stop(r)) / slope, which has the root's value and that derivative.
pub(crate) fn solve<O: Ops>(
    scope: &Scope<'_>,
    ops: &mut O,
    env: &Env<O::Value>,
    residual: &Program,
    unknown: VarId,
    ends: &[O::Value; 2],
) -> Made<O::Value> {
    let plain = env.map(|v| ops.array(v));
    let [low, high] = ends.each_ref().map(|v| ops.array(v));
    let found = Rc::new(bisect(scope, &plain, residual, unknown, &low, &high)?);
    let slope = slope(scope, &plain, residual, unknown, &found)?;
    let root = ops.constant(found);
    let mut at_root = env.clone();
    at_root.bind(unknown, root.clone());
    let rest = residual.run_one(scope, ops, &at_root)?;
    let fixed = ops.stop(&rest)?;
    let change = ops.sub(&rest, &fixed)?;
    let slope = ops.constant(slope);
    let inverse = ops.power(&slope, -1.0)?;
    let step = ops.mul(&change, &inverse)?;
    ops.sub(&root, &step)
}

fn bisect(
    scope: &Scope<'_>,
    env: &Env<Rc<Array>>,
    residual: &Program,
    unknown: VarId,
    low: &Array,
    high: &Array,
) -> Made<Array> {
    let mut env = env.clone();
    let mut residual_at = |x: &Array| -> Made<Rc<Array>> {
        env.bind(unknown, Rc::new(x.clone()));
        let rest = residual.run_one(scope, &mut Eager(Arithmetic::Float64), &env)?;
        Eager(Arithmetic::Float64).spread(&rest, &x.shape)
    };
    let (mut low, mut high) = (low.clone(), high.clone());
    let at_high = residual_at(&high)?;
    for _ in 0..HALVINGS {
        let middle = low.zip(&high, |a, b| a / 2.0 + b / 2.0)?;
        let open = |i: usize| middle.data[i] != low.data[i] && middle.data[i] != high.data[i];
        if !(0..middle.data.len()).any(open) {
            break;
        }
        let at_middle = residual_at(&middle)?;
        for i in 0..middle.data.len() {
            let end = if (at_middle.data[i] > 0.0) == (at_high.data[i] > 0.0) { &mut high } else { &mut low };
            end.data[i] = middle.data[i];
        }
    }
    low.zip(&high, |a, b| a / 2.0 + b / 2.0)
}

/// d residual / d unknown; entry by entry, since each entry of the residual sees its own unknown only.
fn slope(
    scope: &Scope<'_>,
    env: &Env<Rc<Array>>,
    residual: &Program,
    unknown: VarId,
    found: &Rc<Array>,
) -> Made<Rc<Array>> {
    let mut tape = Tape::new();
    let mut inner = env.map(|v| tape.constant(v.clone()));
    let variable = tape.variable(found.clone())?;
    inner.bind(unknown, variable);
    let rest = residual.run_one(scope, &mut tape, &inner)?;
    let ones = Rc::new(Array::filled(&tape.array(&rest).shape, 1.0));
    let slope = tape.backward(&[(rest, ones)], &[variable])?.pop().flatten();
    Ok(slope.unwrap_or_else(|| Rc::new(Array::filled(&found.shape, 0.0))))
}
