//! The functions that the language itself has.

use super::{Eval, Operand, Tensor, Value, fail_help};
use crate::elaborate::Builder;
use base::Span;
use base::diagnostic::code;
use base::scalar::{Fn1, Fn2, ROWS};
use miras_base as base;
use miras_syntax::ast::BinaryOp;
use miras_term::{Axis, Reduce, Shape, TermId};
use std::rc::Rc;

/// A function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Entry(Fn1),
    Min,
    Max,
    Clamp,
    Pow,
    Where,
    Outer,
    Dot,
    Sum,
    Mean,
    Norm,
    Softmax,
    LogSoftmax,
    LayerNorm,
    RmsNorm,
    Unit,
    Transpose,
    Row,
    Col,
    Zeros,
    Ones,
    Eye,
    Stop,
    Bregman,
    Grad,
    Retained,
}

/// Name, meaning, least and greatest number of arguments; the scalar table's functions stand there.
const TABLE: &[(&str, Builtin, usize, usize)] = &[
    ("min", Builtin::Min, 2, 2),
    ("max", Builtin::Max, 2, 2),
    ("clamp", Builtin::Clamp, 3, 3),
    ("pow", Builtin::Pow, 2, 2),
    ("where", Builtin::Where, 3, 3),
    ("outer", Builtin::Outer, 2, 2),
    ("dot", Builtin::Dot, 2, 2),
    ("sum", Builtin::Sum, 1, 1),
    ("mean", Builtin::Mean, 1, 1),
    ("norm", Builtin::Norm, 1, 2),
    ("softmax", Builtin::Softmax, 1, 2),
    ("logsoftmax", Builtin::LogSoftmax, 1, 2),
    ("layernorm", Builtin::LayerNorm, 1, 1),
    ("rmsnorm", Builtin::RmsNorm, 1, 1),
    ("unit", Builtin::Unit, 1, 1),
    ("transpose", Builtin::Transpose, 1, 1),
    ("row", Builtin::Row, 1, 1),
    ("col", Builtin::Col, 1, 1),
    ("zeros", Builtin::Zeros, 1, 2),
    ("ones", Builtin::Ones, 1, 2),
    ("eye", Builtin::Eye, 1, 1),
    ("stop", Builtin::Stop, 1, 1),
    ("bregman", Builtin::Bregman, 3, 3),
    ("grad", Builtin::Grad, 1, 1),
    ("retained", Builtin::Retained, 1, 1),
];

/// rmsnorm's eps, as layernorm's.
const RMS_EPS: f64 = 1e-5;
/// The floor of a norm that scales (docs/mathematics.md).
const UNIT_FLOOR: f64 = 1e-6;

/// Whether the language has a function of this name.
pub(crate) fn is_builtin(name: &str) -> bool {
    from_name(name).is_some()
}

/// The function of this name.
pub(super) fn from_name(name: &str) -> Option<Builtin> {
    let entry = Fn1::from_name(name).map(Builtin::Entry);
    entry.or_else(|| TABLE.iter().find(|(n, ..)| *n == name).map(|(_, b, ..)| *b))
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let table = TABLE.iter().map(|(name, ..)| *name);
    table.chain(ROWS.iter().filter(|r| r.in_language).map(|r| r.name))
}

impl Builtin {
    /// Its name in the language.
    pub(super) fn name(self) -> &'static str {
        match self {
            Builtin::Entry(f) => f.name(),
            other => TABLE.iter().find(|(_, b, ..)| *b == other).map_or("", |(name, ..)| name),
        }
    }

    fn arity(self) -> (usize, usize) {
        match self {
            Builtin::Entry(_) => (1, 1),
            other => {
                TABLE.iter().find(|(_, b, ..)| *b == other).map_or((0, 0), |(_, _, low, high)| (*low, *high))
            }
        }
    }

    /// Whether its second argument is an axis word.
    pub(super) fn takes_axis(self) -> bool {
        matches!(self, Builtin::Softmax | Builtin::LogSoftmax | Builtin::Sum)
    }
}

