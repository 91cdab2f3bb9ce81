//! log and what is built from it.
//!
//! x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); with s = f / (2 + f), log(1 + f) = 2 s + s z P(z),
//! z = s^2, arranged so that f enters exactly. P interpolates at Chebyshev nodes.

use super::exponential::{LN_2_HIGH, LN_2_LOW, exp};
use super::{Cmp, Int, Real, polynomial, signed};

const SERIES: [f32; 3] = [0.666_666_85, 0.399_887_7, 0.295_804];

/// The largest float32 below 1.
const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;

/// x = 2^k m with m in [sqrt(1/2), sqrt(2)), x positive and normal.
#[inline(always)]
pub(super) fn split<T: Real>(x: T) -> (T, T) {
    let bits = x.bits();
    let k = bits.plus(-(std::f32::consts::FRAC_1_SQRT_2.to_bits() as i32)).right(23);
    (k.to_real(), bits.minus(k.left(23)).as_real())
}

/// k log(2) + log(1 + f)
#[inline(always)]
fn sum<T: Real>(k: T, f: T) -> T {
    let s = f / (f + f.constant(2.0));
    let z = s * s;
    let half = f.constant(0.5) * f * f;
    let rest = s * (half + z * polynomial(SERIES, z)) + k * f.constant(LN_2_LOW);
    k * f.constant(LN_2_HIGH) - ((half - rest) - f)
}

#[inline(always)]
pub(super) fn log<T: Real>(x: T) -> T {
    let (k, m) = split(x.max(x.constant(f32::MIN_POSITIVE)));
    sum(k, m - x.constant(1.0))
}

/// log(u) where u rounds 1 + f: near 1, f itself is used.
#[inline(always)]
fn log_near_one<T: Real>(u: T, f: T) -> T {
    let (k, m) = split(u);
    sum(k, T::select(Cmp::Eq, k, u.constant(0.0), f, m - u.constant(1.0)))
}

#[inline(always)]
pub(super) fn log1p<T: Real>(x: T) -> T {
    let f = x.max(x.constant(-BELOW_ONE));
    log_near_one(f + x.constant(1.0), f)
}

/// log1p(2 a / (1 - a)) / 2, a = |x|.
#[inline(always)]
pub(super) fn atanh<T: Real>(x: T) -> T {
    let a = x.abs().min(x.constant(BELOW_ONE));
    signed(x, x.constant(0.5) * log1p((a + a) / (x.constant(1.0) - a)))
}

/// log(x / (1 - x)), by log1p((2 x - 1) / (1 - x)) near 1/2.
#[inline(always)]
pub(super) fn logit<T: Real>(x: T) -> T {
    let one = x.constant(1.0);
    let p = x.max(x.constant(f32::MIN_POSITIVE)).min(x.constant(BELOW_ONE));
    let q = one - p;
    log_near_one(p / q, ((p + p) - one) / q)
}

#[inline(always)]
pub(super) fn softplus<T: Real>(x: T) -> T {
    x.max(x.constant(0.0)) + log1p(exp(-x.abs()))
}

/// log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|; from 2^12 on log(2 a), whose error is 1 / (4 a^2).
#[inline(always)]
pub(super) fn asinh<T: Real>(x: T) -> T {
    const FAR: f32 = 4096.0;
    let one = x.constant(1.0);
    let (zero, far) = (x.constant(0.0), x.constant(FAR));
    let a = x.abs();
    let near = a.min(far);
    let square = near * near;
    let f = near + square / (one + (one + square).sqrt());
    let f = T::select(Cmp::Lt, a, far, f, a - one);
    let rest = T::select(Cmp::Lt, a, far, zero, x.constant(std::f32::consts::LN_2));
    signed(x, log1p(f) + rest)
}
