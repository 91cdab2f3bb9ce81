//! The graph: values, blocks, scans, and the builder that keeps its invariants.

use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_term::{Place, Reduce};
use std::collections::HashMap;

/// An axis of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AxisId(pub u32);

/// A value of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// A block of a [`Graph`]; block 0 is the task itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// A scan of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScanId(pub u32);

/// The size of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// Known when the graph is built.
    Fixed(usize),
    /// The number of tokens of the stream, known when the task runs.
    Tokens,
    /// The number of tokens kept from before the run, and after them the run's own.
    Past,
}

/// A named axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Name in prints: `k`, `v`, `hidden`, `t`.
    pub name: String,
    /// Its size.
    pub size: Size,
    /// Whether it counts tokens that are taken together. Such axes lie outermost in what is stored, in the order in
    /// which they were made: so sums over them, or over all others, are matrix products.
    pub tokens: bool,
}

/// Where an input tensor comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// One entry (or as many as the algorithm repeats) for each token of the stream and head.
    Token,
    /// One entry for each token kept from before the run, then one for each of the run's own.
    Past,
    /// One for each head.
    Head,
    /// One for each stream and head: what an earlier run handed on.
    Stream,
}

/// A tensor that the task reads.
#[derive(Clone, Debug)]
pub struct Input {
    /// The tensor's name in files.
    pub tensor: String,
    /// Where it comes from.
    pub origin: Origin,
    /// The value that stands for it; axes in storage order (a token input has the token axis first).
    pub value: ValueId,
}

/// A tensor that the task writes.
#[derive(Clone, Debug)]
pub struct Output {
    /// The tensor's name in files.
    pub tensor: String,
    /// `Token` for outputs with the token axis first, `Stream` for final states.
    pub origin: Origin,
    /// Its value.
    pub value: ValueId,
    /// Axes in storage order; the value may lack some (it is repeated along them).
    pub axes: Vec<AxisId>,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// An input tensor, or a parameter of a block (a scan's carry or slice).
    Given,
    /// A number.
    Number(f64),
    /// A number of the layer's place.
    Place(Place),
    /// The number of tokens kept from before the run.
    Kept,
    /// The number of the step of a scan over this axis; inside its body.
    Step(AxisId),
    /// The index along an axis of fixed size, from 0; the value has this axis alone.
    Index(AxisId),
    /// A function of the table, entry by entry.
    Fn1(Fn1, ValueId),
    /// A function of two values over the union of their axes.
    Fn2(Fn2, ValueId, ValueId),
    /// A comparison over the union of the axes; truth values.
    Compare(Cmp, ValueId, ValueId),
    /// `if c then a else b` over the union of the axes.
    Select(ValueId, ValueId, ValueId),
    /// Sum of `a * b` over the axes `over`; the result has the other axes of either.
    Einsum(ValueId, ValueId, Vec<AxisId>),
    /// A reduction over axes that the value has.
    Reduce(Reduce, Vec<AxisId>, ValueId),
    /// The same entries with the axis `from` called `to`; the sizes agree.
    Rename {
        /// The value.
        value: ValueId,
        /// An axis it has.
        from: AxisId,
        /// An axis it does not have.
        to: AxisId,
    },
    /// The value repeated along those of the axes that it lacks; the result has exactly these axes.
    Spread(ValueId, Vec<AxisId>),
    /// The entry at a fixed place of an axis, which is dropped.
    At(ValueId, AxisId, usize),
    /// 1 where two axes have the same index, else 0.
    Diagonal(AxisId, AxisId),
    /// The same value; no outer gradient passes.
    Stop(ValueId),
    /// A final carry of a scan.
    Final(ScanId, usize),
    /// What a scan's steps stacked along its axis.
    Stacked(ScanId, usize),
}

/// One value.
#[derive(Clone, Debug)]
pub struct Value {
    /// What it is.
    pub op: Op,
    /// Its axes. The order is that of storage where the value is stored.
    pub axes: Vec<AxisId>,
    /// Whether entries are truth values.
    pub truth: bool,
    /// The block it belongs to.
    pub block: BlockId,
    /// Its name in the program, where it has one.
    pub name: Option<String>,
    /// What it computes, in the program's names; for comments.
    pub equation: Option<String>,
}

/// A value carried from step to step.
#[derive(Clone, Debug)]
pub struct Carry {
    /// Before the first step; outside the scan.
    pub first: ValueId,
    /// Before a step (Given); inside.
    pub before: ValueId,
    /// After a step; inside.
    pub after: ValueId,
}

