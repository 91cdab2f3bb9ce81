//! Float64 interpreter of graphs: what a graph means, for tests and verification.

use crate::ir::{AxisId, BlockId, Graph, Op, Order, ScanId, Size, ValueId};
use crate::live::live;
use miras_base::Diagnostic;
use miras_term::{Place, Reduce};
use std::collections::{BTreeMap, HashMap};

/// A dense tensor over named axes; entries in the order of `axes`, the last one fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Axes in storage order.
    pub axes: Vec<AxisId>,
    /// Entries. Truth values are 1 and 0.
    pub data: Vec<f64>,
}

/// What a graph is evaluated in.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Number of tokens.
    pub tokens: usize,
    /// Number of tokens kept from before the run.
    pub kept: usize,
    /// Head, heads, layer, layers.
    pub place: [u64; 4],
    /// Entries of each input, in its storage order.
    pub inputs: BTreeMap<String, Vec<f64>>,
}

/// The outputs of a graph, in storage order, by tensor name.
pub fn eval(graph: &Graph, run: &Run) -> Result<BTreeMap<String, Vec<f64>>, Diagnostic> {
    let live = live(graph);
    let mut at = Evaluator { graph, run, live, values: HashMap::new(), steps: HashMap::new() };
    for input in &graph.inputs {
        let missing = || Diagnostic::bug(format!("no data for the input {}", input.tensor));
        let data = run.inputs.get(&input.tensor).cloned().ok_or_else(missing)?;
        let axes = graph.value(input.value).axes.clone();
        if data.len() != at.count(&axes) {
            return Err(Diagnostic::bug(format!(
                "the input {} has the wrong number of entries",
                input.tensor
            )));
        }
        at.values.insert(input.value, Array { axes, data });
    }
    at.block(Graph::TASK)?;
    let mut outputs = BTreeMap::new();
    for output in &graph.outputs {
        let value = at.get(output.value)?.clone();
        let spread = at.build(&output.axes, |at, index| at.entry(&value, index));
        outputs.insert(output.tensor.clone(), spread.data);
    }
    Ok(outputs)
}

type Index = HashMap<AxisId, usize>;

struct Evaluator<'a> {
    graph: &'a Graph,
    run: &'a Run,
    /// Which values the outputs need.
    live: Vec<bool>,
    values: HashMap<ValueId, Array>,
    /// The step at hand of each scan that is running.
    steps: HashMap<AxisId, usize>,
}

