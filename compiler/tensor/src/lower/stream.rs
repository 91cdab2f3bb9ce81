//! A stream: one scan over its tokens, whose body is one token's step.

use super::frozen::Chunk;
use super::term::{AxisTable, TermLowering};
use super::token::Token;
use super::{CLOSES, FRESH, Failure, Sizes, Start};
use crate::ir::{AxisId, BlockId, Carry, Graph, Input, Order, Origin, Output, Scan, Size, Slice, ValueId};
use miras_base::Dim;
use miras_rule::{Inside, Remembered, UpdateRule};
use miras_schedule::Plan;
use miras_spec::{Algo, Param, Source, Step};
use miras_term::{Shape, TermId, VarId};
use std::collections::HashMap;

/// Lowers a plan token by token; `frozen`: with gradients at the chunk's starting weights. Weights that are
/// `declared` begin as their declaration says where that depends on something; there is no tensor of them then.
pub(super) fn lower(
    plan: &Plan,
    sizes: &Sizes,
    start: Start,
    frozen: bool,
    declared: &[bool],
) -> Result<Graph, Failure> {
    let rule = &plan.rule;
    let Algo::Step(step) = &rule.layer.algo else {
        return Err(Failure::bug("a history without an answer"));
    };
    let mut build = Build::new(rule, step, sizes, start);
    build.inputs(declared)?;
    build.carried()?;
    if frozen {
        build.chunk_carries()?;
    }
    let body = build.graph.add_block(Graph::TASK);
    build.body(body, frozen)?;
    build.finish(body)
}

/// A token input: outside the scan, and how its slices look in the body.
struct TokenInput {
    var: VarId,
    whole: ValueId,
    inner_axes: Vec<AxisId>,
    name: String,
    repeated: bool,
}

/// Something carried from token to token.
struct Carried {
    /// Its value before the first token.
    first: ValueId,
    /// Its name in formulas.
    name: String,
    /// The tensor that hands it on, if any.
    state: Option<String>,
}

/// Indices of what one weight carries.
#[derive(Clone, Copy, Default)]
struct Slots {
    carried: usize,
    anchor: Option<usize>,
    threshold: Option<usize>,
    start_weight: Option<usize>,
    scale: Option<usize>,
    /// The weight beside its dual, where the map between them does not depend on the token.
    primal: Option<usize>,
}

struct Build<'a> {
    rule: &'a UpdateRule,
    step: &'a Step,
    start: Start,
    graph: Graph,
    axes: AxisTable,
    time: AxisId,
    repeat: Option<AxisId>,
    tokens: Vec<TokenInput>,
    /// Values of per-head parameters; the same in every block.
    heads: HashMap<VarId, ValueId>,
    carries: Vec<Carried>,
    slots: Vec<Slots>,
    /// Indices of the algorithm's states among the carries.
    states: Vec<usize>,
    /// [`CLOSES`] and [`FRESH`].
    flags: Option<[ValueId; 2]>,
    slices: Vec<Slice>,
    scan: Vec<Carry>,
    output: Option<ValueId>,
}

impl<'a> Build<'a> {
    fn new(rule: &'a UpdateRule, step: &'a Step, sizes: &Sizes, start: Start) -> Self {
        let mut graph = Graph::new();
        let time = graph.add_axis("t", Size::Tokens);
        let repeat = (step.repeats > 1).then(|| graph.add_axis("step", Size::Fixed(step.repeats as usize)));
        Build {
            rule,
            step,
            start,
            graph,
            axes: AxisTable::new(&sizes.dims),
            time,
            repeat,
            tokens: Vec::new(),
            heads: HashMap::new(),
            carries: Vec::new(),
            slots: Vec::new(),
            states: Vec::new(),
            flags: None,
            slices: Vec::new(),
            scan: Vec::new(),
            output: None,
        }
    }

    fn shape_axes(&mut self, shape: &Shape) -> Result<Vec<AxisId>, Failure> {
        Ok(self.axes.of_shape(&mut self.graph, shape)?.into_iter().flatten().collect())
    }
}

