//! A stream in blocks of tokens: one scan over blocks, whose body computes all tokens of a block together.
//!
//! Values carry an axis for the tokens of a block beside those of their terms, and meet by name: `from` for
//! tokens that write, `to` for tokens that read.

mod block;
mod exact;
mod factors;
mod frozen;
mod gradients;
mod low_rank;
mod start;
mod vector;

pub(super) use low_rank::LowRank;

use super::term::{AxisTable, TermLowering};
use super::{Failure, Sizes};
use crate::ir::{AxisId, BlockId, Graph, Input, Origin, Output, Size, ValueId};
use block::Steps;
use low_rank::Axes;
use miras_base::Dim;
use miras_rule::UpdateRule;
use miras_schedule::{Affine, Form, Plan};
use miras_spec::{Algo, Source, Step};
use miras_term::{Shape, VarId};
use std::collections::HashMap;
use std::rc::Rc;

/// Lowers a plan by blocks; None where its tokens are computed one after the other.
pub(super) fn lower(plan: &Plan, sizes: &Sizes) -> Result<Option<Graph>, Failure> {
    let Algo::Step(step) = &plan.rule.layer.algo else { return Ok(None) };
    let tokens = plan.blocks.tokens as usize;
    match &plan.blocks.form {
        Form::TokenByToken(_) => Ok(None),
        Form::Frozen(frozen) => {
            let mut build = Build::new(&plan.rule, step, sizes, tokens, frozen.inner as usize);
            build.inputs()?;
            build.run(|build, body| build.frozen(body, frozen)).map(Some)
        }
        Form::Gradients => {
            let mut build = Build::new(&plan.rule, step, sizes, tokens, tokens);
            build.inputs()?;
            build.run(|build, body| build.gradients(body)).map(Some)
        }
        Form::Affine(affine) => {
            let mut build = Build::new(&plan.rule, step, sizes, tokens, tokens);
            build.inputs()?;
            build.run(|build, body| build.exact(body, affine)).map(Some)
        }
    }
}

/// A token input: outside the scan over blocks.
struct TokenInput {
    var: VarId,
    whole: ValueId,
    repeated: bool,
}

/// What goes from block to block.
struct Carried {
    first: ValueId,
    name: String,
    tensor: String,
}

/// One block in the making, in the body of the scan over blocks.
#[derive(Clone)]
struct Body {
    block: BlockId,
    /// Token variables over the axes of the block, and variables of the head.
    vars: HashMap<VarId, ValueId>,
    /// Variables with an entry for each of a token's steps.
    repeated: Vec<(VarId, ValueId)>,
    /// Weights, then states of the algorithm, before the block.
    before: Vec<ValueId>,
}

struct Build<'a> {
    rule: &'a UpdateRule,
    step: &'a Step,
    graph: Graph,
    axes: AxisTable,
    /// Blocks.
    time: AxisId,
    /// Parts of a block, where it has several.
    part: Option<AxisId>,
    from: AxisId,
    to: AxisId,
    repeat: Option<AxisId>,
    tokens: Vec<TokenInput>,
    heads: HashMap<VarId, ValueId>,
    carried: Vec<Carried>,
}

impl<'a> Build<'a> {
    /// For blocks of so many tokens, in parts of so many.
    fn new(rule: &'a UpdateRule, step: &'a Step, sizes: &Sizes, tokens: usize, inner: usize) -> Self {
        let mut graph = Graph::new();
        let time = graph.add_axis("block", Size::Tokens);
        let part = (inner < tokens).then(|| graph.add_tokens("part", tokens / inner));
        let to = graph.add_tokens("t", inner);
        let from = graph.add_tokens("i", inner);
        let repeat = (step.repeats > 1).then(|| graph.add_axis("step", Size::Fixed(step.repeats as usize)));
        Build {
            rule,
            step,
            graph,
            axes: AxisTable::new(&sizes.dims),
            time,
            part,
            from,
            to,
            repeat,
            tokens: Vec::new(),
            heads: HashMap::new(),
            carried: Vec::new(),
        }
    }

