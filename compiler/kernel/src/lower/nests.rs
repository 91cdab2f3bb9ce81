//! One stored value as one nest.

use super::Lowering;
use super::choose::Form;
use super::view::View;
use crate::ir::{self, Expr, ExprId, Nest, Scalar, VarId};
use miras_base::Diagnostic;
use miras_base::scalar::{Cmp, Fn2};
use miras_tensor::ir::{AxisId, Op, ValueId};
use miras_term::{Place, Reduce};
use std::collections::HashMap;

/// Where the point at hand lies on each axis.
type Places = HashMap<AxisId, VarId>;

impl Lowering<'_> {
    /// The nest that fills `target` with a value, over the target's axes. A value that has another array
    /// already is read from there.
    pub(super) fn nest(&mut self, id: ValueId, target: &View) -> Result<Nest, Diagnostic> {
        let mut places = Places::new();
        let mut loops = Vec::new();
        for axis in target.axes().collect::<Vec<_>>() {
            let extent = self.size(axis)?;
            let around = self.program.axis(self.graph.axis(axis).name.clone(), extent);
            places.insert(axis, around.var);
            loops.push(around);
        }
        let value = self.graph.value(id);
        let equation = value.equation.clone().or_else(|| value.name.clone()).unwrap_or_default();
        let mut nest = Nest::new(equation, loops);
        let here = self.views.get(&id) == Some(target);
        let value = if here {
            self.operation(&mut nest, id, &places)?
        } else {
            self.operand(&mut nest, id, &places)?
        };
        let access = target.access(|axis| places.get(&axis).copied());
        nest.store(access.array, access.offset, value);
        Ok(nest)
    }

    /// A value as an operand: loaded where it has an array, else computed in place.
    fn operand(&mut self, nest: &mut Nest, id: ValueId, places: &Places) -> Result<ExprId, Diagnostic> {
        match self.forms.of(id) {
            // A mask over what it is seen in: where no product has taken it, it is done here.
            Form::Seen if matches!(self.graph.value(id).op, Op::Select(..)) => {
                self.operation(nest, id, places)
            }
            Form::Stored | Form::Applied | Form::Seen => {
                let access = self.view(id)?.access(|axis| places.get(&axis).copied());
                Ok(nest.load(access.array, access.offset))
            }
            Form::Fused => self.operation(nest, id, places),
            Form::Dead => Err(Diagnostic::bug(format!("tensor value %{} is used but not live", id.0))),
        }
    }

    fn operation(&mut self, nest: &mut Nest, id: ValueId, places: &Places) -> Result<ExprId, Diagnostic> {
        let graph = self.graph;
        match &graph.value(id).op {
            Op::Number(x) => Ok(nest.constant(*x)),
            Op::Place(place) => Ok(nest.expr(Expr::Scalar(scalar(*place)))),
            Op::Kept => Ok(nest.expr(Expr::Scalar(Scalar::Kept))),
            Op::Step(axis) => {
                let outside = || Diagnostic::bug("the step of a scan outside the scan");
                let var = self.steps.get(axis).copied().ok_or_else(outside)?;
                Ok(nest.expr(Expr::Index(var)))
            }
            Op::Fn1(f, a) => {
                let a = self.operand(nest, *a, places)?;
                Ok(nest.fn1(*f, a))
            }
            Op::Fn2(f, a, b) => {
                let (a, b) = (self.operand(nest, *a, places)?, self.operand(nest, *b, places)?);
                Ok(nest.fn2(*f, a, b))
            }
            Op::Compare(..) => {
                let (cmp, a, b) = self.comparison(nest, id, places)?;
                let (yes, no) = (nest.constant(1.0), nest.constant(0.0));
                Ok(nest.select(cmp, a, b, yes, no))
            }
            Op::Select(c, a, b) => {
                let (cmp, x, y) = self.comparison(nest, *c, places)?;
                let (a, b) = (self.operand(nest, *a, places)?, self.operand(nest, *b, places)?);
                Ok(nest.select(cmp, x, y, a, b))
            }
            Op::Einsum(a, b, over) => self.reduction(nest, ir::Op::Sum, over, places, |at, nest, places| {
                let (x, y) = (at.operand(nest, *a, places)?, at.operand(nest, *b, places)?);
                let (x, y) = (at.masked(nest, x, *b, places)?, at.masked(nest, y, *a, places)?);
                Ok(nest.fn2(Fn2::Mul, x, y))
            }),
            Op::Reduce(op, over, a) => {
                let op = match op {
                    Reduce::Sum => ir::Op::Sum,
                    Reduce::Max => ir::Op::Max,
                    Reduce::Min => ir::Op::Min,
                };
                self.reduction(nest, op, over, places, |at, nest, places| at.operand(nest, *a, places))
            }
            Op::Rename { value, from, to } => {
                let inner = self.renamed(places, *from, *to);
                self.operand(nest, *value, &inner)
            }
            Op::Spread(a, _) | Op::Stop(a) => self.operand(nest, *a, places),
            Op::Index(axis) => Ok(nest.expr(index(places, *axis)?)),
            Op::Diagonal(a, b) => {
                let (a, b) = (nest.expr(index(places, *a)?), nest.expr(index(places, *b)?));
                let (yes, no) = (nest.constant(1.0), nest.constant(0.0));
                Ok(nest.select(Cmp::Eq, a, b, yes, no))
            }
            Op::At(value, ..) => {
                let message = format!("one entry of %{}, which has no array", value.0);
                Err(Diagnostic::bug(message))
            }
            Op::Given | Op::Final(..) | Op::Stacked(..) => {
                let access = self.view(id)?.access(|axis| places.get(&axis).copied());
                Ok(nest.load(access.array, access.offset))
            }
        }
    }

    /// A factor of a product, 0 where a mask makes the other factor 0: masks select, and a future that is not finite is
    /// not multiplied by 0.
    fn masked(
        &mut self,
        nest: &mut Nest,
        factor: ExprId,
        other: ValueId,
        places: &Places,
    ) -> Result<ExprId, Diagnostic> {
        let graph = self.graph;
        let index = |v: &ValueId| matches!(graph.value(*v).op, Op::Index(_));
        match &graph.value(other).op {
            Op::Select(condition, _, no) if graph.value(*no).op == Op::Number(0.0) => {
                match &graph.value(*condition).op {
                    Op::Compare(cmp, a, b) if index(a) && index(b) => {
                        let (a, b) = (self.operand(nest, *a, places)?, self.operand(nest, *b, places)?);
                        let zero = nest.constant(0.0);
                        Ok(nest.select(*cmp, a, b, factor, zero))
                    }
                    _ => Ok(factor),
                }
            }
            Op::Rename { value, from, to } => {
                let inner = self.renamed(places, *from, *to);
                self.masked(nest, factor, *value, &inner)
            }
            Op::Spread(value, _) | Op::Stop(value) => self.masked(nest, factor, *value, places),
            Op::Fn2(Fn2::Mul, a, b) => {
                let factor = self.masked(nest, factor, *a, places)?;
                self.masked(nest, factor, *b, places)
            }
            _ => Ok(factor),
        }
    }

    /// The comparison behind a truth value. Truth values have no arrays.
    fn comparison(
        &mut self,
        nest: &mut Nest,
        id: ValueId,
        places: &Places,
    ) -> Result<(Cmp, ExprId, ExprId), Diagnostic> {
        match &self.graph.value(id).op {
            Op::Compare(cmp, a, b) => {
                Ok((*cmp, self.operand(nest, *a, places)?, self.operand(nest, *b, places)?))
            }
            Op::Rename { value, from, to } => {
                let inner = self.renamed(places, *from, *to);
                self.comparison(nest, *value, &inner)
            }
            Op::Spread(a, _) | Op::Stop(a) => self.comparison(nest, *a, places),
            _ => Err(Diagnostic::bug(format!("tensor value %{} is no comparison", id.0))),
        }
    }

    fn renamed(&self, places: &Places, from: AxisId, to: AxisId) -> Places {
        let mut inner = places.clone();
        inner.remove(&from);
        if let Some(var) = places.get(&to) {
            inner.insert(from, *var);
        }
        inner
    }

    fn reduction(
        &mut self,
        nest: &mut Nest,
        op: ir::Op,
        over: &[AxisId],
        places: &Places,
        value: impl FnOnce(&mut Self, &mut Nest, &Places) -> Result<ExprId, Diagnostic>,
    ) -> Result<ExprId, Diagnostic> {
        let mut inner = places.clone();
        let mut loops = Vec::new();
        for axis in over {
            let extent = self.size(*axis)?;
            let around = self.program.axis(self.graph.axis(*axis).name.clone(), extent);
            inner.insert(*axis, around.var);
            loops.push(around);
        }
        let value = value(self, nest, &inner)?;
        Ok(nest.reduce(op, loops, value))
    }
}

/// The index along an axis of the point at hand.
fn index(places: &Places, axis: AxisId) -> Result<Expr, Diagnostic> {
    let missing = || Diagnostic::bug("an index along an axis that the point does not have");
    places.get(&axis).copied().map(Expr::Index).ok_or_else(missing)
}

fn scalar(place: Place) -> Scalar {
    match place {
        Place::Head => Scalar::Head,
        Place::Heads => Scalar::Heads,
        Place::Layer => Scalar::Layer,
        Place::Layers => Scalar::Layers,
    }
}
