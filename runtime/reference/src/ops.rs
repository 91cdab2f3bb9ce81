//! The operations that everything is made of, and two ways to perform them: recorded on a tape
//! ([`crate::tape::Tape`]) or at once ([`Eager`]).
//!
//! The rules of reverse mode ([`crate::pull`]) are written once over [`Ops`], so the inner gradient (which
//! must itself be differentiable, hence recorded) and the outer gradient (which need not be) share them.

use crate::array::Array;
use crate::trouble::Made;
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_term::Reduce;
use std::rc::Rc;

/// One operation on values of type `V`.
#[derive(Clone, Debug)]
pub(crate) enum Prim<V> {
    Fn1(Fn1, V),
    Fn2(Fn2, V, V),
    Compare(Cmp, V, V),
    Select(V, V, V),
    MatMul(V, V),
    Outer(V, V),
    Transpose(V),
    Reshape(V, Vec<usize>),
    Spread(V, Vec<usize>),
    /// A reduction over every axis that the shape lacks or has with size 1.
    ReduceTo(Reduce, V, Vec<usize>),
    /// The p-norm of the first, p the second.
    Norm(V, V),
    /// Equal shapes along a new first axis.
    Stack(Vec<V>),
    /// The n-th entry along the first axis.
    Pick(V, usize),
    /// Zeros but for the n-th of `count` entries along a new first axis.
    Scatter(V, usize, usize),
    /// The same value under a name of its own, so that it can be differentiated by.
    Alias(V),
    /// The same value; nothing is differentiated through it.
    Stop(V),
}

impl<V> Prim<V> {
    /// The operands, in order.
    pub fn operands(&self) -> Vec<&V> {
        match self {
            Prim::Fn1(_, a)
            | Prim::Transpose(a)
            | Prim::Reshape(a, _)
            | Prim::Spread(a, _)
            | Prim::ReduceTo(_, a, _)
            | Prim::Pick(a, _)
            | Prim::Scatter(a, _, _)
            | Prim::Alias(a)
            | Prim::Stop(a) => vec![a],
            Prim::Fn2(_, a, b)
            | Prim::Compare(_, a, b)
            | Prim::MatMul(a, b)
            | Prim::Outer(a, b)
            | Prim::Norm(a, b) => {
                vec![a, b]
            }
            Prim::Select(c, a, b) => vec![c, a, b],
            Prim::Stack(items) => items.iter().collect(),
        }
    }

    /// The same operation on other values.
    pub fn map<U>(&self, mut f: impl FnMut(&V) -> U) -> Prim<U> {
        match self {
            Prim::Fn1(g, a) => Prim::Fn1(*g, f(a)),
            Prim::Fn2(g, a, b) => Prim::Fn2(*g, f(a), f(b)),
            Prim::Compare(c, a, b) => Prim::Compare(*c, f(a), f(b)),
            Prim::Select(c, a, b) => Prim::Select(f(c), f(a), f(b)),
            Prim::MatMul(a, b) => Prim::MatMul(f(a), f(b)),
            Prim::Outer(a, b) => Prim::Outer(f(a), f(b)),
            Prim::Transpose(a) => Prim::Transpose(f(a)),
            Prim::Reshape(a, s) => Prim::Reshape(f(a), s.clone()),
            Prim::Spread(a, s) => Prim::Spread(f(a), s.clone()),
            Prim::ReduceTo(op, a, s) => Prim::ReduceTo(*op, f(a), s.clone()),
            Prim::Norm(a, p) => Prim::Norm(f(a), f(p)),
            Prim::Stack(items) => Prim::Stack(items.iter().map(f).collect()),
            Prim::Pick(a, n) => Prim::Pick(f(a), *n),
            Prim::Scatter(a, n, count) => Prim::Scatter(f(a), *n, *count),
            Prim::Alias(a) => Prim::Alias(f(a)),
            Prim::Stop(a) => Prim::Stop(f(a)),
        }
    }
}

impl Prim<Rc<Array>> {
    /// What the operation gives.
    pub fn compute(&self) -> Made<Rc<Array>> {
        Ok(Rc::new(match self {
            Prim::Fn1(f, a) => a.map(|x| f.eval(x)),
            Prim::Fn2(f, a, b) => a.zip(b, |x, y| f.eval(x, y))?,
            Prim::Compare(c, a, b) => a.zip(b, |x, y| if c.eval(x, y) { 1.0 } else { 0.0 })?,
            Prim::Select(c, a, b) => c.select(a, b)?,
            Prim::MatMul(a, b) => a.matmul(b)?,
            Prim::Outer(a, b) => a.outer(b)?,
            Prim::Transpose(a) => a.transpose(),
            Prim::Reshape(a, s) => a.reshape(s)?,
            Prim::Spread(a, s) => a.spread(s)?,
            Prim::ReduceTo(op, a, s) => a.reduce_to(*op, s)?,
            Prim::Norm(a, p) => Array::scalar(a.norm(p.data[0])),
            Prim::Stack(items) => Array::stack(&items.iter().map(|a| a.as_ref()).collect::<Vec<_>>())?,
            Prim::Pick(a, n) => a.pick(*n)?,
            Prim::Scatter(a, n, count) => a.scatter(*n, *count)?,
            Prim::Alias(a) | Prim::Stop(a) => return Ok(a.clone()),
        }))
    }
}

