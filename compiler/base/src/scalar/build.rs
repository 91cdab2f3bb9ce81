//! Short constructors for the table's expressions.

use super::{Cmp, Expr, Fn1, Fn2};

/// Argument `i`.
pub fn arg(i: u8) -> Expr {
    Expr::Arg(i)
}

/// A number.
pub fn num(c: f64) -> Expr {
    Expr::Const(c)
}

/// `f(a)`.
pub fn call(f: Fn1, a: Expr) -> Expr {
    Expr::Fn1(f, Box::new(a))
}

/// `f(a, b)`.
pub fn call2(f: Fn2, a: Expr, b: Expr) -> Expr {
    Expr::Fn2(f, Box::new(a), Box::new(b))
}

/// `a + b`.
pub fn add(a: Expr, b: Expr) -> Expr {
    call2(Fn2::Add, a, b)
}

/// `a - b`.
pub fn sub(a: Expr, b: Expr) -> Expr {
    call2(Fn2::Sub, a, b)
}

/// `a * b`.
pub fn mul(a: Expr, b: Expr) -> Expr {
    call2(Fn2::Mul, a, b)
}

/// `a / b`.
pub fn div(a: Expr, b: Expr) -> Expr {
    call2(Fn2::Div, a, b)
}

/// `if a cmp b then t else e`.
pub fn select(cmp: Cmp, a: Expr, b: Expr, t: Expr, e: Expr) -> Expr {
    Expr::Select(cmp, Box::new(a), Box::new(b), Box::new(t), Box::new(e))
}

/// `a^n`.
pub fn power(a: Expr, n: f64) -> Expr {
    call2(Fn2::Pow, a, num(n))
}

/// `a^-1`: the reciprocal that is 0 at 0 (where `1 / a` is infinite).
pub fn reciprocal(a: Expr) -> Expr {
    power(a, -1.0)
}
