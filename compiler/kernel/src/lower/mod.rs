//! Tensor graph -> program.
//!
//! Each value of the graph is *stored* in an array of its own, *seen* as part of another array (slices,
//! renamed axes), or *fused* into the expressions of those that use it. A stored value becomes one nest (or a
//! function over a run); a scan becomes a loop whose carries live in arrays that are updated in place where
//! nothing reads the old value any more.

mod choose;
mod layout;
mod nests;
mod passes;
mod product;
mod retarget;
mod view;

use crate::ir::{Access, Affine, Apply, ArrayId, Copy, Count, Loop, Order, Program, Role, Stmt};
use choose::{Form, Forms};
use miras_base::Diagnostic;
use miras_tensor::ir::{self as tensor, BlockId, Graph, Op, Origin, ScanId, Size, ValueId};
use miras_tensor::verify::Verified;
use std::collections::HashMap;
use view::View;

/// Lowers a graph. `name` is the layer's, for messages and comments.
pub fn lower(graph: &Verified, name: &str) -> Result<Program, Diagnostic> {
    let graph = graph.graph();
    let forms = choose::choose(graph);
    let layouts = layout::layouts(graph, |id| forms.live(id));
    let mut lowering = Lowering {
        graph,
        forms,
        layouts,
        program: Program::new(name),
        views: HashMap::new(),
        steps: HashMap::new(),
        carried: HashMap::new(),
    };
    lowering.inputs()?;
    lowering.state_outputs()?;
    let mut body = lowering.block(Graph::TASK)?;
    lowering.states_computed(&mut body)?;
    lowering.program.body = body;
    lowering.token_outputs_written()?;
    retarget::retarget(&mut lowering.program);
    passes::run(&mut lowering.program);
    Ok(lowering.program)
}

struct Lowering<'a> {
    graph: &'a Graph,
    forms: Forms,
    layouts: layout::Layouts,
    program: Program,
    /// Where stored and seen values lie.
    views: HashMap<ValueId, View>,
    /// The loop variable of each scan that is being lowered, by its axis.
    steps: HashMap<miras_tensor::ir::AxisId, crate::ir::VarId>,
    /// Arrays that outputs fix for final carries.
    carried: HashMap<(ScanId, usize), ArrayId>,
}

