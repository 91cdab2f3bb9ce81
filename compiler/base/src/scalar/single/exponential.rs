//! exp and what is built from it alone.
//!
//! e^x = 2^n e^r with n = nearest(x / log 2) and |r| <= log(2) / 2, where log 2 is subtracted in two parts:
//! the first has 9 bits, so its product with n is exact and no fused operation is needed. The polynomial
//! interpolates (e^r - 1 - r) / r^2 at Chebyshev nodes.

use super::{Cmp, Int, Real, polynomial, signed};

pub(super) const LN_2_HIGH: f32 = 0.693_359_4;
pub(super) const LN_2_LOW: f32 = -2.121_944_4e-4;

/// Just below the logarithm of the largest float32.
const LARGEST: f32 = 88.722_83;

/// Where e^x has become 0.
const SMALLEST: f32 = -87.6;

const TAIL: [f32; 5] = [0.5, 0.166_665_76, 0.041_666_553, 0.008_363_333, 0.001_392_637_6];

/// e^x = 2^n (1 + p), n whole, |p| < 0.42.
struct Parts<T> {
    n: T,
    p: T,
}

#[inline(always)]
fn parts<T: Real>(x: T, low: T) -> Parts<T> {
    let n = (x * x.constant(std::f32::consts::LOG2_E)).nearest();
    let r = ((x - n * x.constant(LN_2_HIGH)) - n * x.constant(LN_2_LOW)) + low;
    Parts { n, p: r + r * r * polynomial(TAIL, r) }
}

/// 2^n for a whole n from -127 (which gives 0) to 127.
#[inline(always)]
pub(super) fn two_to<T: Real>(n: T) -> T {
    // The sum's last bits are n + 127, the exponent field of 2^n; no conversion is needed.
    (n + n.constant(12_582_912.0 + 127.0)).bits().left(23).as_real()
}

#[inline(always)]
fn clamp<T: Real>(x: T, low: f32, high: f32) -> T {
    x.max(x.constant(low)).min(x.constant(high))
}

#[inline(always)]
pub(super) fn exp<T: Real>(x: T) -> T {
    exp_sum(x, x.constant(0.0))
}

/// e^(x + low) for |low| below 0.01.
#[inline(always)]
pub(super) fn exp_sum<T: Real>(x: T, low: T) -> T {
    let one = x.constant(1.0);
    let Parts { n, p } = parts(clamp(x, SMALLEST, LARGEST), low);
    let m = p + one;
    (m + m) * two_to(n - one)
}

/// (e^x - 1) / 2 = 2^(n - 1) (p + (1 - 2^-n)) for x up to 89.4, where n is 129.
#[inline(always)]
fn half_expm1<T: Real>(x: T) -> T {
    let one = x.constant(1.0);
    let Parts { n, p } = parts(x, x.constant(0.0));
    let m = p + (one - two_to(-n.min(x.constant(30.0))));
    (m + m) * two_to(n - x.constant(2.0))
}

#[inline(always)]
pub(super) fn expm1<T: Real>(x: T) -> T {
    let half = half_expm1(clamp(x, -30.0, LARGEST));
    half + half
}

/// t / (t + 2) with t = e^(2 |x|) - 1: accurate near 0, and 1 from |x| = 10 on.
#[inline(always)]
pub(super) fn tanh<T: Real>(x: T) -> T {
    let a = x.abs().min(x.constant(10.0));
    let h = half_expm1(a + a);
    signed(x, h / (h + x.constant(1.0)))
}

#[inline(always)]
pub(super) fn sigmoid<T: Real>(x: T) -> T {
    let one = x.constant(1.0);
    let t = exp(-x.abs());
    T::select(Cmp::Lt, x, x.constant(0.0), t, one) / (one + t)
}

/// x sigmoid(w), w = 2 sqrt(2/pi) (x + 0.044715 x^3).
#[inline(always)]
pub(super) fn gelu_tanh<T: Real>(x: T) -> T {
    const SLOPE: f32 = 1.595_769;
    const CUBIC: f32 = 0.071_354_814;
    let c = clamp(x, -12.0, 12.0);
    let z = c * c;
    x * sigmoid(c * (x.constant(SLOPE) + x.constant(CUBIC) * z))
}

/// (e^a - 1) / 2 + (e^a - 1) / (2 e^a), a = |x|: no cancellation.
#[inline(always)]
pub(super) fn sinh<T: Real>(x: T) -> T {
    let a = x.abs().min(x.constant(HYPERBOLIC));
    let half = half_expm1(a);
    let capped = half.min(x.constant(1e9));
    signed(x, half + capped / (capped + capped + x.constant(1.0)))
}

/// e^a / 2 + 1 / (2 e^a), a = |x|.
#[inline(always)]
pub(super) fn cosh<T: Real>(x: T) -> T {
    let a = x.abs().min(x.constant(HYPERBOLIC));
    let half = half_expm1(a) + x.constant(0.5);
    half + x.constant(0.25) / half
}

/// Where sinh and cosh reach the largest float32.
const HYPERBOLIC: f32 = 89.415_98;
