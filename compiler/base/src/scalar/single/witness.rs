//! Witnesses of the float32 forms: errors measured against the float64 rows over all magnitudes, the recorded
//! programs against the direct computation, and definedness everywhere.

mod accuracy;
mod fused;
mod programs;

use super::super::{Fn1, Row1};

/// Finite float32 numbers of every sign and magnitude, `stride` bit patterns apart.
fn floats(stride: usize) -> impl Iterator<Item = f32> {
    (0..=u32::MAX).step_by(stride).map(f32::from_bits).filter(|x| x.is_finite())
}

/// Numbers at which forms could break: zeros, ones, ends of domains, the largest and the smallest.
fn corners() -> Vec<f32> {
    let sizes = [
        0.0,
        1e-45,
        1e-40,
        f32::MIN_POSITIVE,
        1e-20,
        0.5,
        1.0,
        std::f32::consts::FRAC_PI_2,
        std::f32::consts::FRAC_PI_2.next_down(),
        87.3,
    ];
    let more = [88.8, 89.4, 90.0, 104.0, 110.0, 1e4, 65_535.7, 1e10, 1e19, 1e20, 1e30, f32::MAX];
    let near = [0.0f32, 1.0, 0.9, 4096.0].into_iter().flat_map(|x| [x.next_up(), x.next_down()]);
    sizes.into_iter().chain(more).chain(near).flat_map(|x| [x, -x]).collect()
}

/// A grid for measuring: all magnitudes, then a dense linear one where most arguments lie.
fn arguments(r: &Row1) -> Vec<f32> {
    let (low, high) = (r.domain.low, r.domain.high);
    let reach = if matches!(r.function, Fn1::Sin | Fn1::Cos) { 1e5 } else { f64::INFINITY };
    let linear = (-150_000..150_000).map(|i| i as f32 * 7.31e-4);
    let fine = (-100_000..100_000).map(|i| i as f32 * 1.03e-5);
    let all = floats(20_011).chain(linear).chain(fine);
    let normal = |x: f64| x == 0.0 || x.abs() > f64::from(f32::MIN_POSITIVE);
    let inside = |x: f64| x > low && x < high && x.abs() <= reach && normal(x);
    all.filter(|x| inside(f64::from(*x))).collect()
}

/// The unit in the last place of the float32 numbers around `v`.
fn ulp(v: f64) -> f64 {
    2f64.powf(v.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor() - 23.0)
}

/// Whether a bound speaks about this value.
fn bounded(v: f64) -> bool {
    v == 0.0 || (2e-38..3.4e38).contains(&v.abs())
}
