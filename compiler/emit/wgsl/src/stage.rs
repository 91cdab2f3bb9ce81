//! Stages: a program cut into entry points, so that the turns of its outermost loops can be shared out over
//! several launches.
//!
//! A loop over tokens that passes the past in each of its turns, which have nothing to do with one another, is cut
//! once more: its turns run together, an invocation for each token, and each of its parts is a stage. So a pass over
//! a long past can be shared out over launches too, and no invocation waits for another.

use crate::LANES;
use crate::apart;
use crate::cost::Cost;
use crate::fence::touched_within;
use crate::lanes;
use miras_kernel::{ArrayId, Count, Loop, Nest, Order, Product, Program, Stmt};
use std::collections::BTreeSet;

/// One entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name in the text.
    pub entry: String,
    /// How often it is launched.
    pub turns: Turns,
    /// What runs together.
    pub each: Each,
    /// Whether it can run for some tokens at a time, in the order of its turns, with nothing but their rows there.
    pub streams: bool,
    /// Turns of loops that one invocation makes: in the launch, or in each turn of the stage's loop.
    pub cost: Cost,
}

/// Stages that may run for some tokens, all of them, before they run for others; a pass begins when the one before is
/// done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The order in which it goes from token to token, if it does.
    pub order: Option<Order>,
    /// What is launched, in order.
    pub launches: Vec<Launches>,
}

/// What is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launches {
    /// The stage of this number.
    Stage(usize),
    /// Everything inside, in order, again for each turn.
    Repeat(Repeat),
}

/// Launches that are repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Which number of [`crate::Layout::rounds`] tells the kernels the turn, from 0.
    pub round: usize,
    /// How often.
    pub turns: Turns,
    /// What.
    pub body: Vec<Launches>,
}

/// How the turns of a stage's loop are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turns {
    /// No loop: one launch; `first` and `stop` are ignored.
    Once,
    /// A launch makes the turns from `first` up to, not including, `stop`, of so many.
    Const(u64),
    /// The same, of as many as a task has tokens, in this order of tokens.
    Tokens(Order),
    /// The same, of as many as a task's past has tokens.
    Past,
}

/// What runs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Each {
    /// A workgroup for each task.
    Task,
    /// An invocation for each token of each task: workgroup z has those from `skip` + z * [`LANES`] on.
    Token,
    /// So many workgroups for each task, along z.
    Parts(u32),
}

/// A part of a program that becomes an entry point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'p> {
    pub what: What<'p>,
    /// The loop whose turns run together, if some do.
    pub around: Option<&'p Loop>,
    pub pass: usize,
}

/// What a part does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What<'p> {
    /// Statements that are no loops.
    Straight(&'p [Stmt]),
    /// One loop.
    Loop(&'p Loop),
}

/// A program's parts in order, and the arrays that each token has for itself.
pub(crate) fn parts(program: &Program) -> (Vec<Part<'_>>, BTreeSet<ArrayId>) {
    let mut parts = Vec::new();
    let mut all = BTreeSet::new();
    for (pass, what) in cut(&program.body).enumerate() {
        let together = match what {
            What::Loop(l) if apart::passes_the_past(&l.body) => apart::own(program, l).map(|own| (l, own)),
            What::Loop(_) | What::Straight(_) => None,
        };
        match together {
            Some((l, own)) => {
                all.extend(own);
                parts.extend(cut(&l.body).map(|what| Part { what, around: Some(l), pass }));
            }
            None => parts.push(Part { what, around: None, pass }),
        }
    }
    (parts, all)
}

/// A body cut before and after each of its loops.
fn cut(body: &[Stmt]) -> impl Iterator<Item = What<'_>> {
    let is_loop = |s: &Stmt| matches!(s, Stmt::Loop(_));
    let chunks = body.chunk_by(move |a, b| !is_loop(a) && !is_loop(b));
    chunks.map(|chunk| match chunk {
        [Stmt::Loop(l)] => What::Loop(l),
        straight => What::Straight(straight),
    })
}

/// The stage of a part.
pub(crate) fn stage(entry: String, part: Part<'_>) -> Stage {
    let turns = match part.what {
        What::Straight(_) => Turns::Once,
        What::Loop(l) => turns(l),
    };
    let (each, lanes) = match part.around {
        None => (Each::Task, LANES as usize),
        Some(_) => (Each::Token, 1),
    };
    let body = body(part);
    Stage { entry, turns, each, streams: !has_token_loop(body), cost: block(body, lanes) }
}