/// A value seen one slice at a time.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Has the scan's axis; outside.
    pub whole: ValueId,
    /// Lacks it (Given); inside.
    pub slice: ValueId,
}

/// In which direction a scan goes along its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// From the first index to the last.
    Ascending,
    /// From the last index to the first.
    Descending,
}

/// Steps in sequence along an axis.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The axis; its size is the number of steps.
    pub axis: AxisId,
    /// The direction. Slices and stacked values lie at the index of their step either way.
    pub order: Order,
    /// The block of one step.
    pub body: BlockId,
    /// What goes from step to step.
    pub carries: Vec<Carry>,
    /// What is seen slice by slice.
    pub slices: Vec<Slice>,
    /// Values of a step that are stacked along the axis.
    pub stacked: Vec<ValueId>,
}

/// What one task computes.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Axes by id.
    pub axes: Vec<Axis>,
    /// Values by id.
    pub values: Vec<Value>,
    /// Scans by id.
    pub scans: Vec<Scan>,
    /// For each block the one around it; block 0 has none.
    pub parents: Vec<Option<BlockId>>,
    /// What it reads.
    pub inputs: Vec<Input>,
    /// What it writes.
    pub outputs: Vec<Output>,
    index: HashMap<(BlockId, OpKey), ValueId>,
}

/// An operation as a key for sharing equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OpKey(String);

impl Graph {
    /// A graph with its outermost block and nothing in it.
    pub fn new() -> Graph {
        Graph { parents: vec![None], ..Graph::default() }
    }

    /// The outermost block.
    pub const TASK: BlockId = BlockId(0);

    /// A new axis.
    pub fn add_axis(&mut self, name: impl Into<String>, size: Size) -> AxisId {
        self.axes.push(Axis { name: name.into(), size, tokens: false });
        AxisId(self.axes.len() as u32 - 1)
    }

    /// A new axis of tokens that are taken together.
    pub fn add_tokens(&mut self, name: impl Into<String>, count: usize) -> AxisId {
        self.axes.push(Axis { name: name.into(), size: Size::Fixed(count), tokens: true });
        AxisId(self.axes.len() as u32 - 1)
    }

    /// A new block inside another.
    pub fn add_block(&mut self, parent: BlockId) -> BlockId {
        self.parents.push(Some(parent));
        BlockId(self.parents.len() as u32 - 1)
    }

    /// An axis.
    pub fn axis(&self, id: AxisId) -> &Axis {
        &self.axes[id.0 as usize]
    }

    /// A value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// A scan.
    pub fn scan(&self, id: ScanId) -> &Scan {
        &self.scans[id.0 as usize]
    }

    /// An input, or a parameter of a block.
    pub fn given(&mut self, block: BlockId, axes: Vec<AxisId>, name: impl Into<String>) -> ValueId {
        self.push(Value { op: Op::Given, axes, truth: false, block, name: Some(name.into()), equation: None })
    }

    /// Names a value that has no name yet.
    pub fn set_name(&mut self, id: ValueId, name: &str) {
        let value = &mut self.values[id.0 as usize];
        if value.name.is_none() {
            value.name = Some(name.to_string());
        }
    }

    /// Says what a value computes, where nothing was said yet.
    pub fn set_equation(&mut self, id: ValueId, equation: impl FnOnce() -> String) {
        self.values[id.0 as usize].equation.get_or_insert_with(equation);
    }

    /// A scan over `axis` from its parts; gives the values of the final carries and of the stacks.
    pub fn add_scan(&mut self, block: BlockId, scan: Scan) -> (Vec<ValueId>, Vec<ValueId>) {
        let id = ScanId(self.scans.len() as u32);
        let finals: Vec<Vec<AxisId>> =
            scan.carries.iter().map(|c| self.value(c.first).axes.clone()).collect();
        let stacks: Vec<Vec<AxisId>> = (scan.stacked.iter())
            .map(|s| std::iter::once(scan.axis).chain(self.value(*s).axes.iter().copied()).collect())
            .collect();
        self.scans.push(scan);
        let mut results = |ops: Vec<(Op, Vec<AxisId>)>| -> Vec<ValueId> {
            let value = |(op, axes)| Value { op, axes, truth: false, block, name: None, equation: None };
            ops.into_iter().map(|o| self.push(value(o))).collect()
        };
        let finals = results(finals.into_iter().enumerate().map(|(i, a)| (Op::Final(id, i), a)).collect());
        let stacks = results(stacks.into_iter().enumerate().map(|(i, a)| (Op::Stacked(id, i), a)).collect());
        (finals, stacks)
    }

