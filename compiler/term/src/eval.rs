//! Float64 meaning of terms: a plain interpreter for witnesses, constants and tests.

use crate::arena::{Axis, Op, Place, Reduce, Role, Root, TermId, Terms, VarId};
use crate::shape::Shape;
use miras_base::{Dim, DimEnv};
use std::collections::HashMap;
use std::fmt;

/// A dense float64 tensor, rows first. Truth values are 1 and 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Sizes of the axes.
    pub shape: Vec<usize>,
    /// Entries.
    pub data: Vec<f64>,
}

/// What terms are evaluated in.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// Sizes of `dk`, `dv`.
    pub dims: DimEnv,
    /// Head, heads, layer, layers.
    pub head: u64,
    /// Number of heads.
    pub heads: u64,
    /// The layer's number.
    pub layer: u64,
    /// Number of layers.
    pub layers: u64,
    /// Values of variables.
    pub vars: HashMap<VarId, Tensor>,
}

/// Why a term has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// A variable has no value in the environment.
    Unbound(String),
    /// A size is not known or too large.
    Size(String),
    /// Two tensors do not fit; a constraint of sizes is broken.
    Shape(String),
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Unbound(name) => write!(f, "`{name}` has no value"),
            EvalError::Size(dim) => write!(f, "the size {dim} is not known"),
            EvalError::Shape(what) => write!(f, "shapes do not fit: {what}"),
        }
    }
}

impl std::error::Error for EvalError {}

impl Tensor {
    /// A scalar.
    pub fn scalar(x: f64) -> Tensor {
        Tensor { shape: vec![], data: vec![x] }
    }

    /// A vector.
    pub fn vector(data: Vec<f64>) -> Tensor {
        Tensor { shape: vec![data.len()], data }
    }

    /// A matrix with `rows` rows; `data` holds rows * cols entries.
    pub fn matrix(rows: usize, cols: usize, data: Vec<f64>) -> Tensor {
        debug_assert_eq!(rows * cols, data.len());
        Tensor { shape: vec![rows, cols], data }
    }

    /// The entry at broadcast indices.
    fn at(&self, index: &[usize]) -> f64 {
        if self.shape.is_empty() {
            return self.data[0];
        }
        let mut flat = 0;
        for (i, n) in index.iter().zip(&self.shape) {
            flat = flat * n + if *n == 1 { 0 } else { *i };
        }
        self.data[flat]
    }

    fn rows_cols(&self) -> (usize, usize) {
        match self.shape.as_slice() {
            [] => (1, 1),
            [n] => (1, *n),
            [m, n, ..] => (*m, *n),
        }
    }
}

impl Terms {
    /// The values of these terms.
    ///
    /// Terms that depend on the unknown of a [`Root`] have no value outside its equation; they are
    /// passed over and evaluated where the root is solved.
    pub fn eval(&self, terms: &[TermId], env: &Env) -> Result<Vec<Tensor>, EvalError> {
        let mut values: HashMap<TermId, Tensor> = HashMap::new();
        for id in self.reachable(terms) {
            if let Op::Var(v) = self.op(id)
                && self.var(*v).role == Role::Bound
                && !env.vars.contains_key(v)
            {
                continue;
            }
            let ready = match self.op(id) {
                Op::Root(root) => {
                    [self.root(*root).low, self.root(*root).high].iter().all(|o| values.contains_key(o))
                }
                _ => self.operands(id).iter().all(|o| values.contains_key(o)),
            };
            if ready {
                let value = self.eval_op(id, env, &values)?;
                values.insert(id, value);
            }
        }
        let missing = || EvalError::Unbound("an unknown outside its equation".into());
        terms.iter().map(|t| values.get(t).cloned().ok_or_else(missing)).collect()
    }

    /// [`Terms::eval`] for one term.
    pub fn eval_one(&self, term: TermId, env: &Env) -> Result<Tensor, EvalError> {
        Ok(self.eval(&[term], env)?.remove(0))
    }

    /// The sizes of a shape.
    pub fn sizes(&self, shape: &Shape, env: &Env) -> Result<Vec<usize>, EvalError> {
        shape.0.iter().map(|d| size_of(d, env)).collect()
    }

