//! Derivatives of the scalar functions, written for the reference alone.
//!
//! They follow from calculus, not from the compiler's table, so that a wrong row there cannot be in the
//! oracle too. What they share with it is what the language defines: at a point where a derivative is
//! infinite or undefined it is 0, and of equal operands of `min` and `max` the first is the chosen one.

use crate::ops::Ops;
use crate::trouble::Made;
use miras_base::scalar::{Cmp, Fn1, Fn2};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

/// d f / d x at x, where y = f(x). None: zero everywhere.
pub(crate) fn slope1<O: Ops>(ops: &mut O, f: Fn1, x: &O::Value, y: &O::Value) -> Made<Option<O::Value>> {
    let one = ops.num(1.0);
    Ok(Some(match f {
        Fn1::Neg => ops.num(-1.0),
        Fn1::Exp => y.clone(),
        Fn1::Expm1 => ops.fn1(Fn1::Exp, x)?,
        Fn1::Log => ops.power(x, -1.0)?,
        Fn1::Log1p => {
            let shifted = ops.add(&one, x)?;
            ops.power(&shifted, -1.0)?
        }
        Fn1::Sqrt => {
            let inverse = ops.power(y, -1.0)?;
            ops.scale(0.5, &inverse)?
        }
        Fn1::Abs => ops.fn1(Fn1::Sign, x)?,
        Fn1::Sign => return Ok(None),
        Fn1::Tanh => {
            let square = ops.mul(y, y)?;
            ops.sub(&one, &square)?
        }
        Fn1::Atanh => {
            let square = ops.mul(x, x)?;
            let rest = ops.sub(&one, &square)?;
            ops.power(&rest, -1.0)?
        }
        Fn1::Sigmoid => logistic(ops, x)?,
        Fn1::Logit => {
            let rest = ops.sub(&one, x)?;
            let product = ops.mul(x, &rest)?;
            ops.power(&product, -1.0)?
        }
        Fn1::Softplus => ops.fn1(Fn1::Sigmoid, x)?,
        Fn1::Gelu => gelu(ops, x)?,
        Fn1::GeluTanh => gelu_tanh(ops, x)?,
        Fn1::Silu => {
            let (s, bell) = (ops.fn1(Fn1::Sigmoid, x)?, logistic(ops, x)?);
            let product = ops.mul(x, &bell)?;
            ops.add(&s, &product)?
        }
        Fn1::Relu => {
            let zero = ops.num(0.0);
            ops.compare(Cmp::Gt, x, &zero)?
        }
        Fn1::Erf => {
            let density = gauss(ops, x, -1.0)?;
            ops.scale(FRAC_2_SQRT_PI, &density)?
        }
        Fn1::Sin => ops.fn1(Fn1::Cos, x)?,
        Fn1::Cos => {
            let sine = ops.fn1(Fn1::Sin, x)?;
            ops.fn1(Fn1::Neg, &sine)?
        }
        Fn1::Tan => {
            let square = ops.mul(y, y)?;
            ops.add(&one, &square)?
        }
        Fn1::Sinh => ops.fn1(Fn1::Cosh, x)?,
        Fn1::Cosh => ops.fn1(Fn1::Sinh, x)?,
        Fn1::Asinh => {
            let square = ops.mul(x, x)?;
            let sum = ops.add(&one, &square)?;
            ops.power(&sum, -0.5)?
        }
        Fn1::Atan => {
            let square = ops.mul(x, x)?;
            let sum = ops.add(&one, &square)?;
            ops.power(&sum, -1.0)?
        }
    }))
}

