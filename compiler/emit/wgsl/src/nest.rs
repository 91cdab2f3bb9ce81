//! Nests: the point's indices, its expressions in order, reductions as loops of one lane, stores at the end.

use crate::expr::Values;
use crate::shader::Emitter;
use crate::stmt::start;
use miras_base::Diagnostic;
use miras_kernel::{Axis, Expr, Nest, Op, Reduction, ReductionId, VarId};

impl Emitter<'_> {
    pub(crate) fn nest(&mut self, nest: &Nest) -> Result<(), Diagnostic> {
        self.w.comment(&nest.equation);
        let mut values = Values::new(nest)?;
        let count = nest.loops.iter().map(|a| a.extent).product();
        let point = self.points(count);
        self.indices(nest, &point);
        for at in 0..nest.exprs.len() {
            if !values.wanted(at) || values.owner(at).is_some() {
                continue;
            }
            if let Expr::Reduced(r) = nest.exprs[at] {
                self.reduce(nest, r, &mut values)?;
            }
            self.value(nest, at, &mut values)?;
        }
        for store in &nest.stores {
            let target = self.element(&store.target, &[])?;
            let value = values.piece(store.value)?.text.clone();
            self.w.line(format!("{target} = {value};"));
        }
        self.release(&mut values, 0);
        for axis in &nest.loops {
            self.unbind(axis.var);
        }
        self.end_points(&point);
        Ok(())
    }

    /// The values of the nest's variables at a point, the last loop's fastest.
    fn indices(&mut self, nest: &Nest, point: &str) {
        let mut below = 1_usize;
        let mut lines = Vec::new();
        for (depth, axis) in nest.loops.iter().enumerate().rev() {
            let name = self.bind(axis.var);
            if mentioned(nest, axis.var) {
                let value = match (below, axis.extent) {
                    (_, 1) => "0u".to_string(),
                    (1, _) if depth == 0 => point.to_string(),
                    (1, n) => format!("{point} % {n}"),
                    (b, _) if outermost(nest, depth) => format!("{point} / {b}"),
                    (b, n) => format!("{point} / {b} % {n}"),
                };
                lines.push(format!("let {name} = {value};"));
            }
            below *= axis.extent;
        }
        for line in lines.into_iter().rev() {
            self.w.line(line);
        }
    }

    fn reduce(&mut self, nest: &Nest, r: ReductionId, values: &mut Values) -> Result<(), Diagnostic> {
        let missing = || Diagnostic::bug(format!("`{}` uses a reduction that is not there", nest.equation));
        if values.has_sum(r) {
            return Ok(());
        }
        let reduction = nest.reductions.get(r.0 as usize).ok_or_else(missing)?;
        let wish = match reduction.op {
            Op::Sum => "sum",
            Op::Max => "largest",
            Op::Min => "least",
        };
        let sum = self.names.claim(wish);
        self.w.line(format!("var {sum} = {};", start(reduction.op)));
        for axis in &reduction.loops {
            let var = self.bind(axis.var);
            self.w.open(format!("for (var {var} = 0u; {var} < {}; {var}++) {{", axis.extent));
        }
        self.accumulate(nest, r, reduction, &sum, values)?;
        for axis in &reduction.loops {
            self.w.close();
            self.unbind(axis.var);
        }
        values.set_sum(r, sum);
        Ok(())
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
fn outermost(nest: &Nest, depth: usize) -> bool {
    nest.loops[..depth].iter().all(|a: &Axis| a.extent == 1)
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
