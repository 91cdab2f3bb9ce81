//! Reverse mode through a memory that keeps its past.
//!
//! A token's average over the past has weights w_i = exp(score_i - best) / total. With g the cotangent of the
//! average m, pair by pair: the cotangent of score_i is w_i g . (item_i - m), that of item_i is w_i g. So two
//! programs suffice, and neither keeps anything for every pair: one goes through the past of each token and
//! gives what belongs to the token; the other goes through the queries of each past token, from what the first
//! wrote down, and gives what belongs to the past token.

use super::history::{Average, Averaged, History};
use super::term::TermLowering;
use super::{Failure, PAST_KEYS, PAST_VALUES, Sizes};
use crate::backward::name::{D, GRAD, SUM, TAPE};
use crate::backward::{Map, Reverse, copy};
use crate::ir::{AxisId, BlockId, Carry, Graph, Op, Order, Origin, Output, Scan, Slice, ValueId};
use crate::live::prune;
use miras_base::Dim;
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_rule::{Answer, UpdateRule};
use miras_spec::{Source, Weigh};
use miras_term::{Shape, VarId};
use std::collections::BTreeMap;

/// The number of each query among the past, or -1: an input of the second program that the runtime makes.
pub const INDEX: &str = "@past.index";

/// The programs that go back through a history.
#[derive(Clone, Debug)]
pub struct Graphs {
    /// The run's tokens, the past, `grad.o` -> `d.q` and those of tokens' parameters, sums for per-head
    /// tensors, and what the other reads of each token.
    pub queries: Graph,
    /// As tokens the keys and values of the past, as past the queries -> `d.@past.k`, `d.@past.v`.
    pub past: Graph,
}

/// What the second program reads of each token, of each of its averages.
const PARTS: [&str; 5] = ["q", "best", "total", "mean", "g"];

fn tape(stage: usize, part: &str) -> String {
    format!("{TAPE}{stage}.{part}")
}

pub(super) fn lower(
    rule: &UpdateRule,
    weigh: &Weigh,
    answer: &Answer,
    sizes: &Sizes,
) -> Result<Graphs, Failure> {
    let queries = queries(History::new(rule, weigh, answer, sizes))?;
    let past = past(History::new(rule, weigh, answer, sizes))?;
    Ok(Graphs { queries, past })
}

/// A token with a past token: what its pair adds to the cotangents, as the gradient of one number.
struct Pair {
    graph: Graph,
    number: ValueId,
    vars: BTreeMap<VarId, ValueId>,
    parts: [ValueId; 5],
    behind: ValueId,
}

/// The number w (g . (stop item - mean)) score + w g . item, with w, its factors and g held fixed: its gradient is
/// what the pair adds.
fn pair(at: &mut History<'_>, what: Averaged) -> Result<Pair, Failure> {
    let mut graph = Graph::new();
    graph.axes.clone_from(&at.graph.axes);
    let (keys, values) = (at.vector(Dim::dk())?, at.vector(Dim::dv())?);
    graph.axes.clone_from(&at.graph.axes);
    let layer = &at.rule.layer;
    let mut vars = BTreeMap::new();
    for var in [layer.query, layer.key, layer.value].into_iter().chain(layer.params.iter().map(|p| p.var)) {
        let shape = at.rule.terms().var(var).shape.clone();
        let axes = at.axes.of_shape(&mut graph, &shape)?.into_iter().flatten().collect();
        vars.insert(var, graph.given(Graph::TASK, axes, at.rule.terms().var(var).name.clone()));
    }
    let averaged = match what {
        Averaged::Key => keys.clone(),
        Averaged::Term(_) => values,
    };
    let parts = PARTS.map(|part| {
        let axes = match part {
            "q" => keys.clone(),
            "mean" | "g" => averaged.clone(),
            _ => Vec::new(),
        };
        graph.given(Graph::TASK, axes, part)
    });
    let [_, best, total, mean, g] = parts;
    let behind = graph.given(Graph::TASK, Vec::new(), "behind");
    let known = vars.iter().map(|(var, value)| (*var, *value)).collect();
    let mut lowering = TermLowering::new(&mut graph, &mut at.axes, at.rule.terms(), Graph::TASK, known);
    let score = lowering.lower(at.answer.log_kernel)?;
    let item = match what {
        Averaged::Key => vars[&layer.key],
        Averaged::Term(term) => lowering.lower_whole(term, &Shape::vector(Dim::dv()))?,
    };
    let mut add = |op: Op| graph.add(Graph::TASK, op);
    let zero = add(Op::Number(0.0));
    let visible = add(Op::Compare(Cmp::Ge, behind, zero));
    let rise = add(Op::Fn2(Fn2::Sub, score, best));
    let rise = add(Op::Select(visible, rise, zero));
    let grown = add(Op::Fn1(Fn1::Exp, rise));
    let share = add(Op::Fn2(Fn2::Div, grown, total));
    let share = add(Op::Select(visible, share, zero));
    let share = add(Op::Stop(share));
    let g = add(Op::Stop(g));
    let away = add(Op::Fn2(Fn2::Sub, item, mean));
    let away = dot(&mut graph, g, away, &averaged);
    let away = graph.add(Graph::TASK, Op::Stop(away));
    let by_item = dot(&mut graph, g, item, &averaged);
    let mut add = |op: Op| graph.add(Graph::TASK, op);
    let by_score = add(Op::Fn2(Fn2::Mul, away, score));
    let both = add(Op::Fn2(Fn2::Add, by_score, by_item));
    let number = add(Op::Fn2(Fn2::Mul, share, both));
    at.graph.axes.clone_from(&graph.axes);
    Ok(Pair { graph, number, vars, parts, behind })
}

