//! The programs on a machine that fuses every product into a sum or difference that uses it, and flushes
//! subnormal numbers to 0, as graphics drivers do.

use super::super::super::{Fn2, ROWS};
use super::super::program::{Word, step};
use super::super::{Binary, Op, Reg, Single, error_bound, single, single2};
use super::{arguments, bounded, corners, ulp};

fn eval(p: &Single, args: &[f32]) -> f32 {
    let mut words: Vec<Word> = Vec::with_capacity(p.steps.len());
    for op in &p.steps {
        let result = fused(p, op, &words).unwrap_or_else(|| flushed(op, step(op, args, &words)));
        words.push(result);
    }
    words.last().map_or(0.0, |w| w.float())
}

fn fused(p: &Single, op: &Op, words: &[Word]) -> Option<Word> {
    let product = |r: Reg| match p.steps[r.index()] {
        Op::Binary(Binary::Mul, a, b) => Some((words[a.index()].float(), words[b.index()].float())),
        _ => None,
    };
    let float = |r: Reg| words[r.index()].float();
    let sum = match *op {
        Op::Binary(Binary::Add, a, b) => match (product(a), product(b)) {
            (Some((x, y)), _) => x.mul_add(y, float(b)),
            (None, Some((x, y))) => x.mul_add(y, float(a)),
            (None, None) => return None,
        },
        Op::Binary(Binary::Sub, a, b) => match (product(a), product(b)) {
            (_, Some((x, y))) => (-x).mul_add(y, float(a)),
            (Some((x, y)), None) => x.mul_add(y, -float(b)),
            (None, None) => return None,
        },
        _ => return None,
    };
    Some(Word::of(flush(sum)))
}

fn flushed(op: &Op, w: Word) -> Word {
    match op {
        Op::Unary(..) | Op::Binary(..) => Word::of(flush(w.float())),
        _ => w,
    }
}

fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0 } else { x }
}

#[test]
fn bounds_hold_within_one_more_ulp() {
    for r in ROWS {
        let p = single(r.function);
        let bound = error_bound(r.function);
        // Factors of the smallest numbers are flushed.
        let allowance = bound.absolute.max(1e-36);
        let (mut worst, mut at) = (0.0f64, 0.0);
        for x in arguments(r).into_iter().step_by(23) {
            let want = (r.value)(f64::from(x));
            let error = (f64::from(eval(&p, &[x])) - want).abs();
            if bounded(want) && error > allowance && error / ulp(want) > worst {
                (worst, at) = (error / ulp(want), x);
            }
        }
        assert!(worst <= bound.ulps + 1.0, "{} at {at:e}: {worst}", r.name);
    }
}

#[test]
fn powers_keep_their_accuracy() {
    let p = single2(Fn2::Pow);
    for i in 1..400 {
        for b in [-33.3f32, -2.7, -0.5, 1e-3, 0.9, 1.25, 12.0, 31.0, 4e5] {
            let a = i as f32 * 0.0373;
            let want = Fn2::Pow.eval(a.into(), b.into());
            if bounded(want) && want != 0.0 {
                let error = (f64::from(eval(&p, &[a, b])) / want - 1.0).abs();
                assert!(error < 2e-7, "{a} ^ {b}: {error:e}");
            }
        }
    }
}

#[test]
fn everything_stays_finite() {
    for r in ROWS {
        let p = single(r.function);
        for x in corners() {
            assert!(eval(&p, &[x]).is_finite(), "{} at {x:e}", r.name);
        }
    }
}
