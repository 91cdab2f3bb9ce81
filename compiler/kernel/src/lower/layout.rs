//! In which order the axes of what scans carry are stored.
//!
//! A product wants the columns of its right operand and of its result side by side; what lies otherwise is copied for
//! every call. A weight is met by products at every turn of a scan, so that it is stored as most of them want it.

use super::product;
use miras_tensor::ir::{AxisId, BlockId, Graph, Op, Size, ValueId};
use std::collections::HashMap;

/// Axes in the order of storage, of values that are not stored in their own order.
pub(super) type Layouts = HashMap<ValueId, Vec<AxisId>>;

/// The layouts of carried matrices, and of what is computed to become one.
pub(super) fn layouts(graph: &Graph, live: impl Fn(ValueId) -> bool) -> Layouts {
    let matrices = matrices(graph);
    let mut costs: HashMap<ValueId, [u128; 2]> = HashMap::new();
    for id in (0..graph.values.len() as u32).map(ValueId).filter(|id| live(*id)) {
        let Op::Einsum(a, b, over) = &graph.value(id).op else { continue };
        let ([over], true) = (over.as_slice(), product::is_product(graph, id)) else { continue };
        for (own, other) in [(a, b), (b, a)] {
            let (base, axis) = origin(graph, *own, *over);
            let Some(first) = matrices.get(&base) else { continue };
            let axes = &graph.value(base).axes;
            let copied = copied(graph, *own, *other, *over) * turns(graph, graph.value(id).block);
            // Stored as named, the sum should run over the first axis.
            let wrong = usize::from(axes.first() == Some(&axis));
            costs.entry(*first).or_default()[wrong] += copied;
        }
    }
    let mut found = Layouts::new();
    for scan in &graph.scans {
        for carry in &scan.carries {
            let cost = matrices.get(&carry.before).and_then(|first| costs.get(first));
            if cost.is_some_and(|[as_named, turned]| as_named > turned) {
                let axes = graph.value(carry.before).axes.iter().rev().copied().collect::<Vec<_>>();
                found.insert(carry.before, axes.clone());
                become_one(graph, carry.after, &axes, &mut found);
            }
        }
    }
    found
}

/// Carried matrices, each with the first of those that it goes on from.
fn matrices(graph: &Graph) -> HashMap<ValueId, ValueId> {
    let mut found: HashMap<ValueId, ValueId> = HashMap::new();
    // A scan within another one comes before it, and goes on from what that carries.
    for scan in graph.scans.iter().rev() {
        for carry in &scan.carries {
            let fixed = |a: &AxisId| matches!(graph.axis(*a).size, Size::Fixed(_));
            let axes = &graph.value(carry.before).axes;
            if axes.len() == 2 && axes.iter().all(fixed) && graph.value(carry.first).axes == *axes {
                let first = found.get(&carry.first).copied().unwrap_or(carry.before);
                found.insert(carry.before, first);
            }
        }
    }
    found
}

/// What a value is another name of, and what one of its axes is called there.
fn origin(graph: &Graph, mut id: ValueId, mut axis: AxisId) -> (ValueId, AxisId) {
    loop {
        match &graph.value(id).op {
            Op::Rename { value, from, to } => {
                axis = if axis == *to { *from } else { axis };
                id = *value;
            }
            Op::Stop(value) => id = *value,
            _ => return (id, axis),
        }
    }
}

/// Elements that are copied for a product whose operand lies the wrong way.
fn copied(graph: &Graph, own: ValueId, other: ValueId, over: AxisId) -> u128 {
    let size = |a: AxisId| match graph.axis(a).size {
        Size::Fixed(n) => n as u128,
        Size::Tokens | Size::Past => 1,
    };
    let free =
        |v: ValueId| graph.value(v).axes.iter().filter(|a| **a != over).map(|a| size(*a)).product::<u128>();
    let (m, n, k) = (free(other), free(own), size(over));
    (n * k).min(m * (k + 2 * n))
}

/// How often a block runs, for each token of the program.
fn turns(graph: &Graph, mut block: BlockId) -> u128 {
    let mut turns = 1;
    while let Some(parent) = graph.parents[block.0 as usize] {
        let around = graph.scans.iter().find(|s| s.body == block);
        if let Some(Size::Fixed(n)) = around.map(|s| graph.axis(s.axis).size) {
            turns *= n as u128;
        }
        block = parent;
    }
    turns
}

/// Gives a layout to a value and to what it is computed from entry by entry.
fn become_one(graph: &Graph, id: ValueId, axes: &[AxisId], found: &mut Layouts) {
    let value = graph.value(id);
    let same = value.axes.len() == axes.len() && axes.iter().all(|a| value.axes.contains(a));
    if !same || found.contains_key(&id) {
        return;
    }
    match &value.op {
        Op::Fn2(..) | Op::Fn1(..) | Op::Select(..) | Op::Einsum(..) => {
            found.insert(id, axes.to_vec());
        }
        _ => return,
    }
    if !matches!(value.op, Op::Einsum(..)) {
        for operand in graph.operands(id) {
            become_one(graph, operand, axes, found);
        }
    }
}