/// How the turns of a loop are counted.
pub(crate) fn turns(l: &Loop) -> Turns {
    match l.count {
        Count::Tokens => Turns::Tokens(l.order),
        Count::Past => Turns::Past,
        Count::Const(n) => Turns::Const(n as u64),
    }
}

/// The passes of parts, each of which is the stage of its number.
pub(crate) fn passes(parts: &[Part<'_>]) -> Vec<Pass> {
    let mut passes: Vec<(usize, Pass)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let order = match (part.around, part.what) {
            (Some(_), _) => Some(Order::Ascending),
            (None, What::Loop(l)) if l.count == Count::Tokens => Some(l.order),
            (None, What::Loop(_) | What::Straight(_)) => None,
        };
        match passes.last_mut().filter(|(pass, _)| *pass == part.pass) {
            Some((_, pass)) => pass.launches.push(Launches::Stage(at)),
            None => passes.push((part.pass, Pass { order, launches: vec![Launches::Stage(at)] })),
        }
    }
    passes.into_iter().map(|(_, pass)| pass).collect()
}

/// Whether more tokens are touched than the one at hand.
fn has_token_loop(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Loop(l) => l.count == Count::Tokens || has_token_loop(&l.body),
        Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) | Stmt::Product(_) => false,
    })
}

/// What to call a part.
pub(crate) fn wish(program: &Program, part: Part<'_>, first: bool) -> String {
    let name = |l: &Loop| program.vars.get(l.var.0 as usize).map_or("turn", |v| &v.name).to_string();
    let within = part.around.map_or(String::new(), |l| format!("_of_each_{}", name(l)));
    match part.what {
        What::Straight(_) if part.around.is_some() => format!("part{within}"),
        What::Straight(_) => if first { "begin" } else { "proceed" }.to_string(),
        What::Loop(l) => {
            let order = match l.order {
                Order::Ascending => "each",
                Order::Descending => "each_back",
            };
            format!("{order}_{}{within}", name(l))
        }
    }
}

/// The arrays that a part touches.
pub(crate) fn arrays(part: Part<'_>) -> BTreeSet<ArrayId> {
    arrays_of(body(part))
}

/// The arrays that statements touch.
pub(crate) fn arrays_of<'p>(body: impl IntoIterator<Item = &'p Stmt>) -> BTreeSet<ArrayId> {
    let touched = body.into_iter().map(touched_within);
    touched.flat_map(|t| t.reads.into_iter().chain(t.writes)).collect()
}

fn body(part: Part<'_>) -> &[Stmt] {
    match part.what {
        What::Straight(body) => body,
        What::Loop(l) => &l.body,
    }
}

pub(crate) fn block(body: &[Stmt], lanes: usize) -> Cost {
    body.iter().fold(Cost::default(), |sum, stmt| match stmt {
        Stmt::Loop(l) => {
            let inside = block(&l.body, lanes);
            sum.and(&match l.count {
                Count::Const(n) => inside.times(n as u64),
                Count::Tokens => inside.each_token(),
                Count::Past => inside.each_past(),
            })
        }
        Stmt::Nest(n) => sum.and(&nest(n, lanes)),
        Stmt::Apply(a) => sum.and(&points(a.len, &Cost::default(), lanes)),
        Stmt::Copy(c) => sum.and(&points(c.len, &Cost::default(), lanes)),
        Stmt::Product(p) => sum.and(&product(p, lanes)),
    })
}

fn product(p: &Product, lanes: usize) -> Cost {
    let shared = if lanes == 1 { 1 } else { lanes::of_product(p) };
    if shared > 1 {
        return Cost::fixed((p.k.div_ceil(shared) + shared) as u64);
    }
    points(p.m.saturating_mul(p.n), &Cost::default().times(p.k as u64), lanes)
}

fn nest(nest: &Nest, lanes: usize) -> Cost {
    let shared = if lanes == 1 { 1 } else { lanes::of_nest(nest) };
    if shared > 1 {
        return Cost::fixed(nest.reductions.iter().map(|r| lanes::turns(r, shared)).sum());
    }
    points(lanes::extent(&nest.loops), &sums(nest), lanes)
}

/// Turns of the sums at one point of a nest.
pub(crate) fn sums(nest: &Nest) -> Cost {
    nest.reductions.iter().fold(Cost::default(), |sum, r| {
        let loops = r.loops.iter().rev();
        sum.and(&loops.fold(Cost::default(), |inside, axis| inside.times(axis.extent as u64)))
    })
}

/// Points shared out over the lanes.
fn points(count: usize, inside: &Cost, lanes: usize) -> Cost {
    match count.div_ceil(lanes) {
        0 | 1 => inside.clone(),
        turns => inside.times(turns as u64),
    }
}
