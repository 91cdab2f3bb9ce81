//! Reverse mode through a memory that keeps its past.
//!
//! A token's average over the past has weights w_i = exp(score_i - best) / total. With g the cotangent of the
//! average m, pair by pair: the cotangent of score_i is w_i g . (item_i - m), that of item_i is w_i g. So two
//! programs suffice, and neither keeps anything for every pair: one goes through the past of each token and
//! gives what belongs to the token; the other goes through the queries of each past token, from what the first
//! wrote down, and gives what belongs to the past token.

mod pair;

use super::history::{Average, History};
use super::{Failure, PAST_KEYS, PAST_VALUES, Sizes};
use crate::backward::Map;
use crate::backward::name::{D, GRAD, SUM, TAPE};
use crate::ir::{AxisId, Carry, Graph, Op, Order, Origin, Output, Scan, ValueId};
use crate::live::prune;
use miras_base::Dim;
use miras_base::scalar::Fn2;
use miras_rule::{Answer, UpdateRule};
use miras_spec::{Source, Weigh};
use miras_term::VarId;
use pair::{Pass, pair, sliced};

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

/// The first program.
fn queries(mut at: History<'_>) -> Result<Graph, Failure> {
    at.inputs()?;
    let all = at.whole_past()?;
    let values = at.vector(Dim::dv())?;
    let whole_g = at.input(&format!("{GRAD}o"), Origin::Token, with(at.time, &values));
    let (slices, more) = sliced(&mut at.graph, at.body, &[whole_g]);
    at.slices.extend(more);
    let stages = stages(&mut at, all)?;
    let query = at.rule.layer.query;
    let wanted: Vec<VarId> =
        std::iter::once(query).chain(at.rule.layer.params.iter().map(|p| p.var)).collect();
    let mut totals = Totals::default();
    let mut stacked: Vec<(String, ValueId, Vec<AxisId>)> = Vec::new();
    let mut g = slices[0];
    for (stage, (query_of, average)) in stages.into_iter().enumerate().rev() {
        at.vars.insert(query, query_of);
        let parts = [query_of, average.best, average.total, average.mean, g];
        for (part, value) in PARTS.iter().zip(parts) {
            stacked.push((tape(stage, part), value, at.graph.value(value).axes.clone()));
        }
        let mut found = token_side(&mut at, stage, parts, all, &wanted)?;
        g = found.remove(0);
        totals.add(&mut at, found);
    }
    stacked.push((format!("{D}q"), g, at.graph.value(g).axes.clone()));
    let (carries, heads) = parameters(&mut at, totals.0, &mut stacked)?;
    finish(at, carries, heads, stacked)
}

/// The averages of a token as they are computed forwards, each with the query that it is taken with.
fn stages(at: &mut History<'_>, all: [ValueId; 2]) -> Result<Vec<(ValueId, Average)>, Failure> {
    let query = at.rule.layer.query;
    let mut stages: Vec<(ValueId, Average)> = Vec::new();
    for stage in 0..at.stages() {
        if let Some((_, before)) = stages.last() {
            at.vars.insert(query, before.mean);
        }
        let average = at.average(all, at.stage(stage))?;
        stages.push((at.vars[&query], average));
    }
    Ok(stages)
}

/// A pass over the past of the token at hand: the sums of the cotangents of what belongs to the token.
fn token_side(
    at: &mut History<'_>,
    stage: usize,
    parts: [ValueId; 5],
    all: [ValueId; 2],
    wanted: &[VarId],
) -> Result<Vec<ValueId>, Failure> {
    let what = at.stage(stage);
    let pair = pair(at, what)?;
    let pass = at.graph.add_block(at.body);
    let (past, slices) = sliced(&mut at.graph, pass, &all);
    let known = pair.vars.iter().filter_map(|(var, of)| Some((*of, *at.vars.get(var)?)));
    let mut map: Map = known.collect();
    let layer = &at.rule.layer;
    map.extend([(pair.vars[&layer.key], past[0]), (pair.vars[&layer.value], past[1])]);
    map.extend(pair.parts.into_iter().zip(parts));
    map.insert(pair.behind, at.behind(pass));
    Pass { pair: &pair, pass, slices, map, wanted: wanted.to_vec() }.sums(at)
}

/// Sums over the averages of a token.
#[derive(Default)]
struct Totals(Vec<ValueId>);

impl Totals {
    fn add(&mut self, at: &mut History<'_>, parts: Vec<ValueId>) {
        if self.0.is_empty() {
            self.0 = parts;
            return;
        }
        for (total, part) in self.0.iter_mut().zip(parts) {
            *total = at.graph.add(at.body, Op::Fn2(Fn2::Add, *total, part));
        }
    }
}

