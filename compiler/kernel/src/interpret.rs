//! What a program means, executed statement by statement on plain vectors.
//!
//! In float64 this is the yardstick for emitted code; in float32 it uses the table's float32 forms. Sums run
//! in the order of their loops.

use crate::ir::{Access, Array, Axis, Count, Expr, Factor, Loop, Matrix, Nest, Op, Order, Product, Program};
use crate::ir::{Role, Scalar, Stmt, VarId};
use crate::verify::Verified;
use miras_base::Diagnostic;
use miras_base::scalar::{Cmp, Fn1, Fn2, single};

/// The numbers known when a task starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalars {
    /// Tokens in this run, T.
    pub tokens: usize,
    /// Tokens kept from before the run, K.
    pub kept: usize,
    /// Number of the first token since the stream's start.
    pub first: u64,
    /// Number of the head, from 0.
    pub head: u64,
    /// How many heads.
    pub heads: u64,
    /// Number of the layer, from 0.
    pub layer: u64,
    /// How many layers.
    pub layers: u64,
}

impl Scalars {
    /// The first head of a lone layer with one head, at the start of its stream.
    pub fn single(tokens: usize) -> Scalars {
        Scalars { tokens, kept: 0, first: 0, head: 0, heads: 1, layer: 0, layers: 1 }
    }

    /// The number by name.
    pub fn get(&self, scalar: Scalar) -> f64 {
        match scalar {
            Scalar::Tokens => self.tokens as f64,
            Scalar::Kept => self.kept as f64,
            Scalar::First => self.first as f64,
            Scalar::Head => self.head as f64,
            Scalar::Heads => self.heads as f64,
            Scalar::Layer => self.layer as f64,
            Scalar::Layers => self.layers as f64,
        }
    }
}

/// A kind of number that programs can be run in.
pub trait Number: Copy {
    /// The nearest number.
    fn of(x: f64) -> Self;
    /// `f(x)`
    fn fn1(f: Fn1, x: Self) -> Self;
    /// `f(a, b)`
    fn fn2(f: Fn2, a: Self, b: Self) -> Self;
    /// `a cmp b`
    fn compare(cmp: Cmp, a: Self, b: Self) -> bool;
}

impl Number for f64 {
    fn of(x: f64) -> f64 {
        x
    }

    fn fn1(f: Fn1, x: f64) -> f64 {
        f.eval(x)
    }

    fn fn2(f: Fn2, a: f64, b: f64) -> f64 {
        f.eval(a, b)
    }

    fn compare(cmp: Cmp, a: f64, b: f64) -> bool {
        cmp.eval(a, b)
    }
}

impl Number for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }

    fn fn1(f: Fn1, x: f32) -> f32 {
        single::value(f, x)
    }

    fn fn2(f: Fn2, a: f32, b: f32) -> f32 {
        single::value2(f, a, b)
    }

    fn compare(cmp: Cmp, a: f32, b: f32) -> bool {
        cmp.eval(a.into(), b.into())
    }
}

/// Runs one task. `buffers` holds one vector per array of the program: those of given arrays (inputs,
/// incoming states) with [`Array::len`] elements; the others are sized here, and outputs and outgoing states
/// are read from them afterwards.
///
/// # Errors
/// E0901 where the buffers do not fit the program.
pub fn interpret<N: Number>(
    program: &Verified<Program>,
    scalars: &Scalars,
    buffers: &mut Vec<Vec<N>>,
) -> Result<(), Diagnostic> {
    buffers.resize(program.arrays.len(), Vec::new());
    for (array, buffer) in program.arrays.iter().zip(buffers.iter_mut()) {
        provide(array, scalars, buffer)?;
    }
    let mut machine = Machine { scalars, vars: vec![0; program.vars.len()], buffers };
    machine.block(&program.body);
    Ok(())
}

fn provide<N: Number>(array: &Array, scalars: &Scalars, buffer: &mut Vec<N>) -> Result<(), Diagnostic> {
    let name = &array.name;
    let len = array.len(scalars.tokens, scalars.kept);
    let len = len.ok_or_else(|| Diagnostic::bug(format!("`{name}` is larger than memory")))?;
    match array.role {
        Role::TokenInput { .. } | Role::PastInput { .. } | Role::HeadInput | Role::StateIn
            if buffer.len() != len =>
        {
            let have = buffer.len();
            Err(Diagnostic::bug(format!("`{name}` has {have} elements where {len} are needed")))
        }
        Role::TokenInput { .. } | Role::PastInput { .. } | Role::HeadInput | Role::StateIn => Ok(()),
        Role::StateOut | Role::TokenOutput { .. } | Role::Scratch => {
            *buffer = vec![N::of(f64::NAN); len];
            Ok(())
        }
    }
}

/// Verified programs never reach outside a buffer, so indices here are in range.
struct Machine<'a, N> {
    scalars: &'a Scalars,
    vars: Vec<i64>,
    buffers: &'a mut [Vec<N>],
}

