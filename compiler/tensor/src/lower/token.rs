//! One token's step inside the body of the scan.

use super::Failure;
use super::frozen::Chunk;
use super::term::TermLowering;
use crate::ir::{AxisId, Op, ValueId};
use miras_base::Dim;
use miras_base::scalar::Fn2;
use miras_rule::{Gradient, OuterSum, Retained, UpdateRule};
use miras_spec::Step;
use miras_term::{Shape, TermId, VarId};

/// A step in the making: what is carried into it, replaced as it goes by what it hands on.
pub(super) struct Token<'a, 'g> {
    pub rule: &'a UpdateRule,
    pub step: &'a Step,
    pub at: TermLowering<'g>,
    /// Carried value of each weight.
    pub carried: Vec<ValueId>,
    /// States of the algorithm.
    pub states: Vec<ValueId>,
    /// Weights that are carried beside their duals.
    pub primal: Vec<Option<ValueId>>,
    /// The open chunk, where gradients are frozen.
    pub chunk: Option<Chunk>,
    /// Gradients that are there already, by step of the token, point and weight.
    pub given: Option<Vec<Vec<Vec<Given>>>>,
    /// Where the algorithm steps several times: the axis of steps, and all entries of what has one each.
    pub repeats: Option<(AxisId, Vec<(VarId, ValueId)>)>,
}

/// A gradient by its parts.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// Outer products: a vector for the rows, a vector for the columns.
    pub products: Vec<(ValueId, ValueId)>,
    /// What is none.
    pub rest: Option<ValueId>,
}

impl Token<'_, '_> {
    /// The whole step; gives the token's output.
    pub fn run(&mut self) -> Result<ValueId, Failure> {
        for gradient in &self.rule.gradients {
            for named in &gradient.named {
                self.at.names.insert(named.term, named.name.clone());
            }
        }
        let gradient_at = self.open_chunk()?;
        let old = self.weights_now()?;
        let early = if self.rule.layer.read_before { Some(self.read(&old)?) } else { None };
        match self.repeats.take() {
            None => self.single(&old, gradient_at.as_deref())?,
            Some((axis, repeated)) => self.several(axis, &repeated, gradient_at.as_deref())?,
        }
        let new = self.close_chunk()?;
        for (primal, weight) in self.primal.iter_mut().zip(&new) {
            *primal = primal.map(|_| *weight);
        }
        match early {
            Some(read) => Ok(read),
            None => self.read(&new),
        }
    }

    /// Number of weights.
    pub fn weights(&self) -> usize {
        self.rule.retention.len()
    }

    /// Shape of the l-th weight.
    pub fn shape(&self, l: usize) -> Shape {
        self.rule.layer.memory.weights[l].shape.clone()
    }

    /// The weights that the carried values stand for, before the step.
    fn weights_now(&mut self) -> Result<Vec<ValueId>, Failure> {
        (0..self.weights())
            .map(|l| match (self.primal[l], &self.chunk) {
                (Some(weight), _) => Ok(weight),
                (None, Some(_)) => self.inside(l),
                (None, None) => self.value(l, self.carried[l]),
            })
            .collect()
    }

    /// W of the l-th weight from a carried value, with the parameters of this token.
    pub fn value(&mut self, l: usize, carried: ValueId) -> Result<ValueId, Failure> {
        let retained = &self.rule.retention[l];
        match retained.value {
            None => Ok(carried),
            Some(value) => self.mapped(l, retained.carried, carried, value),
        }
    }

    /// A map of a carried value that gives something of the weight's shape.
    pub fn mapped(
        &mut self,
        l: usize,
        var: VarId,
        carried: ValueId,
        map: TermId,
    ) -> Result<ValueId, Failure> {
        let shape = self.shape(l);
        let mut inner = self.at.inner();
        inner.bind(var, carried);
        inner.lower_whole(map, &shape)
    }

    /// M(q; W).
    fn read(&mut self, weights: &[ValueId]) -> Result<ValueId, Failure> {
        let memory = &self.rule.layer.memory;
        let read = memory.read.ok_or_else(|| Failure::bug("a memory without a read"))?;
        let query = self.at.vars.get(&self.rule.layer.query).copied();
        let query = query.ok_or_else(|| Failure::bug("a token without a query"))?;
        let own = self.rule.terms().shape(read).clone();
        let mut inner = self.at.inner();
        inner.bind(memory.argument, query);
        for (weight, value) in memory.weights.iter().zip(weights) {
            inner.bind(weight.var, *value);
        }
        let value = inner.lower(read)?;
        inner.fit_value(value, &own, &Shape::vector(Dim::dv()))
    }