fn dot(graph: &mut Graph, a: ValueId, b: ValueId, axes: &[AxisId]) -> ValueId {
    let op = if axes.is_empty() { Op::Fn2(Fn2::Mul, a, b) } else { Op::Einsum(a, b, axes.to_vec()) };
    graph.add(Graph::TASK, op)
}

/// What a pass over the past reads at its place, and what it adds up.
struct Pass<'p> {
    pair: &'p Pair,
    pass: BlockId,
    slices: Vec<Slice>,
    map: Map,
    /// The variables whose cotangents are added up.
    wanted: Vec<VarId>,
}

impl Pass<'_> {
    /// The sums of the cotangents of the wanted variables over the pass.
    fn sums(mut self, at: &mut History<'_>) -> Result<Vec<ValueId>, Failure> {
        let source = &self.pair.graph;
        copy(source, &[self.pair.number], Graph::TASK, &mut at.graph, self.pass, &mut self.map)
            .map_err(Failure)?;
        let one = at.graph.add(self.pass, Op::Number(1.0));
        let mut reverse = Reverse {
            source,
            target: &mut at.graph,
            into: self.pass,
            map: &mut self.map,
            cotangents: BTreeMap::new(),
        };
        reverse.give(self.pair.number, one);
        reverse.block(Graph::TASK).map_err(Failure)?;
        let found = reverse.cotangents;
        let mut carries = Vec::new();
        for var in &self.wanted {
            let of = self.pair.vars[var];
            let axes = source.value(of).axes.clone();
            let zero = at.graph.add(at.body, Op::Number(0.0));
            let first = whole(&mut at.graph, at.body, zero, &axes);
            let before =
                at.graph.given(self.pass, axes.clone(), format!("d {}", at.rule.terms().var(*var).name));
            let after = match found.get(&of) {
                Some(part) => at.graph.add(self.pass, Op::Fn2(Fn2::Add, before, *part)),
                None => before,
            };
            carries.push(Carry { first, before, after });
        }
        let scan = Scan {
            axis: at.past,
            order: Order::Ascending,
            body: self.pass,
            carries,
            slices: self.slices,
            stacked: Vec::new(),
        };
        Ok(at.graph.add_scan(at.body, scan).0)
    }
}

fn whole(graph: &mut Graph, block: BlockId, value: ValueId, axes: &[AxisId]) -> ValueId {
    if axes.is_empty() { value } else { graph.add(block, Op::Spread(value, axes.to_vec())) }
}

/// Slices of these whole values, for a pass.
fn sliced(graph: &mut Graph, pass: BlockId, wholes: &[ValueId]) -> (Vec<ValueId>, Vec<Slice>) {
    let slice = |whole: &ValueId| {
        let value = graph.value(*whole);
        let (inner, name) = (value.axes[1..].to_vec(), value.name.clone().unwrap_or_default());
        let slice = graph.given(pass, inner, name);
        (slice, Slice { whole: *whole, slice })
    };
    wholes.iter().map(slice).unzip()
}

