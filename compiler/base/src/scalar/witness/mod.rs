//! Numeric witnesses: every fact of the table is evaluated, by looping over the table.

mod facts;
mod functions;
mod pairs;

use super::{Interval, Row1};

/// Points strictly inside an interval: dense in the middle, and towards each end (to 1e-6 of a finite end,
/// to 30 of an infinite one).
fn inside(i: Interval) -> Vec<f64> {
    const STEPS: i32 = 40;
    let rays = (0..=STEPS).map(|s| 10f64.powf(-6.0 + f64::from(s) * 7.477 / f64::from(STEPS)));
    match (i.low.is_finite(), i.high.is_finite()) {
        (false, false) => rays.flat_map(|r| [-r, r]).chain([0.0]).collect(),
        (true, false) => rays.map(|r| i.low + r).collect(),
        (false, true) => rays.map(|r| i.high - r).collect(),
        (true, true) => {
            let width = i.high - i.low;
            rays.map(|r| r / 60.0).flat_map(|r| [i.low + width * r, i.high - width * r]).collect()
        }
    }
}

/// How far `x` is from the next kink or end of the domain, at most 1.
fn room(row: &Row1, x: f64) -> f64 {
    let ends = [row.domain.low, row.domain.high];
    ends.iter().chain(row.kinks).map(|e| (x - e).abs()).fold(1.0, f64::min)
}

/// Central difference of fourth order; `step` is the half-width over 2.
fn slope(f: impl Fn(f64) -> f64, x: f64, step: f64) -> f64 {
    (8.0 * (f(x + step) - f(x - step)) - (f(x + 2.0 * step) - f(x - 2.0 * step))) / (12.0 * step)
}

#[track_caller]
fn close(what: &str, at: &[f64], got: f64, want: f64, tolerance: f64) {
    assert!(
        (got - want).abs() <= tolerance,
        "{what} at {at:?}: {got:e}, expected {want:e} within {tolerance:e}"
    );
}
