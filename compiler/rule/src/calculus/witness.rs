//! Numeric witnesses of reverse mode: every operation against central differences.

use super::reverse::gradient;
use miras_base::scalar::{Cmp, Fn1, Fn2, ROWS};
use miras_base::{Dim, DimEnv};
use miras_term::{Axis, Env, Op, Place, Reduce, Role, Root, Shape, Tensor, TermId, Terms, VarId};
use std::collections::{BTreeSet, HashMap};

/// Sizes of the witnesses: dk = 3, dv = 4.
pub(crate) fn dims() -> DimEnv {
    DimEnv::from([("dk".into(), 3), ("dv".into(), 4)])
}

/// Numbers in (-1, 1) that differ from entry to entry.
pub(crate) fn spread_numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// A value for each variable: `low + (high - low) * number`, by role-independent seed.
pub(crate) fn bind(terms: &Terms, low: f64, high: f64) -> Env {
    let mut env = Env { dims: dims(), head: 1, heads: 4, layer: 2, layers: 6, vars: HashMap::new() };
    for (id, var) in terms.vars() {
        if var.role == Role::Bound {
            continue;
        }
        let shape = terms.sizes(&var.shape, &env).expect("sizes");
        let numbers = spread_numbers(u64::from(id.0) + 7, shape.iter().product());
        let data = numbers.iter().map(|x| low + (high - low) * (x + 1.0) / 2.0).collect();
        env.vars.insert(id, Tensor { shape, data });
    }
    env
}

/// The largest difference between a gradient and central differences, relative to the larger of 1 and the gradient.
pub(crate) fn gradient_error(terms: &mut Terms, scalar: TermId, wrt: &[VarId], env: &Env) -> f64 {
    let derived = gradient(terms, scalar, wrt).expect("a gradient");
    let mut worst = 0.0_f64;
    for (var, term) in wrt.iter().zip(derived) {
        assert_eq!(terms.shape(term), &terms.var(*var).shape, "shape of the gradient");
        let exact = terms.eval_one(term, env).expect("value of the gradient");
        let numeric = differences(terms, scalar, *var, env);
        for (a, b) in exact.data.iter().zip(numeric) {
            assert!(a.is_finite(), "a finite gradient");
            worst = worst.max((a - b).abs() / b.abs().max(1.0));
        }
    }
    worst
}

/// Central differences of a scalar by each entry of a variable.
pub(crate) fn differences(terms: &Terms, scalar: TermId, var: VarId, env: &Env) -> Vec<f64> {
    let step = 1e-5;
    let at = |i: usize, by: f64| {
        let mut moved = env.clone();
        if let Some(x) = moved.vars.get_mut(&var) {
            x.data[i] += by;
        }
        terms.eval_one(scalar, &moved).expect("value").data[0]
    };
    let count = env.vars[&var].data.len();
    (0..count).map(|i| (at(i, step) - at(i, -step)) / (2.0 * step)).collect()
}

struct World {
    t: Terms,
    x: VarId,
    y: VarId,
    a: VarId,
    b: VarId,
    s: VarId,
}

impl World {
    /// Vectors x [dk], y [dv]; matrices a [dv, dk], b [dk, dv]; a scalar s.
    fn new() -> World {
        let mut t = Terms::new();
        let (dk, dv) = (Dim::dk(), Dim::dv());
        let mut var = |name: &str, shape| t.add_var(name, Role::Parameter(0), shape, None);
        let x = var("x", Shape::vector(dk.clone()));
        let y = var("y", Shape::vector(dv.clone()));
        let a = var("a", Shape::matrix(dv.clone(), dk.clone()));
        let b = var("b", Shape::matrix(dk, dv));
        let s = var("s", Shape::scalar());
        World { t, x, y, a, b, s }
    }

    fn leaves(&mut self) -> [TermId; 5] {
        [self.x, self.y, self.a, self.b, self.s].map(|v| self.t.use_var(v))
    }
}

type Build = fn(&mut World) -> Vec<TermId>;

/// The name under which an operation must have a witness.
fn kind(op: &Op) -> &'static str {
    match op {
        Op::Const(_) => "const",
        Op::Size(_) => "size",
        Op::Place(_) => "place",
        Op::Var(_) => "var",
        Op::Fn1(..) => "fn1",
        Op::Fn2(..) => "fn2",
        Op::Compare(..) => "compare",
        Op::Select(..) => "select",
        Op::MatMul(..) => "matmul",
        Op::Outer(..) => "outer",
        Op::Transpose(_) => "transpose",
        Op::Row(_) => "row",
        Op::Col(_) => "col",
        Op::Flat(_) => "flat",
        Op::Spread(..) => "spread",
        Op::Reduce(..) => "reduce",
        Op::Norm(..) => "norm",
        Op::Softmax(..) => "softmax",
        Op::LogSoftmax(..) => "logsoftmax",
        Op::LayerNorm(_) => "layernorm",
        Op::InverseDeviation(_) => "inverse_deviation",
        Op::Eye(_) => "eye",
        Op::Stop(_) => "stop",
        Op::Root(_) => "root",
    }
}