/// The partial derivatives of f(a, b) by a (`first`) or b, where y = f(a, b).
pub(crate) fn slope2<O: Ops>(
    ops: &mut O,
    f: Fn2,
    first: bool,
    a: &O::Value,
    b: &O::Value,
    y: &O::Value,
) -> Made<O::Value> {
    match (f, first) {
        (Fn2::Add, _) | (Fn2::Sub, true) => Ok(ops.num(1.0)),
        (Fn2::Sub, false) => Ok(ops.num(-1.0)),
        (Fn2::Mul, true) => Ok(b.clone()),
        (Fn2::Mul, false) => Ok(a.clone()),
        (Fn2::Div, true) => ops.power(b, -1.0),
        (Fn2::Div, false) => {
            let inverse = ops.power(b, -1.0)?;
            let ratio = ops.mul(y, &inverse)?;
            ops.fn1(Fn1::Neg, &ratio)
        }
        (Fn2::Pow, true) => {
            let one = ops.num(1.0);
            let less = ops.sub(b, &one)?;
            let power = ops.fn2(Fn2::Pow, a, &less)?;
            ops.mul(b, &power)
        }
        (Fn2::Pow, false) => {
            let zero = ops.num(0.0);
            let positive = ops.compare(Cmp::Gt, a, &zero)?;
            let log = ops.fn1(Fn1::Log, a)?;
            let slope = ops.mul(y, &log)?;
            ops.select(&positive, &slope, &zero)
        }
        (Fn2::Min, true) => ops.compare(Cmp::Le, a, b),
        (Fn2::Min, false) => ops.compare(Cmp::Gt, a, b),
        (Fn2::Max, true) => ops.compare(Cmp::Ge, a, b),
        (Fn2::Max, false) => ops.compare(Cmp::Lt, a, b),
    }
}

/// sigmoid(x) sigmoid(-x).
fn logistic<O: Ops>(ops: &mut O, x: &O::Value) -> Made<O::Value> {
    let minus = ops.fn1(Fn1::Neg, x)?;
    let (s, r) = (ops.fn1(Fn1::Sigmoid, x)?, ops.fn1(Fn1::Sigmoid, &minus)?);
    ops.mul(&s, &r)
}

/// exp(c x^2).
fn gauss<O: Ops>(ops: &mut O, x: &O::Value, c: f64) -> Made<O::Value> {
    let square = ops.mul(x, x)?;
    let exponent = ops.scale(c, &square)?;
    ops.fn1(Fn1::Exp, &exponent)
}

/// The normal distribution's function at x plus x times its density.
fn gelu<O: Ops>(ops: &mut O, x: &O::Value) -> Made<O::Value> {
    let scaled = ops.scale(FRAC_1_SQRT_2, x)?;
    let erf = ops.fn1(Fn1::Erf, &scaled)?;
    let one = ops.num(1.0);
    let twice = ops.add(&one, &erf)?;
    let distribution = ops.scale(0.5, &twice)?;
    let bell = gauss(ops, x, -0.5)?;
    let density = ops.scale(1.0 / (2.0 * PI).sqrt(), &bell)?;
    let product = ops.mul(x, &density)?;
    ops.add(&distribution, &product)
}

/// gelu_tanh(x) = x (1 + tanh w) / 2 with w = sqrt(2 / pi) (x + 0.044715 x^3).
fn gelu_tanh<O: Ops>(ops: &mut O, x: &O::Value) -> Made<O::Value> {
    let (root, cubic) = ((2.0 / PI).sqrt(), 0.044_715);
    let square = ops.mul(x, x)?;
    let cube = ops.mul(&square, x)?;
    let bent = ops.scale(cubic, &cube)?;
    let inner = ops.add(x, &bent)?;
    let double = ops.scale(2.0 * root, &inner)?;
    let (s, bell) = (ops.fn1(Fn1::Sigmoid, &double)?, logistic(ops, &double)?);
    let one = ops.num(1.0);
    let bend = ops.scale(3.0 * cubic, &square)?;
    let inner_slope = ops.add(&one, &bend)?;
    let chain = ops.mul(&bell, &inner_slope)?;
    let product = ops.mul(x, &chain)?;
    let second = ops.scale(2.0 * root, &product)?;
    ops.add(&s, &second)
}
