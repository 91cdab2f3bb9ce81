//! The recurrent schedule: one scan over tokens whose body is the update rule, step by step.

use super::term::{AxisTable, TermLowering};
use super::{Failure, Sizes, Start};
use crate::ir::{AxisId, BlockId, Carry, Graph, Input, Op, Origin, Output, Scan, Size, Slice, ValueId};
use miras_base::Dim;
use miras_base::scalar::Fn2;
use miras_rule::{Gradient, OuterSum, Retained, UpdateRule};
use miras_schedule::Plan;
use miras_spec::{Algo, Param, Source, Step};
use miras_term::{Shape, TermId, VarId};
use std::collections::HashMap;

/// Lowers the recurrent schedule.
pub(super) fn lower(plan: &Plan, sizes: &Sizes, start: Start) -> Result<Graph, Failure> {
    let rule = &plan.rule;
    let Algo::Step(step) = &rule.layer.algo else {
        return Err(Failure::limit(
            "a memory that keeps a history runs on the reference backend only",
            "add `--backend reference`",
        ));
    };
    let mut build = Build::new(rule, step, sizes);
    build.inputs(start)?;
    build.first_carries(start)?;
    let body = build.graph.add_block(Graph::TASK);
    build.body(body)?;
    build.finish(body)
}

/// A token input: outside the scan, and in its body one slice for each repetition.
struct TokenInput {
    var: VarId,
    whole: ValueId,
    inner_axes: Vec<AxisId>,
    name: String,
    repeated: bool,
}

struct Build<'a> {
    rule: &'a UpdateRule,
    step: &'a Step,
    graph: Graph,
    axes: AxisTable,
    time: AxisId,
    repeat: Option<AxisId>,
    tokens: Vec<TokenInput>,
    /// Values of per-head parameters; the same in every block.
    heads: HashMap<VarId, ValueId>,
    /// Carried values before the first token: one for each weight, then one for each state.
    first: Vec<ValueId>,
    carries: Vec<Carry>,
    slices: Vec<Slice>,
    /// Weights carried beside their duals where the map between them does not depend on the token.
    primal: Vec<Option<(ValueId, ValueId)>>,
    output: Option<ValueId>,
}

impl<'a> Build<'a> {
    fn new(rule: &'a UpdateRule, step: &'a Step, sizes: &Sizes) -> Self {
        let mut graph = Graph::new();
        let time = graph.add_axis("t", Size::Tokens);
        let repeat = (step.repeats > 1).then(|| graph.add_axis("step", Size::Fixed(step.repeats as usize)));
        Build {
            rule,
            step,
            graph,
            axes: AxisTable::new(&sizes.dims),
            time,
            repeat,
            tokens: Vec::new(),
            heads: HashMap::new(),
            first: Vec::new(),
            carries: Vec::new(),
            slices: Vec::new(),
            primal: Vec::new(),
            output: None,
        }
    }

    fn shape_axes(&mut self, shape: &Shape) -> Result<Vec<AxisId>, Failure> {
        Ok(self.axes.of_shape(&mut self.graph, shape)?.into_iter().flatten().collect())
    }

    fn inputs(&mut self, start: Start) -> Result<(), Failure> {
        let layer = &self.rule.layer;
        self.token_input("q", layer.query, false)?;
        self.token_input("k", layer.key, self.repeat.is_some())?;
        self.token_input("v", layer.value, self.repeat.is_some())?;
        for param in &layer.params {
            match param.source {
                Source::Learned(_) | Source::Input => self.token_input(&param.tensor, param.var, param.repeated)?,
                Source::Trained(_) | Source::Slow(_) => self.head_input(param)?,
            }
        }
        if start == Start::Weights {
            for weight in &layer.memory.weights {
                let value = self.input(&format!("memory.{}", weight.name), Origin::Head, &weight.shape)?;
                self.heads.insert(weight.var, value);
            }
        }
        Ok(())
    }

    fn token_input(&mut self, tensor: &str, var: VarId, repeated: bool) -> Result<(), Failure> {
        let shape = self.rule.terms().var(var).shape.clone();
        let inner_axes = self.shape_axes(&shape)?;
        let repeat = if repeated { self.repeat } else { None };
        let axes = [Some(self.time), repeat].into_iter().flatten().chain(inner_axes.iter().copied()).collect();
        let whole = self.graph.given(Graph::TASK, axes, tensor);
        self.graph.inputs.push(Input { tensor: tensor.into(), origin: Origin::Token, value: whole });
        let name = self.rule.terms().var(var).name.clone();
        self.tokens.push(TokenInput { var, whole, inner_axes, name, repeated: repeat.is_some() });
        Ok(())
    }