/// Every kind of operation but `stop`, which has a test of its own.
const KINDS: &[&str] = &[
    "const",
    "size",
    "place",
    "var",
    "fn1",
    "fn2",
    "compare",
    "select",
    "matmul",
    "outer",
    "transpose",
    "row",
    "col",
    "flat",
    "spread",
    "reduce",
    "norm",
    "softmax",
    "logsoftmax",
    "layernorm",
    "inverse_deviation",
    "eye",
    "root",
];

const AXES: [Axis; 3] = [Axis::All, Axis::Row, Axis::Column];

/// Terms that together use every operation.
const CASES: &[(&str, Build)] = &[
    ("element-wise with repetition", |w| {
        let [x, _, a, _, s] = w.leaves();
        let (row, size) = (w.t.row(x).unwrap(), w.t.size(Dim::dk()));
        let place = w.t.place(Place::Head);
        let scaled = w.t.mul(a, row).unwrap();
        let shifted = w.t.add(scaled, s).unwrap();
        let sized = w.t.mul(shifted, size).unwrap();
        vec![w.t.sub(sized, place).unwrap()]
    }),
    ("every function of two arguments", |w| {
        let [x, _, _, _, s] = w.leaves();
        let positive = w.t.fn1(Fn1::Exp, x).unwrap();
        [Fn2::Add, Fn2::Sub, Fn2::Mul, Fn2::Div, Fn2::Pow, Fn2::Min, Fn2::Max]
            .map(|f| w.t.fn2(f, positive, s).unwrap())
            .to_vec()
    }),
    ("choice", |w| {
        let [x, _, _, _, s] = w.leaves();
        let condition = w.t.compare(Cmp::Gt, x, s).unwrap();
        let square = w.t.mul(x, x).unwrap();
        vec![w.t.select(condition, square, s).unwrap()]
    }),
    ("products", |w| {
        let [x, y, a, b, _] = w.leaves();
        let eye = w.t.eye(Dim::dv());
        let shifted = w.t.add(a, a).unwrap();
        let square = w.t.matmul(shifted, b).unwrap();
        let moved = w.t.add(square, eye).unwrap();
        let (turned, twice) = (w.t.transpose(a).unwrap(), w.t.matmul(moved, square).unwrap());
        vec![w.t.matmul(a, x).unwrap(), w.t.matmul(turned, y).unwrap(), twice, w.t.outer(y, x).unwrap()]
    }),
    ("layouts", |w| {
        let [x, y, a, _, s] = w.leaves();
        let (row, col) = (w.t.row(x).unwrap(), w.t.col(y).unwrap());
        let moved = w.t.mul(row, s).unwrap();
        let both = w.t.mul(moved, col).unwrap();
        let sums = w.t.reduce(Reduce::Sum, Axis::Row, both).unwrap();
        let squares = w.t.mul(sums, sums).unwrap();
        let shape = w.t.shape(a).clone();
        let spread = w.t.spread(squares, &shape).unwrap();
        let product = w.t.mul(spread, a).unwrap();
        let columns = w.t.reduce(Reduce::Sum, Axis::Column, product).unwrap();
        vec![w.t.flat(squares).unwrap(), w.t.flat(columns).unwrap()]
    }),
    ("reductions", |w| {
        let [_, _, a, _, _] = w.leaves();
        let mut all = Vec::new();
        for axis in AXES {
            for op in [Reduce::Sum, Reduce::Max, Reduce::Min] {
                all.push(w.t.reduce(op, axis, a).unwrap());
            }
        }
        all
    }),
    ("norms", |w| {
        let [x, _, a, _, _] = w.leaves();
        let orders = [1.0, 1.5, 2.0, 3.0, 4.0].map(|p| w.t.num(p));
        orders.iter().flat_map(|p| [w.t.norm(x, *p).unwrap(), w.t.norm(a, *p).unwrap()]).collect()
    }),
    ("softmax", |w| {
        let [x, _, a, _, _] = w.leaves();
        let mut all = vec![w.t.softmax(Axis::Row, x).unwrap(), w.t.log_softmax(Axis::All, x).unwrap()];
        for axis in AXES {
            all.push(w.t.softmax(axis, a).unwrap());
            all.push(w.t.log_softmax(axis, a).unwrap());
        }
        all
    }),
    ("layer normalisation", |w| {
        let [x, _, a, _, _] = w.leaves();
        vec![
            w.t.layer_norm(x).unwrap(),
            w.t.layer_norm(a).unwrap(),
            w.t.inverse_deviation(x).unwrap(),
            w.t.inverse_deviation(a).unwrap(),
        ]
    }),
    ("root of a monotone equation", |w| {
        // u^3 + u = x + s^2, entry by entry.
        let [x, _, _, _, s] = w.leaves();
        let unknown = w.t.add_var("u", Role::Bound, Shape::vector(Dim::dk()), None);
        let u = w.t.use_var(unknown);
        let (three, two, one) = (w.t.num(3.0), w.t.num(2.0), w.t.num(1.0));
        let cube = w.t.fn2(Fn2::Pow, u, three).unwrap();
        let left = w.t.add(cube, u).unwrap();
        let square = w.t.mul(s, s).unwrap();
        let right = w.t.add(x, square).unwrap();
        let residual = w.t.sub(left, right).unwrap();
        let squared = w.t.fn2(Fn2::Pow, u, two).unwrap();
        let tripled = w.t.mul(three, squared).unwrap();
        let slope = w.t.add(tripled, one).unwrap();
        let (low, high) = (w.t.num(-9.0), w.t.num(9.0));
        vec![w.t.solve_root(Root { unknown, residual, slope, low, high, steps: 30 }).unwrap()]
    }),
];

