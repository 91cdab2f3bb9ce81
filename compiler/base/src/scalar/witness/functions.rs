//! Witnesses of the rows of functions of one argument.

use super::super::{Expr, Fn1, Monotone, Parity, ROWS, Row1, row};
use super::{close, inside, room, slope};

/// Points of the domain away from kinks.
fn points(row: &Row1) -> Vec<f64> {
    // Closer to an end, the rounding of x itself shows in a difference.
    let clear = |x: &f64| room(row, *x) > 0.01 * x.abs().min(1.0);
    inside(row.domain).into_iter().filter(clear).collect()
}

#[test]
fn rows_are_in_the_order_of_the_enum() {
    for (i, r) in ROWS.iter().enumerate() {
        assert_eq!(r.function as usize, i);
        assert_eq!(row(r.function).name, r.name);
        assert_eq!(r.latex.matches("#1").count(), 1, "{}", r.name);
    }
    // The last variant: a row is missing if this index is.
    assert_eq!(ROWS.len(), Fn1::Atan as usize + 1);
}

#[test]
fn names_are_unique() {
    for r in ROWS {
        assert_eq!(ROWS.iter().filter(|o| o.name == r.name).count(), 1, "{}", r.name);
        assert_eq!(Fn1::from_name(r.name), r.in_language.then_some(r.function));
    }
}

fn against_differences(r: &Row1, what: &str, f: &dyn Fn(f64) -> f64, derivative: &Expr) {
    for x in points(r) {
        let room = room(r, x);
        let want = slope(f, x, 1e-3 * room);
        let got = derivative.eval(&[x]);
        let scale = got.abs() + f(x).abs() / room;
        close(&format!("{what} of {}", r.name), &[x], got, want, 2e-10 * scale + 1e-11);
    }
}

#[test]
fn derivatives_match_central_differences() {
    for r in ROWS {
        against_differences(r, "derivative", &r.value, &(r.derivative)());
    }
}

#[test]
fn second_and_third_derivatives_match_central_differences() {
    for r in ROWS {
        let first = (r.derivative)();
        let second = first.derivative(0);
        against_differences(r, "second derivative", &|x| first.eval(&[x]), &second);
        let third = second.derivative(0);
        against_differences(r, "third derivative", &|x| second.eval(&[x]), &third);
    }
}

#[test]
fn inverses_undo_and_are_undone() {
    let mut inverses = 0;
    for r in ROWS {
        let Some(inverse) = r.inverse else { continue };
        inverses += 1;
        let (inverse, derivative) = (inverse(), (r.derivative)());
        for x in inside(r.domain) {
            // Rounding of y moves x by eps * y / slope; where that is large the value does not determine x.
            let y = r.function.eval(x);
            let loss = 4.0 * f64::EPSILON * (y.abs() / derivative.eval(&[x]).abs() + x.abs());
            if loss < 1e-3 && y > r.range.low && y < r.range.high {
                let what = format!("inverse of {}", r.name);
                close(&what, &[x], inverse.eval(&[y]), x, loss.max(1e-15 * (1.0 + x.abs())));
            }
        }
        for y in inside(r.range) {
            let x = inverse.eval(&[y]);
            assert!(x >= r.domain.low && x <= r.domain.high, "inverse of {} leaves at {y}", r.name);
            // Beyond this, x is rounded to the float64 next to the end and no longer determines y.
            if x == r.domain.low || x == r.domain.high {
                continue;
            }
            let loss = 8.0 * f64::EPSILON * (derivative.eval(&[x]).abs() * x.abs() + y.abs());
            close(&format!("{} of its inverse", r.name), &[y], r.function.eval(x), y, loss.max(1e-15));
        }
    }
    assert!(inverses >= 15);
}

#[test]
fn an_invertible_row_is_monotone() {
    for r in ROWS {
        let free = r.inverse.is_none() || r.monotone != Monotone::Neither;
        assert!(free, "{}", r.name);
    }
}

#[test]
fn parity_holds_exactly() {
    for r in ROWS {
        let mirrored = |x: f64| (r.function.eval(-x), r.function.eval(x));
        let even = points(r).iter().all(|x| mirrored(*x).0 == mirrored(*x).1);
        let odd = points(r).iter().all(|x| mirrored(*x).0 == -mirrored(*x).1);
        let stated = (r.parity == Parity::Even, r.parity == Parity::Odd);
        assert_eq!((even, odd), stated, "{}", r.name);
    }
}

