//! Every entry of the table against central differences, by graphs that have the operation.

use super::copy::{Map, copy};
use super::reverse::Reverse;
use crate::eval::{Run, eval};
use crate::ir::{AxisId, Carry, Graph, Input, Op, Order, Origin, Output, Scan, Size, Slice, ValueId};
use crate::verify::verify;
use miras_base::scalar::{Cmp, Fn1, Fn2, ROWS};
use miras_term::{Place, Reduce};
use std::collections::{BTreeMap, BTreeSet};

const M: usize = 2;
const N: usize = 3;

/// A graph with two inputs, `x` [m, n] and `y` [n], and one output.
struct Case {
    name: String,
    graph: Graph,
    axes: [AxisId; 4],
    x: ValueId,
    y: ValueId,
}

impl Case {
    fn new(name: impl Into<String>) -> Case {
        let mut graph = Graph::new();
        let axes = ["m", "n", "m'", "n'"];
        let sizes = [M, N, M, N];
        let mut at = 0;
        let axes = axes.map(|name| {
            at += 1;
            graph.add_axis(name, Size::Fixed(sizes[at - 1]))
        });
        let x = input(&mut graph, "x", &axes[..2]);
        let y = input(&mut graph, "y", &axes[1..2]);
        Case { name: name.into(), graph, axes, x, y }
    }

    fn add(&mut self, op: Op) -> ValueId {
        self.graph.add(Graph::TASK, op)
    }

    /// The graph with this value as its output.
    fn of(mut self, value: ValueId) -> Case {
        let axes = self.graph.value(value).axes.clone();
        output(&mut self.graph, "out", value, axes);
        self
    }
}

fn input(graph: &mut Graph, name: &str, axes: &[AxisId]) -> ValueId {
    let value = graph.given(Graph::TASK, axes.to_vec(), name);
    graph.inputs.push(Input { tensor: name.into(), origin: Origin::Head, value });
    value
}

fn output(graph: &mut Graph, name: &str, value: ValueId, axes: Vec<AxisId>) {
    graph.outputs.push(Output { tensor: name.into(), origin: Origin::Stream, value, axes });
}

/// One graph or more for each operation. What an operation computes is squared or multiplied, so that
/// slopes depend on the point.
fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for row in ROWS {
        let mut c = Case::new(format!("{:?}", row.function));
        // Into every domain, off every kink: from (-0.8, 0.8) to (0.1, 0.9).
        let (scale, shift) = (c.add(Op::Number(0.5)), c.add(Op::Number(0.5)));
        let scaled = c.add(Op::Fn2(Fn2::Mul, c.x, scale));
        let inside = c.add(Op::Fn2(Fn2::Add, scaled, shift));
        let value = c.add(Op::Fn1(row.function, inside));
        all.push(c.of(value));
    }
    for f in [Fn2::Add, Fn2::Sub, Fn2::Mul, Fn2::Div, Fn2::Pow, Fn2::Min, Fn2::Max] {
        for turned in [false, true] {
            let mut c = Case::new(format!("{f:?} {turned}"));
            let lift = c.add(Op::Number(2.0));
            let base = c.add(Op::Fn2(Fn2::Add, c.x, lift));
            let value = c.add(if turned { Op::Fn2(f, base, c.y) } else { Op::Fn2(f, c.y, base) });
            let value = if f == Fn2::Pow && !turned { c.add(Op::Fn2(f, base, base)) } else { value };
            let square = c.add(Op::Fn2(Fn2::Mul, value, value));
            all.push(c.of(square));
        }
    }
    for exponent in [2.0, 3.0, -1.0, 0.5] {
        let mut c = Case::new(format!("power {exponent}"));
        let (lift, p) = (c.add(Op::Number(2.0)), c.add(Op::Number(exponent)));
        let base = c.add(Op::Fn2(Fn2::Add, c.x, lift));
        let value = c.add(Op::Fn2(Fn2::Pow, base, p));
        all.push(c.of(value));
    }
    all.extend(choices());
    all.extend(products());
    all.extend(names());
    all.extend(scans());
    all
}

