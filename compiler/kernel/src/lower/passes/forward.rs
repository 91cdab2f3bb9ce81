//! What is computed into an array of its own only to be copied elsewhere is computed there.

use super::{Tally, accesses, reads, rewrite, scratch, shift, touches, writes};
use crate::ir::{Access, Affine, ArrayId, Expr, Nest, Program, Stmt, Store};

/// Drops the copies of whole arrays that nothing else needs.
pub(super) fn forward(program: &mut Program) {
    rewrite(program, found, Found::apply);
}

/// A copy that can go.
struct Found {
    /// The first statement that has to do with the array that is copied.
    first: usize,
    /// Whether that fills it from where it is copied to.
    returns: bool,
    from: ArrayId,
    to: ArrayId,
    /// From an element of the one to that of the other.
    shift: Affine,
}

impl Found {
    fn apply(self, body: &mut Vec<Stmt>, at: usize) {
        body.remove(at);
        for statement in &mut body[self.first..at] {
            accesses(statement, &mut |a: &mut Access| {
                if a.array == self.from {
                    *a = Access::new(self.to, a.offset.clone().sum(&self.shift));
                }
            });
        }
        if self.returns {
            body.remove(self.first);
        }
    }
}

fn found(program: &Program, all: &Tally, body: &[Stmt], at: usize) -> Option<Found> {
    let Stmt::Nest(nest) = &body[at] else { return None };
    let (from, target) = copy(nest)?;
    let (from_array, to) = (from.array, target.array);
    let shift = shift(nest, from, target)?;
    let points: usize = nest.loops.iter().map(|a| a.extent).product();
    if !scratch(program, from_array) || from_array == to || program.array(from_array)?.part()? != points {
        return None;
    }
    let uses = |s: &Stmt, array| reads(s, array) || writes(s, array);
    let first = body[..at].iter().position(|s| uses(s, from_array))?;
    // Nothing else knows the array: no other list of statements, and nothing behind.
    if all[from_array.0 as usize] != touches(program, &body[first..=at], from_array) {
        return None;
    }
    let returns = match &body[first] {
        Stmt::Nest(nest) => copy(nest).is_some_and(|(source, filled)| {
            let back = super::shift(nest, filled, source);
            source.array == to && filled.array == from_array && back.as_ref() == Some(&shift)
        }),
        Stmt::Loop(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => false,
    };
    let between = if returns { first + 1..at } else { first..at };
    let quiet = !body[between].iter().any(|s| uses(s, to));
    quiet.then_some(Found { first, returns, from: from_array, to, shift })
}

/// The source and the target of a nest that copies.
fn copy(nest: &Nest) -> Option<(&Access, &Access)> {
    let [Store { target, value }] = nest.stores.as_slice() else { return None };
    let Expr::Load(from) = &nest.exprs[value.0 as usize] else { return None };
    nest.reductions.is_empty().then_some((from, target))
}
