//! Numeric witnesses of reverse mode: every operation against central differences, first and second order.

use crate::array::Array;
use crate::ops::{Ops, Prim};
use crate::tape::{Id, Tape};
use crate::trouble::Made;
use miras_base::scalar::{Cmp, Fn1, Fn2, ROWS};
use miras_term::Reduce;
use std::rc::Rc;

/// Something made of some variables.
type Build<'a> = &'a dyn Fn(&mut Tape, &[Id]) -> Made<Id>;

const STEP: f64 = 1e-5;

/// A scalar of every entry of the result, with weights that tell entries apart.
fn total(tape: &mut Tape, value: Id) -> Made<Id> {
    let shape = tape.array(&value).shape.clone();
    let count: usize = shape.iter().product();
    let weights = (0..count).map(|i| (0.7 + i as f64).sin()).collect();
    let weights = tape.constant(Rc::new(Array::new(shape, weights)?));
    let product = tape.mul(&value, &weights)?;
    tape.sum(&product)
}

fn variables(tape: &mut Tape, at: &[Array]) -> Vec<Id> {
    at.iter().map(|a| tape.variable(Rc::new(a.clone())).unwrap()).collect()
}

fn value(at: &[Array], build: Build<'_>) -> f64 {
    let mut tape = Tape::new();
    let vars = variables(&mut tape, at);
    let result = build(&mut tape, &vars).unwrap();
    let result = total(&mut tape, result).unwrap();
    tape.array(&result).data[0]
}

/// A scalar made of the recorded gradient of the scalar above.
fn gradient_total(tape: &mut Tape, vars: &[Id], build: Build<'_>) -> Made<Id> {
    let by = vars.iter().map(|v| tape.alias(*v)).collect::<Made<Vec<Id>>>()?;
    let result = build(tape, &by)?;
    let result = total(tape, result)?;
    let one = tape.num(1.0);
    let mut sum = tape.num(0.0);
    for gradient in tape.gradient(result, one, &by)? {
        let part = total(tape, gradient)?;
        sum = tape.add(&sum, &part)?;
    }
    Ok(sum)
}

fn backward(at: &[Array], scalar: impl Fn(&mut Tape, &[Id]) -> Made<Id>) -> Vec<Array> {
    let mut tape = Tape::new();
    let vars = variables(&mut tape, at);
    let result = scalar(&mut tape, &vars).unwrap();
    let seed = Rc::new(Array::scalar(1.0));
    let found = tape.backward(&[(result, seed)], &vars).unwrap();
    let zero = |a: &Array| Rc::new(Array::filled(&a.shape, 0.0));
    found.into_iter().zip(at).map(|(g, a)| g.unwrap_or_else(|| zero(a)).as_ref().clone()).collect()
}

fn compare(what: &str, at: &[Array], found: &[Array], scalar: &dyn Fn(&[Array]) -> f64) {
    for (n, array) in at.iter().enumerate() {
        for i in 0..array.data.len() {
            let moved = |by: f64| {
                let mut at = at.to_vec();
                at[n].data[i] += by;
                scalar(&at)
            };
            let difference = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let error = (found[n].data[i] - difference).abs();
            assert!(
                error <= 2e-8 + 2e-7 * difference.abs(),
                "{what}: operand {n}, entry {i}: {} against {difference}",
                found[n].data[i]
            );
        }
    }
}

/// First order, recorded and not, and second order.
fn witness(what: &str, at: &[Array], build: Build<'_>) {
    let first = backward(at, |tape, vars| {
        let result = build(tape, vars)?;
        total(tape, result)
    });
    compare(what, at, &first, &|at| value(at, build));
    let second = backward(at, |tape, vars| gradient_total(tape, vars, build));
    let scalar = |at: &[Array]| {
        let mut tape = Tape::new();
        let vars = variables(&mut tape, at);
        let result = gradient_total(&mut tape, &vars, build).unwrap();
        tape.array(&result).data[0]
    };
    compare(&format!("{what}, second order"), at, &second, &scalar);
}

fn numbers(shape: &[usize], seed: f64) -> Array {
    let count: usize = shape.iter().product();
    let data = (0..count).map(|i| 0.9 * (seed + 1.7 * i as f64).sin() + 0.05).collect();
    Array::new(shape.to_vec(), data).unwrap()
}

fn positive(shape: &[usize], seed: f64) -> Array {
    numbers(shape, seed).map(|x| 0.3 + 0.6 * x.abs())
}

#[test]
fn every_scalar_function() {
    for row in ROWS {
        let inside = |x: f64| {
            let (low, high) = (row.domain.low.max(-2.0), row.domain.high.min(2.0));
            let x = low + (high - low) * (0.1 + 0.8 * x);
            if row.kinks.iter().any(|k| (x - k).abs() < 0.05) { x + 0.1 } else { x }
        };
        let at = Array::new(vec![5], [0.02, 0.3, 0.55, 0.75, 0.98].map(inside).to_vec()).unwrap();
        let f: Fn1 = row.function;
        witness(row.name, &[at], &|tape, x| tape.fn1(f, &x[0]));
    }
}

