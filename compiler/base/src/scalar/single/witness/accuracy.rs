//! How far float32 is from float64.

use super::super::super::{Fn1, Fn2, ROWS, Row1};
use super::super::{ErrorBound, WHOLE_LIMIT, error_bound, power_whole, value, value2};
use super::{arguments, bounded, corners, floats, ulp};

#[derive(Default)]
struct Measured {
    ulps: f64,
    at: f32,
    relative: f64,
    absolute: f64,
}

/// The largest errors over the grid; those up to `allowance` count only for the absolute one.
fn measure(r: &Row1, allowance: f64) -> Measured {
    let mut m = Measured::default();
    for x in arguments(r) {
        let want = (r.value)(f64::from(x));
        if !bounded(want) {
            continue;
        }
        let error = (f64::from(value(r.function, x)) - want).abs();
        if error > allowance {
            let ulps = error / ulp(want);
            (m.ulps, m.at) = if ulps > m.ulps { (ulps, x) } else { (m.ulps, m.at) };
            m.relative = m.relative.max(error / want.abs());
        }
        if want.abs() <= 1.0 {
            m.absolute = m.absolute.max(error);
        }
    }
    m
}

/// Prints the table of the module's documentation (`--nocapture`).
#[test]
fn errors_stay_within_their_bounds() {
    let mut broken = Vec::new();
    for r in ROWS {
        let ErrorBound { ulps, absolute } = error_bound(r.function);
        let m = measure(r, absolute);
        println!("//! | {} | {:.2} | {:.1e} | {:.1e} |", r.name, m.ulps, m.relative, m.absolute);
        if m.ulps > ulps {
            broken.push((r.name, m.at));
        }
        // A bound that says much less than what holds would hide a regression.
        assert!(ulps <= 0.5 || m.ulps > 0.6 * ulps, "{} is better than its bound: {}", r.name, m.ulps);
    }
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn everything_is_finite_for_every_finite_argument() {
    for r in ROWS {
        for x in floats(40_009).chain(corners()) {
            let y = value(r.function, x);
            assert!(y.is_finite(), "{} at {x:e}: {y}", r.name);
            let room = 1e-6 * (1.0 + f64::from(y.abs()));
            let (low, high) = (r.range.low - room, r.range.high + room);
            assert!(f64::from(y) >= low && f64::from(y) <= high, "{} at {x:e} leaves its range: {y}", r.name);
        }
    }
}

#[test]
fn outside_its_domain_a_function_is_continued() {
    for r in ROWS {
        for (end, beyond) in [(r.domain.low, -1.0f64), (r.domain.high, 1.0)] {
            if end.is_finite() {
                let at = value(r.function, end as f32);
                assert_eq!(value(r.function, (end + beyond) as f32), at, "{}", r.name);
                assert_eq!(value(r.function, (end + 1e9 * beyond) as f32), at, "{}", r.name);
                assert_eq!(r.function.eval(end + beyond), r.function.eval(end), "{}", r.name);
            }
        }
    }
}

#[test]
fn known_hard_arguments() {
    assert_eq!(value(Fn1::Tanh, -110.0f32), -1.0);
    assert_eq!(value(Fn1::Sigmoid, -1e4f32), 0.0);
    assert_eq!(value(Fn1::Exp, 0.0f32), 1.0);
    assert_eq!(value(Fn1::Exp, -1e4f32), 0.0);
    assert!(value(Fn1::Exp, 1e4f32) > 3.4e38);
    let want = f64::exp(-75.0);
    assert!((f64::from(value(Fn1::Exp, -75.0f32)) - want).abs() <= 2.0 * ulp(want));
    assert_eq!(value(Fn1::Log, 0.0f32), value(Fn1::Log, f32::MIN_POSITIVE));
    assert_eq!(value(Fn1::Softplus, 1e10f32), 1e10);
    assert_eq!(value(Fn1::Gelu, -1e30f32), 0.0);
}

fn bases() -> Vec<f32> {
    let near_one = (1..200).map(|i| 1.0 + (i - 100) as f32 * 1.7e-6);
    let moderate = (1..400).map(|i| i as f32 * 0.0373);
    near_one.chain(moderate).chain(floats(30_000_001).filter(|x| *x >= f32::MIN_POSITIVE)).collect()
}

fn exponents() -> Vec<f32> {
    let sizes =
        [1e-6, 0.013, 0.1, 1.0 / 3.0, 0.5, 0.9, 1.0, 1.25, 1.5, 2.0, 2.7, 3.0, 4.0, 7.5, 12.0, 33.3, 126.9];
    let huge = [1000.5, 12_345.6, 4e5, 3e6, 2e8, 1e9];
    sizes.into_iter().chain(huge).flat_map(|b| [b, -b]).collect()
}

#[test]
fn powers_are_right_to_2e_7() {
    let (mut worst, mut seen) = (0.0f64, 0);
    for a in bases() {
        for b in exponents() {
            let want = Fn2::Pow.eval(a.into(), b.into());
            if bounded(want) && want != 0.0 {
                seen += 1;
                let error = (f64::from(value2(Fn2::Pow, a, b)) / want - 1.0).abs();
                assert!(error < 2e-7, "{a:e} ^ {b:e}: {error:e}");
                worst = worst.max(error);
            }
        }
    }
    println!("pow: {worst:.1e} over {seen}");
    assert!(seen > 10_000 && worst > 1e-7);
}

#[test]
fn powers_are_defined_everywhere() {
    for a in corners() {
        for b in corners() {
            let got = value2(Fn2::Pow, a, b);
            assert!(got.is_finite(), "{a:e} ^ {b:e}: {got}");
            let want = Fn2::Pow.eval(a.into(), b.into());
            // Subnormal bases count as 0.
            if a == 0.0 || a.abs() >= f32::MIN_POSITIVE {
                let agrees = match want.abs() {
                    w if w < 2e-38 => got.abs() < 2e-38,
                    w if w > 3.4e38 => got.abs() > 3.4e38 && (got > 0.0) == (want > 0.0),
                    _ => (f64::from(got) / want - 1.0).abs() < 2e-7,
                };
                assert!(agrees, "{a:e} ^ {b:e}: {got:e}, expected {want:e}");
            }
        }
    }
}

#[test]
fn whole_powers_are_products() {
    for n in -WHOLE_LIMIT..=WHOLE_LIMIT {
        for a in floats(30_000_001).chain([-3.0, -2.0, -1.5, -0.3, 0.0, 1.1, 2.0, 3.0]) {
            let want = Fn2::Pow.eval(a.into(), n.into());
            let Some(got) = power_whole(a, n) else { panic!("{n} is within the limit") };
            if bounded(want) && (a == 0.0 || a.abs() > f32::MIN_POSITIVE) && a.abs() < 8e37 {
                let roundings = f64::from(if n < 0 { 2 * n.abs() } else { n });
                let error = (f64::from(got) - want).abs();
                assert!(error <= roundings * 2f64.powi(-24) * want.abs(), "{a:e} ^ {n}: {error:e}");
            }
        }
    }
    assert_eq!(power_whole(2.0f32, 10), Some(1024.0));
    assert_eq!(power_whole(-2.0f32, 3), Some(-8.0));
    assert_eq!(power_whole(0.0f32, -2), Some(0.0));
    assert_eq!(power_whole(0.0f32, 0), Some(1.0));
    assert_eq!(power_whole(1.0f32, WHOLE_LIMIT + 1), None);
    assert_eq!(power_whole(1.0f32, i32::MIN), None);
}

#[test]
fn quotients_and_choices() {
    assert_eq!(value2(Fn2::Div, 0.0f32, 0.0), 0.0);
    assert_eq!(value2(Fn2::Div, 3.0f32, 2.0), 1.5);
    assert_eq!(value2(Fn2::Min, 3.0f32, 2.0), 2.0);
    assert_eq!(value2(Fn2::Max, 3.0f32, 2.0), 3.0);
    for f in [Fn2::Add, Fn2::Sub, Fn2::Mul] {
        assert_eq!(f64::from(value2(f, 1.5f32, -0.25)), f.eval(1.5, -0.25));
    }
}