    fn shape_axes(&mut self, shape: &Shape) -> Result<Vec<AxisId>, Failure> {
        Ok(self.axes.of_shape(&mut self.graph, shape)?.into_iter().flatten().collect())
    }

    fn inputs(&mut self) -> Result<(), Failure> {
        let layer = &self.rule.layer;
        let several = self.repeat.is_some();
        self.token_input("q", layer.query, false)?;
        self.token_input("k", layer.key, several)?;
        self.token_input("v", layer.value, several)?;
        for param in &layer.params {
            match param.source {
                Source::Learned(_) | Source::Input => {
                    self.token_input(&param.tensor, param.var, param.repeated && several)?;
                }
                Source::Trained(_) | Source::Slow(_) => {
                    let shape = self.rule.terms().var(param.var).shape.clone();
                    let value = self.input(&param.tensor, Origin::Head, &shape)?;
                    self.heads.insert(param.var, value);
                }
            }
        }
        for (weight, retained) in layer.memory.weights.iter().zip(&self.rule.retention) {
            let name = self.rule.terms().var(retained.carried).name.clone();
            self.carry(format!("state.memory.{}", weight.name), name, &weight.shape)?;
        }
        for state in &self.step.states {
            let var = self.rule.terms().var(state.old);
            let (name, shape) = (var.name.clone(), var.shape.clone());
            self.carry(format!("state.algo.{}", state.name), name, &shape)?;
        }
        Ok(())
    }

    fn token_input(&mut self, tensor: &str, var: VarId, repeated: bool) -> Result<(), Failure> {
        let shape = self.rule.terms().var(var).shape.clone();
        let mut axes = vec![self.time];
        axes.extend(self.part);
        axes.push(self.from);
        axes.extend(self.repeat.filter(|_| repeated));
        axes.extend(self.shape_axes(&shape)?);
        let whole = self.graph.given(Graph::TASK, axes, tensor);
        self.graph.inputs.push(Input { tensor: tensor.into(), origin: Origin::Token, value: whole });
        self.tokens.push(TokenInput { var, whole, repeated });
        Ok(())
    }

    fn input(&mut self, tensor: &str, origin: Origin, shape: &Shape) -> Result<ValueId, Failure> {
        let axes = self.shape_axes(shape)?;
        let value = self.graph.given(Graph::TASK, axes, tensor);
        self.graph.inputs.push(Input { tensor: tensor.into(), origin, value });
        Ok(value)
    }

    fn carry(&mut self, tensor: String, name: String, shape: &Shape) -> Result<(), Failure> {
        let first = self.input(&tensor, Origin::Stream, shape)?;
        self.carried.push(Carried { first, name, tensor });
        Ok(())
    }

