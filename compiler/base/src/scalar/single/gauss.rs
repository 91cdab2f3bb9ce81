//! The Gauss distribution function and erf.
//!
//! Upper tail Q(a) = e^(-a^2/2) M(a) for a >= 0; M(a) (a + 4) is a polynomial in (a - 4) / (a + 4) that
//! interpolates at Chebyshev nodes for a up to 14. The exponent is split so that a^2 is exact.

use super::exponential::exp_sum;
use super::{Cmp, Real, leading, polynomial, signed};

const TAIL: [f32; 10] = [
    0.755_285_14,
    -0.607_896_6,
    0.387_136_68,
    -0.186_522_68,
    0.060_406_69,
    -0.007_529_251,
    -0.003_526_183_7,
    0.001_572_317_8,
    2.012_617_3e-4,
    -1.201_844e-4,
];

/// erf(x) / x near 0 in powers of x^2.
const NEAR: [f32; 6] = [
    std::f32::consts::FRAC_2_SQRT_PI,
    -0.376_125_22,
    0.112_821_19,
    -0.026_777_805,
    0.005_009_904,
    -6.077_778e-4,
];

/// Q(a), a >= 0; 0 from a = 13.2 on.
#[inline(always)]
fn tail<T: Real>(a: T) -> T {
    let a = a.min(a.constant(13.5));
    let (four, minus_half) = (a.constant(4.0), a.constant(-0.5));
    let high = leading(a);
    let low = (a - high) * (a + high) * minus_half;
    let density = exp_sum(high * high * minus_half, low);
    let inverse = a.constant(1.0) / (a + four);
    density * (polynomial(TAIL, (a - four) * inverse) * inverse)
}

/// x Phi(x); the tail itself for x < 0, so its relative accuracy is kept.
#[inline(always)]
pub(super) fn gelu<T: Real>(x: T) -> T {
    let q = tail(x.abs());
    x * T::select(Cmp::Lt, x, x.constant(0.0), q, x.constant(1.0) - q)
}

/// A polynomial up to 0.9, 1 - 2 Q(sqrt(2) |x|) beyond.
#[inline(always)]
pub(super) fn erf<T: Real>(x: T) -> T {
    let switch = x.constant(0.9);
    let a = x.abs();
    let small = a.min(switch);
    let q = tail(a * x.constant(std::f32::consts::SQRT_2));
    let far = x.constant(1.0) - (q + q);
    signed(x, T::select(Cmp::Lt, a, switch, small * polynomial(NEAR, small * small), far))
}
