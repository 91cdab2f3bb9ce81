//! A product that is computed to be added to something is added to it where it is summed up.

use super::{Tally, reads, rewrite, scratch, shift, writes};
use crate::ir::{Access, ArrayId, Expr, ExprId, Factor, Nest, Product, Program, Stmt, Store};
use miras_base::scalar::Fn2;

/// Rewrites `p = a @ b; y = x + p` as `y = x; y = y + a @ b`, and `y = f y + p` for a number f as one product.
pub(super) fn accumulate(program: &mut Program) {
    rewrite(program, found, Found::apply);
}

/// A nest to be taken apart.
struct Found {
    /// The product's place.
    product: usize,
    /// The product as it is added.
    added: Product,
    /// What is left of the nest, if anything.
    rest: Option<Nest>,
}

impl Found {
    fn apply(self, body: &mut Vec<Stmt>, at: usize) {
        body[at] = Stmt::Product(self.added);
        if let Some(rest) = self.rest {
            body.insert(at, Stmt::Nest(rest));
        }
        body.remove(self.product);
    }
}

fn found(program: &Program, all: &Tally, body: &[Stmt], at: usize) -> Option<Found> {
    let Stmt::Nest(nest) = &body[at] else { return None };
    let [Store { target, value }] = nest.stores.as_slice() else { return None };
    let Expr::Fn2(Fn2::Add, x, y) = nest.exprs[value.0 as usize] else { return None };
    [(x, y), (y, x)].into_iter().find_map(|(rest, added)| {
        let Expr::Load(from) = &nest.exprs[added.0 as usize] else { return None };
        let (place, product) = body[..at].iter().enumerate().find_map(|(n, s)| match s {
            Stmt::Product(p) if p.c.start == Access::start(from.array) => Some((n, p)),
            _ => None,
        })?;
        let shift = shift(nest, from, target)?;
        let plain = product.alpha == Factor::Const(1.0) && product.beta == Factor::Const(0.0);
        let size = program.array(from.array)?.part()?;
        // The whole of it is summed once, and used here alone.
        let points: usize = nest.loops.iter().map(|a| a.extent).product();
        let once = scratch(program, from.array) && points == size && product.m * product.n == size;
        let alone = all[from.array.0 as usize] == 2 && uses(nest, added) == 1;
        let operands = [product.a.start.array, product.b.start.array];
        // So the nest's own target is no operand either.
        let still = |s: &Stmt| !operands.iter().any(|array| writes(s, *array));
        if !(plain && once && alone && body[place..=at].iter().all(still)) {
            return None;
        }
        let mut added = product.clone();
        added.c.start = Access::new(target.array, shift);
        let (beta, rest) = match kept(nest, rest, target) {
            Some(beta) => (beta, None),
            None => (Factor::Const(1.0), Some(without(nest, rest, from.array))),
        };
        added.beta = beta;
        Some(Found { product: place, added, rest })
    })
}

/// How often an expression of a nest is used.
fn uses(nest: &Nest, id: ExprId) -> usize {
    let operands = nest.exprs.iter().flat_map(Expr::operands);
    let ends = nest.reductions.iter().map(|r| r.value).chain(nest.stores.iter().map(|s| s.value));
    operands.chain(ends).filter(|used| *used == id).count()
}

/// The factor of a term that is the target itself times one number.
fn kept(nest: &Nest, rest: ExprId, target: &Access) -> Option<Factor> {
    let own = |id: ExprId| nest.exprs[id.0 as usize] == Expr::Load(target.clone());
    if own(rest) {
        return Some(Factor::Const(1.0));
    }
    let Expr::Fn2(Fn2::Mul, a, b) = nest.exprs[rest.0 as usize] else { return None };
    let factor = match (own(a), own(b)) {
        (true, false) => b,
        (false, true) => a,
        _ => return None,
    };
    match &nest.exprs[factor.0 as usize] {
        Expr::Const(c) => Some(Factor::Const(*c)),
        Expr::Load(access) => {
            let inner = access.offset.mentions(|v| nest.loops.iter().any(|l| l.var == v));
            (!inner && access.array != target.array).then(|| Factor::Load(access.clone()))
        }
        Expr::Index(_)
        | Expr::Scalar(_)
        | Expr::Fn1(..)
        | Expr::Fn2(..)
        | Expr::Select { .. }
        | Expr::Reduced(_) => None,
    }
}

/// The nest with another value, which does not use the array.
fn without(nest: &Nest, value: ExprId, array: ArrayId) -> Nest {
    let mut nest = nest.clone();
    for expr in &mut nest.exprs {
        if matches!(expr, Expr::Load(access) if access.array == array) {
            *expr = Expr::Const(0.0);
        }
    }
    nest.stores[0].value = value;
    debug_assert!(!reads(&Stmt::Nest(nest.clone()), array));
    nest
}
