//! The recorded programs.

use super::super::super::{Cmp, Expr, Fn1, Fn2, ROWS, add, arg, call, call2, mul, num, power, select};
use super::super::{
    Op, Single, WHOLE_LIMIT, evaluate, power_whole, single, single_expr, single_whole, single2,
};
use super::super::{value, value2};
use super::{corners, floats};

const PAIRS: [Fn2; 7] = [Fn2::Add, Fn2::Sub, Fn2::Mul, Fn2::Div, Fn2::Pow, Fn2::Min, Fn2::Max];

/// Operands come earlier and have the right type, nothing is unused or repeated, the result is float32.
fn verify(what: &str, p: &Single) {
    let mut used = vec![false; p.steps.len()];
    for (i, op) in p.steps.iter().enumerate() {
        let takes_ints = matches!(
            op,
            Op::IntBinary(..) | Op::ShiftLeft(..) | Op::ShiftRight(..) | Op::FromBits(_) | Op::ToFloat(_)
        );
        for r in op.operands() {
            assert!(r.index() < i, "{what}: step {i} looks ahead");
            assert_eq!(p.steps[r.index()].is_int(), takes_ints, "{what}: step {i}");
            used[r.index()] = true;
        }
        let again = p.steps[..i].iter().any(|o| format!("{o:?}") == format!("{op:?}"));
        assert!(!again, "{what}: step {i} is repeated");
    }
    assert!(p.steps.last().is_some_and(|op| !op.is_int()), "{what}: no float32 result");
    assert!(used.iter().rev().skip(1).all(|u| *u), "{what}: an unused step");
}

#[track_caller]
fn same(what: &str, at: &[f32], recorded: f32, direct: f32) {
    let bits = (recorded.to_bits(), direct.to_bits());
    assert!(
        bits.0 == bits.1 || (recorded.is_nan() && direct.is_nan()),
        "{what} at {at:?}: {recorded} {direct}"
    );
}

#[test]
fn rows_as_recorded_equal_rows_as_computed() {
    for r in ROWS {
        let p = single(r.function);
        verify(r.name, &p);
        for x in floats(3_000_017).chain(corners()).chain((-300..300).map(|i| i as f32 * 0.037)) {
            same(r.name, &[x], p.eval(&[x]), value(r.function, x));
        }
    }
}

#[test]
fn pairs_as_recorded_equal_pairs_as_computed() {
    for f in PAIRS {
        let p = single2(f);
        verify(f.spelling(), &p);
        for a in corners() {
            for b in corners() {
                same(f.spelling(), &[a, b], p.eval(&[a, b]), value2(f, a, b));
            }
        }
    }
}

#[test]
fn whole_powers_as_recorded() {
    for n in -WHOLE_LIMIT..=WHOLE_LIMIT {
        let Some(p) = single_whole(n) else { panic!("{n} is within the limit") };
        verify("whole power", &p);
        for x in corners() {
            assert_eq!(Some(p.eval(&[x]).to_bits()), power_whole(x, n).map(f32::to_bits), "{x} ^ {n}");
        }
    }
    assert_eq!(single_whole(WHOLE_LIMIT + 1), None);
}

#[test]
fn derivatives_can_be_recorded_and_are_right() {
    for r in ROWS {
        let first = (r.derivative)();
        for (e, slack) in [(first.derivative(0), 3e-5), (first, 3e-6)] {
            let Some(p) = single_expr(&e) else { panic!("{}", r.name) };
            verify(r.name, &p);
            for i in -200..200 {
                let x = i as f32 * 0.0173 + 0.004;
                if f64::from(x) <= r.domain.low || f64::from(x) >= r.domain.high {
                    continue;
                }
                let (got, want) = (p.eval(&[x]), e.eval(&[x.into()]));
                let error = (f64::from(got) - want).abs();
                assert!(error <= slack * (1.0 + want.abs()), "slope of {} at {x}: {got} {want}", r.name);
                same(r.name, &[x], got, evaluate(&e, &[x], x));
            }
        }
    }
}

#[test]
fn equal_subexpressions_are_recorded_once() {
    let twice = add(call(Fn1::Gelu, arg(0)), call(Fn1::Gelu, arg(0)));
    let once = single(Fn1::Gelu).steps.len();
    assert_eq!(single_expr(&twice).map(|p| p.steps.len()), Some(once + 1));
}

#[test]
fn whole_constant_exponents_become_products() {
    let cube = single_expr(&power(arg(0), 3.0));
    assert_eq!(cube, single_whole(3));
    let broken = single_expr(&power(arg(0), 1.5)).map(|p| p.steps.len());
    assert!(broken > Some(30));
    let variable = single_expr(&call2(Fn2::Pow, arg(0), arg(1)));
    assert_eq!(variable, Some(single2(Fn2::Pow)));
}

#[test]
fn selections_and_constants() {
    let e: Expr = select(Cmp::Lt, arg(0), arg(1), mul(num(2.0), arg(0)), num(7.0));
    let Some(p) = single_expr(&e) else { panic!("too long") };
    verify("selection", &p);
    assert_eq!(p.eval(&[1.0, 2.0]), 2.0);
    assert_eq!(p.eval(&[3.0, 2.0]), 7.0);
    assert_eq!(single_expr(&num(4.0)).map(|p| p.eval(&[])), Some(4.0));
}
