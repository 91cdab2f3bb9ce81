//! Stages: a program cut into entry points, so that the turns of its outermost loops can be shared out over
//! several launches.

use crate::LANES;
use crate::cost::Cost;
use crate::fence::touched_within;
use miras_kernel::{ArrayId, Count, Loop, Nest, Order, Program, Stmt};
use std::collections::BTreeSet;

/// One entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name in the text.
    pub entry: String,
    /// How often it is launched.
    pub turns: Turns,
    /// Turns of loops that one invocation makes: in the launch, or in each turn of the stage's loop.
    pub cost: Cost,
}

/// How the turns of a stage's loop are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turns {
    /// No loop: one launch; `first` and `stop` are ignored.
    Once,
    /// A launch makes the turns from `first` up to, not including, `stop`, of so many.
    Const(u64),
    /// The same, of as many as a task has tokens.
    Tokens,
}

/// A part of a body that becomes an entry point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'p> {
    /// Statements that are no loops.
    Straight(&'p [Stmt]),
    /// One loop.
    Loop(&'p Loop),
}

/// The body's parts in order.
pub(crate) fn parts(body: &[Stmt]) -> Vec<Part<'_>> {
    let is_loop = |s: &Stmt| matches!(s, Stmt::Loop(_));
    let chunks = body.chunk_by(|a, b| !is_loop(a) && !is_loop(b));
    chunks
        .map(|chunk| match chunk {
            [Stmt::Loop(l)] => Part::Loop(l),
            straight => Part::Straight(straight),
        })
        .collect()
}

/// The stage of a part.
pub(crate) fn stage(entry: String, part: Part<'_>) -> Stage {
    let (turns, body) = match part {
        Part::Straight(body) => (Turns::Once, body),
        Part::Loop(l) => match l.count {
            Count::Tokens | Count::Past => (Turns::Tokens, l.body.as_slice()),
            Count::Const(n) => (Turns::Const(n as u64), l.body.as_slice()),
        },
    };
    Stage { entry, turns, cost: block(body) }
}

/// What to call a part.
pub(crate) fn wish(program: &Program, part: Part<'_>, first: bool) -> String {
    match part {
        Part::Straight(_) => if first { "begin" } else { "proceed" }.to_string(),
        Part::Loop(l) => {
            let name = program.vars.get(l.var.0 as usize).map_or("turn", |v| &v.name);
            let order = match l.order {
                Order::Ascending => "each",
                Order::Descending => "each_back",
            };
            format!("{order}_{name}")
        }
    }
}

/// The arrays that a part touches.
pub(crate) fn arrays(part: Part<'_>) -> BTreeSet<ArrayId> {
    let body = match part {
        Part::Straight(body) => body,
        Part::Loop(l) => &l.body,
    };
    let touched = body.iter().map(touched_within);
    touched.flat_map(|t| t.reads.into_iter().chain(t.writes)).collect()
}

fn block(body: &[Stmt]) -> Cost {
    body.iter().fold(Cost::default(), |sum, stmt| match stmt {
        Stmt::Loop(l) => {
            let inside = block(&l.body);
            sum.and(&match l.count {
                Count::Const(n) => inside.times(n as u64),
                Count::Tokens | Count::Past => inside.each_token(),
            })
        }
        Stmt::Nest(n) => sum.and(&nest(n)),
        Stmt::Apply(a) => sum.and(&points(a.len as u64, &Cost::default())),
        Stmt::Copy(c) => sum.and(&points(c.len as u64, &Cost::default())),
        Stmt::Product(p) => {
            let inside = Cost::default().times(p.k as u64);
            sum.and(&points((p.m as u64).saturating_mul(p.n as u64), &inside))
        }
    })
}

fn nest(nest: &Nest) -> Cost {
    let inside = nest.reductions.iter().fold(Cost::default(), |sum, r| {
        let loops = r.loops.iter().rev();
        sum.and(&loops.fold(Cost::default(), |inside, axis| inside.times(axis.extent as u64)))
    });
    let count = nest.loops.iter().fold(1_u64, |n, axis| n.saturating_mul(axis.extent as u64));
    points(count, &inside)
}

/// Points shared out over the lanes.
fn points(count: u64, inside: &Cost) -> Cost {
    match count.div_ceil(u64::from(LANES)) {
        0 | 1 => inside.clone(),
        turns => inside.times(turns),
    }
}
