//! Building programs: arrays, loop variables and nests, with structure sharing.
//!
//! Builders do not check; `verify` does.

use crate::ir::{
    Access, Affine, Array, ArrayId, Axis, Expr, ExprId, Nest, Op, Program, Reduction, ReductionId, Role,
    Store, Var, VarId,
};
use miras_base::scalar::{Cmp, Fn1, Fn2};

impl Program {
    /// An empty program.
    pub fn new(name: impl Into<String>) -> Program {
        Program { name: name.into(), ..Program::default() }
    }

    /// Adds an array.
    pub fn add_array(
        &mut self,
        name: impl Into<String>,
        role: Role,
        shape: &[usize],
        doc: impl Into<String>,
    ) -> ArrayId {
        self.arrays.push(Array { name: name.into(), role, shape: shape.to_vec(), doc: doc.into() });
        ArrayId(last(self.arrays.len()))
    }

    /// A new loop variable.
    pub fn add_var(&mut self, name: impl Into<String>) -> VarId {
        self.vars.push(Var { name: name.into() });
        VarId(last(self.vars.len()))
    }

    /// A new loop variable with its extent, for a nest or a reduction.
    pub fn axis(&mut self, name: impl Into<String>, extent: usize) -> Axis {
        Axis { var: self.add_var(name), extent }
    }
}

/// The row-major offset of `indices` in an array of this shape. Indices beyond the shape's rank, and sizes
/// beyond the indices', are ignored.
pub fn row_major(shape: &[usize], indices: &[VarId]) -> Affine {
    let mut stride = 1i64;
    let mut offset = Affine::default();
    for (&size, &var) in shape.iter().zip(indices).rev() {
        offset = offset.plus(stride, var);
        stride = stride.saturating_mul(i64::try_from(size).unwrap_or(i64::MAX));
    }
    offset
}

impl Nest {
    /// A nest over these loops, with nothing in it.
    pub fn new(equation: impl Into<String>, loops: Vec<Axis>) -> Nest {
        Nest { equation: equation.into(), loops, ..Nest::default() }
    }

    /// Adds an expression, or finds the equal one.
    pub fn expr(&mut self, expr: Expr) -> ExprId {
        match self.exprs.iter().position(|e| *e == expr) {
            Some(at) => ExprId(last(at + 1)),
            None => {
                self.exprs.push(expr);
                ExprId(last(self.exprs.len()))
            }
        }
    }

    /// A number.
    pub fn constant(&mut self, c: f64) -> ExprId {
        self.expr(Expr::Const(c))
    }

    /// `array[offset]`
    pub fn load(&mut self, array: ArrayId, offset: Affine) -> ExprId {
        self.expr(Expr::Load(Access::new(array, offset)))
    }

    /// `f(a)`
    pub fn fn1(&mut self, f: Fn1, a: ExprId) -> ExprId {
        self.expr(Expr::Fn1(f, a))
    }

    /// `f(a, b)`
    pub fn fn2(&mut self, f: Fn2, a: ExprId, b: ExprId) -> ExprId {
        self.expr(Expr::Fn2(f, a, b))
    }

    /// `if a cmp b then yes else no`
    pub fn select(&mut self, cmp: Cmp, a: ExprId, b: ExprId, yes: ExprId, no: ExprId) -> ExprId {
        self.expr(Expr::Select { cmp, a, b, yes, no })
    }

    /// The combination of `value` over `loops`.
    pub fn reduce(&mut self, op: Op, loops: Vec<Axis>, value: ExprId) -> ExprId {
        self.reductions.push(Reduction { loops, op, value });
        let id = ReductionId(last(self.reductions.len()));
        self.expr(Expr::Reduced(id))
    }

    /// `array[offset] = value`
    pub fn store(&mut self, array: ArrayId, offset: Affine, value: ExprId) {
        self.stores.push(Store { target: Access::new(array, offset), value });
    }
}

/// The index of the last of `count` things. More than 2^32 do not fit in memory; should that ever change,
/// the id points nowhere and `verify` says so.
fn last(count: usize) -> u32 {
    u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX)
}