    fn eval_op(&self, id: TermId, env: &Env, values: &HashMap<TermId, Tensor>) -> Result<Tensor, EvalError> {
        let get = |t: &TermId| &values[t];
        match self.op(id) {
            Op::Const(n) => Ok(Tensor::scalar(n.0)),
            Op::Size(dim) => Ok(Tensor::scalar(size_of(dim, env)? as f64)),
            Op::Place(place) => Ok(Tensor::scalar(place_of(*place, env) as f64)),
            Op::Var(v) => {
                let name = || EvalError::Unbound(self.var(*v).name.clone());
                env.vars.get(v).cloned().ok_or_else(name)
            }
            Op::Fn1(f, a) => Ok(map(get(a), |x| f.eval(x))),
            Op::Fn2(f, a, b) => zip(get(a), get(b), |x, y| f.eval(x, y)),
            Op::Compare(c, a, b) => zip(get(a), get(b), |x, y| if c.eval(x, y) { 1.0 } else { 0.0 }),
            Op::Select(c, a, b) => select(get(c), get(a), get(b)),
            Op::MatMul(a, b) => matmul(get(a), get(b)),
            Op::Outer(a, b) => Ok(outer(get(a), get(b))),
            Op::Transpose(a) => Ok(transpose(get(a))),
            Op::Row(a) => Ok(Tensor { shape: vec![1, get(a).data.len()], data: get(a).data.clone() }),
            Op::Col(a) => Ok(Tensor { shape: vec![get(a).data.len(), 1], data: get(a).data.clone() }),
            Op::Flat(a) => Ok(Tensor::vector(get(a).data.clone())),
            Op::Spread(a, shape) => {
                let sizes = self.sizes(shape, env)?;
                let zeros = Tensor { data: vec![0.0; sizes.iter().product()], shape: sizes };
                zip(get(a), &zeros, |x, _| x)
            }
            Op::Reduce(op, axis, a) => Ok(reduce(*op, *axis, get(a))),
            Op::Norm(x, p) => Ok(Tensor::scalar(norm(&get(x).data, get(p).data[0]))),
            Op::Softmax(axis, a) => along(*axis, get(a), softmax),
            Op::LogSoftmax(axis, a) => along(*axis, get(a), log_softmax),
            Op::LayerNorm(a) => along(Axis::Row, get(a), layer_norm),
            Op::InverseDeviation(a) => Ok(inverse_deviation(get(a))),
            Op::Eye(n) => {
                let n = size_of(n, env)?;
                Ok(Tensor::matrix(
                    n,
                    n,
                    (0..n * n).map(|i| if i % (n + 1) == 0 { 1.0 } else { 0.0 }).collect(),
                ))
            }
            Op::Stop(a) => Ok(get(a).clone()),
            Op::Root(root) => {
                self.solve(self.root(*root), env, get(&self.root(*root).low), get(&self.root(*root).high))
            }
        }
    }

    /// Finds a root by bisection to the last bit that float64 has: slow, sure, and independent of the
    /// Newton steps that backends take.
    fn solve(&self, root: &Root, env: &Env, low: &Tensor, high: &Tensor) -> Result<Tensor, EvalError> {
        let sizes = self.sizes(&self.var(root.unknown).shape, env)?;
        let zeros = Tensor { data: vec![0.0; sizes.iter().product()], shape: sizes };
        let (mut low, mut high) = (zip(low, &zeros, |x, _| x)?, zip(high, &zeros, |x, _| x)?);
        let mut inner = env.clone();
        let mut rising = None;
        for _ in 0..200 {
            let middle = zip(&low, &high, |a, b| a + (b - a) / 2.0)?;
            if rising.is_none() {
                inner.vars.insert(root.unknown, high.clone());
                rising = Some(self.eval_one(root.residual, &inner)?);
            }
            inner.vars.insert(root.unknown, middle.clone());
            let at_middle = self.eval_one(root.residual, &inner)?;
            let up = rising.as_ref().unwrap_or(&at_middle);
            for i in 0..middle.data.len() {
                let same_side = (at_middle.data[i] > 0.0) == (up.data[i] > 0.0);
                if same_side { high.data[i] = middle.data[i] } else { low.data[i] = middle.data[i] }
            }
        }
        zip(&low, &high, |a, b| a + (b - a) / 2.0)
    }
}

fn size_of(dim: &Dim, env: &Env) -> Result<usize, EvalError> {
    dim.eval(&env.dims).and_then(|n| usize::try_from(n).ok()).ok_or_else(|| EvalError::Size(dim.formula()))
}

fn place_of(place: Place, env: &Env) -> u64 {
    match place {
        Place::Head => env.head,
        Place::Heads => env.heads,
        Place::Layer => env.layer,
        Place::Layers => env.layers,
    }
}

fn map(a: &Tensor, f: impl Fn(f64) -> f64) -> Tensor {
    Tensor { shape: a.shape.clone(), data: a.data.iter().map(|x| f(*x)).collect() }
}

fn joined(a: &[usize], b: &[usize]) -> Result<Vec<usize>, EvalError> {
    if a.is_empty() || b.is_empty() {
        return Ok(if a.is_empty() { b.to_vec() } else { a.to_vec() });
    }
    let fits = a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x == y || *x == 1 || *y == 1);
    if !fits {
        return Err(EvalError::Shape(format!("{a:?} and {b:?}")));
    }
    Ok(a.iter().zip(b).map(|(x, y)| if *x == 1 { *y } else { *x }).collect())
}

