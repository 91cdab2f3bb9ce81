//! Terms performed as operations.

use crate::array::Array;
use crate::ops::{Ops, Prim};
use crate::root;
use crate::trouble::{Made, Trouble};
use miras_base::scalar::Fn1;
use miras_base::{Dim, DimEnv};
use miras_term::{Axis, Op, Place, Reduce, RootId, Shape, TermId, Terms, VarId};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// docs/mathematics.md: eps of layernorm.
const EPS: f64 = 1e-5;

/// What is the same for all tokens of a head.
pub(crate) struct Scope<'a> {
    pub terms: &'a Terms,
    pub dims: &'a DimEnv,
    pub head: u64,
    pub heads: u64,
    pub layer: u64,
    pub layers: u64,
}

/// Values of variables.
#[derive(Clone)]
pub(crate) struct Env<V> {
    slots: Vec<Option<V>>,
}

/// Some terms, in the order in which they can be performed.
pub(crate) struct Program {
    order: Vec<TermId>,
    targets: Vec<TermId>,
    /// What must vanish at each root, and what that is made of.
    roots: HashMap<RootId, Program>,
}

impl<V: Clone> Env<V> {
    pub fn new(terms: &Terms) -> Env<V> {
        Env { slots: vec![None; terms.vars().count()] }
    }

    pub fn bind(&mut self, var: VarId, value: V) {
        if let Some(slot) = self.slots.get_mut(var.0 as usize) {
            *slot = Some(value);
        }
    }

    pub fn bind_all(&mut self, vars: impl IntoIterator<Item = VarId>, values: &[V]) {
        for (var, value) in vars.into_iter().zip(values) {
            self.bind(var, value.clone());
        }
    }

    pub fn get(&self, var: VarId) -> Option<&V> {
        self.slots.get(var.0 as usize).and_then(|v| v.as_ref())
    }

    pub fn map<U>(&self, mut f: impl FnMut(&V) -> U) -> Env<U> {
        Env { slots: self.slots.iter().map(|v| v.as_ref().map(&mut f)).collect() }
    }
}

impl Scope<'_> {
    pub fn sizes(&self, shape: &Shape) -> Made<Vec<usize>> {
        shape.0.iter().map(|d| self.size(d)).collect()
    }

    fn size(&self, dim: &Dim) -> Made<usize> {
        let size = dim.eval(self.dims).and_then(|n| usize::try_from(n).ok());
        size.ok_or_else(|| Trouble::bug(format!("the size {} is not known", dim.formula())))
    }

    fn place(&self, place: Place) -> f64 {
        match place {
            Place::Head => self.head as f64,
            Place::Heads => self.heads as f64,
            Place::Layer => self.layer as f64,
            Place::Layers => self.layers as f64,
        }
    }
}

impl Program {
    pub fn new(terms: &Terms, targets: &[TermId]) -> Program {
        let mut seen = BTreeSet::new();
        let mut open = targets.to_vec();
        let mut roots = HashMap::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            if let Op::Root(n) = terms.op(id) {
                let root = terms.root(*n);
                roots.insert(*n, Program::new(terms, &[root.residual]));
                open.extend([root.low, root.high]);
            } else {
                open.extend(terms.operands(id));
            }
        }
        Program { order: seen.into_iter().collect(), targets: targets.to_vec(), roots }
    }

    /// The values of the targets.
    pub fn run<O: Ops>(&self, scope: &Scope<'_>, ops: &mut O, env: &Env<O::Value>) -> Made<Vec<O::Value>> {
        let mut values: HashMap<TermId, O::Value> = HashMap::with_capacity(self.order.len());
        for id in &self.order {
            let value = self.perform(scope, ops, env, *id, &values)?;
            values.insert(*id, value);
        }
        self.targets.iter().map(|t| of(&values, *t)).collect()
    }

    /// [`Program::run`] for one target.
    pub fn run_one<O: Ops>(&self, scope: &Scope<'_>, ops: &mut O, env: &Env<O::Value>) -> Made<O::Value> {
        self.run(scope, ops, env)?.pop().ok_or_else(|| Trouble::bug("a program without targets"))
    }

    fn perform<O: Ops>(
        &self,
        scope: &Scope<'_>,
        ops: &mut O,
        env: &Env<O::Value>,
        id: TermId,
        values: &HashMap<TermId, O::Value>,
    ) -> Made<O::Value> {
        let terms = scope.terms;
        let get = |t: &TermId| of(values, *t);
        match terms.op(id) {
            Op::Const(n) => Ok(ops.num(n.0)),
            Op::Size(dim) => Ok(ops.num(scope.size(dim)? as f64)),
            Op::Place(place) => Ok(ops.num(scope.place(*place))),
            Op::Var(v) => {
                let unbound =
                    || Trouble::limit(format!("`{}` has no value where it is needed", terms.var(*v).name));
                env.get(*v).cloned().ok_or_else(unbound)
            }
            Op::Fn1(f, a) => ops.fn1(*f, &get(a)?),
            Op::Fn2(f, a, b) => ops.fn2(*f, &get(a)?, &get(b)?),
            Op::Compare(c, a, b) => ops.compare(*c, &get(a)?, &get(b)?),
            Op::Select(c, a, b) => ops.select(&get(c)?, &get(a)?, &get(b)?),
            Op::MatMul(a, b) => ops.matmul(&get(a)?, &get(b)?),
            Op::Outer(a, b) => ops.outer(&get(a)?, &get(b)?),
            Op::Transpose(a) => ops.transpose(&get(a)?),
            Op::Row(a) | Op::Col(a) | Op::Flat(a) => ops.reshape(&get(a)?, &scope.sizes(terms.shape(id))?),
            Op::Spread(a, shape) => ops.spread(&get(a)?, &scope.sizes(shape)?),
            Op::Reduce(op, axis, a) => reduce(ops, *op, *axis, &get(a)?),
            Op::Norm(x, p) => ops.apply(Prim::Norm(get(x)?, get(p)?)),
            Op::Softmax(axis, a) => softmax(ops, *axis, &get(a)?),
            Op::LogSoftmax(axis, a) => log_softmax(ops, *axis, &get(a)?),
            Op::LayerNorm(a) => {
                let (centred, inverse) = moments(ops, &get(a)?)?;
                ops.mul(&centred, &inverse)
            }
            Op::InverseDeviation(a) => Ok(moments(ops, &get(a)?)?.1),
            Op::Eye(n) => Ok(ops.constant(Rc::new(Array::eye(scope.size(n)?)))),
            Op::Stop(a) => ops.stop(&get(a)?),
            Op::Root(n) => {
                let root = terms.root(*n);
                let residual =
                    self.roots.get(n).ok_or_else(|| Trouble::bug("a root without its equation"))?;
                let shape = scope.sizes(&terms.var(root.unknown).shape)?;
                let ends = [ops.spread(&get(&root.low)?, &shape)?, ops.spread(&get(&root.high)?, &shape)?];
                root::solve(scope, ops, env, residual, root.unknown, &ends)
            }
        }
    }
}

