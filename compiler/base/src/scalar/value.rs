//! Float64 meanings.
//!
//! Through one well-kept mathematical library, so that a number does not depend on the platform.
//! Outside its domain a function is continued by its value at the nearest float64 inside, so no finite
//! argument of a function of one argument gives NaN, and infinities appear only where the true value
//! exceeds float64.

use super::Fn2;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2};

/// The largest float64 below 1.
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

/// sqrt(2 / pi), the slope of [`gelu_tanh`]'s inner argument at 0.
pub(super) const GELU_SLOPE: f64 = 0.797_884_560_802_865_4;

/// The cubic coefficient of [`gelu_tanh`]'s inner argument.
pub(super) const GELU_CUBIC: f64 = 0.044_715;

/// Float64 meaning of a function of two arguments.
pub(super) fn value2(f: Fn2, a: f64, b: f64) -> f64 {
    match f {
        Fn2::Add => a + b,
        Fn2::Sub => a - b,
        Fn2::Mul => a * b,
        Fn2::Div => quotient(a, b),
        Fn2::Pow => power(a, b),
        Fn2::Min => a.min(b),
        Fn2::Max => a.max(b),
    }
}

fn quotient(a: f64, b: f64) -> f64 {
    if a == 0.0 && b == 0.0 { 0.0 } else { a / b }
}

/// 0^b is 0 for every b except 0, negative ones included; a < 0 with a broken b continues 0^b.
fn power(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        1.0
    } else if a == 0.0 || (a < 0.0 && b != b.trunc()) {
        0.0
    } else {
        libm::pow(a, b)
    }
}

pub(super) fn neg(x: f64) -> f64 {
    -x
}

pub(super) fn log(x: f64) -> f64 {
    libm::log(at_least(x, f64::MIN_POSITIVE))
}

pub(super) fn log1p(x: f64) -> f64 {
    libm::log1p(at_least(x, -BELOW_ONE))
}

pub(super) fn sqrt(x: f64) -> f64 {
    libm::sqrt(at_least(x, 0.0))
}

pub(super) fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x * 0.0
    }
}

pub(super) fn atanh(x: f64) -> f64 {
    libm::atanh(within(x, -BELOW_ONE, BELOW_ONE))
}

pub(super) fn sigmoid(x: f64) -> f64 {
    let small = libm::exp(-x.abs());
    if x >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

/// In the middle 2 x - 1 is exact and atanh accurate near 0; towards the ends the logarithms are.
pub(super) fn logit(x: f64) -> f64 {
    let x = within(x, f64::MIN_POSITIVE, BELOW_ONE);
    if (0.25..=0.75).contains(&x) { 2.0 * libm::atanh(2.0 * x - 1.0) } else { libm::log(x) - libm::log1p(-x) }
}

pub(super) fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

/// By erfc, which keeps its relative accuracy in the left tail.
pub(super) fn gelu(x: f64) -> f64 {
    0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// (1 + tanh u) / 2 = sigmoid(2 u), which keeps its relative accuracy in the left tail.
pub(super) fn gelu_tanh(x: f64) -> f64 {
    x * sigmoid(2.0 * GELU_SLOPE * (x + GELU_CUBIC * x * x * x))
}

pub(super) fn silu(x: f64) -> f64 {
    x * sigmoid(x)
}

pub(super) fn relu(x: f64) -> f64 {
    at_least(x, 0.0)
}

/// The nearest float64 to pi/2 lies below it.
pub(super) fn tan(x: f64) -> f64 {
    libm::tan(within(x, -FRAC_PI_2, FRAC_PI_2))
}

/// `max` that lets NaN through.
fn at_least(x: f64, low: f64) -> f64 {
    if x < low { low } else { x }
}

fn within(x: f64, low: f64, high: f64) -> f64 {
    if x > high { high } else { at_least(x, low) }
}