fn build(shape: Vec<usize>, f: impl Fn(&[usize]) -> f64) -> Tensor {
    let count: usize = shape.iter().product();
    let mut index = vec![0; shape.len()];
    let mut data = Vec::with_capacity(count);
    for flat in 0..count {
        let mut rest = flat;
        for (i, n) in index.iter_mut().zip(&shape).rev() {
            *i = rest % n;
            rest /= n;
        }
        data.push(f(&index));
    }
    Tensor { shape, data }
}

fn zip(a: &Tensor, b: &Tensor, f: impl Fn(f64, f64) -> f64) -> Result<Tensor, EvalError> {
    let shape = joined(&a.shape, &b.shape)?;
    Ok(build(shape, |i| f(a.at(i), b.at(i))))
}

fn select(c: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor, EvalError> {
    let shape = joined(&joined(&a.shape, &b.shape)?, &c.shape)?;
    Ok(build(shape, |i| if c.at(i) != 0.0 { a.at(i) } else { b.at(i) }))
}

fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor, EvalError> {
    let (m, n) = a.rows_cols();
    let p = if b.shape.len() == 2 { b.shape[1] } else { 1 };
    if b.shape.first() != Some(&n) {
        return Err(EvalError::Shape(format!("{:?} @ {:?}", a.shape, b.shape)));
    }
    let entry = |i: usize, j: usize| (0..n).map(|l| a.data[i * n + l] * b.data[l * p + j]).sum();
    let data = (0..m * p).map(|f| entry(f / p, f % p)).collect();
    Ok(Tensor { shape: if b.shape.len() == 2 { vec![m, p] } else { vec![m] }, data })
}

fn outer(a: &Tensor, b: &Tensor) -> Tensor {
    let data = a.data.iter().flat_map(|x| b.data.iter().map(move |y| x * y)).collect();
    Tensor { shape: vec![a.data.len(), b.data.len()], data }
}

fn transpose(a: &Tensor) -> Tensor {
    let (m, n) = a.rows_cols();
    Tensor::matrix(n, m, (0..m * n).map(|f| a.data[(f % m) * n + f / m]).collect())
}

fn fold(op: Reduce, xs: impl Iterator<Item = f64>) -> f64 {
    match op {
        Reduce::Sum => xs.sum(),
        Reduce::Max => xs.fold(f64::NEG_INFINITY, f64::max),
        Reduce::Min => xs.fold(f64::INFINITY, f64::min),
    }
}

fn reduce(op: Reduce, axis: Axis, a: &Tensor) -> Tensor {
    let (m, n) = a.rows_cols();
    match (axis, a.shape.len()) {
        (Axis::All, _) | (_, 0 | 1) => Tensor::scalar(fold(op, a.data.iter().copied())),
        (Axis::Row, _) => Tensor::matrix(
            m,
            1,
            (0..m).map(|i| fold(op, a.data[i * n..(i + 1) * n].iter().copied())).collect(),
        ),
        (Axis::Column, _) => {
            Tensor::matrix(1, n, (0..n).map(|j| fold(op, (0..m).map(|i| a.data[i * n + j]))).collect())
        }
    }
}

/// The p-norm, scaled by the largest entry so that no power over- or underflows.
fn norm(x: &[f64], p: f64) -> f64 {
    let largest = x.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    largest * x.iter().map(|x| (x.abs() / largest).powf(p)).sum::<f64>().powf(1.0 / p)
}

fn along(axis: Axis, a: &Tensor, f: impl Fn(&[f64]) -> Vec<f64>) -> Result<Tensor, EvalError> {
    let (_, n) = a.rows_cols();
    match (axis, a.shape.len()) {
        (Axis::All, _) | (_, 0 | 1) => Ok(Tensor { shape: a.shape.clone(), data: f(&a.data) }),
        (Axis::Row, _) => {
            let rows = a.data.chunks(n.max(1)).flat_map(f).collect();
            Ok(Tensor { shape: a.shape.clone(), data: rows })
        }
        (Axis::Column, _) => Ok(transpose(&along(Axis::Row, &transpose(a), f)?)),
    }
}

fn softmax(x: &[f64]) -> Vec<f64> {
    log_softmax(x).into_iter().map(f64::exp).collect()
}

fn log_softmax(x: &[f64]) -> Vec<f64> {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total = largest + x.iter().map(|x| (x - largest).exp()).sum::<f64>().ln();
    x.iter().map(|x| x - total).collect()
}

/// docs/mathematics.md: eps of layernorm.
const EPS: f64 = 1e-5;

fn moments(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    (mean, 1.0 / (variance + EPS).sqrt())
}

fn layer_norm(x: &[f64]) -> Vec<f64> {
    let (mean, inverse) = moments(x);
    x.iter().map(|x| (x - mean) * inverse).collect()
}

fn inverse_deviation(a: &Tensor) -> Tensor {
    let (m, n) = a.rows_cols();
    let rows: Vec<f64> = a.data.chunks(n.max(1)).map(|r| moments(r).1).collect();
    if a.shape.len() == 2 {
        Tensor::matrix(m, 1, rows)
    } else {
        Tensor::scalar(rows.first().copied().unwrap_or(0.0))
    }
}
