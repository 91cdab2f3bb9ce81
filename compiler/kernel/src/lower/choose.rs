//! Which values are stored, seen or fused.

use super::product;
use miras_base::scalar::{Fn1, Fn2};
use miras_tensor::ir::{Graph, Op, ValueId};
use std::collections::HashMap;

/// What becomes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Nothing needs it.
    Dead,
    /// It is part of the expressions of those that use it.
    Fused,
    /// It is part of an array that is there anyway.
    Seen,
    /// It has an array of its own, filled by one nest.
    Stored,
    /// It has an array of its own, filled by a function over a run.
    Applied,
}

/// The form of every value.
pub(super) struct Forms {
    forms: Vec<Form>,
    live: Vec<bool>,
}

impl Forms {
    pub(super) fn of(&self, id: ValueId) -> Form {
        self.forms[id.0 as usize]
    }

    pub(super) fn live(&self, id: ValueId) -> bool {
        self.live[id.0 as usize]
    }
}

/// A fused expression may have about this many operations; beyond, a value is stored.
const MOST_FUSED: usize = 48;

/// An expression of at most this many operations may be computed again for each user.
const LIGHT: usize = 2;

/// What a fused expression holds.
#[derive(Clone, Copy, Default)]
struct Fusion {
    operations: usize,
    reduces: bool,
    heavy: bool,
}

/// Chooses the form of every value of a graph.
pub(super) fn choose(graph: &Graph) -> Forms {
    let live = live(graph);
    let users = users(graph, &live);
    let mut choice =
        Choice { graph, users, fusions: HashMap::new(), forms: vec![Form::Dead; graph.values.len()] };
    for (i, alive) in live.iter().enumerate() {
        if *alive {
            choice.forms[i] = choice.form(ValueId(i as u32));
        }
    }
    Forms { forms: choice.forms, live }
}

/// Marks what the outputs need. All carries of a scan that is needed are needed.
fn live(graph: &Graph) -> Vec<bool> {
    let mut live = vec![false; graph.values.len()];
    let mut open: Vec<ValueId> = graph.outputs.iter().map(|o| o.value).collect();
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut live[id.0 as usize], true) {
            continue;
        }
        open.extend(graph.operands(id));
        match graph.value(id).op {
            Op::Final(scan, _) | Op::Stacked(scan, _) => {
                let scan = graph.scan(scan);
                open.extend(scan.carries.iter().flat_map(|c| [c.first, c.after, c.before]));
                open.extend(scan.slices.iter().flat_map(|s| [s.whole, s.slice]));
                if let Op::Stacked(_, i) = graph.value(id).op {
                    open.push(scan.stacked[i]);
                }
            }
            Op::Given
            | Op::Number(_)
            | Op::Place(_)
            | Op::Kept
            | Op::Step(_)
            | Op::Index(_)
            | Op::Fn1(..)
            | Op::Fn2(..)
            | Op::Compare(..)
            | Op::Select(..)
            | Op::Einsum(..)
            | Op::Reduce(..)
            | Op::Rename { .. }
            | Op::Spread(..)
            | Op::At(..)
            | Op::Diagonal(..)
            | Op::Stop(_) => {}
        }
    }
    live
}

/// The live users of each value.
fn users(graph: &Graph, live: &[bool]) -> HashMap<ValueId, Vec<ValueId>> {
    let mut users: HashMap<ValueId, Vec<ValueId>> = HashMap::new();
    for id in (0..graph.values.len() as u32).map(ValueId).filter(|i| live[i.0 as usize]) {
        for operand in graph.operands(id) {
            users.entry(operand).or_default().push(id);
        }
    }
    users
}

struct Choice<'a> {
    graph: &'a Graph,
    users: HashMap<ValueId, Vec<ValueId>>,
    fusions: HashMap<ValueId, Fusion>,
    forms: Vec<Form>,
}