    /// Gradients, direction, retention: one step per token.
    fn single(&mut self, weights: &[ValueId], gradient_at: Option<&[ValueId]>) -> Result<(), Failure> {
        let updates = self.updates(0, weights, gradient_at)?;
        for (l, update) in updates.into_iter().enumerate() {
            self.retain(l, update)?;
        }
        Ok(())
    }

    /// Retention once with u = 0, then the steps of the algorithm, each at the weights as they are.
    fn several(
        &mut self,
        axis: AxisId,
        repeated: &[(VarId, ValueId)],
        gradient_at: Option<&[ValueId]>,
    ) -> Result<(), Failure> {
        for l in 0..self.weights() {
            let zero = self.at.number(0.0);
            self.retain(l, zero)?;
        }
        for j in 0..self.step.repeats as usize {
            for (var, all) in repeated {
                let entry = self.at.graph.add(self.at.block, Op::At(*all, axis, j));
                self.at.bind(*var, entry);
            }
            let weights = (0..self.weights())
                .map(|l| if self.chunk.is_some() { self.inside(l) } else { self.value(l, self.carried[l]) })
                .collect::<Result<Vec<_>, _>>()?;
            let updates = self.updates(j, &weights, gradient_at)?;
            for (l, update) in updates.into_iter().enumerate() {
                self.carried[l] = self.at.fn2(Fn2::Add, self.carried[l], update);
            }
        }
        Ok(())
    }

    /// Moves the l-th carried value on by an update.
    fn retain(&mut self, l: usize, update: ValueId) -> Result<(), Failure> {
        let retained = &self.rule.retention[l];
        let shape = self.shape(l);
        let mut inner = self.at.inner();
        inner.bind(retained.carried, self.carried[l]);
        inner.bind(retained.update, update);
        let mut next = inner.lower_whole(retained.advance, &shape)?;
        if self.finishes_each_step(retained)
            && let Some(finish) = retained.finish
        {
            next = self.mapped(l, retained.carried, next, finish)?;
        }
        let name = format!("{}'", self.rule.terms().var(retained.carried).name);
        self.at.graph.set_name(next, &name);
        self.carried[l] = next;
        self.raise_threshold(l)
    }

    /// u for each weight at the given weights, in the token's j-th step; moves the algorithm's states on.
    fn updates(
        &mut self,
        j: usize,
        weights: &[ValueId],
        gradient_at: Option<&[ValueId]>,
    ) -> Result<Vec<ValueId>, Failure> {
        let layer = &self.rule.layer;
        for (weight, value) in layer.memory.weights.iter().zip(weights) {
            self.at.bind(weight.var, *value);
        }
        for (l, value) in self.carried.clone().into_iter().enumerate() {
            let carried = self.rule.retention[l].carried;
            if carried != layer.memory.weights[l].var {
                self.at.bind(carried, value);
            }
        }
        self.bind_retained()?;
        for (state, value) in self.step.states.iter().zip(self.states.clone()) {
            self.at.bind(state.old, value);
        }
        for (p, (point, gradient)) in self.step.points.iter().zip(&self.rule.gradients).enumerate() {
            match self.given.as_ref().and_then(|g| g.get(j)?.get(p)).cloned() {
                Some(given) => self.bind_given(&point.gradients, &given)?,
                None => self.gradient(&point.at, &point.gradients, gradient, gradient_at)?,
            }
        }
        for (i, state) in self.step.states.iter().enumerate() {
            let shape = self.rule.terms().var(state.new).shape.clone();
            let value = self.at.lower_whole(state.next, &shape)?;
            self.at.graph.set_name(value, &self.rule.terms().var(state.new).name);
            self.at.bind(state.new, value);
            self.states[i] = value;
        }
        (0..self.weights())
            .map(|l| {
                let direction = self.step.direction[l];
                let own = self.rule.terms().shape(direction).clone();
                let value = self.at.lower(direction)?;
                self.at.fit_value(value, &own, &self.rule.layer.memory.weights[l].shape)
            })
            .collect()
    }

