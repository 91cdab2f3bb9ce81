//! Nests: the point's indices, its expressions in order, reductions as loops of one lane or in parts of several, stores
//! at the end.

use crate::expr::Values;
use crate::lanes;
use crate::shader::Emitter;
use crate::stage::Each;
use crate::stmt::{PART, start};
use miras_base::Diagnostic;
use miras_kernel::{Axis, Expr, Nest, Op, Reduction, ReductionId, VarId};

/// How the lanes of a workgroup share the sums of a nest's points.
#[derive(Clone, Copy)]
struct Shared {
    /// How many take a part of each sum.
    lanes: usize,
    /// The expression that is the result of the last sum: after it one lane of each point goes on alone.
    last: usize,
}

impl Emitter<'_> {
    pub(crate) fn nest(&mut self, nest: &Nest) -> Result<(), Diagnostic> {
        self.w.comment(&nest.equation);
        let mut values = Values::new(nest)?;
        if let Some(point) = self.chained() {
            self.indices(nest, &nest.loops, &point);
            self.values(nest, None, &mut values)?;
            let names = values.leave(0);
            self.leave(names);
            return Ok(());
        }
        let sum = |at: &usize| values.wanted(*at) && matches!(nest.exprs[*at], Expr::Reduced(_));
        let last = (0..nest.exprs.len()).rev().find(sum);
        match (self.each, lanes::of_nest(nest), last) {
            (Each::Task, lanes, Some(last)) if lanes > 1 => {
                self.together(nest, Shared { lanes, last }, &mut values)
            }
            (Each::Task | Each::Token | Each::Parts(_), _, _) => {
                let point = self.points(lanes::extent(&nest.loops));
                self.indices(nest, &nest.loops, &point);
                self.values(nest, None, &mut values)?;
                self.release(&mut values, 0);
                self.end_points(&point);
                Ok(())
            }
        }
    }

    /// A nest with several lanes for each point. Lanes to spare repeat the last point, as far as its parts reach.
    fn together(&mut self, nest: &Nest, shared: Shared, values: &mut Values) -> Result<(), Diagnostic> {
        let point = self.open_shared(lanes::extent(&nest.loops), shared.lanes);
        self.indices(nest, &nest.loops, &point);
        self.values(nest, Some(shared), values)?;
        self.release(values, 0);
        self.w.close();
        self.close_shared();
        Ok(())
    }

    /// All values of a point, and its stores.
    fn values(&mut self, nest: &Nest, shared: Option<Shared>, values: &mut Values) -> Result<(), Diagnostic> {
        for at in 0..nest.exprs.len() {
            if !values.wanted(at) || values.owner(at).is_some() {
                continue;
            }
            if let Expr::Reduced(r) = nest.exprs[at]
                && !values.has_sum(r)
            {
                self.reduce(nest, r, shared, values)?;
                if let Some(shared) = shared {
                    let sum = values.sum(r)?.to_string();
                    let op = nest.reductions[r.0 as usize].op;
                    self.gather(&sum, op, shared.lanes, shared.last == at);
                }
            }
            self.value(nest, at, values)?;
        }
        for store in &nest.stores {
            let target = self.element(&store.target, &[])?;
            let value = values.piece(store.value)?.clone();
            self.put(store.target.array, &target, &value);
        }
        for axis in &nest.loops {
            self.unbind(axis.var);
        }
        Ok(())
    }

    /// The values of the variables of loops at a point, the last loop's fastest.
    fn indices(&mut self, nest: &Nest, axes: &[Axis], point: &str) {
        let mut below = 1_usize;
        let mut lines = Vec::new();
        for (depth, axis) in axes.iter().enumerate().rev() {
            if mentioned(nest, axis.var) {
                let value = match (below, axis.extent) {
                    (_, 1) => "0u".to_string(),
                    (1, _) if depth == 0 => point.to_string(),
                    (1, n) => format!("{point} % {n}"),
                    (b, _) if outermost(axes, depth) => format!("{point} / {b}"),
                    (b, n) => format!("{point} / {b} % {n}"),
                };
                lines.push((axis.var, value));
            }
            below *= axis.extent;
        }
        for (var, value) in lines.into_iter().rev() {
            self.index(var, &value);
        }
    }

    /// A reduction, or this lane's part of it.
    fn reduce(
        &mut self,
        nest: &Nest,
        r: ReductionId,
        shared: Option<Shared>,
        values: &mut Values,
    ) -> Result<(), Diagnostic> {
        let missing = || Diagnostic::bug(format!("`{}` uses a reduction that is not there", nest.equation));
        let reduction = nest.reductions.get(r.0 as usize).ok_or_else(missing)?;
        let wish = match reduction.op {
            Op::Sum => "sum",
            Op::Max => "largest",
            Op::Min => "least",
        };
        let sum = self.names.claim(wish);
        self.w.line(format!("var {sum} = {};", start(reduction.op)));
        let opened = match shared {
            None => self.turns(reduction),
            Some(shared) => self.turns_of_part(nest, reduction, shared.lanes),
        };
        self.accumulate(nest, r, reduction, &sum, values)?;
        for _ in 0..opened {
            self.w.close();
        }
        for axis in &reduction.loops {
            self.unbind(axis.var);
        }
        values.set_sum(r, sum);
        Ok(())
    }

    /// Opens the loops of a reduction, and says how many.
    fn turns(&mut self, reduction: &Reduction) -> usize {
        for axis in &reduction.loops {
            let var = self.bind(axis.var);
            self.w.open(format!("for (var {var} = 0u; {var} < {}; {var}++) {{", axis.extent));
        }
        reduction.loops.len()
    }

    /// Opens one loop over a lane's part of all turns.
    fn turns_of_part(&mut self, nest: &Nest, reduction: &Reduction, lanes: usize) -> usize {
        let open = |var: &str| {
            let all = lanes::extent(&reduction.loops);
            format!("for (var {var} = {PART}; {var} < {all}; {var} += {lanes}u) {{")
        };
        match reduction.loops.as_slice() {
            [axis] => {
                let var = self.bind(axis.var);
                self.w.open(open(&var));
            }
            axes => {
                self.w.open(open("turn"));
                self.indices(nest, axes, "turn");
            }
        }
        1
    }

    /// One value, and what it needs inside the loops.
    fn accumulate(
        &mut self,
        nest: &Nest,
        r: ReductionId,
        reduction: &Reduction,
        sum: &str,
        values: &mut Values,
    ) -> Result<(), Diagnostic> {
        let mark = values.mark();
        for at in 0..nest.exprs.len() {
            if values.wanted(at) && values.owner(at) == Some(r) {
                self.value(nest, at, values)?;
            }
        }
        let value = values.piece(reduction.value)?;
        let line = match reduction.op {
            Op::Sum => format!("{sum} += {};", value.text),
            Op::Max => format!("{sum} = max({sum}, {});", value.text),
            Op::Min => format!("{sum} = min({sum}, {});", value.text),
        };
        self.w.line(line);
        self.release(values, mark);
        Ok(())
    }

    /// Gives back the names of values from `mark` on.
    fn release(&mut self, values: &mut Values, mark: usize) {
        for name in values.leave(mark) {
            self.names.release(&name);
        }
    }
}

/// Whether all loops outside this one have one turn.
fn outermost(axes: &[Axis], depth: usize) -> bool {
    axes[..depth].iter().all(|a| a.extent == 1)
}

/// Whether anything that is written out depends on a variable.
fn mentioned(nest: &Nest, var: VarId) -> bool {
    let loads = nest.exprs.iter().any(|e| match e {
        Expr::Load(access) => access.offset.coefficient(var) != 0,
        Expr::Index(v) => *v == var,
        Expr::Const(_)
        | Expr::Scalar(_)
        | Expr::Reduced(_)
        | Expr::Fn1(..)
        | Expr::Fn2(..)
        | Expr::Select { .. } => false,
    });
    loads || nest.stores.iter().any(|s| s.target.offset.coefficient(var) != 0)
}