impl Choice<'_> {
    fn form(&mut self, id: ValueId) -> Form {
        let fusion = self.fusion(id);
        let value = self.graph.value(id);
        match &value.op {
            Op::Given | Op::Final(..) | Op::Stacked(..) => Form::Seen,
            Op::Number(_)
            | Op::Place(_)
            | Op::Kept
            | Op::Step(_)
            | Op::Index(_)
            | Op::Diagonal(..)
            | Op::Compare(..) => self.fuse(id, fusion),
            Op::Rename { value, .. } | Op::At(value, ..) | Op::Stop(value) | Op::Spread(value, _) => {
                match self.forms[value.0 as usize] {
                    Form::Fused | Form::Dead => self.fuse_or_store(id, fusion),
                    Form::Seen | Form::Stored | Form::Applied => Form::Seen,
                }
            }
            Op::Fn1(f, _) if transcendental(*f) && !value.axes.is_empty() => Form::Applied,
            Op::Einsum(..) if product::is_product(self.graph, id) => Form::Stored,
            Op::Select(_, value, _) if self.is_mask_alone(id, *value) => Form::Seen,
            Op::Fn1(..) | Op::Fn2(..) | Op::Select(..) | Op::Einsum(..) | Op::Reduce(..) => {
                self.fuse_or_store(id, fusion)
            }
        }
    }

    /// Whether a choice is a mask that its users need not see done, over a value that has an array.
    fn is_mask_alone(&self, id: ValueId, value: ValueId) -> bool {
        let there = matches!(self.forms[value.0 as usize], Form::Stored | Form::Seen | Form::Applied);
        let users = self.users.get(&id).map(Vec::as_slice).unwrap_or(&[]);
        let (own, of_value) = (&self.graph.value(id).axes, &self.graph.value(value).axes);
        there
            && own.iter().all(|a| of_value.contains(a))
            && !self.leaves_block(id)
            && product::only_masks(self.graph, id, users)
    }

    fn fuse(&mut self, id: ValueId, fusion: Fusion) -> Form {
        self.fusions.insert(id, fusion);
        Form::Fused
    }

    fn fuse_or_store(&mut self, id: ValueId, fusion: Fusion) -> Form {
        if self.may_fuse(id, fusion) { self.fuse(id, fusion) } else { Form::Stored }
    }

    /// The expression that a value is, with everything fused into it so far.
    fn fusion(&self, id: ValueId) -> Fusion {
        let op = &self.graph.value(id).op;
        let own = Fusion {
            operations: usize::from(!matches!(
                op,
                Op::Rename { .. } | Op::At(..) | Op::Stop(_) | Op::Spread(..)
            )),
            reduces: matches!(op, Op::Einsum(..) | Op::Reduce(..)),
            heavy: match op {
                Op::Fn1(f, _) => transcendental(*f),
                Op::Fn2(f, ..) => matches!(f, Fn2::Pow | Fn2::Div),
                _ => false,
            },
        };
        let operands = self.graph.operands(id);
        let fused = operands.iter().filter_map(|o| self.fusions.get(o));
        fused.fold(own, |sum, f| Fusion {
            operations: sum.operations + f.operations,
            reduces: sum.reduces || f.reduces,
            heavy: sum.heavy || f.heavy,
        })
    }

    /// Whether a value can be part of all its users' expressions without much being computed twice.
    fn may_fuse(&self, id: ValueId, fusion: Fusion) -> bool {
        let value = self.graph.value(id);
        let users = self.users.get(&id).map(Vec::as_slice).unwrap_or(&[]);
        let elsewhere = users.iter().any(|u| self.graph.value(*u).block != value.block);
        let indexed = users.iter().any(|u| matches!(self.graph.value(*u).op, Op::At(..)));
        if users.is_empty() || indexed || elsewhere || self.leaves_block(id) || fusion.operations > MOST_FUSED
        {
            return false;
        }
        if users.iter().any(|u| product::is_product(self.graph, *u)) {
            return false;
        }
        let once = users.len() == 1;
        let light = fusion.operations <= LIGHT && !fusion.heavy && !fusion.reduces;
        users.iter().all(|u| {
            let user = self.graph.value(*u);
            let reduced = matches!(user.op, Op::Einsum(..) | Op::Reduce(..));
            let widened = match user.op {
                // A reduction visits each entry of its operand once; a product perhaps many times.
                Op::Reduce(..) => false,
                Op::Einsum(a, b, _) => {
                    let all = self.graph.value(a).axes.iter().chain(&self.graph.value(b).axes);
                    all.into_iter().any(|x| !value.axes.contains(x))
                }
                Op::Spread(..) => user.axes.len() > value.axes.len(),
                _ => user.axes.len() > value.axes.len(),
            };
            let fits = !(fusion.reduces && (reduced || widened || renames(&user.op)));
            fits && (light || (once && !widened))
        })
    }

    /// Whether a scan, or an output, takes the value.
    fn leaves_block(&self, id: ValueId) -> bool {
        let by_scan = self.graph.scans.iter().any(|s| {
            s.carries.iter().any(|c| c.first == id || c.after == id)
                || s.slices.iter().any(|x| x.whole == id)
                || s.stacked.contains(&id)
        });
        by_scan || self.graph.outputs.iter().any(|o| o.value == id)
    }
}

fn renames(op: &Op) -> bool {
    matches!(op, Op::Rename { .. } | Op::At(..))
}

/// Functions that cost many operations, and have a slice form.
fn transcendental(f: Fn1) -> bool {
    match f {
        Fn1::Neg | Fn1::Abs | Fn1::Sign | Fn1::Sqrt | Fn1::Relu => false,
        Fn1::Exp
        | Fn1::Expm1
        | Fn1::Log
        | Fn1::Log1p
        | Fn1::Tanh
        | Fn1::Atanh
        | Fn1::Sigmoid
        | Fn1::Logit
        | Fn1::Softplus
        | Fn1::Gelu
        | Fn1::GeluTanh
        | Fn1::Silu
        | Fn1::Erf
        | Fn1::Sin
        | Fn1::Cos
        | Fn1::Tan
        | Fn1::Sinh
        | Fn1::Cosh
        | Fn1::Asinh
        | Fn1::Atan => true,
    }
}