fn choices() -> Vec<Case> {
    let mut c = Case::new("choice");
    let zero = c.add(Op::Number(0.0));
    let positive = c.add(Op::Compare(Cmp::Gt, c.x, zero));
    let square = c.add(Op::Fn2(Fn2::Mul, c.y, c.y));
    let value = c.add(Op::Select(positive, square, c.x));
    let mut d = Case::new("choice by an index");
    let (index, one) = (d.add(Op::Index(d.axes[1])), d.add(Op::Number(1.0)));
    let after = d.add(Op::Compare(Cmp::Ge, index, one));
    let chosen = d.add(Op::Select(after, d.x, d.y));
    let cube = d.add(Op::Fn2(Fn2::Mul, chosen, chosen));
    vec![c.of(value), d.of(cube)]
}

fn products() -> Vec<Case> {
    let mut all = Vec::new();
    for over in [vec![0], vec![1], vec![0, 1]] {
        let mut c = Case::new(format!("product over {over:?}"));
        let over = over.iter().map(|i| c.axes[*i]).collect();
        let value = c.add(Op::Einsum(c.x, c.y, over));
        let square = c.add(Op::Fn2(Fn2::Mul, value, value));
        all.push(c.of(square));
    }
    for op in [Reduce::Sum, Reduce::Max, Reduce::Min] {
        for over in [vec![0], vec![1], vec![0, 1]] {
            let mut c = Case::new(format!("{op:?} over {over:?}"));
            let over = over.iter().map(|i| c.axes[*i]).collect();
            let value = c.add(Op::Reduce(op, over, c.x));
            let scaled = c.add(Op::Fn2(Fn2::Mul, value, c.y));
            let square = c.add(Op::Fn2(Fn2::Mul, scaled, value));
            all.push(c.of(square));
        }
    }
    all
}

fn names() -> Vec<Case> {
    let mut c = Case::new("rename");
    let value = c.add(Op::Rename { value: c.y, from: c.axes[1], to: c.axes[3] });
    let outer = c.add(Op::Fn2(Fn2::Mul, value, c.x));
    let mut d = Case::new("repeat");
    let spread = d.add(Op::Spread(d.y, vec![d.axes[0], d.axes[1]]));
    let squares = d.add(Op::Fn2(Fn2::Mul, spread, d.x));
    let more = d.add(Op::Fn2(Fn2::Mul, squares, spread));
    let mut e = Case::new("one entry");
    let entry = e.add(Op::At(e.x, e.axes[0], 1));
    let product = e.add(Op::Fn2(Fn2::Mul, entry, e.y));
    let mut f = Case::new("diagonal");
    let eye = f.add(Op::Diagonal(f.axes[1], f.axes[3]));
    let matrix = f.add(Op::Fn2(Fn2::Mul, eye, f.x));
    let cube = f.add(Op::Fn2(Fn2::Mul, matrix, f.x));
    let mut g = Case::new("places");
    let (place, kept) = (g.add(Op::Place(Place::Heads)), g.add(Op::Kept));
    let shifted = g.add(Op::Fn2(Fn2::Mul, g.x, place));
    let shifted = g.add(Op::Fn2(Fn2::Add, shifted, kept));
    let square = g.add(Op::Fn2(Fn2::Mul, shifted, g.y));
    // d (x stop(x)) = stop(x) dx: the difference quotient must see x - c with the same value and slope.
    let mut h = Case::new("stop");
    let stop = h.add(Op::Stop(h.x));
    let difference = h.add(Op::Fn2(Fn2::Sub, stop, stop));
    let sum = h.add(Op::Fn2(Fn2::Add, difference, h.x));
    vec![c.of(outer), d.of(more), e.of(product), f.of(cube), g.of(square), h.of(sum)]
}

