//! Storage barriers: placed where a phase meets what another one writes, and proven by a second walk.
//!
//! A phase is a statement that all invocations of a workgroup share. Two phases of which one writes to an array
//! that the other reads or writes must have a barrier in between. Arrays are taken whole.

mod proof;

pub(crate) use proof::prove;

use miras_kernel::{Access, ArrayId, Expr, Factor, Loop, Stmt};
use std::collections::BTreeSet;

/// A body with its barriers.
#[derive(Debug)]
pub(crate) enum Step<'p> {
    /// A statement that is no loop.
    Phase(&'p Stmt),
    /// A loop.
    Loop(&'p Loop, Vec<Step<'p>>),
    /// All invocations wait here, and see what all have written before.
    Barrier,
}

/// Arrays that were touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    pub reads: BTreeSet<ArrayId>,
    pub writes: BTreeSet<ArrayId>,
}

impl Touched {
    /// An array that this phase must not touch together with that one.
    pub(crate) fn conflict(&self, other: &Touched) -> Option<ArrayId> {
        let raw = self.writes.intersection(&other.reads);
        let war = self.reads.intersection(&other.writes);
        raw.chain(war).chain(self.writes.intersection(&other.writes)).next().copied()
    }

    pub(crate) fn add(&mut self, other: &Touched) {
        self.reads.extend(&other.reads);
        self.writes.extend(&other.writes);
    }
}

/// Places the barriers: before each phase that meets one since the last barrier, and at the end of every turn
/// of a loop.
pub(crate) fn fence(body: &[Stmt]) -> Vec<Step<'_>> {
    let mut since = Touched::default();
    place(body, &mut since)
}

fn place<'p>(body: &'p [Stmt], since: &mut Touched) -> Vec<Step<'p>> {
    let mut steps = Vec::new();
    for stmt in body {
        match stmt {
            Stmt::Loop(l) => {
                // A loop over no tokens leaves what came before it without a barrier.
                let before = since.clone();
                let mut inside = place(&l.body, since);
                inside.push(Step::Barrier);
                steps.push(Step::Loop(l, inside));
                *since = before;
            }
            Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => {
                let touched = touched(stmt);
                if since.conflict(&touched).is_some() {
                    steps.push(Step::Barrier);
                    *since = Touched::default();
                }
                since.add(&touched);
                steps.push(Step::Phase(stmt));
            }
        }
    }
    steps
}

/// What a statement touches; nothing for loops, whose bodies do.
pub(crate) fn touched(stmt: &Stmt) -> Touched {
    let mut touched = Touched::default();
    let mut read = |access: &Access| touched.reads.insert(access.array);
    match stmt {
        Stmt::Loop(_) => {}
        Stmt::Nest(n) => {
            for expr in &n.exprs {
                if let Expr::Load(access) = expr {
                    read(access);
                }
            }
            touched.writes.extend(n.stores.iter().map(|s| s.target.array));
        }
        Stmt::Apply(a) => {
            read(&a.src);
            touched.writes.insert(a.dst.array);
        }
        Stmt::Copy(c) => {
            read(&c.src);
            touched.writes.insert(c.dst.array);
        }
        Stmt::Product(p) => {
            for access in [&p.a.start, &p.b.start, &p.c.start] {
                read(access);
            }
            for factor in [&p.alpha, &p.beta] {
                if let Factor::Load(access) = factor {
                    read(access);
                }
            }
            touched.writes.insert(p.c.start.array);
        }
    }
    touched
}
