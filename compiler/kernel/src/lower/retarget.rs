//! Updates in place: a value that is computed into an array of its own only to be copied into a carry is
//! computed into the carry, where nothing reads the old value in between.

use crate::ir::{Access, Affine, ArrayId, Expr, Factor, Loop, Nest, Program, Role, Stmt};

/// Drops every such copy of a program.
pub(super) fn retarget(program: &mut Program) {
    let mut body = std::mem::take(&mut program.body);
    retarget_in(program, &mut body);
    program.body = body;
}

fn retarget_in(program: &Program, body: &mut Vec<Stmt>) {
    for statement in body.iter_mut() {
        if let Stmt::Loop(inner) = statement {
            retarget_in(program, &mut inner.body);
        }
    }
    let mut at = 0;
    while at < body.len() {
        if let Some((producer, from, to)) = droppable(program, body, at) {
            body.remove(at);
            for statement in &mut body[producer..] {
                replace(statement, from, to);
            }
        } else {
            at += 1;
        }
    }
}

/// For a copy that can go: the statement that computes its source, the source's array and the copy's target.
fn droppable(program: &Program, body: &[Stmt], at: usize) -> Option<(usize, ArrayId, ArrayId)> {
    let Stmt::Copy(copy) = &body[at] else { return None };
    let (from, to) = (copy.src.array, copy.dst.array);
    let whole = |a: &Access| a.offset == Affine::default();
    let scratch = program.array(from)?;
    let same_size = scratch.role == Role::Scratch && scratch.shape == program.array(to)?.shape;
    if !same_size || !whole(&copy.src) || !whole(&copy.dst) {
        return None;
    }
    let producer = body[..at].iter().position(|s| writes(s, from))?;
    let Stmt::Nest(nest) = &body[producer] else { return None };
    let others_write =
        body.iter().enumerate().any(|(i, s)| i > producer && i != at && (writes(s, from) || writes(s, to)));
    let read_later = body[producer + 1..at].iter().any(|s| reads(s, to));
    let read_early = body[..producer].iter().any(|s| reads(s, from));
    let fine = !others_write && !read_later && !read_early && in_place(nest, from, to);
    fine.then_some((producer, from, to))
}

/// Whether a nest that stores to `from` reads `to` only at the element that it stores, outside reductions.
fn in_place(nest: &Nest, from: ArrayId, to: ArrayId) -> bool {
    let [store] = nest.stores.as_slice() else { return false };
    store.target.array == from
        && loads(nest).filter(|a| a.array == to).all(|a| a.offset == store.target.offset)
}

pub(super) fn writes(statement: &Stmt, array: ArrayId) -> bool {
    match statement {
        Stmt::Loop(Loop { body, .. }) => body.iter().any(|s| writes(s, array)),
        Stmt::Nest(nest) => nest.stores.iter().any(|s| s.target.array == array),
        Stmt::Apply(apply) => apply.dst.array == array,
        Stmt::Copy(copy) => copy.dst.array == array,
        Stmt::Product(product) => product.c.start.array == array,
    }
}

pub(super) fn reads(statement: &Stmt, array: ArrayId) -> bool {
    match statement {
        Stmt::Loop(Loop { body, .. }) => body.iter().any(|s| reads(s, array)),
        Stmt::Nest(nest) => loads(nest).any(|a| a.array == array),
        Stmt::Apply(apply) => apply.src.array == array,
        Stmt::Copy(copy) => copy.src.array == array,
        Stmt::Product(p) => {
            let factors = [&p.alpha, &p.beta].into_iter().any(|f| match f {
                Factor::Const(_) => false,
                Factor::Load(access) => access.array == array,
            });
            factors || [&p.a, &p.b, &p.c].iter().any(|m| m.start.array == array)
        }
    }
}

fn replace(statement: &mut Stmt, from: ArrayId, to: ArrayId) {
    accesses(statement, &mut |a: &mut Access| {
        if a.array == from {
            a.array = to;
        }
    });
}

/// Every access of a statement, to be looked at.
pub(super) fn visit(statement: &Stmt, f: &mut impl FnMut(&Access)) {
    match statement {
        Stmt::Loop(Loop { body, .. }) => body.iter().for_each(|s| visit(s, f)),
        Stmt::Nest(nest) => {
            loads(nest).for_each(&mut *f);
            nest.stores.iter().for_each(|s| f(&s.target));
        }
        Stmt::Apply(apply) => [&apply.src, &apply.dst].into_iter().for_each(f),
        Stmt::Copy(copy) => [&copy.src, &copy.dst].into_iter().for_each(f),
        Stmt::Product(p) => {
            [&p.a, &p.b, &p.c].into_iter().for_each(|m| f(&m.start));
            for factor in [&p.alpha, &p.beta] {
                if let Factor::Load(access) = factor {
                    f(access);
                }
            }
        }
    }
}

/// Every access of a statement, to be changed.
pub(super) fn accesses(statement: &mut Stmt, f: &mut impl FnMut(&mut Access)) {
    match statement {
        Stmt::Loop(Loop { body, .. }) => body.iter_mut().for_each(|s| accesses(s, f)),
        Stmt::Nest(nest) => {
            for expr in &mut nest.exprs {
                if let Expr::Load(access) = expr {
                    f(access);
                }
            }
            nest.stores.iter_mut().for_each(|s| f(&mut s.target));
        }
        Stmt::Apply(apply) => [&mut apply.src, &mut apply.dst].into_iter().for_each(f),
        Stmt::Copy(copy) => [&mut copy.src, &mut copy.dst].into_iter().for_each(f),
        Stmt::Product(p) => {
            [&mut p.a, &mut p.b, &mut p.c].into_iter().for_each(|m| f(&mut m.start));
            for factor in [&mut p.alpha, &mut p.beta] {
                if let Factor::Load(access) = factor {
                    f(access);
                }
            }
        }
    }
}

fn loads(nest: &Nest) -> impl Iterator<Item = &Access> {
    nest.exprs.iter().filter_map(|e| match e {
        Expr::Load(access) => Some(access),
        _ => None,
    })
}
