//! What a chunk with frozen gradients takes at its start: weights, scales, and the gradients of all its tokens.

use super::exact::last_of;
use super::{Body, Build};
use crate::ir::{AxisId, BlockId, Op, ValueId};
use crate::lower::Failure;
use crate::lower::term::TermLowering;
use crate::lower::token::Given;
use miras_base::scalar::{Cmp, Fn1};
use miras_rule::Inside;
use miras_term::{Reduce, Shape, TermId, VarId};
use std::collections::HashMap;

impl Build<'_> {
    /// W_0 of each weight, and the scales that hold inside the chunk, by the chunk's first token.
    pub(super) fn starts(&mut self, body: &Body) -> Result<(Vec<ValueId>, Vec<Option<ValueId>>), Failure> {
        let vars = self.vars_of_token(body, false);
        let (mut weights, mut scales) = (Vec::new(), Vec::new());
        for l in 0..self.rule.retention.len() {
            let (retained, carried) = (&self.rule.retention[l], body.before[l]);
            weights.push(match retained.value {
                None => carried,
                Some(value) => self.mapped(body.block, &vars, l, carried, value)?,
            });
            scales.push(match retained.inside {
                Inside::FrozenScale(scale) => Some(self.scale(body.block, &vars, l, carried, scale)?),
                Inside::Identity
                | Inside::Mapped
                | Inside::Threshold(_)
                | Inside::ProjectAtEnd
                | Inside::TokenByToken => None,
            });
        }
        Ok((weights, scales))
    }

    /// The variables of the chunk's first or last token.
    pub(super) fn vars_of_token(&mut self, body: &Body, last: bool) -> HashMap<VarId, ValueId> {
        let axes: Vec<AxisId> = self.part.into_iter().chain([self.from]).collect();
        let mut at = self.at(body.block, HashMap::new());
        let mut one = |mut value: ValueId| {
            for axis in &axes {
                value = match last {
                    true => last_of(&mut at, *axis, value),
                    false if at.has(value, *axis) => at.add(Op::At(value, *axis, 0)),
                    false => value,
                };
            }
            value
        };
        body.vars.iter().map(|(var, value)| (*var, one(*value))).collect()
    }

    /// A map of a weight's carried value.
    pub(super) fn mapped(
        &mut self,
        block: BlockId,
        vars: &HashMap<VarId, ValueId>,
        l: usize,
        carried: ValueId,
        map: TermId,
    ) -> Result<ValueId, Failure> {
        let var = self.rule.retention[l].carried;
        let shape = self.rule.layer.memory.weights[l].shape.clone();
        let mut at = self.at(block, vars.clone());
        at.bind(var, carried);
        at.lower_whole(map, &shape)
    }

    /// A scale of the chunk's start, or 1 where theta_0 is exactly 0.
    fn scale(
        &mut self,
        block: BlockId,
        vars: &HashMap<VarId, ValueId>,
        l: usize,
        carried: ValueId,
        scale: TermId,
    ) -> Result<ValueId, Failure> {
        let var = self.rule.retention[l].carried;
        let mut at = self.at(block, vars.clone());
        at.bind(var, carried);
        let scale = at.lower(scale)?;
        let axes = at.graph.value(carried).axes.clone();
        let size = at.fn1(Fn1::Abs, carried);
        let largest = at.add(Op::Reduce(Reduce::Max, axes, size));
        let (zero, one) = (at.number(0.0), at.number(1.0));
        let nothing = at.add(Op::Compare(Cmp::Eq, largest, zero));
        Ok(at.add(Op::Select(nothing, one, scale)))
    }

    /// The gradients of all tokens at these weights, by point and weight.
    pub(super) fn gradients_at(
        &mut self,
        body: &Body,
        weights: &[ValueId],
    ) -> Result<Vec<Vec<Given>>, Failure> {
        let (rule, step) = (self.rule, self.step);
        let over: Vec<AxisId> = self.part.into_iter().chain([self.from]).collect();
        let mut at = self.at(body.block, body.vars.clone());
        for ((weight, retained), value) in rule.layer.memory.weights.iter().zip(&step.retained).zip(weights) {
            at.bind(weight.var, *value);
            at.bind(*retained, *value);
        }
        let mut all = Vec::new();
        for (point, gradient) in step.points.iter().zip(&rule.gradients) {
            for named in &gradient.named {
                at.names.insert(named.term, named.name.clone());
            }
            let names = at.names.clone();
            let mut points = Vec::new();
            for (weight, term) in rule.layer.memory.weights.iter().zip(&point.at) {
                points.push(at.lower_whole(*term, &weight.shape)?);
            }
            let mut inner = at.inner();
            inner.names = names;
            for (var, value) in gradient.at_vars.iter().zip(points) {
                inner.bind(*var, value);
            }
            let mut of_point = Vec::new();
            for (sum, weight) in gradient.by_weight.iter().zip(&rule.layer.memory.weights) {
                let mut products = Vec::new();
                for (left, right) in &sum.products {
                    let [rows, cols] = [0, 1].map(|i| Shape::vector(weight.shape.0[i].clone()));
                    let left = over_tokens(&mut inner, *left, &rows, &over)?;
                    products.push((left, over_tokens(&mut inner, *right, &cols, &over)?));
                }
                let rest = match sum.rest {
                    None => None,
                    Some(rest) => Some(over_tokens(&mut inner, rest, &weight.shape, &over)?),
                };
                of_point.push(Given { products, rest });
            }
            all.push(of_point);
        }
        Ok(all)
    }
}

/// A term of a token with its axes called as those of `shape`, all of them there, and those of the tokens.
fn over_tokens(
    at: &mut TermLowering<'_>,
    term: TermId,
    shape: &Shape,
    over: &[AxisId],
) -> Result<ValueId, Failure> {
    let value = at.lower_whole(term, shape)?;
    let own = at.axes.of_shape(at.graph, shape)?;
    let all: Vec<AxisId> = over.iter().copied().chain(own.into_iter().flatten()).collect();
    Ok(at.spread(value, &all))
}
