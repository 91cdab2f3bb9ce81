//! Storage barriers: placed where a phase meets what another one writes, and proven by a second walk.
//!
//! A phase is a statement that all invocations of a workgroup share. Two phases of which one writes to an array
//! that the other reads or writes must have a barrier in between. Arrays are taken whole.

mod proof;

pub(crate) use proof::prove;

use miras_kernel::{Access, ArrayId, Count, Expr, Factor, Loop, Stmt};
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

/// Places the barriers: before a phase that meets one since the last barrier, before a loop that does anywhere in
/// its body, and at the end of a turn that touched anything since.
pub(crate) fn fence<'p>(body: impl IntoIterator<Item = &'p Stmt>) -> Vec<Step<'p>> {
    place(&mut body.into_iter(), &mut Touched::default())
}

/// One turn of a loop, with barriers for the next turn to follow.
pub(crate) fn fence_turn(l: &Loop) -> Vec<Step<'_>> {
    let mut since = Touched::default();
    let mut turn = place(&mut l.body.iter(), &mut since);
    if since != Touched::default() {
        turn.push(Step::Barrier);
    }
    turn
}

/// A body for one invocation, which sees what it has written itself.
pub(crate) fn unfenced<'p>(body: &'p [Stmt]) -> Vec<Step<'p>> {
    let step = |stmt: &'p Stmt| match stmt {
        Stmt::Loop(l) => Step::Loop(l, unfenced(&l.body)),
        Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => Step::Phase(stmt),
    };
    body.iter().map(step).collect()
}

fn place<'p>(body: &mut dyn Iterator<Item = &'p Stmt>, since: &mut Touched) -> Vec<Step<'p>> {
    let mut steps = Vec::new();
    for stmt in body {
        let touched = touched_within(stmt);
        if since.conflict(&touched).is_some() {
            steps.push(Step::Barrier);
            *since = Touched::default();
        }
        match stmt {
            Stmt::Loop(l) => {
                steps.push(Step::Loop(l, fence_turn(l)));
                match l.count {
                    // At least one turn, which ends clean.
                    Count::Const(_) => *since = Touched::default(),
                    // Perhaps none, so what came before is still open.
                    Count::Tokens | Count::Past => {}
                }
            }
            Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => {
                since.add(&touched);
                steps.push(Step::Phase(stmt));
            }
        }
    }
    steps
}

/// What a statement touches, loops in all of their bodies.
pub(crate) fn touched_within(stmt: &Stmt) -> Touched {
    match stmt {
        Stmt::Loop(l) => l.body.iter().fold(Touched::default(), |mut all, s| {
            all.add(&touched_within(s));
            all
        }),
        Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => touched(stmt),
    }
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
            for access in [&p.a.start, &p.b.start] {
                read(access);
            }
            if p.beta != Factor::Const(0.0) {
                read(&p.c.start);
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
