//! The rows, in the order of [`Fn1`].
//!
//! Derivatives are written so that float64 gives neither NaN nor a spurious infinity for |x| up to 1e4,
//! the kinks included: `x^-1` is 0 at 0 (see [`Fn2::Pow`]), and `sqrt(x) / x` is the 0/0 that is 0.

use super::slope::*;
use super::value;
use super::{Cmp, Expr, Fn1, Interval, Monotone, Parity, Row1};
use super::{add, call, div, mul, num, power, reciprocal, select, sub};
use std::f64::consts::{FRAC_2_SQRT_PI, FRAC_PI_2};

const REALS: Interval = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
const POSITIVE: Interval = Interval { low: 0.0, high: f64::INFINITY };
const UNIT: Interval = Interval { low: 0.0, high: 1.0 };
const BALL: Interval = Interval { low: -1.0, high: 1.0 };
const ABOVE_MINUS_ONE: Interval = Interval { low: -1.0, high: f64::INFINITY };
const QUARTER_TURN: Interval = Interval { low: -FRAC_PI_2, high: FRAC_PI_2 };

/// The row of a function.
pub fn row(f: Fn1) -> &'static Row1 {
    &ROWS[f as usize]
}

/// Every row, in the order of [`Fn1`].
pub static ROWS: &[Row1] = &[
    Row1 {
        in_language: false,
        inverse: Some(|| call(Fn1::Neg, x())),
        parity: Parity::Odd,
        monotone: Monotone::Decreasing,
        ..plain(Fn1::Neg, "neg", value::neg, || num(-1.0), "-#1")
    },
    Row1 {
        range: POSITIVE,
        inverse: Some(|| call(Fn1::Log, x())),
        monotone: Monotone::Increasing,
        ..plain(Fn1::Exp, "exp", libm::exp, || call(Fn1::Exp, x()), r"\exp(#1)")
    },
    Row1 {
        in_language: false,
        range: ABOVE_MINUS_ONE,
        inverse: Some(|| call(Fn1::Log1p, x())),
        monotone: Monotone::Increasing,
        ..plain(Fn1::Expm1, "expm1", libm::expm1, || call(Fn1::Exp, x()), r"\operatorname{expm1}(#1)")
    },
    Row1 {
        domain: POSITIVE,
        inverse: Some(|| call(Fn1::Exp, x())),
        monotone: Monotone::Increasing,
        kinks: &[0.0],
        ..plain(Fn1::Log, "log", value::log, || reciprocal(x()), r"\log(#1)")
    },
    Row1 {
        domain: ABOVE_MINUS_ONE,
        inverse: Some(|| call(Fn1::Expm1, x())),
        monotone: Monotone::Increasing,
        kinks: &[-1.0],
        ..plain(
            Fn1::Log1p,
            "log1p",
            value::log1p,
            || reciprocal(add(num(1.0), x())),
            r"\operatorname{log1p}(#1)",
        )
    },
    Row1 {
        domain: POSITIVE,
        range: POSITIVE,
        inverse: Some(|| power(x(), 2.0)),
        monotone: Monotone::Increasing,
        kinks: &[0.0],
        ..plain(Fn1::Sqrt, "sqrt", value::sqrt, sqrt_slope, r"\sqrt{#1}")
    },
    Row1 {
        range: POSITIVE,
        parity: Parity::Even,
        kinks: &[0.0],
        ..plain(Fn1::Abs, "abs", f64::abs, || call(Fn1::Sign, x()), r"\lvert #1 \rvert")
    },
    Row1 {
        range: BALL,
        parity: Parity::Odd,
        kinks: &[0.0],
        ..plain(Fn1::Sign, "sign", value::sign, || num(0.0), r"\operatorname{sign}(#1)")
    },
    Row1 {
        range: BALL,
        inverse: Some(|| call(Fn1::Atanh, x())),
        parity: Parity::Odd,
        monotone: Monotone::Increasing,
        ..plain(Fn1::Tanh, "tanh", libm::tanh, tanh_slope, r"\tanh(#1)")
    },
    Row1 {
        in_language: false,
        domain: BALL,
        inverse: Some(|| call(Fn1::Tanh, x())),
        parity: Parity::Odd,
        monotone: Monotone::Increasing,
        kinks: &[-1.0, 1.0],
        ..plain(Fn1::Atanh, "atanh", value::atanh, atanh_slope, r"\operatorname{atanh}(#1)")
    },
    Row1 {
        range: UNIT,
        inverse: Some(|| call(Fn1::Logit, x())),
        monotone: Monotone::Increasing,
        ..plain(Fn1::Sigmoid, "sigmoid", value::sigmoid, || bell(x()), r"\sigma(#1)")
    },
    Row1 {
        in_language: false,
        domain: UNIT,
        inverse: Some(|| call(Fn1::Sigmoid, x())),
        monotone: Monotone::Increasing,
        kinks: &[0.0, 1.0],
        ..plain(
            Fn1::Logit,
            "logit",
            value::logit,
            || reciprocal(mul(x(), sub(num(1.0), x()))),
            r"\operatorname{logit}(#1)",
        )
    },
    Row1 {
        range: POSITIVE,
        inverse: Some(softplus_inverse),
        monotone: Monotone::Increasing,
        ..plain(
            Fn1::Softplus,
            "softplus",
            value::softplus,
            || call(Fn1::Sigmoid, x()),
            r"\operatorname{softplus}(#1)",
        )
    },
    Row1 {
        range: above(-0.169_971_207_479_903_67),
        ..plain(Fn1::Gelu, "gelu", value::gelu, gelu_slope, r"\operatorname{gelu}(#1)")
    },
    Row1 {
        range: above(-0.170_040_750_571_254_07),
        ..plain(
            Fn1::GeluTanh,
            "gelu_tanh",
            value::gelu_tanh,
            gelu_tanh_slope,
            r"\operatorname{gelu}_{\tanh}(#1)",
        )
    },
    Row1 {
        range: above(-0.278_464_542_761_073_8),
        ..plain(Fn1::Silu, "silu", value::silu, silu_slope, r"\operatorname{silu}(#1)")
    },
    Row1 {
        range: POSITIVE,
        kinks: &[0.0],
        ..plain(
            Fn1::Relu,
            "relu",
            value::relu,
            || select(Cmp::Gt, x(), num(0.0), num(1.0), num(0.0)),
            r"\operatorname{relu}(#1)",
        )
    },
    Row1 {
        range: BALL,
        parity: Parity::Odd,
        monotone: Monotone::Increasing,
        ..plain(
            Fn1::Erf,
            "erf",
            libm::erf,
            || mul(num(FRAC_2_SQRT_PI), call(Fn1::Exp, call(Fn1::Neg, power(x(), 2.0)))),
            r"\operatorname{erf}(#1)",
        )
    },
    Row1 {
        range: BALL,
        parity: Parity::Odd,
        ..plain(Fn1::Sin, "sin", libm::sin, || call(Fn1::Cos, x()), r"\sin(#1)")
    },
    Row1 {
        range: BALL,
        parity: Parity::Even,
        ..plain(Fn1::Cos, "cos", libm::cos, || call(Fn1::Neg, call(Fn1::Sin, x())), r"\cos(#1)")
    },
    Row1 {
        in_language: false,
        domain: QUARTER_TURN,
        inverse: Some(|| call(Fn1::Atan, x())),
        parity: Parity::Odd,
        monotone: Monotone::Increasing,
        kinks: &[-FRAC_PI_2, FRAC_PI_2],
        ..plain(Fn1::Tan, "tan", value::tan, || add(num(1.0), power(call(Fn1::Tan, x()), 2.0)), r"\tan(#1)")
    },
    Row1 {
        inverse: Some(|| call(Fn1::Asinh, x())),
        parity: Parity::Odd,
        monotone: Monotone::Increasing,
        ..plain(Fn1::Sinh, "sinh", libm::sinh, || call(Fn1::Cosh, x()), r"\sinh(#1)")
    },
    Row1 {
        in_language: false,
        range: Interval { low: 1.0, high: f64::INFINITY },
        parity: Parity::Even,
        ..plain(Fn1::Cosh, "cosh", libm::cosh, || call(Fn1::Sinh, x()), r"\cosh(#1)")
    },
    Row1 {
        inverse: Some(|| call(Fn1::Sinh, x())),
        parity: Parity::Odd,
        monotone: Monotone::Increasing,
        ..plain(
            Fn1::Asinh,
            "asinh",
            libm::asinh,
            || div(num(1.0), call(Fn1::Sqrt, add(num(1.0), power(x(), 2.0)))),
            r"\operatorname{asinh}(#1)",
        )
    },
    Row1 {
        range: QUARTER_TURN,
        inverse: Some(|| call(Fn1::Tan, x())),
        parity: Parity::Odd,
        monotone: Monotone::Increasing,
        ..plain(
            Fn1::Atan,
            "atan",
            libm::atan,
            || div(num(1.0), add(num(1.0), power(x(), 2.0))),
            r"\operatorname{atan}(#1)",
        )
    },
];

/// A row of a function of the language with no special property.
const fn plain(
    function: Fn1,
    name: &'static str,
    value: fn(f64) -> f64,
    derivative: fn() -> Expr,
    latex: &'static str,
) -> Row1 {
    Row1 {
        function,
        name,
        in_language: true,
        value,
        domain: REALS,
        range: REALS,
        derivative,
        inverse: None,
        parity: Parity::Neither,
        monotone: Monotone::Neither,
        latex,
        kinks: &[],
    }
}

const fn above(low: f64) -> Interval {
    Interval { low, high: f64::INFINITY }
}