#[test]
fn every_function_of_two_arguments_and_every_repetition() {
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[3], &[3]),
        (&[], &[2, 3]),
        (&[2, 3], &[]),
        (&[2, 1], &[2, 3]),
        (&[2, 3], &[1, 3]),
        (&[1, 3], &[2, 1]),
    ];
    for f in [Fn2::Add, Fn2::Sub, Fn2::Mul, Fn2::Div, Fn2::Pow, Fn2::Min, Fn2::Max] {
        for (a, b) in shapes {
            let at = [positive(a, 0.3), positive(b, 2.0).map(|x| x + 0.4)];
            witness(f.spelling(), &at, &|tape, x| tape.fn2(f, &x[0], &x[1]));
        }
    }
}

#[test]
fn every_other_operation() {
    let (m, n) = (numbers(&[2, 3], 0.1), numbers(&[3, 4], 0.5));
    let (x, y) = (numbers(&[3], 0.9), numbers(&[4], 1.3));
    witness("matrix @ matrix", &[m.clone(), n.clone()], &|t, v| t.matmul(&v[0], &v[1]));
    witness("matrix @ vector", &[m.clone(), x.clone()], &|t, v| t.matmul(&v[0], &v[1]));
    witness("outer", &[x.clone(), y.clone()], &|t, v| t.outer(&v[0], &v[1]));
    witness("transpose", std::slice::from_ref(&m), &|t, v| t.transpose(&v[0]));
    witness("reshape", std::slice::from_ref(&x), &|t, v| t.reshape(&v[0], &[1, 3]));
    witness("spread", &[numbers(&[2, 1], 0.2)], &|t, v| t.spread(&v[0], &[2, 3]));
    for shape in [vec![], vec![2, 1], vec![1, 3]] {
        for op in [Reduce::Sum, Reduce::Max, Reduce::Min] {
            witness("reduction", std::slice::from_ref(&m), &|t, v| {
                let reduced = t.reduce_to(op, &v[0], &shape)?;
                t.mul(&reduced, &reduced)
            });
        }
    }
    witness("select", &[m.clone(), numbers(&[2, 3], 3.0)], &|t, v| {
        let c = t.compare(Cmp::Gt, &v[0], &v[1])?;
        let square = t.mul(&v[0], &v[0])?;
        t.select(&c, &square, &v[1])
    });
    witness("stack", &[x.clone(), numbers(&[3], 4.0)], &|t, v| {
        let rows = t.apply(Prim::Stack(vec![v[0], v[1], v[0]]))?;
        t.mul(&rows, &rows)
    });
    witness("pick", std::slice::from_ref(&m), &|t, v| {
        let row = t.apply(Prim::Pick(v[0], 1))?;
        t.mul(&row, &row)
    });
    witness("scatter", std::slice::from_ref(&x), &|t, v| t.apply(Prim::Scatter(v[0], 1, 3)));
}

#[test]
fn norms_by_their_argument_and_order() {
    for p in [1.0, 1.5, 2.0, 3.0, 4.0] {
        witness("norm", &[numbers(&[2, 3], 0.4)], &|t, v| {
            let p = t.num(p);
            t.apply(Prim::Norm(v[0], p))
        });
    }
    witness("norm and its order", &[numbers(&[4], 0.4), Array::scalar(2.5)], &|t, v| {
        t.apply(Prim::Norm(v[0], v[1]))
    });
}

#[test]
fn gradients_at_singular_points_are_finite() {
    let at = [Array::new(vec![3], vec![0.0, 0.0, 0.0]).unwrap()];
    let builds: [(&str, Build<'_>); 5] = [
        ("norm", &|t, v| {
            let two = t.num(2.0);
            t.apply(Prim::Norm(v[0], two))
        }),
        ("sqrt", &|t, v| t.fn1(Fn1::Sqrt, &v[0])),
        ("power", &|t, v| t.power(&v[0], 0.5)),
        ("0/0", &|t, v| t.div(&v[0], &v[0])),
        ("abs", &|t, v| t.fn1(Fn1::Abs, &v[0])),
    ];
    for (what, build) in builds {
        let second = backward(&at, |tape, vars| gradient_total(tape, vars, build));
        assert!(second[0].data.iter().all(|x| x.is_finite()), "{what}");
    }
}

#[test]
fn nothing_passes_a_stop() {
    let at = [numbers(&[3], 0.2)];
    let found = backward(&at, |t, v| {
        let fixed = t.stop(&v[0])?;
        let product = t.mul(&fixed, &v[0])?;
        t.sum(&product)
    });
    assert_eq!(found[0], at[0]);
}