    fn head_input(&mut self, param: &Param) -> Result<(), Failure> {
        let shape = self.rule.terms().var(param.var).shape.clone();
        let value = self.input(&param.tensor, Origin::Head, &shape)?;
        self.heads.insert(param.var, value);
        Ok(())
    }

    fn input(&mut self, tensor: &str, origin: Origin, shape: &Shape) -> Result<ValueId, Failure> {
        let axes = self.shape_axes(shape)?;
        let value = self.graph.given(Graph::TASK, axes, tensor);
        self.graph.inputs.push(Input { tensor: tensor.into(), origin, value });
        Ok(value)
    }

    /// What the stream carries before its first token.
    fn first_carries(&mut self, start: Start) -> Result<(), Failure> {
        let rule = self.rule;
        for (weight, retained) in rule.layer.memory.weights.iter().zip(&rule.retention) {
            let first = match start {
                Start::State => self.input(&format!("state.memory.{}", weight.name), Origin::Stream, &weight.shape)?,
                Start::Weights => match retained.start {
                    None => self.heads[&weight.var],
                    Some(term) => self.task_term(term, &weight.shape)?,
                },
            };
            self.first.push(first);
        }
        for state in &self.step.states {
            let shape = rule.terms().var(state.old).shape.clone();
            let first = match start {
                Start::State => self.input(&format!("state.algo.{}", state.name), Origin::Stream, &shape)?,
                Start::Weights => self.task_term(state.start, &shape)?,
            };
            self.first.push(first);
        }
        Ok(())
    }

    /// A term of per-head values, with all axes of the shape.
    fn task_term(&mut self, term: TermId, shape: &Shape) -> Result<ValueId, Failure> {
        let axes = self.shape_axes(shape)?;
        let vars = self.heads.clone();
        let own = self.rule.terms().shape(term).clone();
        let mut at = TermLowering::new(&mut self.graph, &mut self.axes, self.rule.terms(), Graph::TASK, vars);
        let value = at.lower(term)?;
        let value = at.fit_value(value, &own, shape)?;
        Ok(at.spread(value, &axes))
    }

    /// One token: the steps of `rule::UpdateRule`.
    fn body(&mut self, body: BlockId) -> Result<(), Failure> {
        let rule = self.rule;
        let step_axis = self.repeat;
        let mut vars = self.heads.clone();
        let mut repeated: Vec<(VarId, ValueId)> = Vec::new();
        for token in &self.tokens {
            let axes = token.repeated.then_some(step_axis).flatten().into_iter().chain(token.inner_axes.iter().copied());
            let slice = self.graph.given(body, axes.collect(), token.name.clone());
            self.slices.push(Slice { whole: token.whole, slice });
            if token.repeated {
                repeated.push((token.var, slice));
            } else {
                vars.insert(token.var, slice);
            }
        }
        let before = self.carries_before(body);
        let shapes: Vec<Shape> = rule.layer.memory.weights.iter().map(|w| w.shape.clone()).collect();
        let weights = rule.layer.memory.weights.len();
        let mut token = Token {
            rule,
            step: self.step,
            at: TermLowering::new(&mut self.graph, &mut self.axes, rule.terms(), body, vars),
            shapes,
            carried: before[..weights].to_vec(),
            states: before[weights..].to_vec(),
            primal: Vec::new(),
        };
        token.name_terms();
        let ready: Vec<Option<ValueId>> = self.primal.iter().map(|p| p.map(|(_, inside)| inside)).collect();
        token.bind_weights(&ready)?;
        let early = if rule.layer.read_before { Some(token.read()?) } else { None };
        match step_axis {
            None => token.single()?,
            Some(axis) => token.several(axis, self.step.repeats, &repeated)?,
        }
        let output = match early {
            Some(read) => read,
            None => {
                token.bind_weights(&[])?;
                token.read()?
            }
        };
        let after: Vec<ValueId> = token.carried.iter().chain(&token.states).copied().collect();
        if rule.layer.read_before {
            token.bind_weights(&[])?;
        }
        let primal_after = token.primal.clone();
        for ((first, before), after) in self.first.iter().zip(&before).zip(after) {
            self.carries.push(Carry { first: *first, before: *before, after });
        }
        for (primal, after) in self.primal.iter().zip(primal_after) {
            if let Some((first, before)) = primal {
                self.carries.push(Carry { first: *first, before: *before, after });
            }
        }
        self.output = Some(output);
        Ok(())
    }

