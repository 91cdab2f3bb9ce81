//! Loop nests: independent points, each of which maps, reduces and stores.

use super::{Access, Scalar, VarId};
use miras_base::scalar::{Cmp, Fn1, Fn2};

/// Index of an expression in [`Nest::exprs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// Index of a reduction in [`Nest::reductions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReductionId(pub u32);

/// Independent points, one for each value of the loops' variables.
///
/// Every load sees what the arrays held before the nest; a store may go to an array that the nest also
/// loads from only where both name the same element (in place) or parts that do not meet. No two points
/// store to the same element. So points may run in any order, or together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nest {
    /// What it computes, in the specification's names; for comments.
    pub equation: String,
    /// The points: parallel loops, outermost first; none means one point.
    pub loops: Vec<Axis>,
    /// Reductions at each point, in order; a reduction may use those before it.
    pub reductions: Vec<Reduction>,
    /// Expressions; operands come before their users.
    pub exprs: Vec<Expr>,
    /// What each point stores. Values depend on no reduction's variable.
    pub stores: Vec<Store>,
}

/// A loop of a nest or a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Its variable, from 0.
    pub var: VarId,
    /// How many values, at least 1.
    pub extent: usize,
}

/// A value accumulated over loops of its own.
///
/// The order of a sum is fixed by the program alone (not by data, threads or other sizes), but differs
/// between backends.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// Its loops, outermost first, at least one.
    pub loops: Vec<Axis>,
    /// How values are combined.
    pub op: Op,
    /// The value at each point; may depend on the nest's variables and on these loops'.
    pub value: ExprId,
}

/// How a reduction combines values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// From 0.
    Sum,
    /// From minus infinity.
    Max,
    /// From infinity.
    Min,
}

/// A scalar expression at one point.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number.
    Const(f64),
    /// An element of an array.
    Load(Access),
    /// The value of a loop variable, as a number.
    Index(VarId),
    /// A number known when the task starts.
    Scalar(Scalar),
    /// A function of the table.
    Fn1(Fn1, ExprId),
    /// A function of the table.
    Fn2(Fn2, ExprId, ExprId),
    /// `if a cmp b then yes else no`; both are evaluated.
    Select {
        /// The comparison.
        cmp: Cmp,
        /// Its left side.
        a: ExprId,
        /// Its right side.
        b: ExprId,
        /// The value where it holds.
        yes: ExprId,
        /// The value where it does not.
        no: ExprId,
    },
    /// The result of a reduction.
    Reduced(ReductionId),
}

impl Expr {
    /// The expressions it is computed from.
    pub fn operands(&self) -> Vec<ExprId> {
        match *self {
            Expr::Const(_) | Expr::Load(_) | Expr::Index(_) | Expr::Scalar(_) | Expr::Reduced(_) => vec![],
            Expr::Fn1(_, a) => vec![a],
            Expr::Fn2(_, a, b) => vec![a, b],
            Expr::Select { a, b, yes, no, .. } => vec![a, b, yes, no],
        }
    }
}

impl Nest {
    /// For each expression the reduction whose loops it depends on, if any: it is to be computed inside
    /// that reduction, all others at the points of the nest. `None` where an expression depends on two.
    pub fn owners(&self) -> Option<Vec<Option<ReductionId>>> {
        let mut owners: Vec<Option<ReductionId>> = Vec::with_capacity(self.exprs.len());
        for expr in &self.exprs {
            let mut owner = match expr {
                Expr::Load(access) => {
                    let mut found = access.offset.terms().filter_map(|(v, _)| self.reduction_of(v));
                    let first = found.next();
                    if found.any(|r| Some(r) != first) {
                        return None;
                    }
                    first
                }
                Expr::Index(var) => self.reduction_of(*var),
                Expr::Const(_)
                | Expr::Scalar(_)
                | Expr::Reduced(_)
                | Expr::Fn1(..)
                | Expr::Fn2(..)
                | Expr::Select { .. } => None,
            };
            for operand in expr.operands() {
                match (owner, owners.get(operand.0 as usize).copied().flatten()) {
                    (Some(a), Some(b)) if a != b => return None,
                    (None, other) => owner = other,
                    (Some(_), _) => {}
                }
            }
            owners.push(owner);
        }
        Some(owners)
    }

    /// The reduction that has a loop over this variable.
    fn reduction_of(&self, var: VarId) -> Option<ReductionId> {
        let at = self.reductions.iter().position(|r| r.loops.iter().any(|a| a.var == var))?;
        Some(ReductionId(u32::try_from(at).ok()?))
    }
}

/// `target = value`
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// Where; mentions every loop of the nest whose extent is not 1.
    pub target: Access,
    /// What.
    pub value: ExprId,
}
