//! The arena of terms and what a term can be.

use crate::shape::{Constraint, Shape, Type};
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_base::{Dim, Span};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// A term of a [`Terms`] arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(pub u32);

/// A variable of a [`Terms`] arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// A root of a [`Terms`] arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RootId(pub u32);

/// A float64 constant, equal by bits (0 and -0 differ).
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64);

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}
impl Eq for Number {}
impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// Where in the model a layer sits; numbers known when it runs. All count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The head at hand.
    Head,
    /// Number of heads.
    Heads,
    /// The layer at hand.
    Layer,
    /// Number of layers.
    Layers,
}

/// Ways to reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// Sum.
    Sum,
    /// Largest entry.
    Max,
    /// Smallest entry.
    Min,
}

/// The axes that a reduction or a normalisation runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// All entries of the tensor; a reduction gives a scalar.
    All,
    /// Along each row of a matrix (over its columns), or along a vector. A reduced matrix is [rows, 1],
    /// a reduced vector a scalar.
    Row,
    /// Along each column of a matrix (over its rows). A reduced matrix is [1, cols].
    Column,
}

/// What a term computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A number.
    Const(Number),
    /// The size of an axis, as a number.
    Size(Dim),
    /// A number of the layer's place in the model.
    Place(Place),
    /// A variable.
    Var(VarId),
    /// A function of the table, entry by entry.
    Fn1(Fn1, TermId),
    /// A function of two arguments, entry by entry, with repetition of scalars and size-1 axes.
    Fn2(Fn2, TermId, TermId),
    /// A comparison, entry by entry; gives truth values.
    Compare(Cmp, TermId, TermId),
    /// `if c then a else b`, entry by entry.
    Select(TermId, TermId, TermId),
    /// [m, n] @ [n] = [m]; [m, n] @ [n, p] = [m, p].
    MatMul(TermId, TermId),
    /// [m], [n] -> [m, n].
    Outer(TermId, TermId),
    /// [m, n] -> [n, m].
    Transpose(TermId),
    /// A vector [n] laid as one row [1, n]: one value for each column.
    Row(TermId),
    /// A vector [n] laid as one column [n, 1]: one value for each row.
    Col(TermId),
    /// Row [1, n] or column [n, 1] back to the vector [n].
    Flat(TermId),
    /// A scalar, or a tensor with size-1 axes, repeated to a shape.
    Spread(TermId, Shape),
    /// A reduction.
    Reduce(Reduce, Axis, TermId),
    /// (sum |x|^p)^(1/p) over all entries; p is a scalar term. A scalar.
    Norm(TermId, TermId),
    /// exp(x - max) / sum of the same, along the axes.
    Softmax(Axis, TermId),
    /// x - max - log(sum exp(x - max)), along the axes.
    LogSoftmax(Axis, TermId),
    /// (x - mean) / sqrt(var + 1e-5) along the last axis, biased variance (docs/mathematics.md).
    LayerNorm(TermId),
    /// 1 / sqrt(var + 1e-5) along the last axis; shaped like a reduction along rows.
    InverseDeviation(TermId),
    /// The identity matrix.
    Eye(Dim),
    /// The same value; no outer gradient passes.
    Stop(TermId),
    /// The solution of an equation; see [`Root`].
    Root(RootId),
}

/// The value of `unknown` at which `residual` is 0, entry by entry of the unknown's shape.
///
/// `residual` is strictly monotone in the unknown between `low` and `high`. Backends find the root by
/// `steps` safeguarded Newton steps from the middle of the bracket; its gradient is that of the exact
/// root, by the implicit function theorem: d unknown = -(d residual) / slope.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Root {
    /// The variable that `residual` and `slope` use for the unknown.
    pub unknown: VarId,
    /// What must be 0; has the unknown's shape.
    pub residual: TermId,
    /// Its derivative by the unknown.
    pub slope: TermId,
    /// Below the root.
    pub low: TermId,
    /// Above the root.
    pub high: TermId,
    /// Number of safeguarded Newton steps.
    pub steps: u32,
}