/// Inputs.
impl Build<'_> {
    fn inputs(&mut self, declared: &[bool]) -> Result<(), Failure> {
        let layer = &self.rule.layer;
        self.token_input("q", layer.query, false)?;
        self.token_input("k", layer.key, self.repeat.is_some())?;
        self.token_input("v", layer.value, self.repeat.is_some())?;
        for param in &layer.params {
            match param.source {
                Source::Learned(_) | Source::Input => {
                    self.token_input(&param.tensor, param.var, param.repeated)?
                }
                Source::Trained(_) | Source::Slow(_) => self.head_input(param)?,
            }
        }
        if self.start == Start::Weights {
            for (l, weight) in layer.memory.weights.iter().enumerate() {
                let linked = |term: &TermId| !self.rule.terms().vars_of(&[*term]).is_empty();
                let term = weight.start.filter(linked).filter(|_| declared.get(l) == Some(&true));
                let value = match term {
                    Some(term) => self.task_term(term, &weight.shape, &self.heads.clone())?,
                    None => self.input(&format!("memory.{}", weight.name), Origin::Head, &weight.shape)?,
                };
                self.heads.insert(weight.var, value);
            }
        }
        Ok(())
    }

    fn token_input(&mut self, tensor: &str, var: VarId, repeated: bool) -> Result<(), Failure> {
        let shape = self.rule.terms().var(var).shape.clone();
        let inner_axes = self.shape_axes(&shape)?;
        let repeat = if repeated { self.repeat } else { None };
        let whole = self.whole_token_input(tensor, repeat.iter().chain(&inner_axes).copied().collect());
        let name = self.rule.terms().var(var).name.clone();
        self.tokens.push(TokenInput { var, whole, inner_axes, name, repeated: repeat.is_some() });
        Ok(())
    }

    fn whole_token_input(&mut self, tensor: &str, inner: Vec<AxisId>) -> ValueId {
        let axes = std::iter::once(self.time).chain(inner).collect();
        let value = self.graph.given(Graph::TASK, axes, tensor);
        self.graph.inputs.push(Input { tensor: tensor.into(), origin: Origin::Token, value });
        value
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
}