    fn at(&mut self, block: BlockId, vars: HashMap<VarId, ValueId>) -> TermLowering<'_> {
        TermLowering::new(&mut self.graph, &mut self.axes, self.rule.terms(), block, vars)
    }

    /// The scan over blocks. `work` gives the answers over `from`, and what is carried on, in order.
    fn run(
        mut self,
        work: impl FnOnce(&mut Self, &Body) -> Result<(ValueId, Vec<ValueId>), Failure>,
    ) -> Result<Graph, Failure> {
        let time = self.time;
        let mut at = self.at(Graph::TASK, HashMap::new());
        let mut steps = Steps::begin(&mut at, time);
        let block = at.block;
        let mut body = Body { block, vars: self.heads.clone(), repeated: Vec::new(), before: Vec::new() };
        for i in 0..self.tokens.len() {
            let TokenInput { var, whole, repeated } = self.tokens[i];
            let slice = steps.slice(&mut self.at(block, HashMap::new()), whole);
            if repeated {
                body.repeated.push((var, slice));
            } else {
                body.vars.insert(var, slice);
            }
        }
        let mut carries = Vec::new();
        for i in 0..self.carried.len() {
            let (first, name) = (self.carried[i].first, self.carried[i].name.clone());
            let (before, carry) = steps.carry(&mut self.at(block, HashMap::new()), first, &name);
            body.before.push(before);
            carries.push(carry);
        }
        let (answers, after) = work(&mut self, &body)?;
        carries.into_iter().zip(after).for_each(|(carry, value)| steps.becomes(carry, value));
        steps.stack(answers);
        let mut at = self.at(block, HashMap::new());
        let (finals, stacks) = steps.end(&mut at);
        self.outputs(&finals, stacks[0])
    }

    fn outputs(mut self, finals: &[ValueId], answers: ValueId) -> Result<Graph, Failure> {
        let values = self.shape_axes(&Shape::vector(Dim::dv()))?;
        let axes = [self.time].into_iter().chain(self.part).chain([self.from]).chain(values).collect();
        let origin = Origin::Token;
        self.graph.outputs.push(Output { tensor: "o".into(), origin, value: answers, axes });
        for (carried, value) in self.carried.iter().zip(finals) {
            let axes = self.graph.value(carried.first).axes.clone();
            let tensor = carried.tensor.clone();
            self.graph.outputs.push(Output { tensor, origin: Origin::Stream, value: *value, axes });
        }
        Ok(self.graph)
    }

    /// The axes of the l-th weight and of the block.
    fn weight_axes(&mut self, l: usize) -> Result<Axes, Failure> {
        let shape = self.rule.layer.memory.weights[l].shape.clone();
        let [rows, cols] = shape.0.as_slice() else {
            return Err(Failure::bug("a sum of outer products that is no matrix"));
        };
        let mut axis = |dim: &Dim, level| self.axes.get(&mut self.graph, dim, level);
        let (row, vector, cols) = (axis(rows, 1)?, axis(rows, 0)?, axis(cols, 0)?);
        Ok(Axes { row, rows: vector, cols, from: self.from, to: self.to })
    }

    /// The axes of a weight that is no matrix.
    fn vector_axes(&mut self, l: usize) -> Result<Axes, Failure> {
        let shape = self.rule.layer.memory.weights[l].shape.clone();
        let of_dim = |d: &Dim| self.axes.get(&mut self.graph, d, 0);
        let along = shape.0.first().map(of_dim).transpose()?.unwrap_or(self.from);
        Ok(Axes { row: along, rows: along, cols: along, from: self.from, to: self.to })
    }

    fn exact(&mut self, body: &Body, affine: &Affine) -> Result<(ValueId, Vec<ValueId>), Failure> {
        let axes = self.weight_axes(0)?;
        let shape = self.rule.layer.memory.weights[0].shape.clone();
        let var = self.rule.layer.memory.weights[0].var;
        let (before, steps) = (self.rule.layer.read_before, self.step.repeats as usize);
        let repeated = self.repeat.map(|axis| (axis, body.repeated.as_slice(), steps));
        let mut at = self.at(body.block, body.vars.clone());
        let (low, made) = exact::block(&mut at, &axes, affine, &shape, body.before[0], repeated, before)?;
        let answers = self.read(body.block, &body.vars, HashMap::from([(var, Rc::new(low))]))?;
        // The read comes first: the weight can then be moved on in place.
        let next = made.next(&mut self.at(body.block, HashMap::new()), &axes, body.before[0]);
        Ok((answers, vec![next]))
    }

    /// The answers of all tokens, over `from`.
    fn read(
        &mut self,
        block: BlockId,
        vars: &HashMap<VarId, ValueId>,
        weights: HashMap<VarId, Rc<LowRank>>,
    ) -> Result<ValueId, Failure> {
        let (from, to) = (self.from, self.to);
        let (memory, query) = (&self.rule.layer.memory, self.rule.layer.query);
        let read = memory.read.ok_or_else(|| Failure::bug("a memory without a read"))?;
        let own = self.rule.terms().shape(read).clone();
        let mut at = self.at(block, HashMap::new());
        let mut vars: HashMap<VarId, ValueId> =
            vars.iter().map(|(var, value)| (*var, at.rename(*value, from, to))).collect();
        let query = vars.get(&query).copied().ok_or_else(|| Failure::bug("a block without queries"))?;
        vars.insert(memory.argument, query);
        at.vars = vars;
        at.low_rank = weights;
        let value = at.lower(read)?;
        let value = at.fit_value(value, &own, &Shape::vector(Dim::dv()))?;
        let value = at.spread(value, &[to]);
        Ok(at.rename(value, to, from))
    }
}