/// What a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// q_t, [dk].
    Query,
    /// k_t, [dk].
    Key,
    /// v_t, [dv].
    Value,
    /// y, the memory's answer, in a bias.
    Answer,
    /// x, the argument of the memory's `read`.
    ReadArgument,
    /// The n-th weight of the memory as it is before the step (W_{t-1}).
    Weight(u32),
    /// The n-th weight as it is after the step: the unknown of a retention's objective, W'.
    NewWeight(u32),
    /// What the state carries for the n-th weight where that is not the weight (theta or A).
    Dual(u32),
    /// The same after the step, A'.
    NewDual(u32),
    /// u, what the algorithm adds to the n-th weight.
    Update(u32),
    /// The gradient of the bias by the n-th weight, taken at the algorithm's n-th point.
    Gradient {
        /// Index into the algorithm's points.
        point: u32,
        /// Index of the weight.
        weight: u32,
    },
    /// What retention makes of the n-th weight when u = 0.
    Retained(u32),
    /// The n-th state of the algorithm before the step.
    State(u32),
    /// The same after the step.
    NewState(u32),
    /// The n-th parameter of the layer: a gate, an input, a trained or a slow tensor.
    Parameter(u32),
    /// The unknown of a [`Root`], or another bound variable.
    Bound,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Var {
    /// Its name in formulas: `k`, `W[1]`, `alpha`.
    pub name: String,
    /// What it stands for.
    pub role: Role,
    /// Its shape.
    pub shape: Shape,
    /// Where the program declares it.
    pub span: Option<Span>,
}

/// An append-only arena of hash-consed terms.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    pub(crate) ops: Vec<Op>,
    pub(crate) types: Vec<Type>,
    index: HashMap<Op, TermId>,
    vars: Vec<Var>,
    roots: Vec<Root>,
    constraints: Vec<Constraint>,
}

impl Terms {
    /// An empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a term computes.
    pub fn op(&self, id: TermId) -> &Op {
        &self.ops[id.0 as usize]
    }

    /// A term's type.
    pub fn ty(&self, id: TermId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// A term's shape.
    pub fn shape(&self, id: TermId) -> &Shape {
        &self.ty(id).shape
    }

    /// A variable's description.
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.0 as usize]
    }

    /// All variables, in the order of their ids.
    pub fn vars(&self) -> impl Iterator<Item = (VarId, &Var)> {
        self.vars.iter().enumerate().map(|(i, v)| (VarId(i as u32), v))
    }

    /// A root's description.
    pub fn root(&self, id: RootId) -> &Root {
        &self.roots[id.0 as usize]
    }

    /// Number of terms.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The equalities of sizes met so far, each once, in the order they were met.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// Declares a variable.
    pub fn add_var(
        &mut self,
        name: impl Into<String>,
        role: Role,
        shape: Shape,
        span: Option<Span>,
    ) -> VarId {
        let id = VarId(self.vars.len() as u32);
        self.vars.push(Var { name: name.into(), role, shape, span });
        id
    }

    pub(crate) fn add_constraint(&mut self, c: Constraint) {
        let flipped = Constraint { left: c.right.clone(), right: c.left.clone() };
        if !self.constraints.contains(&c) && !self.constraints.contains(&flipped) {
            self.constraints.push(c);
        }
    }

    pub(crate) fn add_root(&mut self, root: Root) -> RootId {
        if let Some(i) = self.roots.iter().position(|r| *r == root) {
            return RootId(i as u32);
        }
        self.roots.push(root);
        RootId(self.roots.len() as u32 - 1)
    }

    /// The term of an operation whose type is known; an existing one where there is one.
    pub(crate) fn intern(&mut self, op: Op, ty: Type) -> TermId {
        if let Some(id) = self.index.get(&op) {
            return *id;
        }
        let id = TermId(self.ops.len() as u32);
        self.ops.push(op.clone());
        self.types.push(ty);
        self.index.insert(op, id);
        id
    }
}
