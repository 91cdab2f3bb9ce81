//! What one token of a program takes: operations, and room.

use crate::ir::{Apply, Axis, Count, Expr, ExprId, Loop, Nest, Op, Product, Program, Role, Stmt, VarId};
use miras_base::scalar::Fn2;
use std::collections::BTreeMap;

/// Operations of one pass through the loops over tokens and over the past, without what is done once for a stream;
/// and the scratch memory of a task. Numbers beyond 64 bits are the largest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Terms of matrix products and of sums of products.
    pub multiply_adds: u64,
    /// Other functions, comparisons and choices, and other terms of sums.
    pub element_wise: u64,
    /// Floats of scratch memory.
    pub scratch: u64,
}

/// Counts a program.
pub fn count(program: &Program) -> Work {
    let mut work = Work::default();
    for array in program.arrays.iter().filter(|a| a.role == Role::Scratch) {
        let part = array.part().and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
        work.scratch = work.scratch.saturating_add(part);
    }
    of_tokens(&program.body, &mut work);
    work
}

/// The loops over tokens, wherever they stand.
fn of_tokens(body: &[Stmt], work: &mut Work) {
    for statement in body {
        let Stmt::Loop(inner) = statement else { continue };
        match inner.count {
            Count::Tokens | Count::Past => block(&inner.body, 1, work),
            Count::Const(_) => of_tokens(&inner.body, work),
        }
    }
}

fn block(body: &[Stmt], times: u64, work: &mut Work) {
    for statement in body {
        match statement {
            Stmt::Loop(Loop { count, body, .. }) => {
                let turns = match count {
                    Count::Const(n) => *n as u64,
                    Count::Tokens | Count::Past => 1,
                };
                block(body, times.saturating_mul(turns), work);
            }
            Stmt::Nest(nest) => of_nest(nest, times, work),
            Stmt::Apply(Apply { len, .. }) => add(&mut work.element_wise, times, *len as u64),
            Stmt::Copy(_) => {}
            Stmt::Product(product) => add(&mut work.multiply_adds, times, terms(product)),
        }
    }
}

fn add(sum: &mut u64, times: u64, each: u64) {
    *sum = sum.saturating_add(times.saturating_mul(each));
}

/// Terms of a product's sums; of a triangular one those that take part.
fn terms(product: &Product) -> u64 {
    let (m, n, k) = (product.m as u64, product.n as u64, product.k as u64);
    let rows = match product.triangular {
        true => (1..=m).fold(0_u64, |sum, row| sum.saturating_add(row.min(k))),
        false => m.saturating_mul(k),
    };
    rows.saturating_mul(n)
}

/// Each expression as often as the variables that it depends on have values.
fn of_nest(nest: &Nest, times: u64, work: &mut Work) {
    let axes = nest.loops.iter().chain(nest.reductions.iter().flat_map(|r| &r.loops));
    let extents: BTreeMap<VarId, u64> = axes.map(|a: &Axis| (a.var, a.extent as u64)).collect();
    let mut seen: Vec<BTreeMap<VarId, u64>> = Vec::new();
    let points = |vars: &BTreeMap<VarId, u64>| vars.values().fold(1_u64, |n, e| n.saturating_mul(*e));
    let multiplied = |id: ExprId| matches!(nest.exprs[id.0 as usize], Expr::Fn2(Fn2::Mul, ..));
    for (at, expr) in nest.exprs.iter().enumerate() {
        let mut vars = BTreeMap::new();
        let mut meet = |var: VarId| vars.extend(extents.get(&var).map(|e| (var, *e)));
        match expr {
            Expr::Load(access) => access.offset.terms().for_each(|(var, _)| meet(var)),
            Expr::Index(var) => meet(*var),
            Expr::Const(_)
            | Expr::Scalar(_)
            | Expr::Fn1(..)
            | Expr::Fn2(..)
            | Expr::Select { .. }
            | Expr::Reduced(_) => {}
        }
        for operand in expr.operands() {
            vars.extend(seen[operand.0 as usize].iter().map(|(v, e)| (*v, *e)));
        }
        match expr {
            Expr::Const(_) | Expr::Load(_) | Expr::Index(_) | Expr::Scalar(_) => {}
            Expr::Fn1(..) | Expr::Fn2(..) | Expr::Select { .. } => {
                let summed = nest.reductions.iter().any(|r| r.op == Op::Sum && r.value.0 as usize == at);
                // A product that is summed up is counted with its sum.
                if !(summed && multiplied(ExprId(at as u32))) {
                    add(&mut work.element_wise, times, points(&vars));
                }
            }
            Expr::Reduced(r) => {
                let reduction = &nest.reductions[r.0 as usize];
                let mut all = seen[reduction.value.0 as usize].clone();
                all.extend(reduction.loops.iter().map(|a| (a.var, a.extent as u64)));
                let kind = match reduction.op == Op::Sum && multiplied(reduction.value) {
                    true => &mut work.multiply_adds,
                    false => &mut work.element_wise,
                };
                add(kind, times, points(&all));
                all.retain(|var, _| reduction.loops.iter().all(|a| a.var != *var));
                vars.extend(all);
            }
        }
        seen.push(vars);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Access, Affine, Factor, Matrix, Order};

    fn product(triangular: bool) -> Stmt {
        let matrix = || Matrix { start: Access::start(crate::ArrayId(0)), row_stride: 8, col_stride: 1 };
        let (alpha, beta) = (Factor::Const(1.0), Factor::Const(0.0));
        let (a, b, c) = (matrix(), matrix(), matrix());
        Stmt::Product(Product { equation: String::new(), m: 4, n: 3, k: 4, a, b, c, alpha, beta, triangular })
    }

    #[test]
    fn products_sums_and_functions_of_a_token_are_counted() {
        let mut program = Program::new("counted");
        let [w, x, y] = ["w", "x", "y"].map(|n| program.add_array(n, Role::Scratch, &[64], ""));
        let (i, j) = (program.axis("i", 8), program.axis("j", 5));
        let mut nest = Nest::new("y = exp(w x) + x", vec![i]);
        let a = nest.load(w, Affine::term(8, i.var).plus(1, j.var));
        let b = nest.load(x, Affine::term(1, j.var));
        let ab = nest.fn2(Fn2::Mul, a, b);
        let sum = nest.reduce(Op::Sum, vec![j], ab);
        let more = nest.load(x, Affine::term(1, i.var));
        let total = nest.fn2(Fn2::Add, sum, more);
        nest.store(y, Affine::term(1, i.var), total);
        let t = program.add_var("t");
        let s = program.add_var("s");
        let turns =
            Loop { var: s, count: Count::Const(2), order: Order::Ascending, body: vec![product(true)] };
        let body = vec![Stmt::Nest(nest.clone()), product(false), Stmt::Loop(turns)];
        // What stands before the tokens does not count.
        program.body = vec![
            Stmt::Nest(nest),
            Stmt::Loop(Loop { var: t, count: Count::Tokens, order: Order::Ascending, body }),
        ];
        let triangle = (1 + 2 + 3 + 4) * 3;
        let expected =
            Work { multiply_adds: 8 * 5 + 4 * 3 * 4 + 2 * triangle, element_wise: 8, scratch: 192 };
        assert_eq!(count(&program), expected);
    }
}
