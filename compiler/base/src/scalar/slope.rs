//! The longer derivatives and inverses of the rows, as expressions of argument 0.

use super::value;
use super::{Expr, Fn1};
use super::{add, arg, call, div, mul, num, power, reciprocal, sub};
use std::f64::consts::FRAC_1_SQRT_2;

/// 1 / sqrt(2 pi): the Gauss density at 0.
const GAUSS_PEAK: f64 = 0.398_942_280_401_432_7;

pub(super) fn x() -> Expr {
    arg(0)
}

/// sigmoid(a) sigmoid(-a): the slope of sigmoid, with full relative accuracy in both tails.
pub(super) fn bell(a: Expr) -> Expr {
    mul(call(Fn1::Sigmoid, a.clone()), call(Fn1::Sigmoid, call(Fn1::Neg, a)))
}

/// sqrt(x) / (2 x), hence 0 at 0 and below.
pub(super) fn sqrt_slope() -> Expr {
    mul(num(0.5), div(call(Fn1::Sqrt, x()), x()))
}

pub(super) fn tanh_slope() -> Expr {
    sub(num(1.0), power(call(Fn1::Tanh, x()), 2.0))
}

pub(super) fn atanh_slope() -> Expr {
    reciprocal(mul(sub(num(1.0), x()), add(num(1.0), x())))
}

/// log(expm1(x)) without its overflow.
pub(super) fn softplus_inverse() -> Expr {
    let rest = call(Fn1::Neg, call(Fn1::Expm1, call(Fn1::Neg, x())));
    add(x(), call(Fn1::Log, rest))
}

/// Phi(x) + x phi(x).
pub(super) fn gelu_slope() -> Expr {
    let erf = call(Fn1::Erf, mul(num(FRAC_1_SQRT_2), x()));
    let phi = call(Fn1::Exp, mul(num(-0.5), power(x(), 2.0)));
    add(mul(num(0.5), add(num(1.0), erf)), mul(mul(num(GAUSS_PEAK), x()), phi))
}

/// With gelu_tanh(x) = x sigmoid(w), w = 2 sqrt(2/pi) (x + c x^3): sigmoid(w) + x bell(w) w'.
pub(super) fn gelu_tanh_slope() -> Expr {
    let twice = 2.0 * value::GELU_SLOPE;
    let w = mul(num(twice), add(x(), mul(num(value::GELU_CUBIC), power(x(), 3.0))));
    let slope = mul(num(twice), add(num(1.0), mul(num(3.0 * value::GELU_CUBIC), power(x(), 2.0))));
    add(call(Fn1::Sigmoid, w.clone()), mul(mul(x(), bell(w)), slope))
}

pub(super) fn silu_slope() -> Expr {
    add(call(Fn1::Sigmoid, x()), mul(x(), bell(x())))
}
