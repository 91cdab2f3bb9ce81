//! Checks that a graph keeps its invariants.

use crate::ir::{BlockId, Graph, Op, Scan, Size, ValueId};
use miras_base::Diagnostic;

/// A graph that has been checked; the next room accepts only this.
#[derive(Clone, Debug)]
pub struct Verified(Graph);

impl Verified {
    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.0
    }
}

/// Checks a graph. A failure is a bug of whoever built it.
pub fn verify(graph: Graph) -> Result<Verified, Diagnostic> {
    for id in (0..graph.values.len() as u32).map(ValueId) {
        check_value(&graph, id).map_err(|what| Diagnostic::bug(format!("tensor value %{}: {what}", id.0)))?;
    }
    for (i, scan) in graph.scans.iter().enumerate() {
        check_scan(&graph, scan).map_err(|what| Diagnostic::bug(format!("tensor scan {i}: {what}")))?;
    }
    for output in &graph.outputs {
        let extra = graph.value(output.value).axes.iter().any(|a| !output.axes.contains(a));
        if extra || graph.value(output.value).block != Graph::TASK {
            return Err(Diagnostic::bug(format!("output {} does not fit its value", output.tensor)));
        }
    }
    Ok(Verified(graph))
}

fn check_value(graph: &Graph, id: ValueId) -> Result<(), String> {
    let value = graph.value(id);
    for (i, axis) in value.axes.iter().enumerate() {
        if value.axes[..i].contains(axis) {
            return Err(format!("has the axis {} twice", graph.axis(*axis).name));
        }
    }
    for operand in graph.operands(id) {
        if operand >= id {
            return Err(format!("uses %{} before it is defined", operand.0));
        }
        if !graph.within(value.block, graph.value(operand).block) {
            return Err(format!("uses %{} from inside a scan", operand.0));
        }
    }
    if !matches!(value.op, Op::Given) && value.axes != graph.axes_of(&value.op) {
        return Err("has other axes than its operation gives".into());
    }
    check_op(graph, &value.op)
}

fn check_op(graph: &Graph, op: &Op) -> Result<(), String> {
    let has = |v: &ValueId, axis| graph.value(*v).axes.contains(axis);
    let fine = match op {
        Op::Reduce(_, over, a) => !over.is_empty() && over.iter().all(|x| has(a, x)),
        Op::Einsum(a, b, over) => !over.is_empty() && over.iter().all(|x| has(a, x) || has(b, x)),
        Op::Rename { value, from, to } => {
            has(value, from) && !has(value, to) && graph.axis(*from).size == graph.axis(*to).size
        }
        Op::At(a, axis, i) => has(a, axis) && matches!(graph.axis(*axis).size, Size::Fixed(n) if *i < n),
        Op::Index(axis) => matches!(graph.axis(*axis).size, Size::Fixed(_)),
        Op::Spread(a, axes) => graph.value(*a).axes.iter().all(|x| axes.contains(x)),
        Op::Select(c, ..) => graph.value(*c).truth,
        Op::Diagonal(a, b) => graph.axis(*a).size == graph.axis(*b).size,
        Op::Final(scan, i) => *i < graph.scan(*scan).carries.len(),
        Op::Stacked(scan, i) => *i < graph.scan(*scan).stacked.len(),
        Op::Given
        | Op::Number(_)
        | Op::Place(_)
        | Op::Kept
        | Op::Step(_)
        | Op::Fn1(..)
        | Op::Fn2(..)
        | Op::Compare(..)
        | Op::Stop(_) => true,
    };
    if fine { Ok(()) } else { Err(format!("does not fit its operands: {op:?}")) }
}

fn check_scan(graph: &Graph, scan: &Scan) -> Result<(), String> {
    let axes = |v: ValueId| &graph.value(v).axes;
    let outside =
        |v: ValueId| graph.parents[scan.body.0 as usize].is_some_and(|p| graph.within(p, block(graph, v)));
    let same = |a: ValueId, b: ValueId| {
        axes(a).len() == axes(b).len() && axes(a).iter().all(|x| axes(b).contains(x))
    };
    for (i, c) in scan.carries.iter().enumerate() {
        if !same(c.first, c.before) || !same(c.before, c.after) {
            return Err(format!("carry {i} changes its axes"));
        }
        if !outside(c.first)
            || block(graph, c.before) != scan.body
            || !graph.within(scan.body, block(graph, c.after))
        {
            return Err(format!("carry {i} stands in the wrong block"));
        }
    }
    for (i, s) in scan.slices.iter().enumerate() {
        let rest = axes(s.whole).len() == axes(s.slice).len() + 1;
        let fits = rest && axes(s.slice).iter().all(|x| axes(s.whole).contains(x));
        if !fits || !axes(s.whole).contains(&scan.axis) || axes(s.slice).contains(&scan.axis) {
            return Err(format!("slice {i} is not its whole without the scan's axis"));
        }
    }
    Ok(())
}

fn block(graph: &Graph, v: ValueId) -> BlockId {
    graph.value(v).block
}
