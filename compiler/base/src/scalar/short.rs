//! Short constructors for facts, one per function they mention.

use super::{Expr, Fn1, Fn2, call, call2};

pub(super) fn neg(a: Expr) -> Expr {
    call(Fn1::Neg, a)
}

pub(super) fn exp(a: Expr) -> Expr {
    call(Fn1::Exp, a)
}

pub(super) fn log(a: Expr) -> Expr {
    call(Fn1::Log, a)
}

pub(super) fn log1p(a: Expr) -> Expr {
    call(Fn1::Log1p, a)
}

pub(super) fn sqrt(a: Expr) -> Expr {
    call(Fn1::Sqrt, a)
}

pub(super) fn abs(a: Expr) -> Expr {
    call(Fn1::Abs, a)
}

pub(super) fn sign(a: Expr) -> Expr {
    call(Fn1::Sign, a)
}

pub(super) fn tanh(a: Expr) -> Expr {
    call(Fn1::Tanh, a)
}

pub(super) fn sigmoid(a: Expr) -> Expr {
    call(Fn1::Sigmoid, a)
}

pub(super) fn softplus(a: Expr) -> Expr {
    call(Fn1::Softplus, a)
}

pub(super) fn sin(a: Expr) -> Expr {
    call(Fn1::Sin, a)
}

pub(super) fn cos(a: Expr) -> Expr {
    call(Fn1::Cos, a)
}

pub(super) fn sinh(a: Expr) -> Expr {
    call(Fn1::Sinh, a)
}

pub(super) fn cosh(a: Expr) -> Expr {
    call(Fn1::Cosh, a)
}

pub(super) fn max(a: Expr, b: Expr) -> Expr {
    call2(Fn2::Max, a, b)
}

pub(super) fn min(a: Expr, b: Expr) -> Expr {
    call2(Fn2::Min, a, b)
}

pub(super) fn pow(a: Expr, b: Expr) -> Expr {
    call2(Fn2::Pow, a, b)
}