impl Evaluator<'_> {
    fn size(&self, axis: AxisId) -> usize {
        match self.graph.axis(axis).size {
            Size::Fixed(n) => n,
            Size::Tokens => self.run.tokens,
            Size::Past => self.run.kept + self.run.tokens,
        }
    }

    fn needs(&self, id: ValueId) -> bool {
        self.live[id.0 as usize] || matches!(self.graph.value(id).op, Op::Given)
    }

    fn count(&self, axes: &[AxisId]) -> usize {
        axes.iter().map(|a| self.size(*a)).product()
    }

    fn get(&self, id: ValueId) -> Result<&Array, Diagnostic> {
        self.values
            .get(&id)
            .ok_or_else(|| Diagnostic::bug(format!("tensor value %{} has no value yet", id.0)))
    }

    /// The entry of an array at an index that has at least its axes.
    fn entry(&self, array: &Array, index: &Index) -> f64 {
        let flat = array.axes.iter().fold(0, |flat, a| flat * self.size(*a) + index[a]);
        array.data[flat]
    }

    fn build(&self, axes: &[AxisId], f: impl Fn(&Self, &Index) -> f64) -> Array {
        let mut data = Vec::with_capacity(self.count(axes));
        let mut index: Index = axes.iter().map(|a| (*a, 0)).collect();
        for flat in 0..self.count(axes) {
            self.unflatten(axes, flat, &mut index);
            data.push(f(self, &index));
        }
        Array { axes: axes.to_vec(), data }
    }

    fn unflatten(&self, axes: &[AxisId], flat: usize, index: &mut Index) {
        let mut rest = flat;
        for axis in axes.iter().rev() {
            let n = self.size(*axis);
            index.insert(*axis, rest % n);
            rest /= n;
        }
    }

    fn block(&mut self, block: BlockId) -> Result<(), Diagnostic> {
        let mut run: Vec<ScanId> = Vec::new();
        for i in 0..self.graph.values.len() {
            let value = &self.graph.values[i];
            if value.block != block || matches!(value.op, Op::Given) || !self.live[i] {
                continue;
            }
            if let Op::Final(scan, _) | Op::Stacked(scan, _) = value.op {
                if !run.contains(&scan) {
                    self.scan(scan)?;
                    run.push(scan);
                }
                continue;
            }
            let id = ValueId(i as u32);
            let array = self.op(id)?;
            self.values.insert(id, array);
        }
        Ok(())
    }

    fn scan(&mut self, id: ScanId) -> Result<(), Diagnostic> {
        let scan = self.graph.scan(id);
        let mut carried: Vec<Array> = Vec::new();
        for c in &scan.carries {
            carried.push(self.get(c.first)?.clone());
        }
        let wholes: Vec<Array> =
            scan.slices.iter().map(|s| self.get(s.whole).cloned()).collect::<Result<_, _>>()?;
        let count = self.size(scan.axis);
        let mut stacks: Vec<Vec<Vec<f64>>> = vec![vec![Vec::new(); count]; scan.stacked.len()];
        for turn in 0..count {
            let step = match scan.order {
                Order::Ascending => turn,
                Order::Descending => count - 1 - turn,
            };
            self.steps.insert(scan.axis, step);
            for (c, value) in scan.carries.iter().zip(carried) {
                let value = self.reordered(&value, &self.graph.value(c.before).axes);
                self.values.insert(c.before, value);
            }
            for (s, whole) in scan.slices.iter().zip(&wholes) {
                let slice = self.build(&self.graph.value(s.slice).axes, |at, index| {
                    let mut index = index.clone();
                    index.insert(scan.axis, step);
                    at.entry(whole, &index)
                });
                self.values.insert(s.slice, slice);
            }
            self.block(scan.body)?;
            carried = scan.carries.iter().map(|c| self.get(c.after).cloned()).collect::<Result<_, _>>()?;
            for (stack, value) in stacks.iter_mut().zip(&scan.stacked).filter(|(_, v)| self.needs(**v)) {
                stack[step] = self.get(*value)?.data.clone();
            }
        }
        for (i, value) in self.graph.values.iter().enumerate() {
            let array = match value.op {
                Op::Final(s, k) if s == id => self.reordered(&carried[k], &value.axes),
                Op::Stacked(s, k) if s == id => Array { axes: value.axes.clone(), data: stacks[k].concat() },
                _ => continue,
            };
            self.values.insert(ValueId(i as u32), array);
        }
        Ok(())
    }

    fn reordered(&self, array: &Array, axes: &[AxisId]) -> Array {
        self.build(axes, |at, index| at.entry(array, index))
    }

    fn op(&self, id: ValueId) -> Result<Array, Diagnostic> {
        let value = self.graph.value(id);
        let axes = &value.axes;
        Ok(match &value.op {
            Op::Given | Op::Final(..) | Op::Stacked(..) => self.get(id)?.clone(),
            Op::Number(x) => Array { axes: vec![], data: vec![*x] },
            Op::Place(place) => {
                let [head, heads, layer, layers] = self.run.place;
                let n = match place {
                    Place::Head => head,
                    Place::Heads => heads,
                    Place::Layer => layer,
                    Place::Layers => layers,
                };
                Array { axes: vec![], data: vec![n as f64] }
            }
            Op::Kept => Array { axes: vec![], data: vec![self.run.kept as f64] },
            Op::Step(axis) => {
                let outside = || Diagnostic::bug("the step of a scan outside the scan");
                let step = self.steps.get(axis).copied().ok_or_else(outside)?;
                Array { axes: vec![], data: vec![step as f64] }
            }
            Op::Fn1(f, a) => {
                let a = self.get(*a)?;
                Array { axes: a.axes.clone(), data: a.data.iter().map(|x| f.eval(*x)).collect() }
            }
            Op::Fn2(f, a, b) => {
                let (a, b) = (self.get(*a)?, self.get(*b)?);
                self.build(axes, |at, i| f.eval(at.entry(a, i), at.entry(b, i)))
            }
            Op::Compare(c, a, b) => {
                let (a, b) = (self.get(*a)?, self.get(*b)?);
                self.build(axes, |at, i| if c.eval(at.entry(a, i), at.entry(b, i)) { 1.0 } else { 0.0 })
            }
            Op::Select(c, a, b) => {
                let (c, a, b) = (self.get(*c)?, self.get(*a)?, self.get(*b)?);
                self.build(axes, |at, i| if at.entry(c, i) != 0.0 { at.entry(a, i) } else { at.entry(b, i) })
            }
            Op::Einsum(a, b, over) => {
                let (a, b) = (self.get(*a)?, self.get(*b)?);
                self.build(axes, |at, i| {
                    at.fold(Reduce::Sum, over, i, |at, i| at.entry(a, i) * at.entry(b, i))
                })
            }
            Op::Reduce(op, over, a) => {
                let a = self.get(*a)?;
                self.build(axes, |at, i| at.fold(*op, over, i, |at, i| at.entry(a, i)))
            }
            Op::Rename { value, .. } => Array { axes: axes.clone(), data: self.get(*value)?.data.clone() },
            Op::Spread(a, _) => {
                let a = self.get(*a)?;
                self.build(axes, |at, i| at.entry(a, i))
            }
            Op::At(a, axis, place) => {
                let a = self.get(*a)?;
                self.build(axes, |at, i| {
                    let mut i = i.clone();
                    i.insert(*axis, *place);
                    at.entry(a, &i)
                })
            }
            Op::Index(axis) => self.build(axes, |_, i| i[axis] as f64),
            Op::Diagonal(a, b) => self.build(axes, |_, i| if i[a] == i[b] { 1.0 } else { 0.0 }),
            Op::Stop(a) => self.get(*a)?.clone(),
        })
    }

    fn fold(&self, op: Reduce, over: &[AxisId], index: &Index, f: impl Fn(&Self, &Index) -> f64) -> f64 {
        let mut index = index.clone();
        let terms = (0..self.count(over)).map(|flat| {
            self.unflatten(over, flat, &mut index);
            f(self, &index)
        });
        match op {
            Reduce::Sum => terms.sum(),
            Reduce::Max => terms.fold(f64::NEG_INFINITY, f64::max),
            Reduce::Min => terms.fold(f64::INFINITY, f64::min),
        }
    }
}
