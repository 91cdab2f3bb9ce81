//! Powers.
//!
//! a^b = 2^(b log2 a). The exponent must be right to 1e-6 though it may reach 128, so log2 a is kept as three
//! parts: the whole k, a leading part of s * 2/log(2), and a rest; and b as two. Products of leading parts
//! (12 bits each, cut off by masks) are exact without fused operations.

use super::exponential::two_to;
use super::logarithm::split;
use super::{Cmp, Real, leading, polynomial};

/// The largest |n| of [`power_whole`].
pub const WHOLE_LIMIT: i32 = 64;

/// (log2(m) - 2/log(2) s) / (s z) with s = (m - 1) / (m + 1), z = s^2.
const SERIES: [f32; 3] = [0.961_796_94, 0.576_916, 0.426_754_95];

/// (2^r - 1) / r
const RISE: [f32; 6] =
    [std::f32::consts::LN_2, 0.240_226_5, 0.055_503_57, 0.009_618_082, 0.001_339_097_8, 1.545_326_2e-4];

/// 2 / log(2) to 12 bits, and what is missing.
const SLOPE_HIGH: f32 = 2.884_765_6;
const SLOPE_LOW: f32 = 6.244_578e-4;

/// a^b. 0^0 = 1 and 0^b = 0 otherwise; for a < 0 the signed power where b is whole, else 0. Results above
/// 3.4e38 stay there, results under 1.7e-38 are 0.
#[inline(always)]
pub fn power<T: Real>(a: T, b: T) -> T {
    let (zero, one) = (a.constant(0.0), a.constant(1.0));
    let size = size(a.abs(), b);
    let half = b * a.constant(0.5);
    let turned = T::select(Cmp::Eq, half, half.floor(), size, -size);
    let turned = T::select(Cmp::Eq, b, b.floor(), turned, zero);
    let signed = T::select(Cmp::Lt, a, zero, turned, size);
    let at_zero = T::select(Cmp::Lt, a.abs(), a.constant(f32::MIN_POSITIVE), zero, signed);
    T::select(Cmp::Eq, b, zero, one, at_zero)
}

/// a^b for a positive and normal.
#[inline(always)]
fn size<T: Real>(a: T, b: T) -> T {
    let one = a.constant(1.0);
    // Beyond this every power but that of 1 has left the range of float32.
    let b = b.max(a.constant(-2.147_483_6e9)).min(a.constant(2.147_483_6e9));
    let (k, lead, rest) = log2(a.max(a.constant(f32::MIN_POSITIVE)));
    let y = b * (k + (lead + rest));
    let n = y.max(a.constant(-126.0)).min(a.constant(128.0)).nearest();
    let (b_high, lead_high) = (leading(b), leading(lead));
    let b_low = b - b_high;
    let small = b_low * k + (b_low * lead_high + b * ((lead - lead_high) + rest));
    let r = ((b_high * k - n) + b_high * lead_high) + small;
    let r = r.max(-one).min(one);
    let m = one + r * polynomial(RISE, r);
    let result = (m + m) * two_to(n - one);
    let large = T::select(Cmp::Ge, y, a.constant(127.9999), a.constant(f32::MAX), result);
    T::select(Cmp::Lt, y, a.constant(-126.0), a.constant(0.0), large)
}

/// log2(a) as k + lead + rest: k whole, lead with 24 bits at most, rest below 2^-7.
#[inline(always)]
fn log2<T: Real>(a: T) -> (T, T, T) {
    let (k, m) = split(a);
    let f = m - a.constant(1.0);
    let sum = f + a.constant(2.0);
    let s = f / sum;
    let s_high = leading(s);
    let f_high = leading(f);
    // s - s_high = (f - s_high (2 + f)) / (2 + f), whose products are exact.
    let s_low = (((f - (s_high + s_high)) - s_high * f_high) - s_high * (f - f_high)) / sum;
    let z = s * s;
    let slope_high = a.constant(SLOPE_HIGH);
    let rest = s_low * slope_high + (s * a.constant(SLOPE_LOW) + s * (z * polynomial(SERIES, z)));
    (k, s_high * slope_high, rest)
}

/// a^n by products, of the reciprocal (0 at 0) for n < 0. `None` where |n| exceeds [`WHOLE_LIMIT`].
pub fn power_whole<T: Real>(a: T, n: i32) -> Option<T> {
    if n.unsigned_abs() > WHOLE_LIMIT.unsigned_abs() {
        return None;
    }
    let mut square = if n < 0 { reciprocal(a) } else { a };
    let mut left = n.unsigned_abs();
    let mut product = None;
    while left > 0 {
        if left & 1 == 1 {
            product = Some(product.map_or(square, |p| p * square));
        }
        left >>= 1;
        if left > 0 {
            square = square * square;
        }
    }
    Some(product.unwrap_or_else(|| a.constant(1.0)))
}

/// 1/a; 0 where a is 0 or subnormal.
#[inline(always)]
fn reciprocal<T: Real>(a: T) -> T {
    let one = a.constant(1.0);
    let small = a.constant(f32::MIN_POSITIVE);
    T::select(Cmp::Lt, a.abs(), small, a.constant(0.0), one / a)
}