    /// Parameters of the body for everything carried: duals or weights, states, and weights beside their
    /// duals where that saves mapping them twice.
    fn carries_before(&mut self, body: BlockId) -> Vec<ValueId> {
        let rule = self.rule;
        let names: Vec<String> = (rule.retention.iter().map(|r| r.carried))
            .chain(self.step.states.iter().map(|s| s.old))
            .map(|v| rule.terms().var(v).name.clone())
            .collect();
        let mut before = Vec::new();
        for (first, name) in self.first.clone().into_iter().zip(names) {
            let axes = self.graph.value(first).axes.clone();
            before.push(self.graph.given(body, axes, name));
        }
        self.primal = (0..rule.retention.len()).map(|l| self.primal_carry(l, body)).collect();
        before
    }

    fn primal_carry(&mut self, l: usize, body: BlockId) -> Option<(ValueId, ValueId)> {
        let rule = self.rule;
        let (retained, weight) = (&rule.retention[l], &rule.layer.memory.weights[l]);
        let value = retained.value?;
        let per_token = |v: &VarId| self.tokens.iter().any(|t| t.var == *v);
        if rule.terms().vars_of(&[value]).iter().any(per_token) {
            return None;
        }
        let mut vars = self.heads.clone();
        vars.insert(retained.carried, self.first[l]);
        let mut at = TermLowering::new(&mut self.graph, &mut self.axes, rule.terms(), Graph::TASK, vars);
        let first = at.lower(value).ok()?;
        let axes = self.graph.value(self.first[l]).axes.clone();
        let inside = self.graph.given(body, axes, weight.display.clone());
        Some((first, inside))
    }

    fn finish(mut self, body: BlockId) -> Result<Graph, Failure> {
        let output = self.output.ok_or_else(|| Failure::bug("a token without an output"))?;
        let carries = self.carries.len();
        let scan = Scan { axis: self.time, body, carries: self.carries.clone(), slices: self.slices.clone(), stacked: vec![output] };
        let (finals, stacks) = self.graph.add_scan(Graph::TASK, scan);
        debug_assert_eq!(finals.len(), carries);
        let values = self.shape_axes(&Shape::vector(Dim::dv()))?;
        let axes = std::iter::once(self.time).chain(values).collect();
        self.graph.outputs.push(Output { tensor: "o".into(), origin: Origin::Token, value: stacks[0], axes });
        let names = (self.rule.layer.memory.weights.iter().map(|w| format!("state.memory.{}", w.name)))
            .chain(self.step.states.iter().map(|s| format!("state.algo.{}", s.name)));
        for (tensor, value) in names.zip(finals) {
            let axes = self.graph.value(value).axes.clone();
            self.graph.outputs.push(Output { tensor, origin: Origin::Stream, value, axes });
        }
        Ok(self.graph)
    }
}

/// One token's step inside the body.
struct Token<'a, 'g> {
    rule: &'a UpdateRule,
    step: &'a Step,
    at: TermLowering<'g>,
    shapes: Vec<Shape>,
    carried: Vec<ValueId>,
    states: Vec<ValueId>,
    primal: Vec<ValueId>,
}

impl Token<'_, '_> {
    fn name_terms(&mut self) {
        for gradient in &self.rule.gradients {
            for named in &gradient.named {
                self.at.names.insert(named.term, named.name.clone());
            }
        }
    }

    /// Binds the weights to what the carried values stand for; `ready` holds those already mapped.
    fn bind_weights(&mut self, ready: &[Option<ValueId>]) -> Result<(), Failure> {
        self.primal.clear();
        for (l, retained) in self.rule.retention.iter().enumerate() {
            let weight = match (ready.get(l).copied().flatten(), retained.value) {
                (Some(weight), _) => weight,
                (None, None) => self.carried[l],
                (None, Some(value)) => {
                    self.at.bind(retained.carried, self.carried[l]);
                    let lowered = self.at.lower(value)?;
                    self.whole(l, lowered, value)?
                }
            };
            self.at.bind(self.rule.layer.memory.weights[l].var, weight);
            self.primal.push(weight);
        }
        for (l, retained) in self.rule.retention.iter().enumerate() {
            if retained.carried != self.rule.layer.memory.weights[l].var {
                self.at.bind(retained.carried, self.carried[l]);
            }
        }
        Ok(())
    }

    /// A value of a term with all axes of the l-th weight.
    fn whole(&mut self, l: usize, value: ValueId, term: TermId) -> Result<ValueId, Failure> {
        let shape = self.shapes[l].clone();
        let own = self.rule.terms().shape(term).clone();
        let value = self.at.fit_value(value, &own, &shape)?;
        let axes: Vec<AxisId> = self.at.axes.of_shape(self.at.graph, &shape)?.into_iter().flatten().collect();
        Ok(self.at.spread(value, &axes))
    }

