//! Building blocks of pulled-back graphs: operations with neutral elements left out, and sums over the axes
//! that an operand lacks.

use crate::ir::{AxisId, BlockId, Graph, Op, Size, ValueId};
use miras_base::Diagnostic;
use miras_base::scalar::{Cmp, Expr, Fn1, Fn2};
use miras_term::Reduce;

/// Adds operations to one block of a graph.
pub(super) struct Build<'g> {
    pub graph: &'g mut Graph,
    pub block: BlockId,
}

impl Build<'_> {
    pub fn add(&mut self, op: Op) -> ValueId {
        self.graph.add(self.block, op)
    }

    pub fn number(&mut self, x: f64) -> ValueId {
        self.add(Op::Number(x))
    }

    pub fn axes(&self, id: ValueId) -> Vec<AxisId> {
        self.graph.value(id).axes.clone()
    }

    fn constant(&self, id: ValueId) -> Option<f64> {
        match self.graph.value(id).op {
            Op::Number(x) => Some(x),
            _ => None,
        }
    }

    pub fn neg(&mut self, a: ValueId) -> ValueId {
        match (self.constant(a), &self.graph.value(a).op) {
            (Some(x), _) => self.number(-x),
            (None, Op::Fn1(Fn1::Neg, inner)) => *inner,
            (None, _) => self.add(Op::Fn1(Fn1::Neg, a)),
        }
    }

    pub fn sum(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) => self.number(x + y),
            (Some(0.0), None) => b,
            (None, Some(0.0)) => a,
            _ => self.add(Op::Fn2(Fn2::Add, a, b)),
        }
    }

    /// a * b. A factor that is the number 0 gives 0: what it multiplies is a slope, and those are finite.
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) => self.number(x * y),
            (Some(0.0), None) | (None, Some(0.0)) => self.number(0.0),
            (Some(1.0), None) => b,
            (None, Some(1.0)) => a,
            (Some(-1.0), None) => self.neg(b),
            (None, Some(-1.0)) => self.neg(a),
            _ => self.add(Op::Fn2(Fn2::Mul, a, b)),
        }
    }

    pub fn compare(&mut self, cmp: Cmp, a: ValueId, b: ValueId) -> ValueId {
        self.add(Op::Compare(cmp, a, b))
    }

    pub fn select(&mut self, condition: ValueId, yes: ValueId, no: ValueId) -> ValueId {
        if yes == no { yes } else { self.add(Op::Select(condition, yes, no)) }
    }

    /// A scalar expression of the table at these arguments.
    pub fn expr(&mut self, expr: &Expr, args: &[ValueId]) -> Result<ValueId, Diagnostic> {
        Ok(match expr {
            Expr::Arg(i) => {
                let missing = || Diagnostic::bug("a derivative has more arguments than its function");
                *args.get(*i as usize).ok_or_else(missing)?
            }
            Expr::Const(c) => self.number(*c),
            Expr::Fn1(Fn1::Neg, a) => {
                let a = self.expr(a, args)?;
                self.neg(a)
            }
            Expr::Fn1(f, a) => {
                let a = self.expr(a, args)?;
                self.add(Op::Fn1(*f, a))
            }
            Expr::Fn2(Fn2::Mul, a, b) => {
                let (a, b) = (self.expr(a, args)?, self.expr(b, args)?);
                self.mul(a, b)
            }
            Expr::Fn2(f, a, b) => {
                let (a, b) = (self.expr(a, args)?, self.expr(b, args)?);
                self.add(Op::Fn2(*f, a, b))
            }
            Expr::Select(cmp, a, b, yes, no) => {
                let (a, b) = (self.expr(a, args)?, self.expr(b, args)?);
                let (yes, no) = (self.expr(yes, args)?, self.expr(no, args)?);
                let condition = self.compare(*cmp, a, b);
                self.select(condition, yes, no)
            }
        })
    }

    /// `value`, which is defined at every index of `from`, summed over those axes that `to` lacks. An axis
    /// along which it does not vary counts as often as it has entries.
    pub fn sum_to(&mut self, value: ValueId, from: &[AxisId], to: &[AxisId]) -> Result<ValueId, Diagnostic> {
        let own = self.axes(value);
        let gone = from.iter().filter(|a| !to.contains(a));
        let (over, repeated): (Vec<AxisId>, Vec<AxisId>) = gone.partition(|a| own.contains(a));
        let reduced = if over.is_empty() { value } else { self.add(Op::Reduce(Reduce::Sum, over, value)) };
        self.repeated(reduced, &repeated)
    }

    /// The same of `a * b`.
    pub fn product_to(
        &mut self,
        [a, b]: [ValueId; 2],
        from: &[AxisId],
        to: &[AxisId],
    ) -> Result<ValueId, Diagnostic> {
        let (left, right) = (self.axes(a), self.axes(b));
        let gone = from.iter().filter(|x| !to.contains(x));
        let (over, repeated): (Vec<AxisId>, Vec<AxisId>) =
            gone.partition(|x| left.contains(x) || right.contains(x));
        let plain = [a, b].into_iter().any(|x| matches!(self.constant(x), Some(0.0 | 1.0 | -1.0)));
        let reduced = match (over.is_empty(), plain) {
            (true, _) => self.mul(a, b),
            (false, true) => {
                let product = self.mul(a, b);
                return self.sum_to(product, from, to);
            }
            (false, false) => self.add(Op::Einsum(a, b, over)),
        };
        self.repeated(reduced, &repeated)
    }

    fn repeated(&mut self, value: ValueId, axes: &[AxisId]) -> Result<ValueId, Diagnostic> {
        let mut count = 1.0;
        for axis in axes {
            match self.graph.axis(*axis).size {
                Size::Fixed(n) => count *= n as f64,
                Size::Tokens | Size::Past => return Err(Diagnostic::bug("a sum over tokens outside a scan")),
            }
        }
        let count = self.number(count);
        Ok(self.mul(value, count))
    }

    /// The value with all these axes in this order.
    pub fn whole(&mut self, value: ValueId, axes: &[AxisId]) -> ValueId {
        let own = self.axes(value);
        if axes.iter().all(|a| own.contains(a)) {
            return value;
        }
        self.add(Op::Spread(value, axes.to_vec()))
    }
}
