//! What is done once a program is whole: results go where they are wanted, without arrays in between.

mod accumulate;
mod forward;
mod prune;

use super::retarget::{accesses, reads, visit, writes};
use crate::ir::{Access, Affine, ArrayId, Loop, Nest, Program, Role, Stmt};

/// Runs all passes. Products are added to what is there first: that leaves plain copies, which are forwarded.
pub(super) fn run(program: &mut Program) {
    accumulate::accumulate(program);
    forward::forward(program);
    accumulate::accumulate(program);
    prune::prune(program);
}

/// How often an array's elements are named: each store, load and operand once.
type Tally = Vec<usize>;

/// Changes every list of statements, inner ones first, until nothing is found. `found` is given the place of a statement
/// and how often the whole program names each array; `apply` changes the list.
fn rewrite<F>(
    program: &mut Program,
    found: impl Fn(&Program, &Tally, &[Stmt], usize) -> Option<F>,
    apply: impl Fn(F, &mut Vec<Stmt>, usize),
) {
    let mut body = std::mem::take(&mut program.body);
    let mut all = tally(program, &body);
    inside(&mut body, &mut |body| {
        let mut at = 0;
        while at < body.len() {
            let Some(change) = found(program, &all, body, at) else {
                at += 1;
                continue;
            };
            let before = tally(program, body);
            apply(change, body, at);
            let after = tally(program, body);
            for (n, count) in all.iter_mut().enumerate() {
                *count = *count + after[n] - before[n];
            }
            at = at.saturating_sub(1);
        }
    });
    program.body = body;
}

fn inside(body: &mut Vec<Stmt>, change: &mut impl FnMut(&mut Vec<Stmt>)) {
    for statement in body.iter_mut() {
        if let Stmt::Loop(Loop { body, .. }) = statement {
            inside(body, change);
        }
    }
    change(body);
}

fn tally(program: &Program, body: &[Stmt]) -> Tally {
    let mut counts = vec![0; program.arrays.len()];
    body.iter().for_each(|s| visit(s, &mut |a| counts[a.array.0 as usize] += 1));
    counts
}

fn touches(program: &Program, body: &[Stmt], array: ArrayId) -> usize {
    tally(program, body)[array.0 as usize]
}

/// Whether an array is the task's own.
fn scratch(program: &Program, array: ArrayId) -> bool {
    program.array(array).is_some_and(|a| a.role == Role::Scratch)
}

/// `to - from`, where that is the same at every point of a nest.
fn shift(nest: &Nest, from: &Access, to: &Access) -> Option<Affine> {
    let mut shift = to.offset.clone().shifted(from.offset.constant.checked_neg()?);
    for (var, coefficient) in from.offset.terms() {
        shift = shift.plus(coefficient.checked_neg()?, var);
    }
    let inner = |var| nest.loops.iter().any(|a| a.var == var);
    (!shift.mentions(inner)).then_some(shift)
}

#[cfg(test)]
mod tests;