impl<N: Number> Machine<'_, N> {
    fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Loop(l) => self.repeat(l),
                Stmt::Nest(n) => self.nest(n),
                Stmt::Apply(a) => {
                    for i in 0..a.len {
                        let x = self.load(&a.src, i);
                        self.store(&a.dst, i, N::fn1(a.function, x));
                    }
                }
                Stmt::Copy(c) => {
                    for i in 0..c.len {
                        let x = self.load(&c.src, i);
                        self.store(&c.dst, i, x);
                    }
                }
                Stmt::Product(p) => self.product(p),
            }
        }
    }

    fn repeat(&mut self, l: &Loop) {
        let count = match l.count {
            Count::Const(n) => n,
            Count::Tokens => self.scalars.tokens,
            Count::Past => self.scalars.kept + self.scalars.tokens,
        };
        for turn in 0..count {
            let value = match l.order {
                Order::Ascending => turn,
                Order::Descending => count - 1 - turn,
            };
            self.set(l.var, value);
            self.block(&l.body);
        }
    }

    fn set(&mut self, var: VarId, value: usize) {
        self.vars[var.0 as usize] = value as i64;
    }

    fn at(&self, access: &Access, plus: usize) -> usize {
        let terms = access.offset.terms();
        let offset: i64 = terms.map(|(v, c)| c * self.vars[v.0 as usize]).sum();
        (offset + access.offset.constant) as usize + plus
    }

    fn load(&self, access: &Access, plus: usize) -> N {
        self.buffers[access.array.0 as usize][self.at(access, plus)]
    }

    fn store(&mut self, access: &Access, plus: usize, value: N) {
        let at = self.at(access, plus);
        self.buffers[access.array.0 as usize][at] = value;
    }

    fn product(&mut self, p: &Product) {
        let at = |m: &Matrix, i: usize, j: usize| i * m.row_stride + j * m.col_stride;
        let alpha = self.factor(&p.alpha);
        let beta = self.factor(&p.beta);
        for i in 0..p.m {
            for j in 0..p.n {
                let mut sum = N::of(0.0);
                let last = if p.triangular { p.k.min(i + 1) } else { p.k };
                for l in 0..last {
                    let a = self.load(&p.a.start, at(&p.a, i, l));
                    let b = self.load(&p.b.start, at(&p.b, l, j));
                    sum = N::fn2(Fn2::Add, sum, N::fn2(Fn2::Mul, a, b));
                }
                let mut value = N::fn2(Fn2::Mul, alpha, sum);
                if p.beta != Factor::Const(0.0) {
                    let before = self.load(&p.c.start, at(&p.c, i, j));
                    value = N::fn2(Fn2::Add, N::fn2(Fn2::Mul, beta, before), value);
                }
                self.store(&p.c.start, at(&p.c, i, j), value);
            }
        }
    }

    fn factor(&self, f: &Factor) -> N {
        match f {
            Factor::Const(c) => N::of(*c),
            Factor::Load(access) => self.load(access, 0),
        }
    }

    fn nest(&mut self, nest: &Nest) {
        // A verified nest always has owners.
        let owners = nest.owners().unwrap_or_default();
        let inside = |at: usize| owners.get(at).copied().flatten().map(|r| r.0 as usize);
        let mut point = Point { values: vec![N::of(0.0); nest.exprs.len()], reduced: Vec::new() };
        let mut pending: Vec<(usize, usize, N)> = Vec::new();
        self.points(&nest.loops, &mut |m| {
            point.reduced.clear();
            for (r, reduction) in nest.reductions.iter().enumerate() {
                m.evaluate(nest, &mut point, |at| inside(at).is_none());
                let mut sum = N::of(start(reduction.op));
                m.points(&reduction.loops, &mut |m| {
                    m.evaluate(nest, &mut point, |at| inside(at) == Some(r));
                    sum = combine(reduction.op, sum, point.values[reduction.value.0 as usize]);
                });
                point.reduced.push(sum);
            }
            m.evaluate(nest, &mut point, |at| inside(at).is_none());
            for store in &nest.stores {
                let value = point.values[store.value.0 as usize];
                pending.push((store.target.array.0 as usize, m.at(&store.target, 0), value));
            }
        });
        for (array, at, value) in pending {
            self.buffers[array][at] = value;
        }
    }

    /// Visits every value of the loops' variables, the last loop fastest.
    fn points(&mut self, loops: &[Axis], visit: &mut dyn FnMut(&mut Self)) {
        match loops.split_first() {
            None => visit(self),
            Some((axis, rest)) => {
                for value in 0..axis.extent {
                    self.set(axis.var, value);
                    self.points(rest, visit);
                }
            }
        }
    }

    /// Computes the chosen expressions; results of reductions that are still to come count as 0, which is
    /// corrected before anything uses them.
    fn evaluate(&self, nest: &Nest, point: &mut Point<N>, chosen: impl Fn(usize) -> bool) {
        for (at, expr) in nest.exprs.iter().enumerate().filter(|(at, _)| chosen(*at)) {
            let value = |id: crate::ir::ExprId| point.values[id.0 as usize];
            point.values[at] = match expr {
                Expr::Const(c) => N::of(*c),
                Expr::Load(access) => self.load(access, 0),
                Expr::Index(var) => N::of(self.vars[var.0 as usize] as f64),
                Expr::Scalar(s) => N::of(self.scalars.get(*s)),
                Expr::Fn1(f, a) => N::fn1(*f, value(*a)),
                Expr::Fn2(f, a, b) => N::fn2(*f, value(*a), value(*b)),
                Expr::Select { cmp, a, b, yes, no } => {
                    let holds = N::compare(*cmp, value(*a), value(*b));
                    value(if holds { *yes } else { *no })
                }
                Expr::Reduced(r) => point.reduced.get(r.0 as usize).copied().unwrap_or(N::of(0.0)),
            };
        }
    }
}

struct Point<N> {
    values: Vec<N>,
    reduced: Vec<N>,
}

fn start(op: Op) -> f64 {
    match op {
        Op::Sum => 0.0,
        Op::Max => f64::NEG_INFINITY,
        Op::Min => f64::INFINITY,
    }
}

fn combine<N: Number>(op: Op, a: N, b: N) -> N {
    let f = match op {
        Op::Sum => Fn2::Add,
        Op::Max => Fn2::Max,
        Op::Min => Fn2::Min,
    };
    N::fn2(f, a, b)
}