/// sum of weighted entries of a term, so that every entry counts differently.
fn weighted(t: &mut Terms, term: TermId) -> TermId {
    let shape = t.shape(term).clone();
    let weight = t.add_var("weight", Role::Parameter(1), shape, None);
    let weight = t.use_var(weight);
    let product = t.mul(weight, term).unwrap();
    t.sum(product).unwrap()
}

#[test]
fn every_operation_has_a_witness() {
    let mut seen = BTreeSet::new();
    for (name, build) in CASES {
        let mut w = World::new();
        for term in build(&mut w) {
            let scalar = weighted(&mut w.t, term);
            for id in w.t.reachable(&[scalar]) {
                seen.insert(kind(w.t.op(id)));
            }
            let wrt = [w.x, w.y, w.a, w.b, w.s];
            let env = bind(&w.t, -1.3, 1.7);
            let error = gradient_error(&mut w.t, scalar, &wrt, &env);
            assert!(error < 1e-7, "{name}: {error:e}");
        }
    }
    let rows = ROWS.iter().filter(|r| row_holds(r.function)).count();
    assert_eq!(rows, ROWS.len());
    seen.insert("fn1");
    seen.insert("const");
    assert_eq!(seen, KINDS.iter().copied().collect());
}

/// Whether a function of one argument passes the witness at points inside its domain.
fn row_holds(f: Fn1) -> bool {
    let mut w = World::new();
    let x = w.t.use_var(w.x);
    let applied = w.t.fn1(f, x).unwrap();
    let scalar = weighted(&mut w.t, applied);
    let env = bind(&w.t, 0.2, 0.8);
    gradient_error(&mut w.t, scalar, &[w.x], &env) < 1e-7
}

#[test]
fn stop_passes_nothing() {
    let mut w = World::new();
    let x = w.t.use_var(w.x);
    let stopped = w.t.stop(x).unwrap();
    let product = w.t.mul(x, stopped).unwrap();
    let scalar = w.t.sum(product).unwrap();
    let derived = gradient(&mut w.t, scalar, &[w.x]).unwrap()[0];
    assert_eq!(derived, stopped);
}

#[test]
fn a_norm_has_no_derivative_by_its_order() {
    let mut w = World::new();
    let [x, _, _, _, s] = w.leaves();
    let norm = w.t.norm(x, s).unwrap();
    let refusal = gradient(&mut w.t, norm, &[w.s]).unwrap_err();
    assert_eq!(refusal.code, miras_base::diagnostic::code::NO_DERIVATIVE);
}

#[test]
fn singular_points_have_finite_slopes() {
    let mut w = World::new();
    let x = w.t.use_var(w.x);
    for p in [1.0, 1.5, 2.0, 3.0] {
        let p = w.t.num(p);
        let norm = w.t.norm(x, p).unwrap();
        let derived = gradient(&mut w.t, norm, &[w.x]).unwrap()[0];
        let mut env = bind(&w.t, 0.0, 1.0);
        env.vars.insert(w.x, Tensor::vector(vec![0.0; 3]));
        assert_eq!(w.t.eval_one(derived, &env).unwrap().data, vec![0.0; 3]);
    }
}
