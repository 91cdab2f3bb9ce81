//! A memory that keeps its past: for every token one pass over the past, with a running maximum, sum and
//! average (streaming softmax). Nothing is kept for every pair.

use super::term::{AxisTable, TermLowering};
use super::{Failure, PAST_KEYS, PAST_VALUES, Sizes};
use crate::ir::{
    AxisId, BlockId, Carry, Graph, Input, Op, Order, Origin, Output, Scan, Size, Slice, ValueId,
};
use miras_base::Dim;
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_rule::{Answer, UpdateRule};
use miras_spec::{Source, Weigh};
use miras_term::{Shape, TermId, VarId};
use std::collections::HashMap;

/// Below every score that float32 can hold with something to spare, and finite.
const NO_SCORE: f64 = -1e30;

/// Lowers the answer over the history.
pub(super) fn lower(
    rule: &UpdateRule,
    weigh: &Weigh,
    answer: &Answer,
    sizes: &Sizes,
) -> Result<Graph, Failure> {
    let mut build = History::new(rule, weigh, answer, sizes);
    build.inputs()?;
    let output = build.token()?;
    build.finish(output)
}

/// A pass for every token in the making.
pub(super) struct History<'a> {
    pub rule: &'a UpdateRule,
    pub weigh: &'a Weigh,
    pub answer: &'a Answer,
    pub axes: AxisTable,
    pub graph: Graph,
    pub time: AxisId,
    pub past: AxisId,
    pub body: BlockId,
    /// What the token at hand sees.
    pub vars: HashMap<VarId, ValueId>,
    pub slices: Vec<Slice>,
}

impl<'a> History<'a> {
    pub fn new(rule: &'a UpdateRule, weigh: &'a Weigh, answer: &'a Answer, sizes: &Sizes) -> History<'a> {
        let mut graph = Graph::new();
        let time = graph.add_axis("t", Size::Tokens);
        let past = graph.add_axis("i", Size::Past);
        let body = graph.add_block(Graph::TASK);
        History {
            rule,
            weigh,
            answer,
            axes: AxisTable::new(&sizes.dims),
            graph,
            time,
            past,
            body,
            vars: HashMap::new(),
            slices: Vec::new(),
        }
    }
}

impl History<'_> {
    pub fn vector(&mut self, dim: Dim) -> Result<Vec<AxisId>, Failure> {
        let axes = self.axes.of_shape(&mut self.graph, &Shape::vector(dim))?;
        Ok(axes.into_iter().flatten().collect())
    }

    pub fn inputs(&mut self) -> Result<(), Failure> {
        let layer = &self.rule.layer;
        self.token_input("q", layer.query)?;
        for param in &layer.params {
            match param.source {
                Source::Learned(_) | Source::Input => self.token_input(&param.tensor, param.var)?,
                Source::Trained(_) | Source::Slow(_) => {
                    let shape = self.rule.terms().var(param.var).shape.clone();
                    let axes = self.axes.of_shape(&mut self.graph, &shape)?.into_iter().flatten().collect();
                    let value = self.input(&param.tensor, Origin::Head, axes);
                    self.vars.insert(param.var, value);
                }
            }
        }
        Ok(())
    }

    pub fn token_input(&mut self, tensor: &str, var: VarId) -> Result<(), Failure> {
        let (name, shape) =
            (self.rule.terms().var(var).name.clone(), self.rule.terms().var(var).shape.clone());
        let inner: Vec<AxisId> = self.axes.of_shape(&mut self.graph, &shape)?.into_iter().flatten().collect();
        let whole = self.input(
            tensor,
            Origin::Token,
            std::iter::once(self.time).chain(inner.iter().copied()).collect(),
        );
        let slice = self.graph.given(self.body, inner, name);
        self.slices.push(Slice { whole, slice });
        self.vars.insert(var, slice);
        Ok(())
    }

    pub fn input(&mut self, tensor: &str, origin: Origin, axes: Vec<AxisId>) -> ValueId {
        let value = self.graph.given(Graph::TASK, axes, tensor);
        self.graph.inputs.push(Input { tensor: tensor.into(), origin, value });
        value
    }

    /// One token: the query refined, then the answer.
    fn token(&mut self) -> Result<ValueId, Failure> {
        let all = self.whole_past()?;
        let mut answer = self.average(all, self.stage(0))?;
        for stage in 1..self.stages() {
            self.vars.insert(self.rule.layer.query, answer.mean);
            answer = self.average(all, self.stage(stage))?;
        }
        Ok(answer.mean)
    }

    /// All keys and values, as inputs.
    pub fn whole_past(&mut self) -> Result<[ValueId; 2], Failure> {
        let (keys, values) = (self.vector(Dim::dk())?, self.vector(Dim::dv())?);
        let with_past = |inner: &[AxisId], past| std::iter::once(past).chain(inner.iter().copied()).collect();
        let all_keys = self.input(PAST_KEYS, Origin::Past, with_past(&keys, self.past));
        let all_values = self.input(PAST_VALUES, Origin::Past, with_past(&values, self.past));
        Ok([all_keys, all_values])
    }

    /// How many averages a token takes: one for each refinement of its query, then the answer.
    pub fn stages(&self) -> usize {
        self.weigh.refinements as usize + 1
    }

    /// What the average of this number is of.
    pub fn stage(&self, number: usize) -> Averaged {
        if number + 1 < self.stages() { Averaged::Key } else { Averaged::Term(self.answer.averaged) }
    }