    /// What retention makes of each weight when u = 0, for algorithms that ask.
    fn bind_retained(&mut self) -> Result<(), Failure> {
        let asked = self.step.points.iter().flat_map(|p| &p.at).chain(&self.step.direction).copied();
        let asked = self
            .rule
            .terms()
            .vars_of(&asked.chain(self.step.states.iter().map(|s| s.next)).collect::<Vec<_>>());
        for (l, var) in self.step.retained.iter().enumerate() {
            if !asked.contains(var) {
                continue;
            }
            let retained: &Retained = &self.rule.retention[l];
            let zero = self.at.number(0.0);
            let shape = self.shape(l);
            let mut inner = self.at.inner();
            inner.bind(retained.carried, self.carried[l]);
            inner.bind(retained.update, zero);
            let mut value = inner.lower_whole(retained.advance, &shape)?;
            if let Some(finish) = retained.finish {
                value = self.mapped(l, retained.carried, value, finish)?;
            }
            let value = self.value(l, value)?;
            self.at.bind(*var, value);
        }
        Ok(())
    }

    /// Binds the gradient variables of one point to what is there already.
    fn bind_given(&mut self, vars: &[VarId], given: &[Given]) -> Result<(), Failure> {
        for (l, (var, given)) in vars.iter().zip(given).enumerate() {
            let mut sum = given.rest;
            for (left, right) in &given.products {
                let rows = self.shape(l).0.first().cloned().unwrap_or_else(Dim::one);
                let (from, to) = (self.at.axis(&rows, 0)?, self.at.axis(&rows, 1)?);
                let left = self.at.rename(*left, from, to);
                let product = self.at.fn2(Fn2::Mul, left, *right);
                sum = Some(sum.map_or(product, |sum| self.at.fn2(Fn2::Add, sum, product)));
            }
            let sum = sum.unwrap_or_else(|| self.at.number(0.0));
            self.at.bind(*var, sum);
        }
        Ok(())
    }

    /// Binds the gradient variables of one point; at the given weights where gradients are frozen.
    fn gradient(
        &mut self,
        at: &[TermId],
        vars: &[VarId],
        gradient: &Gradient,
        frozen: Option<&[ValueId]>,
    ) -> Result<(), Failure> {
        let (rule, step) = (self.rule, self.step);
        let mut values = Vec::new();
        {
            let names = self.at.names.clone();
            let mut place = self.at.inner();
            if let Some(frozen) = frozen {
                for ((weight, retained), value) in
                    rule.layer.memory.weights.iter().zip(&step.retained).zip(frozen)
                {
                    place.bind(weight.var, *value);
                    place.bind(*retained, *value);
                }
            }
            let mut points = Vec::new();
            for (weight, term) in rule.layer.memory.weights.iter().zip(at) {
                points.push(place.lower_whole(*term, &weight.shape)?);
            }
            let mut inner = place.inner();
            inner.names = names;
            for (var, value) in gradient.at_vars.iter().zip(points) {
                inner.bind(*var, value);
            }
            for (sum, weight) in gradient.by_weight.iter().zip(&rule.layer.memory.weights) {
                values.push(outer_sum(&mut inner, sum, &weight.shape)?);
            }
        }
        for (var, value) in vars.iter().zip(values) {
            let value = value.unwrap_or_else(|| self.at.number(0.0));
            self.at.bind(*var, value);
        }
        Ok(())
    }
}

/// The sum of a gradient's outer products and its rest, with axes called as those of the weight's
/// shape; None where it has no parts.
fn outer_sum(at: &mut TermLowering<'_>, sum: &OuterSum, shape: &Shape) -> Result<Option<ValueId>, Failure> {
    let mut parts = Vec::new();
    for (left, right) in &sum.products {
        let (rows, cols) = (at.terms.shape(*left).clone(), at.terms.shape(*right).clone());
        let (mut delta, h) = (at.lower(*left)?, at.lower(*right)?);
        if let [n] = rows.0.as_slice() {
            let (from, to) = (at.axis(n, 0)?, at.axis(n, 1)?);
            delta = at.rename(delta, from, to);
        }
        let product = at.fn2(Fn2::Mul, delta, h);
        let own = Shape(rows.0.into_iter().chain(cols.0).collect());
        parts.push(at.fit_value(product, &own, shape)?);
    }
    if let Some(rest) = sum.rest {
        let own = at.terms.shape(rest).clone();
        let rest = at.lower(rest)?;
        parts.push(at.fit_value(rest, &own, shape)?);
    }
    Ok(parts.into_iter().reduce(|total, part| at.fn2(Fn2::Add, total, part)))
}
