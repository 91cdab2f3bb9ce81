//! sin, cos, tan, atan.
//!
//! x = n pi/2 + r, where pi/2 is subtracted in four parts; the first three have 8 bits each, so their
//! products with n are exact up to |n| = 65536. Polynomials interpolate at Chebyshev nodes.

use super::{Cmp, Real, polynomial, signed};

const PARTS: [f32; 4] = [1.570_312_5, 4.825_592e-4, 1.266_598_7e-6, 9.920_936e-10];
const SINE: [f32; 3] = [-0.166_666_65, 0.008_332_734, -1.958_477e-4];
const COSINE: [f32; 3] = [0.041_666_664, -0.001_388_828_8, 2.454_481_3e-5];
const ARC: [f32; 5] = [-0.333_333_3, 0.199_995_4, -0.142_639_12, 0.107_432_63, -0.064_503_77];

/// The largest float32 below pi/2.
const QUARTER_TURN: f32 = std::f32::consts::FRAC_PI_2.next_down();

/// tan(pi/8)
const EIGHTH: f32 = 0.414_213_57;

/// n and r; of arguments too large to be reduced, some r within [-0.79, 0.79].
#[inline(always)]
fn reduce<T: Real>(x: T) -> (T, T) {
    let n = (x * x.constant(std::f32::consts::FRAC_2_PI)).nearest();
    let mut r = x;
    for part in PARTS {
        r = r - n * x.constant(part);
    }
    (n, r.max(x.constant(-0.79)).min(x.constant(0.79)))
}

#[inline(always)]
fn sine<T: Real>(r: T) -> T {
    let z = r * r;
    r + r * (z * polynomial(SINE, z))
}

#[inline(always)]
fn cosine<T: Real>(r: T) -> T {
    let z = r * r;
    (r.constant(1.0) - r.constant(0.5) * z) + z * z * polynomial(COSINE, z)
}

/// sin(r + n pi/2)
#[inline(always)]
fn turned<T: Real>(n: T, r: T) -> T {
    let half = n * r.constant(0.5);
    let wave = T::select(Cmp::Eq, half, half.floor(), sine(r), cosine(r));
    let quarter = half * r.constant(0.5);
    T::select(Cmp::Ge, quarter - quarter.floor(), r.constant(0.5), -wave, wave)
}

#[inline(always)]
pub(super) fn sin<T: Real>(x: T) -> T {
    let (n, r) = reduce(x);
    turned(n, r)
}

#[inline(always)]
pub(super) fn cos<T: Real>(x: T) -> T {
    let (n, r) = reduce(x);
    turned(n + x.constant(1.0), r)
}

/// sin(r) / cos(r), or -cos(r) / sin(r) in the outer eighths, where r is not 0.
#[inline(always)]
pub(super) fn tan<T: Real>(x: T) -> T {
    let (n, r) = reduce(x.max(x.constant(-QUARTER_TURN)).min(x.constant(QUARTER_TURN)));
    let (s, c, zero) = (sine(r), cosine(r), x.constant(0.0));
    T::select(Cmp::Eq, n, zero, s, -c) / T::select(Cmp::Eq, n, zero, c, s)
}

/// atan(a) = base + atan(t) with t = a, (a - 1) / (a + 1) or -1 / a, so that |t| <= tan(pi/8).
#[inline(always)]
pub(super) fn atan<T: Real>(x: T) -> T {
    use std::f32::consts::{FRAC_PI_2, FRAC_PI_4};
    let one = x.constant(1.0);
    let a = x.abs();
    let (middle, far) = (x.constant(EIGHTH), x.constant(1.0 / EIGHTH));
    let three = |near: T, between: T, beyond: T| {
        T::select(Cmp::Lt, a, middle, near, T::select(Cmp::Lt, a, far, between, beyond))
    };
    let base = three(x.constant(0.0), x.constant(FRAC_PI_4), x.constant(FRAC_PI_2));
    let t = three(a, a - one, -one) / three(one, a + one, a);
    let z = t * t;
    signed(x, base + (t + t * (z * polynomial(ARC, z))))
}
