//! Witnesses of functions of two arguments.

use super::super::{Expr, Fn2, add, arg, call2, derivative2, div, mul, num, solution2};
use super::{close, inside, slope};

const PAIRS: [Fn2; 7] = [Fn2::Add, Fn2::Sub, Fn2::Mul, Fn2::Div, Fn2::Pow, Fn2::Min, Fn2::Max];

/// Pairs off the kinks; positive bases for powers.
fn points(f: Fn2) -> Vec<[f64; 2]> {
    let grid = [-3.0, -1.1, -0.4, 0.3, 0.9, 1.7, 4.0];
    let pairs = grid.iter().flat_map(|a| grid.iter().map(move |b| [*a, *b]));
    pairs.filter(|[a, b]| a != b && (f != Fn2::Pow || *a > 0.0)).collect()
}

fn against_differences(what: &str, e: &Expr, derivative: &Expr, by: usize, at: [f64; 2]) {
    let f = |v: f64| {
        let mut args = at;
        args[by] = v;
        e.eval(&args)
    };
    let got = derivative.eval(&at);
    let tolerance = 1e-9 * (1.0 + got.abs() + f(at[by]).abs());
    close(what, &at, got, slope(f, at[by], 1e-3 * at[by].abs()), tolerance);
}

#[test]
fn derivatives_of_both_orders_match_central_differences() {
    for f in PAIRS {
        let e = call2(f, arg(0), arg(1));
        for by in 0..2u8 {
            let first = derivative2(f, by);
            for at in points(f) {
                against_differences(f.spelling(), &e, &first, by.into(), at);
                for again in 0..2u8 {
                    let second = first.derivative(again);
                    against_differences(f.spelling(), &first, &second, again.into(), at);
                }
            }
        }
        assert_eq!(derivative2(f, 2), num(0.0));
    }
}

#[test]
fn powers_of_negative_bases_by_whole_exponents() {
    for n in [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0] {
        let e = call2(Fn2::Pow, arg(0), num(n));
        for x in [-2.5, -0.7, -0.1] {
            against_differences("power", &e, &e.derivative(0), 0, [x, 0.0]);
        }
    }
}

#[test]
fn singular_points_have_their_defined_values() {
    assert_eq!(Fn2::Div.eval(0.0, 0.0), 0.0);
    assert_eq!(Fn2::Div.eval(1.0, 0.0), f64::INFINITY);
    assert_eq!(Fn2::Pow.eval(0.0, 0.0), 1.0);
    assert_eq!(Fn2::Pow.eval(0.0, -1.0), 0.0);
    assert_eq!(Fn2::Pow.eval(0.0, 0.5), 0.0);
    assert_eq!(Fn2::Pow.eval(-8.0, 1.0 / 3.0), 0.0);
    assert_eq!(Fn2::Pow.eval(-2.0, 3.0), -8.0);
    assert_eq!(Fn2::Pow.eval(-2.0, -2.0), 0.25);
    let slopes = [(Fn2::Div, 0, [0.0, 0.0]), (Fn2::Div, 1, [0.0, 0.0]), (Fn2::Pow, 0, [0.0, 0.5])];
    for (f, by, at) in slopes {
        assert_eq!(derivative2(f, by).eval(&at), 0.0, "{f:?} by {by} at {at:?}");
    }
    for at in [[0.0, 0.5], [0.0, -1.0], [0.0, 0.0], [-2.0, 3.0]] {
        assert_eq!(derivative2(Fn2::Pow, 1).eval(&at), 0.0, "exponent at {at:?}");
    }
    assert_eq!(derivative2(Fn2::Pow, 0).eval(&[0.0, 1.0]), 1.0);
    assert_eq!(derivative2(Fn2::Max, 0).eval(&[2.0, 2.0]), 1.0);
    assert_eq!(derivative2(Fn2::Max, 1).eval(&[2.0, 2.0]), 0.0);
    assert_eq!(derivative2(Fn2::Min, 0).eval(&[2.0, 2.0]), 1.0);
    assert_eq!(derivative2(Fn2::Min, 1).eval(&[2.0, 2.0]), 0.0);
}

#[test]
fn solutions_solve() {
    let mut solved = 0;
    for f in PAIRS {
        for by in 0..2u8 {
            let Some(s) = solution2(f, by) else { continue };
            solved += 1;
            for y in s.range.iter().flat_map(|i| inside(*i)).filter(|y| y.abs() > 1e-3 && y.abs() < 9.0) {
                for o in s.other.iter().flat_map(|i| inside(*i)).filter(|o| (0.02..9.0).contains(&o.abs())) {
                    let a = s.expr.eval(&[y, o]);
                    if !a.is_finite() || a.abs() > 1e100 || (a != 0.0 && a.abs() < 1e-100) {
                        continue;
                    }
                    assert!(s.domain.iter().any(|d| a > d.low && a < d.high), "{f:?} {by}: {a}");
                    let back = if by == 0 { f.eval(a, o) } else { f.eval(o, a) };
                    let tolerance = 1e-12
                        * (1.0 + y.abs() + o.abs() + if f == Fn2::Pow { a.abs().ln().abs() } else { 0.0 });
                    close(f.spelling(), &[y, o], back, y, tolerance);
                }
            }
        }
    }
    assert_eq!(solved, 10);
}

#[test]
fn the_differentiator_folds_constants() {
    let square = call2(Fn2::Pow, arg(0), num(2.0));
    assert_eq!(square.derivative(0), mul(num(2.0), arg(0)));
    assert_eq!(add(mul(num(3.0), arg(0)), num(4.0)).derivative(0), num(3.0));
    assert_eq!(div(arg(0), arg(1)).derivative(2), num(0.0));
}

#[test]
fn substitution_replaces_each_argument() {
    let e = add(arg(0), mul(arg(1), arg(0)));
    assert_eq!(e.substitute(&[&num(2.0), &arg(0)]), add(num(2.0), mul(arg(0), num(2.0))));
}