    /// The average over the visible past, weighted by the kernel.
    pub fn average(
        &mut self,
        [all_keys, all_values]: [ValueId; 2],
        what: Averaged,
    ) -> Result<Average, Failure> {
        let axes = self.vector(match what {
            Averaged::Key => Dim::dk(),
            Averaged::Term(_) => Dim::dv(),
        })?;
        let layer = &self.rule.layer;
        let pass = self.graph.add_block(self.body);
        let slice = |graph: &mut Graph, whole: ValueId, name: &str| {
            let inner = graph.value(whole).axes[1..].to_vec();
            graph.given(pass, inner, name)
        };
        let key = slice(&mut self.graph, all_keys, "k");
        let value = slice(&mut self.graph, all_values, "v");
        let [best_in, total_in] = ["best", "total"].map(|name| self.graph.given(pass, Vec::new(), name));
        let mean_in = self.graph.given(pass, axes.to_vec(), "sum");
        let (behind, zero) = (self.behind(pass), self.graph.add(pass, Op::Number(0.0)));
        let visible = self.graph.add(pass, Op::Compare(Cmp::Ge, behind, zero));
        let mut vars = self.vars.clone();
        vars.insert(layer.key, key);
        vars.insert(layer.value, value);
        let mut at = TermLowering::new(&mut self.graph, &mut self.axes, self.rule.terms(), pass, vars);
        let score = at.lower(self.answer.log_kernel)?;
        let item = match what {
            Averaged::Key => key,
            Averaged::Term(term) => at.lower_whole(term, &Shape::vector(Dim::dv()))?,
        };
        let larger = at.fn2(Fn2::Max, best_in, score);
        let best = at.graph.add(pass, Op::Select(visible, larger, best_in));
        let fall = at.fn2(Fn2::Sub, best_in, best);
        let kept = at.fn1(Fn1::Exp, fall);
        let rise = at.fn2(Fn2::Sub, score, best);
        let rise = at.graph.add(pass, Op::Select(visible, rise, zero));
        let grown = at.fn1(Fn1::Exp, rise);
        let weight = at.graph.add(pass, Op::Select(visible, grown, zero));
        let total = at.fn2(Fn2::Mul, total_in, kept);
        let total = at.fn2(Fn2::Add, total, weight);
        let more = at.fn2(Fn2::Mul, item, weight);
        let mean = at.fn2(Fn2::Mul, mean_in, kept);
        let mean = at.fn2(Fn2::Add, mean, more);
        let (first_best, first_total, first_mean) = self.first(&axes);
        let scan = Scan {
            axis: self.past,
            order: Order::Ascending,
            body: pass,
            carries: vec![
                Carry { first: first_best, before: best_in, after: best },
                Carry { first: first_total, before: total_in, after: total },
                Carry { first: first_mean, before: mean_in, after: mean },
            ],
            slices: vec![Slice { whole: all_keys, slice: key }, Slice { whole: all_values, slice: value }],
            stacked: Vec::new(),
        };
        let (finals, _) = self.graph.add_scan(self.body, scan);
        let mean = self.graph.add(self.body, Op::Fn2(Fn2::Div, finals[2], finals[1]));
        Ok(Average { best: finals[0], total: finals[1], mean })
    }

    /// How far the past token at hand lies behind the token at hand; negative where that does not see it: after
    /// it, or outside the window.
    pub fn behind(&mut self, pass: BlockId) -> ValueId {
        let step = self.graph.add(self.body, Op::Step(self.time));
        let kept = self.graph.add(self.body, Op::Kept);
        let own = self.graph.add(self.body, Op::Fn2(Fn2::Add, step, kept));
        let index = self.graph.add(pass, Op::Step(self.past));
        let behind = self.graph.add(pass, Op::Fn2(Fn2::Sub, own, index));
        self.in_window(pass, behind)
    }

    /// A distance, or -1 where it leaves the window: that counts as not there yet.
    pub fn in_window(&mut self, pass: BlockId, mut behind: ValueId) -> ValueId {
        if let Some(window) = self.weigh.window {
            let reach = self.graph.add(pass, Op::Number(f64::from(window)));
            let inside = self.graph.add(pass, Op::Compare(Cmp::Lt, behind, reach));
            let never = self.graph.add(pass, Op::Number(-1.0));
            behind = self.graph.add(pass, Op::Select(inside, behind, never));
        }
        behind
    }

    fn first(&mut self, axes: &[AxisId]) -> (ValueId, ValueId, ValueId) {
        let lowest = self.graph.add(self.body, Op::Number(NO_SCORE));
        let zero = self.graph.add(self.body, Op::Number(0.0));
        let zeros = self.graph.add(self.body, Op::Spread(zero, axes.to_vec()));
        (lowest, zero, zeros)
    }

    fn finish(mut self, output: ValueId) -> Result<Graph, Failure> {
        let scan = Scan {
            axis: self.time,
            order: Order::Ascending,
            body: self.body,
            carries: vec![],
            slices: self.slices.clone(),
            stacked: vec![output],
        };
        let (_, stacks) = self.graph.add_scan(Graph::TASK, scan);
        let axes = std::iter::once(self.time).chain(self.vector(Dim::dv())?).collect();
        self.graph.outputs.push(Output { tensor: "o".into(), origin: Origin::Token, value: stacks[0], axes });
        Ok(self.graph)
    }
}

/// An average over the past: the largest score, the sum of exp(score - best), and the average itself.
#[derive(Clone, Copy)]
pub(super) struct Average {
    pub best: ValueId,
    pub total: ValueId,
    pub mean: ValueId,
}

/// What is averaged over the past.
#[derive(Clone, Copy)]
pub(super) enum Averaged {
    /// The keys themselves.
    Key,
    /// A term of each past value.
    Term(TermId),
}
