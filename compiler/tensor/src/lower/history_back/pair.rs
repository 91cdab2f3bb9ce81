//! What one pair of a token and a past token adds to the cotangents, and its sum over a pass.

use super::super::history::{Averaged, History};
use super::super::term::TermLowering;
use super::{Failure, PARTS};
use crate::backward::{Map, Reverse, copy};
use crate::ir::{AxisId, BlockId, Carry, Graph, Op, Order, Scan, Slice, ValueId};
use miras_base::Dim;
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_term::{Shape, VarId};
use std::collections::BTreeMap;

/// A token with a past token: what its pair adds to the cotangents, as the gradient of one number.
pub(super) struct Pair {
    pub graph: Graph,
    number: ValueId,
    pub vars: BTreeMap<VarId, ValueId>,
    pub parts: [ValueId; 5],
    pub behind: ValueId,
}

/// The number w (g . (stop item - mean)) score + w g . item, with w, its factors and g held fixed: its gradient is
/// what the pair adds.
pub(super) fn pair(at: &mut History<'_>, what: Averaged) -> Result<Pair, Failure> {
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
pub(super) struct Pass<'p> {
    pub pair: &'p Pair,
    pub pass: BlockId,
    pub slices: Vec<Slice>,
    pub map: Map,
    /// The variables whose cotangents are added up.
    pub wanted: Vec<VarId>,
}

impl Pass<'_> {
    /// The sums of the cotangents of the wanted variables over the pass.
    pub fn sums(mut self, at: &mut History<'_>) -> Result<Vec<ValueId>, Failure> {
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
pub(super) fn sliced(graph: &mut Graph, pass: BlockId, wholes: &[ValueId]) -> (Vec<ValueId>, Vec<Slice>) {
    let slice = |whole: &ValueId| {
        let value = graph.value(*whole);
        let (inner, name) = (value.axes[1..].to_vec(), value.name.clone().unwrap_or_default());
        let slice = graph.given(pass, inner, name);
        (slice, Slice { whole: *whole, slice })
    };
    wholes.iter().map(slice).unzip()
}
