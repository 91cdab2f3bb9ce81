//! Nests: expressions well formed, points independent.

use super::footprint::{Footprint, apart};
use super::{Check, refuse};
use crate::ir::{Access, Axis, Expr, Nest, ReductionId};
use miras_base::Diagnostic;

impl Check<'_> {
    pub(super) fn nest(&mut self, nest: &Nest) -> Result<(), Diagnostic> {
        self.bind_axes(&nest.loops)?;
        for reduction in &nest.reductions {
            if reduction.loops.is_empty() {
                return Err(self.malformed(nest, "a reduction has no loop"));
            }
            self.bind_axes(&reduction.loops)?;
        }
        if nest.stores.is_empty() {
            return Err(self.malformed(nest, "it stores nothing"));
        }
        self.operands(nest)?;
        self.reductions(nest)?;
        self.accesses(nest)?;
        for reduction in &nest.reductions {
            self.release(&reduction.loops);
        }
        self.release(&nest.loops);
        Ok(())
    }

    fn malformed(&self, nest: &Nest, reason: &str) -> Diagnostic {
        refuse(self.program, format!("`{}`: {reason}", nest.equation))
    }

    fn operands(&self, nest: &Nest) -> Result<(), Diagnostic> {
        for (at, expr) in nest.exprs.iter().enumerate() {
            if expr.operands().iter().any(|o| o.0 as usize >= at) {
                return Err(self.malformed(nest, "an operand does not come before its user"));
            }
            match expr {
                Expr::Index(var) if !self.scope.contains_key(var) => {
                    return Err(self.malformed(nest, "an index is used outside its loop"));
                }
                Expr::Reduced(r) => match nest.reductions.get(r.0 as usize) {
                    Some(reduction) if (reduction.value.0 as usize) < at => {}
                    Some(_) | None => {
                        return Err(self.malformed(nest, "a reduction is used before its value"));
                    }
                },
                Expr::Const(_)
                | Expr::Load(_)
                | Expr::Index(_)
                | Expr::Scalar(_)
                | Expr::Fn1(..)
                | Expr::Fn2(..)
                | Expr::Select { .. } => {}
            }
        }
        Ok(())
    }

    /// Values of reductions depend on their own loops only and on earlier reductions; stores on none.
    fn reductions(&self, nest: &Nest) -> Result<(), Diagnostic> {
        let Some(owners) = nest.owners() else {
            return Err(self.malformed(nest, "an expression depends on the loops of two reductions"));
        };
        let uses = latest_use(nest);
        for (at, reduction) in nest.reductions.iter().enumerate() {
            let value = reduction.value.0 as usize;
            let (Some(owner), Some(used)) = (owners.get(value), uses.get(value)) else {
                return Err(self.malformed(nest, "a reduction has no value"));
            };
            if owner.is_some_and(|r| r.0 as usize != at) || used.is_some_and(|r| r.0 as usize >= at) {
                return Err(self.malformed(nest, "a reduction depends on a later one"));
            }
        }
        for store in &nest.stores {
            match owners.get(store.value.0 as usize) {
                Some(None) => {}
                Some(Some(_)) | None => {
                    return Err(self.malformed(nest, "a stored value is not a value of the point"));
                }
            }
        }
        Ok(())
    }

    fn accesses(&self, nest: &Nest) -> Result<(), Diagnostic> {
        let inner: Vec<Axis> = nest.reductions.iter().flat_map(|r| r.loops.iter().copied()).collect();
        let everywhere: Vec<Axis> = nest.loops.iter().chain(&inner).copied().collect();
        let mut stores: Vec<(&Access, Footprint)> = Vec::new();
        for store in &nest.stores {
            if store.target.offset.mentions(|v| inner.iter().any(|a| a.var == v)) {
                return Err(self.malformed(nest, "a store depends on a reduction's loop"));
            }
            let print = Footprint::of(&store.target, &nest.loops, &[]);
            self.target(&nest.equation, &print)?;
            if stores.iter().any(|(_, other)| !apart(&print, other)) {
                let name = self.name(print.array);
                return Err(self.malformed(nest, &format!("two stores may meet in `{name}`")));
            }
            stores.push((&store.target, print));
        }
        for expr in &nest.exprs {
            let Expr::Load(access) = expr else { continue };
            let print = Footprint::of(access, &everywhere, &[]);
            self.place(&nest.equation, &print)?;
            if stores.iter().any(|(target, s)| *target != access && !apart(&print, s)) {
                return Err(self.meet(&nest.equation, access.array));
            }
        }
        Ok(())
    }
}

/// For each expression the last of the reductions that it uses, directly or not.
fn latest_use(nest: &Nest) -> Vec<Option<ReductionId>> {
    let mut uses: Vec<Option<ReductionId>> = Vec::with_capacity(nest.exprs.len());
    for expr in &nest.exprs {
        let direct = match expr {
            Expr::Reduced(r) => Some(*r),
            Expr::Const(_)
            | Expr::Load(_)
            | Expr::Index(_)
            | Expr::Scalar(_)
            | Expr::Fn1(..)
            | Expr::Fn2(..)
            | Expr::Select { .. } => None,
        };
        let operands = expr.operands();
        let through = operands.iter().filter_map(|o| uses.get(o.0 as usize).copied().flatten()).max();
        uses.push(direct.max(through));
    }
    uses
}
