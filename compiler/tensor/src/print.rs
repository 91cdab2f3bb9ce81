//! Graphs as text, one value a line.

use crate::ir::{AxisId, BlockId, Graph, Op, Order, Size, ValueId};
use std::fmt::Write;

/// The whole graph, blocks indented.
pub fn print(graph: &Graph) -> String {
    let mut text = String::new();
    for input in &graph.inputs {
        let _ = writeln!(text, "input {} = %{} {:?}", input.tensor, input.value.0, input.origin);
    }
    print_block(graph, Graph::TASK, 0, &mut text);
    for output in &graph.outputs {
        let _ =
            writeln!(text, "output {} = %{} {}", output.tensor, output.value.0, axes(graph, &output.axes));
    }
    text
}

fn print_block(graph: &Graph, block: BlockId, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let mut printed = vec![false; graph.scans.len()];
    for (i, value) in graph.values.iter().enumerate().filter(|(_, v)| v.block == block) {
        if let Op::Final(scan, _) | Op::Stacked(scan, _) = &value.op
            && !printed[scan.0 as usize]
        {
            printed[scan.0 as usize] = true;
            let s = graph.scan(*scan);
            let order = match s.order {
                Order::Ascending => "",
                Order::Descending => ", last first",
            };
            let _ = writeln!(text, "{indent}scan {} over {}{order}", scan.0, graph.axis(s.axis).name);
            for slice in &s.slices {
                let _ = writeln!(text, "{indent}  slice %{} of %{}", slice.slice.0, slice.whole.0);
            }
            print_block(graph, s.body, depth + 1, text);
            for c in &s.carries {
                let _ = writeln!(
                    text,
                    "{indent}  carry %{} from %{} becomes %{}",
                    c.before.0, c.first.0, c.after.0
                );
            }
        }
        let name = value.name.as_deref().map(|n| format!("  // {n}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{indent}%{i} {} = {}{name}",
            axes(graph, &value.axes),
            operation(graph, ValueId(i as u32))
        );
    }
}

fn axes(graph: &Graph, axes: &[AxisId]) -> String {
    let names: Vec<String> = (axes.iter())
        .map(|a| match graph.axis(*a).size {
            Size::Fixed(n) => format!("{}={n}", graph.axis(*a).name),
            Size::Tokens => format!("{}=T", graph.axis(*a).name),
            Size::Past => format!("{}=K+T", graph.axis(*a).name),
        })
        .collect();
    format!("[{}]", names.join(", "))
}

fn operation(graph: &Graph, id: ValueId) -> String {
    let names =
        |over: &[AxisId]| over.iter().map(|a| graph.axis(*a).name.clone()).collect::<Vec<_>>().join(", ");
    match &graph.value(id).op {
        Op::Given => "given".into(),
        Op::Number(x) => format!("{x}"),
        Op::Place(p) => format!("{p:?}").to_lowercase(),
        Op::Kept => "K".into(),
        Op::Step(axis) => format!("step of {}", graph.axis(*axis).name),
        Op::Index(axis) => format!("index along {}", graph.axis(*axis).name),
        Op::Fn1(f, a) => format!("{f} %{}", a.0),
        Op::Fn2(f, a, b) => format!("%{} {} %{}", a.0, f.spelling(), b.0),
        Op::Compare(c, a, b) => format!("%{} {} %{}", a.0, c.spelling(), b.0),
        Op::Select(c, a, b) => format!("if %{} then %{} else %{}", c.0, a.0, b.0),
        Op::Einsum(a, b, over) => format!("sum over {} of %{} * %{}", names(over), a.0, b.0),
        Op::Reduce(op, over, a) => format!("{op:?} over {} of %{}", names(over), a.0),
        Op::Rename { value, from, to } => {
            format!("%{} with {} called {}", value.0, graph.axis(*from).name, graph.axis(*to).name)
        }
        Op::Spread(a, _) => format!("%{} repeated", a.0),
        Op::At(a, axis, i) => format!("%{} at {} = {i}", a.0, graph.axis(*axis).name),
        Op::Diagonal(a, b) => format!("{} == {}", graph.axis(*a).name, graph.axis(*b).name),
        Op::Stop(a) => format!("stop %{}", a.0),
        Op::Final(scan, i) => format!("final carry {i} of scan {}", scan.0),
        Op::Stacked(scan, i) => format!("stack {i} of scan {}", scan.0),
    }
}
