//! Several launches: a program's statements shared out over workgroups.
//!
//! A loop over tokens, and any other loop with products in it, is repeated by the host; each turn is a list of launches
//! in order, and nothing inside a launch waits for anything of another workgroup. A launch has one or several *jobs*, that
//! have nothing to do with one another. A job is a product in tiles, with what follows at each of its elements by
//! itself; or points, an invocation for each; or small and sequential statements, a workgroup for each task.

mod chain;
mod group;
mod point;
mod tile;
mod write;

pub(crate) use chain::Chain;
pub(crate) use point::Order;
pub(crate) use tile::memory;
pub(crate) use write::{rounds, turns};

use crate::apart;
use miras_kernel::{Count, Loop, Product, Program, Stmt};

/// Loops that the host repeats inside one another, at most; loops further inside stay in kernels.
pub(crate) const MAX_ROUNDS: usize = 3;

/// What is launched.
#[derive(Debug)]
pub(crate) enum Node<'p> {
    /// Jobs that have nothing to do with one another.
    Launch(Vec<Job<'p>>),
    /// A long loop, by a workgroup for each task; its turns are shared out over launches.
    Window(&'p Loop),
    /// Everything inside, again for each turn.
    Repeat(&'p Loop, Vec<Node<'p>>),
}

/// Statements that some workgroups do.
#[derive(Debug)]
pub(crate) struct Job<'p> {
    pub kind: Kind<'p>,
    /// In order; of tiles, those that follow the product.
    pub statements: Vec<&'p Stmt>,
}

/// How a job is shared out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'p> {
    /// A product, a workgroup for each tile; its points are counted in this order.
    Tiles(&'p Product, Order),
    /// An invocation for each of so many points.
    Points(usize),
    /// A workgroup for each task.
    Together,
}

/// The launches of a program; `None` where it has no loop over tokens outside, or passes a past.
pub(crate) fn nodes(program: &Program) -> Option<Vec<Node<'_>>> {
    let over_tokens = |s: &Stmt| matches!(s, Stmt::Loop(l) if l.count == Count::Tokens);
    let fits = program.body.iter().any(over_tokens) && !apart::passes_the_past(&program.body);
    fits.then(|| group::nodes(&program.body, 0))
}