/// What goes from token to token.
impl Build<'_> {
    /// Carried values of the weights and the algorithm's states.
    fn carried(&mut self) -> Result<(), Failure> {
        let rule = self.rule;
        for (weight, retained) in rule.layer.memory.weights.iter().zip(&rule.retention) {
            let tensor = format!("state.memory.{}", weight.name);
            let first = match (self.start, retained.start) {
                (Start::State, _) => self.input(&tensor, Origin::Stream, &weight.shape)?,
                (Start::Weights, None) => self.heads[&weight.var],
                (Start::Weights, Some(term)) => self.task_term(term, &weight.shape, &self.heads.clone())?,
            };
            let carried = self.carry(first, &rule.terms().var(retained.carried).name, Some(tensor));
            self.slots.push(Slots { carried, ..Slots::default() });
        }
        for state in &self.step.states {
            let (tensor, shape) =
                (format!("state.algo.{}", state.name), rule.terms().var(state.old).shape.clone());
            let first = match self.start {
                Start::State => self.input(&tensor, Origin::Stream, &shape)?,
                Start::Weights => self.task_term(state.start, &shape, &self.heads.clone())?,
            };
            let index = self.carry(first, &rule.terms().var(state.old).name, Some(tensor));
            self.states.push(index);
        }
        Ok(())
    }

    fn carry(&mut self, first: ValueId, name: &str, state: Option<String>) -> usize {
        self.carries.push(Carried { first, name: name.into(), state });
        self.carries.len() - 1
    }

    /// What a chunk with frozen gradients carries besides: the anchor, the threshold since then, W_0 and the
    /// frozen scale. The last two are made anew by the first token of a run, unless the stream remembers them.
    fn chunk_carries(&mut self) -> Result<(), Failure> {
        let rule = self.rule;
        let flags = [CLOSES, FRESH].map(|name| self.whole_token_input(name, Vec::new()));
        self.flags = Some(flags);
        for (l, (weight, retained)) in rule.layer.memory.weights.iter().zip(&rule.retention).enumerate() {
            let tensor = format!("state.anchor.{}", weight.name);
            let first = match self.start {
                Start::Weights => self.carries[self.slots[l].carried].first,
                Start::State => self.input(&tensor, Origin::Stream, &weight.shape)?,
            };
            self.slots[l].anchor = Some(self.carry(first, &format!("{}_0", weight.display), Some(tensor)));
            if let Inside::Threshold(_) = retained.inside {
                self.slots[l].threshold = Some(self.chunk_carry(l, Remembered::Threshold, "Gamma")?);
            }
            if retained.value.is_some() {
                let name = format!("start of {}", weight.display);
                self.slots[l].start_weight = Some(self.chunk_carry(l, Remembered::Start, &name)?);
            }
            if let Inside::FrozenScale(_) = retained.inside {
                self.slots[l].scale = Some(self.chunk_carry(l, Remembered::Scale, "scale")?);
            }
        }
        Ok(())
    }

    /// Something of a weight that holds inside the chunk: 0 at first, or as the stream remembers it.
    fn chunk_carry(&mut self, l: usize, part: Remembered, name: &str) -> Result<usize, Failure> {
        let weight = &self.rule.layer.memory.weights[l];
        let (tensor, shape) = (part.tensor(&weight.name), part.shape(&weight.shape));
        let held = self.rule.remembered(l).contains(&part);
        let first = match self.start {
            Start::State if held => self.input(&tensor, Origin::Stream, &shape)?,
            Start::State | Start::Weights => self.zeros(&shape)?,
        };
        Ok(self.carry(first, name, held.then_some(tensor)))
    }

    fn zeros(&mut self, shape: &Shape) -> Result<ValueId, Failure> {
        let axes = self.shape_axes(shape)?;
        let mut at = TermLowering::new(
            &mut self.graph,
            &mut self.axes,
            self.rule.terms(),
            Graph::TASK,
            HashMap::new(),
        );
        let zero = at.number(0.0);
        Ok(at.spread(zero, &axes))
    }

    /// A term outside the scan, with all axes of the shape.
    fn task_term(
        &mut self,
        term: TermId,
        shape: &Shape,
        vars: &HashMap<VarId, ValueId>,
    ) -> Result<ValueId, Failure> {
        let mut at =
            TermLowering::new(&mut self.graph, &mut self.axes, self.rule.terms(), Graph::TASK, vars.clone());
        at.lower_whole(term, shape)
    }

    /// Weights are carried beside their duals where the map between them does not depend on the token: so
    /// it is applied once a token, not twice.
    fn primal_carries(&mut self) -> Result<(), Failure> {
        let rule = self.rule;
        for (l, retained) in rule.retention.iter().enumerate() {
            let Some(value) = retained.value else { continue };
            let per_token = |v: &VarId| self.tokens.iter().any(|t| t.var == *v);
            if rule.terms().vars_of(&[value]).iter().any(per_token) {
                continue;
            }
            let weight = &rule.layer.memory.weights[l];
            let mut vars = self.heads.clone();
            vars.insert(retained.carried, self.carries[self.slots[l].carried].first);
            let first = self.task_term(value, &weight.shape, &vars)?;
            self.slots[l].primal = Some(self.carry(first, &weight.display, None));
        }
        Ok(())
    }
}