fn of<V: Clone>(values: &HashMap<TermId, V>, id: TermId) -> Made<V> {
    values.get(&id).cloned().ok_or_else(|| Trouble::bug("a term is used before it has a value"))
}

/// The shape that a reduction along the axes leaves.
fn reduced(shape: &[usize], axis: Axis) -> Vec<usize> {
    match (axis, shape) {
        (Axis::All, _) | (_, [] | [_]) => Vec::new(),
        (Axis::Row, [m, ..]) => vec![*m, 1],
        (Axis::Column, [_, n, ..]) => vec![1, *n],
    }
}

fn reduce<O: Ops>(ops: &mut O, op: Reduce, axis: Axis, a: &O::Value) -> Made<O::Value> {
    let shape = reduced(&ops.array(a).shape, axis);
    ops.reduce_to(op, a, &shape)
}

/// exp(x - max) / sum of the same; the subtracted maximum cancels, so nothing is differentiated through it.
pub(crate) fn softmax<O: Ops>(ops: &mut O, axis: Axis, x: &O::Value) -> Made<O::Value> {
    let shifted = below_zero(ops, axis, x)?;
    let powers = ops.fn1(Fn1::Exp, &shifted)?;
    let total = reduce(ops, Reduce::Sum, axis, &powers)?;
    ops.div(&powers, &total)
}

fn log_softmax<O: Ops>(ops: &mut O, axis: Axis, x: &O::Value) -> Made<O::Value> {
    let shifted = below_zero(ops, axis, x)?;
    let powers = ops.fn1(Fn1::Exp, &shifted)?;
    let total = reduce(ops, Reduce::Sum, axis, &powers)?;
    let log = ops.fn1(Fn1::Log, &total)?;
    ops.sub(&shifted, &log)
}

fn below_zero<O: Ops>(ops: &mut O, axis: Axis, x: &O::Value) -> Made<O::Value> {
    let largest = reduce(ops, Reduce::Max, axis, x)?;
    let largest = ops.stop(&largest)?;
    ops.sub(x, &largest)
}

/// x - mean and 1 / sqrt(variance + eps) along the last axis.
fn moments<O: Ops>(ops: &mut O, x: &O::Value) -> Made<(O::Value, O::Value)> {
    let count = ops.array(x).grid().1 as f64;
    let total = reduce(ops, Reduce::Sum, Axis::Row, x)?;
    let mean = ops.scale(1.0 / count, &total)?;
    let centred = ops.sub(x, &mean)?;
    let squares = ops.mul(&centred, &centred)?;
    let spread = reduce(ops, Reduce::Sum, Axis::Row, &squares)?;
    let variance = ops.scale(1.0 / count, &spread)?;
    let eps = ops.num(EPS);
    let safe = ops.add(&variance, &eps)?;
    Ok((centred, ops.power(&safe, -0.5)?))
}