impl Builder<'_> {
    /// Applies a function of the language.
    pub(super) fn apply_builtin(
        &mut self,
        f: Builtin,
        mut args: Vec<Operand>,
        axis: Option<Axis>,
        span: Span,
    ) -> Eval<Value> {
        let (low, high) = f.arity();
        if args.len() < low || args.len() > high {
            let count = if low == high { low.to_string() } else { format!("{low} or {high}") };
            let message = format!("`{}` takes {count} arguments, found {}", f.name(), args.len());
            return fail_help(code::BAD_ARGUMENT, span, message, "called here", "give it what it takes");
        }
        match f {
            Builtin::Entry(g) => {
                let a = args.remove(0);
                if g == Fn1::Neg { self.negate(a, span) } else { self.each_entry(g, a, span) }
            }
            Builtin::Min => self.extreme(Fn2::Min, &args, span),
            Builtin::Max => self.extreme(Fn2::Max, &args, span),
            Builtin::Clamp => {
                let above = self.entries(Fn2::Max, &args[..2], span)?;
                self.entries(Fn2::Min, &[Operand { value: above, span }, args[2].clone()], span)
            }
            Builtin::Pow => {
                let (b, a) = (args.remove(1), args.remove(0));
                self.operate(BinaryOp::Pow, a, b, span)
            }
            Builtin::Where => {
                let (b, a, c) = (args.remove(2), args.remove(1), args.remove(0));
                self.select(c, a, b, span)
            }
            Builtin::Dot => {
                let product = self.entries(Fn2::Mul, &args, span)?;
                self.one(Operand { value: product, span }, span, |me, x| me.terms.sum(x))
            }
            Builtin::Outer => self.lift(&args, span, |me, ops| {
                let built = me.terms.outer(ops[0].0.term, ops[1].0.term);
                me.built(built, ops, span).map(Tensor::plain)
            }),
            Builtin::Norm => self.norm(args, span),
            Builtin::Sum => self.one(args.remove(0), span, |me, x| me.sums(axis.unwrap_or(Axis::All), x)),
            Builtin::Mean => self.one(args.remove(0), span, |me, x| me.terms.mean(x)),
            Builtin::Softmax => {
                self.one(args.remove(0), span, |me, x| me.terms.softmax(axis.unwrap_or(Axis::Row), x))
            }
            Builtin::LogSoftmax => {
                self.one(args.remove(0), span, |me, x| me.terms.log_softmax(axis.unwrap_or(Axis::Row), x))
            }
            Builtin::LayerNorm => self.one(args.remove(0), span, |me, x| me.terms.layer_norm(x)),
            Builtin::RmsNorm => self.one(args.remove(0), span, |me, x| me.rms_norm(x)),
            Builtin::Unit => self.one(args.remove(0), span, |me, x| me.unit(x)),
            Builtin::Transpose => self.one(args.remove(0), span, |me, x| me.terms.transpose(x)),
            Builtin::Row => self.one(args.remove(0), span, |me, x| me.terms.row(x)),
            Builtin::Col => self.one(args.remove(0), span, |me, x| me.terms.col(x)),
            Builtin::Stop => self.one(args.remove(0), span, |me, x| me.terms.stop(x)),
            Builtin::Zeros => self.filled(0.0, &args, span),
            Builtin::Ones => self.filled(1.0, &args, span),
            Builtin::Eye => match &args[0].value {
                Value::Size(n) => Ok(Value::Tensor(Tensor::plain(self.terms.eye(n.clone())))),
                _ => self.not_a_size(&args[0]),
            },
            Builtin::Bregman => self.bregman(&args, span),
            Builtin::Grad => self.grad(args.remove(0), span),
            Builtin::Retained => self.retained(args.remove(0), span),
        }
    }

    /// A function of one tensor.
    fn one(
        &mut self,
        a: Operand,
        span: Span,
        f: impl Fn(&mut Self, TermId) -> Result<TermId, miras_term::Mismatch>,
    ) -> Eval<Value> {
        self.lift(&[a], span, |me, ops| {
            let built = f(me, ops[0].0.term);
            me.built(built, ops, span).map(Tensor::plain)
        })
    }

    fn extreme(&mut self, f: Fn2, args: &[Operand], span: Span) -> Eval<Value> {
        if let (Some(a), Some(b)) = (args[0].value.as_whole(), args[1].value.as_whole()) {
            let chosen = if f == Fn2::Min { a.min(b) } else { a.max(b) };
            return Ok(Value::Size(base::Dim::constant(chosen)));
        }
        self.entries(f, args, span)
    }

    fn norm(&mut self, mut args: Vec<Operand>, span: Span) -> Eval<Value> {
        if args.len() == 1 {
            args.push(Operand { value: Value::Size(base::Dim::constant(2)), span });
        }
        self.lift(&args, span, |me, ops| {
            let built = me.terms.norm(ops[0].0.term, ops[1].0.term);
            me.built(built, ops, span).map(Tensor::plain)
        })
    }

    /// The sum of all entries, or of each row or column of a matrix, as a vector.
    fn sums(&mut self, axis: Axis, x: TermId) -> Result<TermId, miras_term::Mismatch> {
        if axis == Axis::All || self.terms.shape(x).rank() < 2 {
            return self.terms.sum(x);
        }
        let sums = self.terms.reduce(Reduce::Sum, axis, x)?;
        self.terms.flat(sums)
    }

    fn rms_norm(&mut self, x: TermId) -> Result<TermId, miras_term::Mismatch> {
        let square = self.terms.mul(x, x)?;
        let (sum, count) =
            (self.terms.reduce(Reduce::Sum, Axis::Row, square)?, self.terms.count(Axis::Row, x)?);
        let mean = self.terms.div(sum, count)?;
        let eps = self.terms.num(RMS_EPS);
        let shifted = self.terms.add(mean, eps)?;
        let root = self.terms.fn1(Fn1::Sqrt, shifted)?;
        self.terms.div(x, root)
    }

    fn unit(&mut self, x: TermId) -> Result<TermId, miras_term::Mismatch> {
        let (two, floor) = (self.terms.num(2.0), self.terms.num(UNIT_FLOOR));
        let norm = self.terms.norm(x, two)?;
        let length = self.terms.fn2(Fn2::Max, norm, floor)?;
        self.terms.div(x, length)
    }

    /// `zeros(W)` in the shape of a tensor, `zeros(dv, dk)` in a shape.
    fn filled(&mut self, value: f64, args: &[Operand], _span: Span) -> Eval<Value> {
        if let [Operand { value: Value::Each(list), .. }] = args {
            let like = list.iter().map(|t| self.terms.fill(value, self.terms.shape(t.term).clone()));
            return Ok(Value::Each(Rc::from(like.map(Tensor::plain).collect::<Vec<_>>())));
        }
        if let [Operand { value: Value::Tensor(t), .. }] = args {
            let shape = self.terms.shape(t.term).clone();
            return Ok(Value::Tensor(Tensor::plain(self.terms.fill(value, shape))));
        }
        let mut dims = Vec::new();
        for arg in args {
            match &arg.value {
                Value::Size(dim) => dims.push(dim.clone()),
                _ => return self.not_a_size(arg),
            }
        }
        Ok(Value::Tensor(Tensor::plain(self.terms.fill(value, Shape(dims)))))
    }

    fn not_a_size(&self, arg: &Operand) -> Eval<Value> {
        let message = format!("expected a size, found {}", self.describe(&arg.value));
        fail_help(code::TYPE, arg.span, message, "not a size", "use `dk`, `dv` and whole numbers")
    }
}
