//! Loops over tokens whose turns have nothing to do with one another: each token may have an invocation of its own.

use crate::fence::{touched, touched_within};
use miras_kernel::{ArrayId, Axis, Count, Factor, Loop, Program, Role, Stmt};
use std::collections::BTreeSet;

/// The scratch arrays that each token needs for itself where a loop's turns run together; `None` where a turn needs
/// what another one leaves, or where what it leaves is needed after the loop.
pub(crate) fn own(program: &Program, l: &Loop) -> Option<BTreeSet<ArrayId>> {
    let role = |array: &ArrayId| program.array(*array).map(|a| a.role);
    let written: BTreeSet<ArrayId> = l.body.iter().flat_map(|s| touched_within(s).writes).collect();
    // A token's output is written and read by the token's own turn only: verified programs are so.
    let outputs = |array: &&ArrayId| matches!(role(array), Some(Role::TokenOutput { .. }));
    let own: BTreeSet<ArrayId> = written.iter().filter(|a| !outputs(a)).copied().collect();
    let scratch = own.iter().all(|a| role(a) == Some(Role::Scratch));
    let mut turn = Turn { program, own: &own, whole: BTreeSet::new() };
    let apart =
        l.count == Count::Tokens && scratch && !elsewhere(program, l, &own) && turn.is_closed(&l.body);
    apart.then_some(own)
}

/// Whether any of the arrays is touched outside a loop.
fn elsewhere(program: &Program, l: &Loop, arrays: &BTreeSet<ArrayId>) -> bool {
    let others = program.body.iter().filter(|s| !matches!(s, Stmt::Loop(other) if std::ptr::eq(other, l)));
    others.map(touched_within).any(|t| t.reads.union(&t.writes).any(|a| arrays.contains(a)))
}

/// A walk through one turn.
struct Turn<'p> {
    program: &'p Program,
    own: &'p BTreeSet<ArrayId>,
    /// The arrays that the turn itself has certainly written whole.
    whole: BTreeSet<ArrayId>,
}

impl Turn<'_> {
    /// Whether all that the statements read of their own arrays was written by them before.
    fn is_closed(&mut self, body: &[Stmt]) -> bool {
        body.iter().all(|stmt| match stmt {
            Stmt::Loop(l) => {
                let before = self.whole.clone();
                let closed = self.is_closed(&l.body);
                match l.count {
                    Count::Const(_) => {}
                    // Perhaps there is no turn, and nothing was written.
                    Count::Tokens | Count::Past => self.whole = before,
                }
                closed
            }
            Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => {
                let reads = touched(stmt).reads;
                let closed = reads.intersection(self.own).all(|a| self.whole.contains(a));
                self.fill(stmt);
                closed
            }
        })
    }

    /// Notes what a statement writes whole. No two points of one write the same element, so counting them suffices.
    fn fill(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Loop(_) => {}
            Stmt::Nest(n) => {
                let points = product(&n.loops);
                n.stores.iter().for_each(|s| self.note(s.target.array, points));
            }
            Stmt::Apply(a) => self.note(a.dst.array, Some(a.len)),
            Stmt::Copy(c) => self.note(c.dst.array, Some(c.len)),
            Stmt::Product(p) if p.beta == Factor::Const(0.0) => {
                self.note(p.c.start.array, p.m.checked_mul(p.n));
            }
            Stmt::Product(_) => {}
        }
    }

    fn note(&mut self, array: ArrayId, elements: Option<usize>) {
        let part = self.program.array(array).and_then(|a| a.part());
        if elements.is_some() && elements == part {
            self.whole.insert(array);
        }
    }
}

fn product(axes: &[Axis]) -> Option<usize> {
    axes.iter().try_fold(1_usize, |n, a| n.checked_mul(a.extent))
}

/// Whether there is a loop over the past anywhere.
pub(crate) fn passes_the_past(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Loop(l) => l.count == Count::Past || passes_the_past(&l.body),
        Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::own;
    use miras_kernel::{Access, Affine, ArrayId, Copy, Count, Loop, Order, Program, Role, Stmt};

    fn copy(src: Access, dst: Access, len: usize) -> Stmt {
        Stmt::Copy(Copy { equation: String::new(), src, dst, len })
    }

    /// `a = x; [b = a or a' = b]; o = a` for each token, with what comes after the loop.
    fn program(turn: impl Fn(ArrayId, ArrayId) -> Vec<Stmt>, after: bool) -> Program {
        let mut p = Program::new("apart");
        let x = p.add_array("x", Role::TokenInput { entries: 1 }, &[2], "");
        let [a, b] = ["a", "b"].map(|n| p.add_array(n, Role::Scratch, &[2], ""));
        let o = p.add_array("o", Role::TokenOutput { entries: 1 }, &[2], "");
        let s = p.add_array("s", Role::StateOut, &[2], "");
        let t = p.add_var("t");
        let token = |array| Access::new(array, Affine::term(2, t));
        let mut body = vec![copy(token(x), Access::start(a), 2)];
        body.extend(turn(a, b));
        body.push(copy(Access::start(a), token(o), 2));
        p.body = vec![Stmt::Loop(Loop { var: t, count: Count::Tokens, order: Order::Ascending, body })];
        if after {
            p.body.push(copy(Access::start(a), Access::start(s), 2));
        }
        p
    }

    fn found(p: &Program) -> Option<usize> {
        let Some(Stmt::Loop(l)) = p.body.first() else { panic!("the first statement is a loop") };
        own(p, l).map(|arrays| arrays.len())
    }

    #[test]
    fn turns_that_need_nothing_of_one_another_are_told_from_those_that_do() {
        let (whole, half) = (Access::start, |a| Access::new(a, Affine::constant(1)));
        let alone = program(|a, b| vec![copy(whole(a), whole(b), 2)], false);
        assert_eq!(found(&alone), Some(2));
        let carried = program(|a, b| vec![copy(whole(b), whole(a), 2), copy(whole(a), whole(b), 2)], false);
        assert_eq!(found(&carried), None);
        let in_part = program(|a, b| vec![copy(whole(a), whole(b), 1), copy(half(b), half(a), 1)], false);
        assert_eq!(found(&in_part), None);
        let wanted_later = program(|a, b| vec![copy(whole(a), whole(b), 2)], true);
        assert_eq!(found(&wanted_later), None);
    }

    #[test]
    fn what_a_loop_without_turns_would_write_does_not_count() {
        let inner = |count| {
            move |a: ArrayId, b: ArrayId| {
                let body = vec![copy(Access::start(a), Access::start(b), 2)];
                let l = Loop { var: miras_kernel::VarId(0), count, order: Order::Ascending, body };
                vec![Stmt::Loop(l), copy(Access::start(b), Access::start(a), 2)]
            }
        };
        assert_eq!(found(&program(inner(Count::Past), false)), None);
        assert_eq!(found(&program(inner(Count::Const(2)), false)), Some(2));
    }
}