/// Sums of per-head tensors: what carries them from token to token, and the names and axes of what is handed out.
type Heads = (Vec<Carry>, Vec<(String, Vec<AxisId>)>);

/// Hands out the cotangents of the parameters: a token's own as they are, of what a head has summed over tokens.
fn parameters(
    at: &mut History<'_>,
    sums: Vec<ValueId>,
    stacked: &mut Vec<(String, ValueId, Vec<AxisId>)>,
) -> Result<Heads, Failure> {
    let (mut carries, mut heads) = (Vec::new(), Vec::new());
    for (param, sum) in at.rule.layer.params.iter().zip(sums) {
        let axes = at.graph.value(sum).axes.clone();
        match param.source {
            Source::Learned(_) | Source::Input => stacked.push((format!("{D}{}", param.tensor), sum, axes)),
            Source::Trained(_) | Source::Slow(_) => {
                let name = format!("{SUM}{}", param.tensor);
                let first = at.input(&name, Origin::Stream, axes.clone());
                let before = at.graph.given(at.body, axes.clone(), format!("d {}", param.tensor));
                let after = at.graph.add(at.body, Op::Fn2(Fn2::Add, before, sum));
                carries.push(Carry { first, before, after });
                heads.push((name, axes));
            }
        }
    }
    Ok((carries, heads))
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
    let (keys, values) = (at.vector(Dim::dk())?, at.vector(Dim::dv())?);
    let own = [(PAST_KEYS, &keys), (PAST_VALUES, &values)]
        .map(|(name, inner)| at.input(name, Origin::Token, with(at.time, inner)));
    let (own, slices) = sliced(&mut at.graph, at.body, &own);
    at.slices.extend(slices);
    let index = at.input(INDEX, Origin::Past, vec![at.past]);
    let queried = queried(&mut at)?;
    let mut totals = Totals::default();
    for stage in 0..at.stages() {
        let found = past_side(&mut at, stage, [own[0], own[1]], index, &queried)?;
        totals.add(&mut at, found);
    }
    let named = [(PAST_KEYS, keys), (PAST_VALUES, values)].into_iter().zip(totals.0);
    let stacked = named.map(|((name, axes), total)| (format!("{D}{name}"), total, axes)).collect();
    finish(at, Vec::new(), Vec::new(), stacked)
}

/// The parameters of the queries' tokens, as inputs; those of heads are bound.
fn queried(at: &mut History<'_>) -> Result<Vec<(VarId, ValueId)>, Failure> {
    let mut queried: Vec<(VarId, ValueId)> = Vec::new();
    for param in &at.rule.layer.params {
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
    Ok(queried)
}

/// A pass over the queries of the past token at hand: the sums of the cotangents of its key and its value.
fn past_side(
    at: &mut History<'_>,
    stage: usize,
    own: [ValueId; 2],
    index: ValueId,
    queried: &[(VarId, ValueId)],
) -> Result<Vec<ValueId>, Failure> {
    let what = at.stage(stage);
    let pair = pair(at, what)?;
    let mut parts = Vec::new();
    for (part, of) in PARTS.iter().zip(pair.parts) {
        let axes = with(at.past, &pair.graph.value(of).axes);
        parts.push(at.input(&tape(stage, part), Origin::Past, axes));
    }
    let pass = at.graph.add_block(at.body);
    let (parts, mut slices) = sliced(&mut at.graph, pass, &parts);
    let (numbers, more) = sliced(&mut at.graph, pass, &[index]);
    slices.extend(more);
    let mut map: Map = at.vars.iter().map(|(var, value)| (pair.vars[var], *value)).collect();
    for (var, whole) in queried {
        let (values, more) = sliced(&mut at.graph, pass, &[*whole]);
        map.insert(pair.vars[var], values[0]);
        slices.extend(more);
    }
    let layer = &at.rule.layer;
    map.extend([(pair.vars[&layer.key], own[0]), (pair.vars[&layer.value], own[1])]);
    map.insert(pair.vars[&layer.query], parts[0]);
    map.extend(pair.parts.into_iter().zip(parts));
    let step = at.graph.add(at.body, Op::Step(at.time));
    let behind = at.graph.add(pass, Op::Fn2(Fn2::Sub, numbers[0], step));
    map.insert(pair.behind, at.in_window(pass, behind));
    let wanted = vec![layer.key, layer.value];
    Pass { pair: &pair, pass, slices, map, wanted }.sums(at)
}
