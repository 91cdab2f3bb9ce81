//! The identities.

use super::super::short::{abs, cos, cosh, exp, log, log1p, max, min, neg, pow, sigmoid, sign, sin, sinh};
use super::super::short::{softplus, sqrt, tanh};
use super::super::{Expr, Fn1, add, arg, call, div, mul, num, power, reciprocal, sub};
use super::Interval;
use super::{ABOVE_MINUS_ONE, BALL, Identity, POSITIVE, REALS, UNIT, x, y};

/// The identities.
pub static IDENTITIES: &[Identity] = &[
    id("logit from logarithms", || sub(log(x()), log(sub(num(1.0), x()))), logit, &[UNIT]),
    id("logit from log1p", || sub(log(x()), log1p(neg(x()))), logit, &[UNIT]),
    id("logit from odds", || log(div(x(), sub(num(1.0), x()))), logit, &[UNIT]),
    id("log1p", || log(add(num(1.0), x())), || log1p(x()), &[ABOVE_MINUS_ONE]),
    id("expm1", || sub(exp(x()), num(1.0)), || call(Fn1::Expm1, x()), &[REALS]),
    id("keep of a forget", || sub(num(1.0), sub(num(1.0), exp(x()))), || exp(x()), &[REALS]),
    id("log of a product", || add(log(x()), log(y())), || log(mul(x(), y())), &[POSITIVE, POSITIVE]),
    id("log of a quotient", || sub(log(x()), log(y())), || log(div(x(), y())), &[POSITIVE, POSITIVE]),
    id("log of a power", || log(pow(x(), y())), || mul(y(), log(x())), &[POSITIVE, REALS]),
    id("log of a root", || log(sqrt(x())), || mul(num(0.5), log(x())), &[POSITIVE]),
    id("product of exponentials", || mul(exp(x()), exp(y())), || exp(add(x(), y())), &[REALS, REALS]),
    id("quotient of exponentials", || div(exp(x()), exp(y())), || exp(sub(x(), y())), &[REALS, REALS]),
    id("power of an exponential", || pow(exp(x()), y()), || exp(mul(x(), y())), &[REALS, REALS]),
    id("reciprocal of an exponential", || reciprocal(exp(x())), || exp(neg(x())), &[REALS]),
    id("power by logarithm", || exp(mul(y(), log(x()))), || pow(x(), y()), &[POSITIVE, REALS]),
    id(
        "product of powers",
        || mul(pow(x(), y()), pow(x(), z())),
        || pow(x(), add(y(), z())),
        &[POSITIVE, REALS, REALS],
    ),
    id("power of a power", || pow(pow(x(), y()), z()), || pow(x(), mul(y(), z())), &[POSITIVE, REALS, REALS]),
    id(
        "power of a product",
        || mul(pow(x(), z()), pow(y(), z())),
        || pow(mul(x(), y()), z()),
        &[POSITIVE, POSITIVE, REALS],
    ),
    id("root as a power", || power(x(), 0.5), || sqrt(x()), &[POSITIVE]),
    id("root of a square", || sqrt(power(x(), 2.0)), || abs(x()), &[REALS]),
    id("square of a root", || power(sqrt(x()), 2.0), x, &[POSITIVE]),
    id("square of abs", || power(abs(x()), 2.0), || power(x(), 2.0), &[REALS]),
    id("abs by sign", || mul(sign(x()), x()), || abs(x()), &[REALS]),
    id("sign times abs", || mul(sign(x()), abs(x())), x, &[REALS]),
    id("abs as a maximum", || max(x(), neg(x())), || abs(x()), &[REALS]),
    id("relu as a maximum", || max(x(), num(0.0)), || call(Fn1::Relu, x()), &[REALS]),
    id("relu by abs", || mul(num(0.5), add(x(), abs(x()))), || call(Fn1::Relu, x()), &[REALS]),
    id("minimum by maximum", || neg(max(neg(x()), neg(y()))), || min(x(), y()), &[REALS, REALS]),
    id("sigmoid by exp of -x", || reciprocal(add(num(1.0), exp(neg(x())))), || sigmoid(x()), &[REALS]),
    id("sigmoid by exp", || div(exp(x()), add(num(1.0), exp(x()))), || sigmoid(x()), &[REALS]),
    id(
        "sigmoid by tanh",
        || mul(num(0.5), add(num(1.0), tanh(mul(num(0.5), x())))),
        || sigmoid(x()),
        &[REALS],
    ),
    id("complement of sigmoid", || sub(num(1.0), sigmoid(x())), || sigmoid(neg(x())), &[REALS]),
    id("softplus by log", || log(add(num(1.0), exp(x()))), || softplus(x()), &[REALS]),
    id("softplus by log1p", || log1p(exp(x())), || softplus(x()), &[REALS]),
    id("log of sigmoid", || log(sigmoid(x())), || neg(softplus(neg(x()))), &[REALS]),
    id("reflection of softplus", || sub(softplus(x()), x()), || softplus(neg(x())), &[REALS]),
    id("silu", || mul(x(), sigmoid(x())), || call(Fn1::Silu, x()), &[REALS]),
    id("gelu", gauss_weighted, || call(Fn1::Gelu, x()), &[REALS]),
    id(
        "tanh by exponentials",
        || div(sub(exp(x()), exp(neg(x()))), add(exp(x()), exp(neg(x())))),
        || tanh(x()),
        &[REALS],
    ),
    id("tanh by sinh and cosh", || div(sinh(x()), cosh(x())), || tanh(x()), &[REALS]),
    id(
        "tanh by sigmoid",
        || sub(mul(num(2.0), sigmoid(mul(num(2.0), x()))), num(1.0)),
        || tanh(x()),
        &[REALS],
    ),
    id("sinh by exponentials", || mul(num(0.5), sub(exp(x()), exp(neg(x())))), || sinh(x()), &[REALS]),
    id("cosh by exponentials", || mul(num(0.5), add(exp(x()), exp(neg(x())))), || cosh(x()), &[REALS]),
    id("hyperbolic circle", || sub(power(cosh(x()), 2.0), power(sinh(x()), 2.0)), || num(1.0), &[REALS]),
    id("circle", || add(power(cos(x()), 2.0), power(sin(x()), 2.0)), || num(1.0), &[REALS]),
    id("tan", || div(sin(x()), cos(x())), || call(Fn1::Tan, x()), &[BALL]),
    id(
        "atanh by logarithm",
        || mul(num(0.5), log(div(add(num(1.0), x()), sub(num(1.0), x())))),
        atanh,
        &[BALL],
    ),
    id("atanh by logarithms", || mul(num(0.5), sub(log1p(x()), log1p(neg(x())))), atanh, &[BALL]),
    id(
        "asinh by logarithm",
        || log(add(x(), sqrt(add(power(x(), 2.0), num(1.0))))),
        || call(Fn1::Asinh, x()),
        &[REALS],
    ),
];

const fn id(
    name: &'static str,
    left: fn() -> Expr,
    right: fn() -> Expr,
    condition: &'static [Interval],
) -> Identity {
    Identity { name, left, right, condition }
}

fn z() -> Expr {
    arg(2)
}

fn logit() -> Expr {
    call(Fn1::Logit, x())
}

fn atanh() -> Expr {
    call(Fn1::Atanh, x())
}

/// x (1 + erf(x / sqrt 2)) / 2.
fn gauss_weighted() -> Expr {
    let erf = call(Fn1::Erf, mul(num(std::f64::consts::FRAC_1_SQRT_2), x()));
    mul(mul(num(0.5), x()), add(num(1.0), erf))
}