#[test]
fn direction_holds() {
    for r in ROWS {
        let mut xs = inside(r.domain);
        xs.sort_by(f64::total_cmp);
        let values: Vec<f64> = xs.iter().map(|x| r.function.eval(*x)).collect();
        let rising = values.windows(2).all(|w| w[0] <= w[1]);
        let falling = values.windows(2).all(|w| w[0] >= w[1]);
        match r.monotone {
            Monotone::Increasing => assert!(rising && !falling, "{}", r.name),
            Monotone::Decreasing => assert!(falling && !rising, "{}", r.name),
            Monotone::Neither => assert!(!falling, "{} falls throughout", r.name),
        }
    }
}

#[test]
fn values_lie_in_the_range_and_reach_towards_its_finite_ends() {
    for r in ROWS {
        let mut values: Vec<f64> = inside(r.domain).iter().map(|x| r.function.eval(*x)).collect();
        values.extend(
            (-400..400).map(|i| r.function.eval(f64::from(i) * 0.01)).filter(|_| r.domain.low < -30.0),
        );
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert!(low >= r.range.low && high <= r.range.high, "{}: {low} {high}", r.name);
        assert!(!r.range.low.is_finite() || low - r.range.low < 0.04, "{}: {low}", r.name);
        assert!(!r.range.high.is_finite() || r.range.high - high < 0.04, "{}: {high}", r.name);
    }
}

#[test]
fn everything_is_finite_at_kinks_and_outside_domains() {
    for r in ROWS {
        let odd = [r.domain.low, r.domain.high, r.domain.low - 1.0, r.domain.high + 1.0, 0.0];
        for x in odd.iter().chain(r.kinks).filter(|x| x.is_finite()) {
            assert!(r.function.eval(*x).is_finite(), "{} at {x}", r.name);
        }
        let first = (r.derivative)();
        let second = first.derivative(0);
        for x in r.kinks {
            assert!(first.eval(&[*x]).is_finite(), "derivative of {} at {x}", r.name);
            assert!(second.eval(&[*x]).is_finite(), "second derivative of {} at {x}", r.name);
        }
    }
}

#[test]
fn huge_arguments_give_the_truth() {
    for r in ROWS {
        let first = (r.derivative)();
        let second = first.derivative(0);
        for x in [-1e4, -745.0, -710.0, -100.0, 100.0, 710.0, 745.0, 1e4] {
            if x < r.domain.low || x > r.domain.high {
                continue;
            }
            for value in [r.function.eval(x), first.eval(&[x]), second.eval(&[x])] {
                let grows = matches!(r.function, Fn1::Exp | Fn1::Expm1 | Fn1::Sinh | Fn1::Cosh);
                let overflows = grows && x.abs() > 709.0;
                assert!(!value.is_nan() && (value.is_finite() || overflows), "{} at {x}: {value}", r.name);
            }
        }
    }
    assert_eq!(Fn1::Tanh.eval(-110.0), -1.0);
    assert_eq!(Fn1::Softplus.eval(1e4), 1e4);
    assert_eq!(Fn1::Sigmoid.eval(-1e4), 0.0);
}

#[test]
fn slopes_at_kinks_are_the_defined_ones() {
    let slope = |f: Fn1, x: f64| (row(f).derivative)().eval(&[x]);
    assert_eq!(slope(Fn1::Sqrt, 0.0), 0.0);
    assert_eq!(slope(Fn1::Abs, 0.0), 0.0);
    assert_eq!(slope(Fn1::Relu, 0.0), 0.0);
    assert_eq!(slope(Fn1::Sign, 0.0), 0.0);
    assert_eq!(slope(Fn1::Log, 0.0), 0.0);
}

/// Values from the definitions in 40-digit arithmetic.
#[test]
fn special_functions_have_known_values() {
    let known = [
        (Fn1::Erf, 0.5, 0.520_499_877_813_046_5),
        (Fn1::Erf, 1.0, 0.842_700_792_949_714_9),
        (Fn1::Erf, 2.0, 0.995_322_265_018_952_7),
        (Fn1::Gelu, 1.0, 0.841_344_746_068_542_9),
        (Fn1::Gelu, -3.0, -0.004_049_694_094_890_284),
        (Fn1::GeluTanh, 1.0, 0.841_191_990_608_276_7),
        (Fn1::Softplus, -2.0, 0.126_928_011_042_972_5),
        (Fn1::Logit, 0.3, -0.847_297_860_387_203_7),
        (Fn1::Asinh, 3.0, 1.818_446_459_232_066_8),
    ];
    for (f, x, want) in known {
        close(f.name(), &[x], f.eval(x), want, 2e-16 * want.abs().max(0.5));
    }
}