/// The body and the end.
impl<'a> Build<'a> {
    /// One token: the steps of `rule::UpdateRule`.
    fn body(&mut self, body: BlockId, frozen: bool) -> Result<(), Failure> {
        if !frozen && !self.rule.layer.read_before {
            self.primal_carries()?;
        }
        let mut vars = self.heads.clone();
        let mut repeated: Vec<(VarId, ValueId)> = Vec::new();
        for token in &self.tokens {
            let step = if token.repeated { self.repeat } else { None };
            let axes = step.iter().chain(&token.inner_axes).copied().collect();
            let slice = self.graph.given(body, axes, token.name.clone());
            self.slices.push(Slice { whole: token.whole, slice });
            if token.repeated {
                repeated.push((token.var, slice));
            } else {
                vars.insert(token.var, slice);
            }
        }
        let flags = self.flags.map(|wholes| {
            wholes.map(|whole| {
                let slice = self.graph.given(
                    body,
                    Vec::new(),
                    self.graph.value(whole).name.clone().unwrap_or_default(),
                );
                self.slices.push(Slice { whole, slice });
                slice
            })
        });
        let before: Vec<ValueId> = (0..self.carries.len())
            .map(|i| {
                let (first, name) = (self.carries[i].first, self.carries[i].name.clone());
                let axes = self.graph.value(first).axes.clone();
                self.graph.given(body, axes, name)
            })
            .collect();
        let pick = |slot: fn(&Slots) -> Option<usize>| -> Vec<Option<ValueId>> {
            self.slots.iter().map(|s| slot(s).map(|i| before[i])).collect()
        };
        let chunk = flags.map(|[closes, fresh]| Chunk {
            closes,
            fresh: Some(fresh),
            anchor: self.slots.iter().filter_map(|s| s.anchor).map(|i| before[i]).collect(),
            threshold: pick(|s| s.threshold),
            start_weight: pick(|s| s.start_weight),
            scale: pick(|s| s.scale),
        });
        let mut token = Token {
            rule: self.rule,
            step: self.step,
            carried: self.slots.iter().map(|s| before[s.carried]).collect(),
            states: self.states.iter().map(|i| before[*i]).collect(),
            primal: pick(|s| s.primal),
            chunk,
            repeats: self.repeat.map(|axis| (axis, repeated)),
            given: None,
            at: TermLowering::new(&mut self.graph, &mut self.axes, self.rule.terms(), body, vars),
        };
        self.output = Some(token.run()?);
        let mut after: Vec<Option<ValueId>> = vec![None; self.carries.len()];
        let (carried, states, primal, chunk) = (token.carried, token.states, token.primal, token.chunk);
        for (l, slots) in self.slots.iter().enumerate() {
            after[slots.carried] = Some(carried[l]);
            let mut put = |slot: Option<usize>, value: Option<ValueId>| {
                if let Some(slot) = slot {
                    after[slot] = value;
                }
            };
            put(slots.primal, primal[l]);
            if let Some(chunk) = &chunk {
                put(slots.anchor, chunk.anchor.get(l).copied());
                put(slots.threshold, chunk.threshold[l]);
                put(slots.start_weight, chunk.start_weight[l]);
                put(slots.scale, chunk.scale[l]);
            }
        }
        for (i, value) in self.states.iter().zip(states) {
            after[*i] = Some(value);
        }
        for ((carried, before), after) in self.carries.iter().zip(before).zip(after) {
            let after = after.ok_or_else(|| Failure::bug(format!("`{}` is not carried on", carried.name)))?;
            self.scan.push(Carry { first: carried.first, before, after });
        }
        Ok(())
    }

    fn finish(mut self, body: BlockId) -> Result<Graph, Failure> {
        let output = self.output.ok_or_else(|| Failure::bug("a token without an output"))?;
        let scan = Scan {
            axis: self.time,
            order: Order::Ascending,
            body,
            carries: self.scan.clone(),
            slices: self.slices.clone(),
            stacked: vec![output],
        };
        let (finals, stacks) = self.graph.add_scan(Graph::TASK, scan);
        let values = self.shape_axes(&Shape::vector(Dim::dv()))?;
        let axes = std::iter::once(self.time).chain(values).collect();
        self.graph.outputs.push(Output { tensor: "o".into(), origin: Origin::Token, value: stacks[0], axes });
        for (carried, value) in self.carries.iter().zip(finals) {
            let Some(tensor) = carried.state.clone() else { continue };
            let axes = self.graph.value(value).axes.clone();
            self.graph.outputs.push(Output { tensor, origin: Origin::Stream, value, axes });
        }
        Ok(self.graph)
    }
}