/// The first program.
fn queries(mut at: History<'_>) -> Result<Graph, Failure> {
    at.inputs()?;
    let all = at.whole_past()?;
    let layer = &at.rule.layer;
    let values = at.vector(Dim::dv())?;
    let whole_g = at.input(&format!("{GRAD}o"), Origin::Token, with(at.time, &values));
    let (slices, more) = sliced(&mut at.graph, at.body, &[whole_g]);
    at.slices.extend(more);

    let mut stages: Vec<(ValueId, Average)> = Vec::new();
    for stage in 0..at.stages() {
        let query = at.vars[&layer.query];
        let average = at.average(all, at.stage(stage))?;
        stages.push((query, average));
        if stage + 1 < at.stages() {
            at.vars.insert(layer.query, average.mean);
        }
    }
    let wanted: Vec<VarId> = std::iter::once(layer.query).chain(layer.params.iter().map(|p| p.var)).collect();
    let mut sums: Vec<Option<ValueId>> = vec![None; wanted.len()];
    let mut stacked: Vec<(String, ValueId, Vec<AxisId>)> = Vec::new();
    let mut g = slices[0];
    for (stage, (query, average)) in stages.iter().enumerate().rev() {
        at.vars.insert(layer.query, *query);
        let parts = [*query, average.best, average.total, average.mean, g];
        for (part, value) in PARTS.iter().zip(parts) {
            let axes = at.graph.value(value).axes.clone();
            stacked.push((tape(stage, part), value, axes));
        }
        let what = at.stage(stage);
        let pair = pair(&mut at, what)?;
        let pass = at.graph.add_block(at.body);
        let (past, slices) = sliced(&mut at.graph, pass, &all);
        let mut map: Map = pair.vars.iter().map(|(var, of)| (*of, at.vars.get(var).copied())).fold(
            Map::new(),
            |mut map, (of, value)| {
                map.extend(value.map(|v| (of, v)));
                map
            },
        );
        map.extend([(pair.vars[&layer.key], past[0]), (pair.vars[&layer.value], past[1])]);
        map.extend(pair.parts.into_iter().zip(parts));
        let behind = at.behind(pass);
        map.insert(pair.behind, behind);
        let found = Pass { pair: &pair, pass, slices, map, wanted: wanted.clone() }.sums(&mut at)?;
        g = found[0];
        for (sum, part) in sums.iter_mut().zip(found).skip(1) {
            *sum = Some(match sum {
                Some(before) => at.graph.add(at.body, Op::Fn2(Fn2::Add, *before, part)),
                None => part,
            });
        }
    }
    let axes = at.graph.value(g).axes.clone();
    stacked.push((format!("{D}q"), g, axes));
    let mut carries = Vec::new();
    let mut heads = Vec::new();
    for (param, sum) in layer.params.iter().zip(sums.into_iter().skip(1)) {
        let sum = sum.ok_or_else(|| Failure::bug("a parameter without a cotangent"))?;
        let axes = at.graph.value(sum).axes.clone();
        match param.source {
            Source::Learned(_) | Source::Input => stacked.push((format!("{D}{}", param.tensor), sum, axes)),
            Source::Trained(_) | Source::Slow(_) => {
                let first = at.input(&format!("{SUM}{}", param.tensor), Origin::Stream, axes.clone());
                let before = at.graph.given(at.body, axes.clone(), format!("d {}", param.tensor));
                let after = at.graph.add(at.body, Op::Fn2(Fn2::Add, before, sum));
                carries.push(Carry { first, before, after });
                heads.push((format!("{SUM}{}", param.tensor), axes));
            }
        }
    }
    finish(at, carries, heads, stacked)
}

fn with(first: AxisId, inner: &[AxisId]) -> Vec<AxisId> {
    std::iter::once(first).chain(inner.iter().copied()).collect()
}