/// Scans both ways, with slices, stacks, a captured value, the number of the step, and one scan in another.
fn scans() -> Vec<Case> {
    let mut all = Vec::new();
    for order in [Order::Ascending, Order::Descending] {
        for nested in [false, true] {
            let mut c = Case::new(format!("scan {order:?} {nested}"));
            let [m, n, ..] = c.axes;
            let body = c.graph.add_block(Graph::TASK);
            let before = c.graph.given(body, vec![n], "carry");
            let slice = c.graph.given(body, vec![n], "slice");
            let mut add = |op: Op| c.graph.add(body, op);
            let step = add(Op::Step(m));
            let moved = add(Op::Fn2(Fn2::Add, slice, step));
            let product = add(Op::Fn2(Fn2::Mul, before, moved));
            let total = add(Op::Fn2(Fn2::Add, product, c.y));
            let mut after = add(Op::Fn1(Fn1::Tanh, total));
            let handed = add(Op::Fn2(Fn2::Mul, after, before));
            if nested {
                let steps = c.graph.add_axis("steps", Size::Fixed(3));
                let inner = c.graph.add_block(body);
                let old = c.graph.given(inner, vec![n], "inner");
                let square = c.graph.add(inner, Op::Fn2(Fn2::Mul, old, moved));
                let new = c.graph.add(inner, Op::Fn1(Fn1::Sin, square));
                let carries = vec![Carry { first: after, before: old, after: new }];
                let scan = Scan { axis: steps, order, body: inner, carries, slices: vec![], stacked: vec![] };
                after = c.graph.add_scan(body, scan).0[0];
            }
            let scan = Scan {
                axis: m,
                order,
                body,
                carries: vec![Carry { first: c.y, before, after }],
                slices: vec![Slice { whole: c.x, slice }],
                stacked: vec![handed],
            };
            let (finals, stacks) = c.graph.add_scan(Graph::TASK, scan);
            let value = c.add(Op::Fn2(Fn2::Mul, stacks[0], finals[0]));
            all.push(c.of(value));
        }
    }
    all
}

/// Numbers in (-0.8, 0.8), no two alike.
fn numbers(count: usize, seed: f64) -> Vec<f64> {
    (0..count).map(|i| 0.8 * ((i as f64 + seed) * 12.9898).sin()).collect()
}

/// The gradient program: the inputs and the cotangent of the output -> the cotangents of the inputs.
fn pulled(case: &Case) -> Graph {
    let source = &case.graph;
    let mut target = Graph::new();
    target.axes.clone_from(&source.axes);
    let mut map = Map::new();
    for i in &source.inputs {
        let axes = source.value(i.value).axes.clone();
        map.insert(i.value, input(&mut target, &i.tensor, &axes));
    }
    let out = &source.outputs[0];
    copy(source, &[out.value], Graph::TASK, &mut target, Graph::TASK, &mut map).unwrap();
    let cotangent = input(&mut target, "g", &out.axes);
    let mut reverse = Reverse {
        source,
        target: &mut target,
        into: Graph::TASK,
        map: &mut map,
        cotangents: BTreeMap::new(),
    };
    reverse.give(out.value, cotangent);
    reverse.block(Graph::TASK).unwrap();
    for (name, of) in [("d.x", case.x), ("d.y", case.y)] {
        let (axes, found) = (reverse.axes(of), reverse.cotangents.get(&of).copied());
        let value = reverse.whole(Graph::TASK, found, &axes);
        output(reverse.target, name, value, axes);
    }
    verify(target).unwrap_or_else(|d| panic!("{}: {d}", case.name)).graph().clone()
}

#[test]
fn every_operation_is_pulled_back_as_central_differences_say() {
    for case in cases() {
        verify(case.graph.clone()).unwrap_or_else(|d| panic!("{}: {d}", case.name));
        let gradient = pulled(&case);
        let (x, y) = (numbers(M * N, 0.3), numbers(N, 7.1));
        let run = |x: &[f64], y: &[f64]| Run {
            tokens: 0,
            kept: 2,
            place: [0, 3, 0, 1],
            inputs: [("x".into(), x.to_vec()), ("y".into(), y.to_vec())].into(),
        };
        let value = |x: &[f64], y: &[f64]| eval(&case.graph, &run(x, y)).unwrap()["out"].clone();
        let g = numbers(value(&x, &y).len(), 3.7);
        let mut with = run(&x, &y);
        with.inputs.insert("g".into(), g.clone());
        let found = eval(&gradient, &with).unwrap_or_else(|d| panic!("{}: {d}", case.name));
        let dot = |x: &[f64], y: &[f64]| value(x, y).iter().zip(&g).map(|(a, b)| a * b).sum::<f64>();
        for (name, which) in [("d.x", 0), ("d.y", 1)] {
            for i in 0..found[name].len() {
                let moved = |h: f64| {
                    let mut at = [x.clone(), y.clone()];
                    at[which][i] += h;
                    dot(&at[0], &at[1])
                };
                let h = 1e-5;
                let expected =
                    (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h);
                let error = (found[name][i] - expected).abs();
                assert!(
                    error <= 1e-8 * (1.0 + expected.abs()),
                    "{}: {name}[{i}] is {} and not {expected}",
                    case.name,
                    found[name][i]
                );
            }
        }
    }
}

