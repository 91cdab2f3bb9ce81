//! Float32 forms of the table, one description for every backend.
//!
//! Neither WGSL nor Cranelift has all functions of the table, and those that WGSL has are loosely bounded. So
//! each is written here once, generic over [`Real`], from operations that both have. With `f32` it computes
//! (the CPU's slice loops are built from it); with [`Traced`] it records a [`Single`], a straight-line program
//! that emitters print. Both give the same bits where the target neither fuses nor reassociates.
//!
//! No form relies on infinities, NaN, subnormal numbers or fused multiplication, and each is finite for every
//! finite argument: results above the largest float32 stay just below it, results under about 1.7e-38 are 0,
//! and outside its domain a function is continued by its value at the nearest normal float32 inside, as its
//! row says. [`error_bound`] is held in a test over all magnitudes, which measured:
//!
//! | function | ulps | relative | absolute where the value is at most 1 |
//! |---|---|---|---|
//! | neg | 0.00 | 0.0e0 | 0.0e0 |
//! | exp | 0.99 | 8.1e-8 | 5.1e-8 |
//! | expm1 | 1.65 | 1.2e-7 | 5.7e-8 |
//! | log | 0.80 | 7.8e-8 | 4.4e-8 |
//! | log1p | 2.35 | 1.8e-7 | 9.0e-8 |
//! | sqrt | 0.50 | 6.0e-8 | 3.0e-8 |
//! | abs | 0.00 | 0.0e0 | 0.0e0 |
//! | sign | 0.00 | 0.0e0 | 0.0e0 |
//! | tanh | 2.39 | 1.7e-7 | 8.7e-8 |
//! | atanh | 3.00 | 2.2e-7 | 8.5e-8 |
//! | sigmoid | 2.06 | 1.7e-7 | 8.9e-8 |
//! | logit | 3.82 | 3.2e-7 | 1.3e-7 |
//! | softplus | 2.58 | 2.1e-7 | 1.1e-7 |
//! | gelu | 6.60 | 4.4e-7 | 1.0e-7 |
//! | gelu_tanh | 15.16 | 1.0e-6 | 1.2e-7 |
//! | silu | 2.78 | 2.0e-7 | 9.9e-8 |
//! | relu | 0.00 | 0.0e0 | 0.0e0 |
//! | erf | 2.63 | 1.9e-7 | 1.5e-7 |
//! | sin | 2.24 | 1.5e-7 | 9.7e-8 |
//! | cos | 2.31 | 1.7e-7 | 1.1e-7 |
//! | tan | 2.92 | 2.3e-7 | 1.6e-7 |
//! | sinh | 2.05 | 1.6e-7 | 9.4e-8 |
//! | cosh | 1.46 | 1.4e-7 | 0.0e0 |
//! | asinh | 2.58 | 2.0e-7 | 1.2e-7 |
//! | atan | 2.56 | 1.9e-7 | 8.9e-8 |
//!
//! Errors under the absolute bound of a row are left out of its first two columns. [`power`]: relative 2e-7 for
//! all results in the normal range; [`power_whole`]: relative |n| 2^-24, twice that for n < 0.

mod circle;
mod exponential;
mod gauss;
mod logarithm;
mod power;
mod program;
mod real;
mod trace;

pub use power::{WHOLE_LIMIT, power, power_whole};
pub use program::{Binary, IntBinary, Op, Reg, Single, Unary};
pub use real::{Int, Real};
pub use trace::{Traced, single, single_expr, single_whole, single2};

use super::{Cmp, Expr, Fn1, Fn2};

/// `f(x)` in float32 operations.
#[inline(always)]
pub fn value<T: Real>(f: Fn1, x: T) -> T {
    match f {
        Fn1::Neg => -x,
        Fn1::Exp => exponential::exp(x),
        Fn1::Expm1 => exponential::expm1(x),
        Fn1::Log => logarithm::log(x),
        Fn1::Log1p => logarithm::log1p(x),
        Fn1::Sqrt => x.max(x.constant(0.0)).sqrt(),
        Fn1::Abs => x.abs(),
        Fn1::Sign => sign(x),
        Fn1::Tanh => exponential::tanh(x),
        Fn1::Atanh => logarithm::atanh(x),
        Fn1::Sigmoid => exponential::sigmoid(x),
        Fn1::Logit => logarithm::logit(x),
        Fn1::Softplus => logarithm::softplus(x),
        Fn1::Gelu => gauss::gelu(x),
        Fn1::GeluTanh => exponential::gelu_tanh(x),
        Fn1::Silu => x * exponential::sigmoid(x),
        Fn1::Relu => x.max(x.constant(0.0)),
        Fn1::Erf => gauss::erf(x),
        Fn1::Sin => circle::sin(x),
        Fn1::Cos => circle::cos(x),
        Fn1::Tan => circle::tan(x),
        Fn1::Sinh => exponential::sinh(x),
        Fn1::Cosh => exponential::cosh(x),
        Fn1::Asinh => logarithm::asinh(x),
        Fn1::Atan => circle::atan(x),
    }
}