/// The scan over tokens, and what it hands out.
fn finish(
    mut at: History<'_>,
    carries: Vec<Carry>,
    heads: Vec<(String, Vec<AxisId>)>,
    stacked: Vec<(String, ValueId, Vec<AxisId>)>,
) -> Result<Graph, Failure> {
    let scan = Scan {
        axis: at.time,
        order: Order::Ascending,
        body: at.body,
        carries,
        slices: std::mem::take(&mut at.slices),
        stacked: stacked.iter().map(|s| s.1).collect(),
    };
    let (finals, stacks) = at.graph.add_scan(Graph::TASK, scan);
    for ((tensor, axes), value) in heads.into_iter().zip(finals) {
        at.graph.outputs.push(Output { tensor, origin: Origin::Stream, value, axes });
    }
    for ((tensor, _, inner), value) in stacked.into_iter().zip(stacks) {
        let axes = with(at.time, &inner);
        at.graph.outputs.push(Output { tensor, origin: Origin::Token, value, axes });
    }
    prune(&mut at.graph);
    Ok(at.graph)
}

/// The second program: its tokens are those of the past, its past are the queries.
fn past(mut at: History<'_>) -> Result<Graph, Failure> {
    let layer = &at.rule.layer;
    let (keys, values) = (at.vector(Dim::dk())?, at.vector(Dim::dv())?);
    let own = [(PAST_KEYS, &keys), (PAST_VALUES, &values)]
        .map(|(name, inner)| at.input(name, Origin::Token, with(at.time, inner)));
    let (own, slices) = sliced(&mut at.graph, at.body, &own);
    at.slices.extend(slices);
    let index = at.input(INDEX, Origin::Past, vec![at.past]);
    let mut queried: Vec<(VarId, ValueId)> = Vec::new();
    for param in &layer.params {
        let shape = at.rule.terms().var(param.var).shape.clone();
        let inner: Vec<AxisId> = at.axes.of_shape(&mut at.graph, &shape)?.into_iter().flatten().collect();
        match param.source {
            Source::Learned(_) | Source::Input => {
                let whole = at.input(&param.tensor, Origin::Past, with(at.past, &inner));
                queried.push((param.var, whole));
            }
            Source::Trained(_) | Source::Slow(_) => {
                let value = at.input(&param.tensor, Origin::Head, inner);
                at.vars.insert(param.var, value);
            }
        }
    }
    let mut totals: [Option<ValueId>; 2] = [None, None];
    for stage in 0..at.stages() {
        let what = at.stage(stage);
        let pair = pair(&mut at, what)?;
        let parts: Vec<ValueId> = PARTS
            .iter()
            .zip(pair.parts)
            .map(|(part, of)| {
                let inner = pair.graph.value(of).axes.clone();
                at.input(&tape(stage, part), Origin::Past, with(at.past, &inner))
            })
            .collect();
        let pass = at.graph.add_block(at.body);
        let (parts, mut slices) = sliced(&mut at.graph, pass, &parts);
        let (numbers, more) = sliced(&mut at.graph, pass, &[index]);
        slices.extend(more);
        let mut map: Map = at.vars.iter().map(|(var, value)| (pair.vars[var], *value)).collect();
        for (var, whole) in &queried {
            let (values, more) = sliced(&mut at.graph, pass, &[*whole]);
            map.insert(pair.vars[var], values[0]);
            slices.extend(more);
        }
        map.extend([(pair.vars[&layer.key], own[0]), (pair.vars[&layer.value], own[1])]);
        map.insert(pair.vars[&layer.query], parts[0]);
        map.extend(pair.parts.into_iter().zip(parts));
        let step = at.graph.add(at.body, Op::Step(at.time));
        let behind = at.graph.add(pass, Op::Fn2(Fn2::Sub, numbers[0], step));
        let behind = at.in_window(pass, behind);
        map.insert(pair.behind, behind);
        let wanted = vec![layer.key, layer.value];
        let found = Pass { pair: &pair, pass, slices, map, wanted }.sums(&mut at)?;
        for (total, part) in totals.iter_mut().zip(found) {
            *total = Some(match total {
                Some(before) => at.graph.add(at.body, Op::Fn2(Fn2::Add, *before, part)),
                None => part,
            });
        }
    }
    let mut stacked = Vec::new();
    for ((name, axes), total) in [(PAST_KEYS, keys), (PAST_VALUES, values)].into_iter().zip(totals) {
        let total = total.ok_or_else(|| Failure::bug("a history without an average"))?;
        stacked.push((format!("{D}{name}"), total, axes));
    }
    finish(at, Vec::new(), Vec::new(), stacked)
}