/// The row of the table that an operation belongs to.
fn kind(op: &Op) -> usize {
    match op {
        Op::Given => 0,
        Op::Number(_) => 1,
        Op::Place(_) => 2,
        Op::Kept => 3,
        Op::Step(_) => 4,
        Op::Index(_) => 5,
        Op::Fn1(..) => 6,
        Op::Fn2(..) => 7,
        Op::Compare(..) => 8,
        Op::Select(..) => 9,
        Op::Einsum(..) => 10,
        Op::Reduce(..) => 11,
        Op::Rename { .. } => 12,
        Op::Spread(..) => 13,
        Op::At(..) => 14,
        Op::Diagonal(..) => 15,
        Op::Stop(_) => 16,
        Op::Final(..) => 17,
        Op::Stacked(..) => 18,
    }
}

/// A new operation gets a number above, which this test then asks for a graph of.
#[test]
fn every_operation_has_a_graph() {
    let seen: BTreeSet<usize> =
        cases().iter().flat_map(|c| c.graph.values.iter().map(|v| kind(&v.op)).collect::<Vec<_>>()).collect();
    assert_eq!(seen, (0..=18).collect());
}

/// At points where a derivative is infinite or undefined it is what the table says, and never NaN.
#[test]
fn singular_points_give_no_nan() {
    let slopes = [
        (Fn1::Sqrt, 0.0),
        (Fn1::Log, 0.0),
        (Fn1::Abs, 0.0),
        (Fn1::Sign, 0.0),
        (Fn1::Relu, 0.0),
        (Fn1::Atanh, 1.0),
        (Fn1::Logit, 0.0),
    ];
    for (f, x) in slopes {
        let mut c = Case::new(format!("{f:?} at {x}"));
        let value = c.add(Op::Fn1(f, c.x));
        let c = c.of(value);
        let found = eval(&pulled(&c), &at_point(x, 0.0, M * N)).unwrap();
        assert!(found["d.x"].iter().all(|d| *d == 0.0), "{}: {:?}", c.name, found["d.x"]);
    }
    for (p, x) in [(0.5, 0.0), (-1.0, 0.0), (1.0, 0.0), (2.0, 0.0), (1.5, 0.0)] {
        let mut c = Case::new(format!("power {p} at {x}"));
        let value = c.add(Op::Fn2(Fn2::Pow, c.x, c.y));
        let c = c.of(value);
        let found = eval(&pulled(&c), &at_point(x, p, M * N)).unwrap();
        assert!(found.values().flatten().all(|d| d.is_finite()), "{}: {found:?}", c.name);
    }
    // What is masked may overflow; its cotangent is 0 and stays 0.
    let mut c = Case::new("masked");
    let (zero, large) = (c.add(Op::Number(0.0)), c.add(Op::Number(1e4)));
    let above = c.add(Op::Fn2(Fn2::Mul, c.x, large));
    let infinite = c.add(Op::Fn1(Fn1::Exp, above));
    let masked = c.add(Op::Compare(Cmp::Gt, c.x, zero));
    let value = c.add(Op::Select(masked, zero, infinite));
    let c = c.of(value);
    let found = eval(&pulled(&c), &at_point(1.0, 0.0, M * N)).unwrap();
    assert_eq!(found["d.x"], vec![0.0; M * N]);
}

fn at_point(x: f64, y: f64, outputs: usize) -> Run {
    let inputs = [("x", vec![x; M * N]), ("y", vec![y; N]), ("g", vec![1.0; outputs])];
    let inputs = inputs.into_iter().map(|(name, values)| (name.to_string(), values)).collect();
    Run { tokens: 0, kept: 0, place: [0, 1, 0, 1], inputs }
}