impl Lowering<'_> {
    fn size(&self, axis: miras_tensor::ir::AxisId) -> Result<usize, Diagnostic> {
        match self.graph.axis(axis).size {
            Size::Fixed(n) => Ok(n),
            Size::Tokens | Size::Past => Err(Diagnostic::bug("an axis of tokens has no fixed size")),
        }
    }

    fn sizes(&self, axes: &[miras_tensor::ir::AxisId]) -> Result<Vec<usize>, Diagnostic> {
        axes.iter().map(|a| self.size(*a)).collect()
    }

    fn inputs(&mut self) -> Result<(), Diagnostic> {
        for input in &self.graph.inputs {
            let axes = self.graph.value(input.value).axes.clone();
            let (role, own) = match input.origin {
                Origin::Token => (Role::TokenInput { entries: 1 }, &axes[1..]),
                Origin::Past => (Role::PastInput { entries: 1 }, &axes[1..]),
                Origin::Head => (Role::HeadInput, &axes[..]),
                Origin::Stream => (Role::StateIn, &axes[..]),
            };
            let shape = self.sizes(own)?;
            let array = self.program.add_array(&input.tensor, role, &shape, "");
            let view = View::row_major(array, own, &shape);
            let view = match input.origin {
                Origin::Token | Origin::Past => view.with_axis(axes[0], shape.iter().product()),
                Origin::Head | Origin::Stream => view,
            };
            self.views.insert(input.value, view);
        }
        Ok(())
    }

    /// States handed on are the very arrays in which a scan carries them, where one does.
    fn state_outputs(&mut self) -> Result<(), Diagnostic> {
        for output in self.graph.outputs.iter().filter(|o| o.origin == Origin::Stream) {
            let Op::Final(scan, i) = self.graph.value(output.value).op else { continue };
            if self.layouts.contains_key(&self.graph.scan(scan).carries[i].before) {
                continue;
            }
            let shape = self.sizes(&output.axes)?;
            let array = self.program.add_array(&output.tensor, Role::StateOut, &shape, "");
            if self.carried.insert((scan, i), array).is_some() {
                return Err(Diagnostic::bug(format!("the state {} is handed on twice", output.tensor)));
            }
        }
        Ok(())
    }

    /// Stores the other states handed on: those that are computed outside scans, or carried in another order.
    fn states_computed(&mut self, body: &mut Vec<Stmt>) -> Result<(), Diagnostic> {
        for output in self.graph.outputs.iter().filter(|o| o.origin == Origin::Stream) {
            if let Op::Final(scan, i) = self.graph.value(output.value).op
                && self.carried.contains_key(&(scan, i))
            {
                continue;
            }
            let shape = self.sizes(&output.axes)?;
            let array = self.program.add_array(&output.tensor, Role::StateOut, &shape, "");
            let mut nest = self.nest(output.value, &View::row_major(array, &output.axes, &shape))?;
            nest.equation.clone_from(&output.tensor);
            body.push(Stmt::Nest(nest));
        }
        Ok(())
    }

    /// Every token output must be the stack of a scan, whose loop has stored it.
    fn token_outputs_written(&self) -> Result<(), Diagnostic> {
        for output in self.graph.outputs.iter().filter(|o| o.origin == Origin::Token) {
            if self.program.find(&output.tensor).is_none() {
                return Err(Diagnostic::bug(format!(
                    "the output {} is not stacked by a scan over tokens",
                    output.tensor
                )));
            }
        }
        Ok(())
    }

    fn block(&mut self, block: BlockId) -> Result<Vec<Stmt>, Diagnostic> {
        let mut statements = Vec::new();
        let mut scans: Vec<ScanId> = Vec::new();
        for i in 0..self.graph.values.len() {
            let id = ValueId(i as u32);
            if self.graph.value(id).block != block {
                continue;
            }
            if let (Op::Final(scan, _) | Op::Stacked(scan, _), true) =
                (&self.graph.value(id).op, self.forms.live(id))
            {
                if !scans.contains(scan) {
                    scans.push(*scan);
                    self.scan(*scan, &mut statements)?;
                }
                continue;
            }
            match self.forms.of(id) {
                Form::Dead | Form::Fused => {}
                Form::Seen => self.see(id)?,
                Form::Stored => self.store(id, &mut statements)?,
                Form::Applied => self.apply(id, &mut statements)?,
            }
        }
        Ok(statements)
    }

    /// A renamed, sliced or repeated part of an array.
    fn see(&mut self, id: ValueId) -> Result<(), Diagnostic> {
        let view = match &self.graph.value(id).op {
            Op::Rename { value, from, to } => self.view(*value)?.renamed(*from, *to),
            Op::At(value, axis, i) => self.view(*value)?.at(*axis, *i),
            Op::Spread(value, _) | Op::Stop(value) => self.view(*value)?,
            // A mask that only triangular products look through.
            Op::Select(_, value, _) => self.view(*value)?,
            _ if self.views.contains_key(&id) => return Ok(()),
            _ => return Err(Diagnostic::bug(format!("tensor value %{} is no part of an array", id.0))),
        };
        self.views.insert(id, view);
        Ok(())
    }

    fn view(&self, id: ValueId) -> Result<View, Diagnostic> {
        let missing = || Diagnostic::bug(format!("tensor value %{} has no array", id.0));
        self.views.get(&id).cloned().ok_or_else(missing)
    }

    /// The axes of a value in the order of storage.
    fn stored_axes(&self, id: ValueId) -> Vec<miras_tensor::ir::AxisId> {
        self.layouts.get(&id).unwrap_or(&self.graph.value(id).axes).clone()
    }

    /// An array for a value, with its axes in the order of storage.
    fn array_for(&mut self, id: ValueId) -> Result<ArrayId, Diagnostic> {
        let value = self.graph.value(id);
        let axes = self.stored_axes(id);
        let shape = self.sizes(&axes)?;
        let base = value.name.clone().unwrap_or_else(|| format!("x{}", id.0));
        let name = self.fresh(&base);
        let array =
            self.program.add_array(name, Role::Scratch, &shape, value.equation.clone().unwrap_or_default());
        self.views.insert(id, View::row_major(array, &axes, &shape));
        Ok(array)
    }

    /// A name that no array has yet.
    fn fresh(&self, base: &str) -> String {
        let mut name = base.to_string();
        let mut n = 1;
        while self.program.find(&name).is_some() {
            n += 1;
            name = format!("{base}#{n}");
        }
        name
    }

    fn store(&mut self, id: ValueId, statements: &mut Vec<Stmt>) -> Result<(), Diagnostic> {
        self.array_for(id)?;
        let target = self.view(id)?;
        if let Some(product) = self.product(id, &target)? {
            statements.push(Stmt::Product(product));
            return Ok(());
        }
        let nest = self.nest(id, &target)?;
        statements.push(Stmt::Nest(nest));
        Ok(())
    }

    /// A function over a whole array: in place over its argument, where that was stored for it alone.
    fn apply(&mut self, id: ValueId, statements: &mut Vec<Stmt>) -> Result<(), Diagnostic> {
        let value = self.graph.value(id);
        let Op::Fn1(function, argument) = value.op else {
            return Err(Diagnostic::bug(format!("tensor value %{} is no function", id.0)));
        };
        let dst = self.array_for(id)?;
        let len = self.sizes(&value.axes)?.iter().product();
        let equation = value.equation.clone().unwrap_or_default();
        let contiguous = match self.forms.of(argument) {
            Form::Stored | Form::Applied | Form::Seen => {
                self.view(argument)?.covers(&value.axes, &self.sizes(&value.axes)?)
            }
            Form::Dead | Form::Fused => None,
        };
        let src = match contiguous {
            Some(src) => src,
            None => {
                let target = self.view(id)?;
                let nest = self.nest(argument, &target)?;
                statements.push(Stmt::Nest(nest));
                Access::start(dst)
            }
        };
        statements.push(Stmt::Apply(Apply { equation, function, src, dst: Access::start(dst), len }));
        Ok(())
    }

    /// A scan: its carries get arrays, their first values; then the loop.
    fn scan(&mut self, id: ScanId, statements: &mut Vec<Stmt>) -> Result<(), Diagnostic> {
        let scan = self.graph.scan(id).clone();
        let var = self.program.add_var(self.graph.axis(scan.axis).name.clone());
        self.steps.insert(scan.axis, var);
        let mut arrays = Vec::new();
        for (i, carry) in scan.carries.iter().enumerate() {
            let array = match self.carried.get(&(id, i)) {
                Some(array) => {
                    let axes = self.graph.value(carry.before).axes.clone();
                    let view = View::row_major(*array, &axes, &self.sizes(&axes)?);
                    self.views.insert(carry.before, view);
                    *array
                }
                None => self.array_for(carry.before)?,
            };
            let target = self.view(carry.before)?;
            let mut nest = self.nest(carry.first, &target)?;
            nest.equation = format!("{} at the start", self.program.arrays[array.0 as usize].name);
            statements.push(Stmt::Nest(nest));
            arrays.push(array);
        }
        for slice in &scan.slices {
            let view = self.view(slice.whole)?.along(scan.axis, var);
            self.views.insert(slice.slice, view);
        }
        // What a step begins with is stacked first: carries can then be moved on in place.
        let mut body = Vec::new();
        let given = |v: &ValueId| self.graph.value(*v).op == Op::Given;
        let (first, last): (Vec<_>, Vec<_>) =
            scan.stacked.iter().copied().enumerate().partition(|(_, v)| given(v));
        for (i, stacked) in first {
            self.stack(id, i, stacked, var, &mut body)?;
        }
        body.extend(self.block(scan.body)?);
        for (i, stacked) in last {
            self.stack(id, i, stacked, var, &mut body)?;
        }
        self.hand_on(&scan.carries, &arrays, &mut body)?;
        let count = match self.graph.axis(scan.axis).size {
            Size::Tokens => Count::Tokens,
            Size::Past => Count::Past,
            Size::Fixed(n) => Count::Const(n),
        };
        let order = match scan.order {
            tensor::Order::Ascending => Order::Ascending,
            tensor::Order::Descending => Order::Descending,
        };
        statements.push(Stmt::Loop(Loop { var, count, order, body }));
        for value in 0..self.graph.values.len() {
            if let Op::Final(s, i) = self.graph.values[value].op
                && s == id
            {
                let view = self.view(scan.carries[i].before)?;
                self.views.insert(ValueId(value as u32), view);
            }
        }
        Ok(())
    }

    /// Stores what a step hands to the outside, in the array of the output or of the stacked value.
    fn stack(
        &mut self,
        scan: ScanId,
        index: usize,
        value: ValueId,
        var: crate::ir::VarId,
        body: &mut Vec<Stmt>,
    ) -> Result<(), Diagnostic> {
        let Some(whole) = (0..self.graph.values.len() as u32)
            .map(ValueId)
            .find(|v| self.graph.value(*v).op == Op::Stacked(scan, index) && self.forms.live(*v))
        else {
            return Ok(());
        };
        let output = self.graph.outputs.iter().find(|o| o.value == whole && o.origin == Origin::Token);
        let (inner, role, name) = match output {
            Some(o) => (o.axes[1..].to_vec(), Role::TokenOutput { entries: 1 }, o.tensor.clone()),
            None => {
                let axes = self.graph.value(whole).axes.clone();
                (axes, Role::Scratch, self.fresh(&format!("x{}", whole.0)))
            }
        };
        let shape = self.sizes(&inner)?;
        let array = self.program.add_array(name, role, &shape, "");
        let view = View::row_major(array, &inner, &shape);
        let axis = self.graph.scan(scan).axis;
        let view = if output.is_some() { view.with_axis(axis, shape.iter().product()) } else { view };
        let target = view.clone().along(axis, var);
        self.views.insert(whole, view);
        let mut nest = self.nest(value, &target)?;
        nest.equation = format!("{} of this step", self.program.arrays[array.0 as usize].name);
        body.push(Stmt::Nest(nest));
        Ok(())
    }

    /// Copies what a step computed into the carries' arrays; those that are no copies of their own (a
    /// carry that becomes another carry's old value) go through an array in between.
    fn hand_on(
        &mut self,
        carries: &[miras_tensor::ir::Carry],
        arrays: &[ArrayId],
        body: &mut Vec<Stmt>,
    ) -> Result<(), Diagnostic> {
        let mut copies = Vec::new();
        for (carry, array) in carries.iter().zip(arrays) {
            if carry.after == carry.before {
                continue;
            }
            let axes = self.stored_axes(carry.before);
            let sizes = self.sizes(&axes)?;
            let stored = matches!(self.forms.of(carry.after), Form::Stored | Form::Applied);
            let src = if stored { self.view(carry.after)?.covers(&axes, &sizes) } else { None };
            let src = match src {
                Some(src) => src,
                None => {
                    let name = self.fresh("next");
                    let between = self.program.add_array(name, Role::Scratch, &sizes, "");
                    let nest = self.nest(carry.after, &View::row_major(between, &axes, &sizes))?;
                    body.push(Stmt::Nest(nest));
                    Access::start(between)
                }
            };
            let equation = format!("{} for the next step", self.program.arrays[array.0 as usize].name);
            let dst = Access::new(*array, Affine::default());
            copies.push(Stmt::Copy(Copy { equation, src, dst, len: sizes.iter().product() }));
        }
        body.extend(copies);
        Ok(())
    }
}