/// Something that performs operations.
pub(crate) trait Ops {
    /// A handle of a value.
    type Value: Clone;

    /// Performs one operation.
    fn apply(&mut self, prim: Prim<Self::Value>) -> Made<Self::Value>;

    /// A value that nothing is differentiated by.
    fn constant(&mut self, array: Rc<Array>) -> Self::Value;

    /// The numbers of a value.
    fn array(&self, value: &Self::Value) -> Rc<Array>;

    fn num(&mut self, x: f64) -> Self::Value {
        self.constant(Rc::new(Array::scalar(x)))
    }

    fn fn1(&mut self, f: Fn1, a: &Self::Value) -> Made<Self::Value> {
        self.apply(Prim::Fn1(f, a.clone()))
    }

    fn fn2(&mut self, f: Fn2, a: &Self::Value, b: &Self::Value) -> Made<Self::Value> {
        self.apply(Prim::Fn2(f, a.clone(), b.clone()))
    }

    fn add(&mut self, a: &Self::Value, b: &Self::Value) -> Made<Self::Value> {
        self.fn2(Fn2::Add, a, b)
    }

    fn sub(&mut self, a: &Self::Value, b: &Self::Value) -> Made<Self::Value> {
        self.fn2(Fn2::Sub, a, b)
    }

    fn mul(&mut self, a: &Self::Value, b: &Self::Value) -> Made<Self::Value> {
        self.fn2(Fn2::Mul, a, b)
    }

    fn div(&mut self, a: &Self::Value, b: &Self::Value) -> Made<Self::Value> {
        self.fn2(Fn2::Div, a, b)
    }

    /// `a^p` for a number p; 0 where that is infinite.
    fn power(&mut self, a: &Self::Value, p: f64) -> Made<Self::Value> {
        let p = self.num(p);
        self.fn2(Fn2::Pow, a, &p)
    }

    fn scale(&mut self, c: f64, a: &Self::Value) -> Made<Self::Value> {
        let c = self.num(c);
        self.mul(&c, a)
    }

    fn matmul(&mut self, a: &Self::Value, b: &Self::Value) -> Made<Self::Value> {
        self.apply(Prim::MatMul(a.clone(), b.clone()))
    }

    fn outer(&mut self, a: &Self::Value, b: &Self::Value) -> Made<Self::Value> {
        self.apply(Prim::Outer(a.clone(), b.clone()))
    }

    fn transpose(&mut self, a: &Self::Value) -> Made<Self::Value> {
        self.apply(Prim::Transpose(a.clone()))
    }

    fn compare(&mut self, c: Cmp, a: &Self::Value, b: &Self::Value) -> Made<Self::Value> {
        self.apply(Prim::Compare(c, a.clone(), b.clone()))
    }

    fn select(&mut self, c: &Self::Value, a: &Self::Value, b: &Self::Value) -> Made<Self::Value> {
        self.apply(Prim::Select(c.clone(), a.clone(), b.clone()))
    }

    fn reshape(&mut self, a: &Self::Value, shape: &[usize]) -> Made<Self::Value> {
        self.apply(Prim::Reshape(a.clone(), shape.to_vec()))
    }

    fn spread(&mut self, a: &Self::Value, shape: &[usize]) -> Made<Self::Value> {
        if self.array(a).shape == shape {
            return Ok(a.clone());
        }
        self.apply(Prim::Spread(a.clone(), shape.to_vec()))
    }

    fn reduce_to(&mut self, op: Reduce, a: &Self::Value, shape: &[usize]) -> Made<Self::Value> {
        if self.array(a).shape == shape {
            return Ok(a.clone());
        }
        self.apply(Prim::ReduceTo(op, a.clone(), shape.to_vec()))
    }

    fn sum_to(&mut self, a: &Self::Value, shape: &[usize]) -> Made<Self::Value> {
        self.reduce_to(Reduce::Sum, a, shape)
    }

    fn sum(&mut self, a: &Self::Value) -> Made<Self::Value> {
        self.sum_to(a, &[])
    }

    fn stop(&mut self, a: &Self::Value) -> Made<Self::Value> {
        self.apply(Prim::Stop(a.clone()))
    }
}

/// What becomes of an operation's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// It is kept as it is.
    #[default]
    Float64,
    /// Every entry is rounded to float32: a measure of what float32 arithmetic loses on a layer and its data.
    /// Sums and products inside one operation are still those of float64.
    RoundedToFloat32,
}

impl Arithmetic {
    /// The result of an operation as it is kept.
    pub(crate) fn keep(self, array: Rc<Array>) -> Rc<Array> {
        match self {
            Arithmetic::Float64 => array,
            Arithmetic::RoundedToFloat32 => Rc::new(array.map(|x| f64::from(x as f32))),
        }
    }
}

/// Performs operations at once and keeps nothing.
pub(crate) struct Eager(pub Arithmetic);

impl Ops for Eager {
    type Value = Rc<Array>;

    fn apply(&mut self, prim: Prim<Rc<Array>>) -> Made<Rc<Array>> {
        Ok(self.0.keep(prim.compute()?))
    }

    fn constant(&mut self, array: Rc<Array>) -> Rc<Array> {
        array
    }

    fn array(&self, value: &Rc<Array>) -> Rc<Array> {
        value.clone()
    }
}
