//! What the outputs of a graph need.

use crate::ir::{Graph, Op, ValueId};

/// Drops slices and inputs that nothing uses.
pub(crate) fn prune(graph: &mut Graph) {
    let live = live(graph);
    let is_live = |id: ValueId| live[id.0 as usize];
    for scan in &mut graph.scans {
        scan.slices.retain(|s| is_live(s.slice));
    }
    graph.inputs.retain(|i| is_live(i.value));
}

/// What the outputs need; of a scan all carries, and those slices and stacked values that they need.
pub(crate) fn live(graph: &Graph) -> Vec<bool> {
    let mut live = vec![false; graph.values.len()];
    let mut open: Vec<ValueId> = graph.outputs.iter().map(|o| o.value).collect();
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut live[id.0 as usize], true) {
            continue;
        }
        open.extend(graph.operands(id));
        match graph.value(id).op {
            Op::Final(scan, _) | Op::Stacked(scan, _) => {
                let of = graph.scan(scan);
                open.extend(of.carries.iter().flat_map(|c| [c.first, c.before, c.after]));
                if let Op::Stacked(_, i) = graph.value(id).op {
                    open.push(of.stacked[i]);
                }
            }
            Op::Given => {
                let slices = graph.scans.iter().flat_map(|s| &s.slices).filter(|s| s.slice == id);
                open.extend(slices.map(|s| s.whole));
            }
            _ => {}
        }
    }
    live
}