    /// The value of an operation in a block; an equal one of the same block where there is one.
    /// Axes follow from the operands.
    pub fn add(&mut self, block: BlockId, op: Op) -> ValueId {
        let key = (block, OpKey(format!("{op:?}")));
        if let Some(id) = self.index.get(&key) {
            return *id;
        }
        let axes = self.axes_of(&op);
        let truth = matches!(op, Op::Compare(..));
        let id = self.push(Value { op, axes, truth, block, name: None, equation: None });
        self.index.insert(key, id);
        id
    }

    /// Direct operands of a value; none for Given, Final and Stacked.
    pub fn operands(&self, id: ValueId) -> Vec<ValueId> {
        match &self.value(id).op {
            Op::Given
            | Op::Number(_)
            | Op::Place(_)
            | Op::Kept
            | Op::Step(_)
            | Op::Index(_)
            | Op::Diagonal(..)
            | Op::Final(..)
            | Op::Stacked(..) => vec![],
            Op::Fn1(_, a)
            | Op::Reduce(_, _, a)
            | Op::Rename { value: a, .. }
            | Op::At(a, ..)
            | Op::Spread(a, _)
            | Op::Stop(a) => {
                vec![*a]
            }
            Op::Fn2(_, a, b) | Op::Compare(_, a, b) | Op::Einsum(a, b, _) => vec![*a, *b],
            Op::Select(c, a, b) => vec![*c, *a, *b],
        }
    }

    /// The axes an operation's result has.
    pub fn axes_of(&self, op: &Op) -> Vec<AxisId> {
        let of = |id: &ValueId| self.value(*id).axes.clone();
        match op {
            Op::Given | Op::Number(_) | Op::Place(_) | Op::Kept | Op::Step(_) => Vec::new(),
            Op::Fn1(_, a) | Op::Stop(a) => of(a),
            Op::Fn2(_, a, b) | Op::Compare(_, a, b) => self.stored(union(&[of(a), of(b)])),
            Op::Select(c, a, b) => self.stored(union(&[of(a), of(b), of(c)])),
            Op::Einsum(a, b, over) => self.stored(without(&union(&[of(a), of(b)]), over)),
            Op::Reduce(_, over, a) => without(&of(a), over),
            Op::Rename { value, from, to } => {
                self.stored(of(value).iter().map(|x| if x == from { *to } else { *x }).collect())
            }
            Op::Spread(_, axes) => self.stored(axes.clone()),
            Op::At(a, axis, _) => without(&of(a), &[*axis]),
            Op::Index(axis) => vec![*axis],
            Op::Diagonal(a, b) => vec![*a, *b],
            Op::Final(scan, i) => of(&self.scan(*scan).carries[*i].first),
            Op::Stacked(scan, i) => {
                let scan = self.scan(*scan);
                std::iter::once(scan.axis).chain(of(&scan.stacked[*i])).collect()
            }
        }
    }

    /// Axes in the order of storage.
    fn stored(&self, mut axes: Vec<AxisId>) -> Vec<AxisId> {
        axes.sort_by_key(|a| if self.axis(*a).tokens { (0, a.0) } else { (1, 0) });
        axes
    }

    /// Whether `inner` is `outer` or lies inside it.
    pub fn within(&self, inner: BlockId, outer: BlockId) -> bool {
        let mut at = Some(inner);
        while let Some(block) = at {
            if block == outer {
                return true;
            }
            at = self.parents[block.0 as usize];
        }
        false
    }

    fn push(&mut self, value: Value) -> ValueId {
        self.values.push(value);
        ValueId(self.values.len() as u32 - 1)
    }
}

/// All axes of the lists, each once, in order of first appearance in the longest list, then the others.
fn union(lists: &[Vec<AxisId>]) -> Vec<AxisId> {
    let mut sorted: Vec<&Vec<AxisId>> = lists.iter().collect();
    sorted.sort_by_key(|l| std::cmp::Reverse(l.len()));
    let mut axes: Vec<AxisId> = Vec::new();
    for axis in sorted.into_iter().flatten() {
        if !axes.contains(axis) {
            axes.push(*axis);
        }
    }
    axes
}

fn without(axes: &[AxisId], drop: &[AxisId]) -> Vec<AxisId> {
    axes.iter().copied().filter(|a| !drop.contains(a)).collect()
}