    fn read(&mut self) -> Result<ValueId, Failure> {
        let memory = &self.rule.layer.memory;
        let read = memory.read.ok_or_else(|| Failure::bug("a memory without a read"))?;
        let query = self.at.vars.get(&self.rule.layer.query).copied();
        self.at.bind(memory.argument, query.ok_or_else(|| Failure::bug("a token without a query"))?);
        let value = self.at.lower(read)?;
        let own = self.rule.terms().shape(read).clone();
        self.at.fit_value(value, &own, &Shape::vector(Dim::dv()))
    }

    /// Gradients, direction, retention: one step per token.
    fn single(&mut self) -> Result<(), Failure> {
        let updates = self.updates()?;
        for (l, update) in updates.into_iter().enumerate() {
            self.carried[l] = self.retain(l, update)?;
        }
        Ok(())
    }

    /// Retention once with u = 0, then the steps of the algorithm, each at the weights as they are.
    fn several(&mut self, axis: AxisId, steps: u32, repeated: &[(VarId, ValueId)]) -> Result<(), Failure> {
        for l in 0..self.carried.len() {
            let zero = self.at.number(0.0);
            self.carried[l] = self.retain(l, zero)?;
        }
        for j in 0..steps as usize {
            for (var, all) in repeated {
                let entry = self.at.graph.add(self.at.block, Op::At(*all, axis, j));
                self.at.bind(*var, entry);
            }
            self.bind_weights(&[])?;
            let updates = self.updates()?;
            for (l, update) in updates.into_iter().enumerate() {
                self.carried[l] = self.at.fn2(Fn2::Add, self.carried[l], update);
            }
        }
        Ok(())
    }

    /// carried' of the l-th weight for an update.
    fn retain(&mut self, l: usize, update: ValueId) -> Result<ValueId, Failure> {
        let retained: &Retained = &self.rule.retention[l];
        self.at.bind(retained.update, update);
        let mut next = self.at.lower(retained.advance)?;
        next = self.whole(l, next, retained.advance)?;
        if let Some(finish) = retained.finish {
            let before = self.at.vars.get(&retained.carried).copied();
            let mut inner = self.at.inner();
            inner.bind(retained.carried, next);
            let finished = inner.lower(finish)?;
            next = self.whole(l, finished, finish)?;
            if let Some(before) = before {
                self.at.bind(retained.carried, before);
            }
        }
        let name = format!("{}'", self.rule.terms().var(retained.carried).name);
        self.at.graph.set_name(next, &name);
        Ok(next)
    }

    /// u for each weight at the current weights; advances the algorithm's states.
    fn updates(&mut self) -> Result<Vec<ValueId>, Failure> {
        for (l, var) in self.step.retained.iter().enumerate() {
            if let Some(term) = self.rule.retention[l].retained {
                let value = self.at.lower(term)?;
                let value = self.whole(l, value, term)?;
                self.at.bind(*var, value);
            }
        }
        for (state, value) in self.step.states.iter().zip(self.states.clone()) {
            self.at.bind(state.old, value);
        }
        for (point, gradient) in self.step.points.iter().zip(&self.rule.gradients) {
            self.gradient(&point.at, &point.gradients, gradient)?;
        }
        for (i, state) in self.step.states.iter().enumerate() {
            let value = self.at.lower(state.next)?;
            let own = self.rule.terms().shape(state.next).clone();
            let shape = self.rule.terms().var(state.new).shape.clone();
            let value = self.at.fit_value(value, &own, &shape)?;
            let axes: Vec<AxisId> = self.at.axes.of_shape(self.at.graph, &shape)?.into_iter().flatten().collect();
            let value = self.at.spread(value, &axes);
            self.at.graph.set_name(value, &self.rule.terms().var(state.new).name);
            self.at.bind(state.new, value);
            self.states[i] = value;
        }
        let mut updates = Vec::new();
        for (l, direction) in self.step.direction.iter().enumerate() {
            let value = self.at.lower(*direction)?;
            let own = self.rule.terms().shape(*direction).clone();
            updates.push(self.at.fit_value(value, &own, &self.shapes[l].clone())?);
        }
        Ok(updates)
    }

    /// Binds the gradient variables of one point.
    fn gradient(&mut self, at: &[TermId], vars: &[VarId], gradient: &Gradient) -> Result<(), Failure> {
        let mut points = Vec::new();
        for (l, term) in at.iter().enumerate() {
            let value = self.at.lower(*term)?;
            points.push(self.whole(l, value, *term)?);
        }
        let mut values = Vec::new();
        {
            let names = self.at.names.clone();
            let mut inner = self.at.inner();
            inner.names = names;
            for (var, value) in gradient.at_vars.iter().zip(points) {
                inner.bind(*var, value);
            }
            for (sum, shape) in gradient.by_weight.iter().zip(&self.shapes) {
                values.push(outer_sum(&mut inner, sum, shape)?);
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