/// `f(a, b)` in float32 operations.
#[inline(always)]
pub fn value2<T: Real>(f: Fn2, a: T, b: T) -> T {
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

/// An expression of the table in float32 operations; whole constant exponents become products.
pub fn evaluate<T: Real>(e: &Expr, args: &[T], like: T) -> T {
    match e {
        Expr::Arg(i) => args[*i as usize],
        Expr::Const(c) => like.constant(*c as f32),
        Expr::Fn1(f, a) => value(*f, evaluate(a, args, like)),
        Expr::Fn2(Fn2::Pow, a, b) => {
            let base = evaluate(a, args, like);
            whole(b)
                .and_then(|n| power_whole(base, n))
                .unwrap_or_else(|| power(base, evaluate(b, args, like)))
        }
        Expr::Fn2(f, a, b) => value2(*f, evaluate(a, args, like), evaluate(b, args, like)),
        Expr::Select(c, a, b, t, e) => {
            let [a, b, t, e] = [a, b, t, e].map(|p| evaluate(p, args, like));
            T::select(*c, a, b, t, e)
        }
    }
}

/// What [`value`] may differ from the row's float64 value, for arguments whose value is between 2e-38 and
/// 3.4e38 in size or 0: at most the larger of `ulps` units in the last place of the value and `absolute`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBound {
    /// Units in the last place of the float32 nearest to the true value.
    pub ulps: f64,
    /// For values near zeros, where a relative bound is not held.
    pub absolute: f64,
}

/// The bound of a function; the witnesses measure it over dense grids of all magnitudes.
///
/// `sin` and `cos` hold it for |x| up to 1e5; beyond, they merely stay within [-1, 1].
pub fn error_bound(f: Fn1) -> ErrorBound {
    let (ulps, absolute) = match f {
        Fn1::Neg | Fn1::Abs | Fn1::Sign | Fn1::Relu => (0.0, 0.0),
        Fn1::Sqrt => (0.5, 0.0),
        Fn1::Exp | Fn1::Log => (1.0, 0.0),
        Fn1::Cosh => (1.5, 0.0),
        Fn1::Expm1 => (2.0, 0.0),
        Fn1::Log1p | Fn1::Tanh | Fn1::Sigmoid | Fn1::Sinh => (2.5, 0.0),
        Fn1::Softplus | Fn1::Erf | Fn1::Tan | Fn1::Asinh | Fn1::Atan => (3.0, 0.0),
        Fn1::Atanh => (3.5, 0.0),
        Fn1::Logit => (4.0, 0.0),
        // Where sigmoid has become 0 and x has not.
        Fn1::Silu => (3.0, 2e-36),
        Fn1::Sin | Fn1::Cos => (2.5, 1e-8),
        // In the left tail the argument of the exponential is rounded.
        Fn1::Gelu => (7.0, 0.0),
        Fn1::GeluTanh => (16.0, 2e-9),
    };
    ErrorBound { ulps, absolute }
}

/// 0/0 is 0; the rest is the target's division.
#[inline(always)]
fn quotient<T: Real>(a: T, b: T) -> T {
    let zero = a.constant(0.0);
    T::select(Cmp::Eq, a, zero, zero, a / b)
}

#[inline(always)]
fn sign<T: Real>(x: T) -> T {
    let zero = x.constant(0.0);
    let negative = T::select(Cmp::Lt, x, zero, x.constant(-1.0), zero);
    T::select(Cmp::Gt, x, zero, x.constant(1.0), negative)
}

/// `size` with the sign of `x`.
#[inline(always)]
fn signed<T: Real>(x: T, size: T) -> T {
    T::select(Cmp::Lt, x, x.constant(0.0), -size, size)
}

/// `c[0] + c[1] x + c[2] x^2 + ...` by Horner's rule; `c` is not empty.
#[inline(always)]
fn polynomial<T: Real, const N: usize>(c: [f32; N], x: T) -> T {
    let mut sum = x.constant(c[N - 1]);
    for i in (0..N - 1).rev() {
        sum = sum * x + x.constant(c[i]);
    }
    sum
}

/// The value with all but the first 12 bits of its significand cleared: products of two such are exact.
#[inline(always)]
fn leading<T: Real>(x: T) -> T {
    x.bits().and(!0xfff).as_real()
}

fn whole(e: &Expr) -> Option<i32> {
    match e {
        Expr::Const(c) if *c == c.trunc() && c.abs() <= f64::from(WHOLE_LIMIT) => Some(*c as i32),
        Expr::Arg(_) | Expr::Const(_) | Expr::Fn1(..) | Expr::Fn2(..) | Expr::Select(..) => None,
    }
}

#[cfg(test)]
mod witness;
