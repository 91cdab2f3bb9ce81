//! One kernel for all of a task, or several launches: which one computes a problem.

use crate::LANES;
use crate::grid::{self, Node};
use crate::stage;
use miras_kernel::{Count, Loop, Program};
use std::fmt;

/// How a program is shared out over workgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Structure {
    /// A workgroup for each task goes through all of its tokens.
    OneKernel,
    /// Loops over tokens are repeated by the host; the parts of a turn are launches of their own, of many workgroups for
    /// each task.
    SeveralLaunches,
}

/// Tasks from which a workgroup for each keeps a GPU busy.
pub const MANY_TASKS: usize = 256;

/// Turns of a lane that a launch must take off a workgroup to be worth it.
pub const WORTH: u64 = 256;

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Structure::OneKernel => "one kernel",
            Structure::SeveralLaunches => "several launches",
        })
    }
}

impl Structure {
    /// Both.
    pub const ALL: [Structure; 2] = [Structure::OneKernel, Structure::SeveralLaunches];

    /// Its name in plans and options.
    pub fn name(self) -> &'static str {
        match self {
            Structure::OneKernel => "one-kernel",
            Structure::SeveralLaunches => "several-launches",
        }
    }

    /// The structure that computes a problem of so many tasks best: several launches where tasks alone leave a GPU idle
    /// (fewer than [`MANY_TASKS`]) and one turn of the loop over tokens is long enough: at least [`WORTH`] turns of a lane
    /// for each launch that it would be cut into.
    pub fn of(program: &Program, tasks: usize) -> Structure {
        if tasks >= MANY_TASKS {
            return Structure::OneKernel;
        }
        let nodes = grid::nodes(program).unwrap_or_default();
        let over_tokens = nodes.iter().filter_map(|node| match node {
            Node::Repeat(l, inside) => Some((turn(l), launches(inside))),
            Node::Launch(_) | Node::Window(_) => None,
        });
        let (turns, count) = over_tokens.fold((0, 0), |(t, n): (u64, u64), (turns, launches)| {
            (t.saturating_add(turns), n.saturating_add(launches))
        });
        if count > 0 && turns / count >= WORTH { Structure::SeveralLaunches } else { Structure::OneKernel }
    }
}

/// Turns of a lane in one turn of a loop, where a workgroup does it.
fn turn(l: &Loop) -> u64 {
    stage::block(&l.body, LANES as usize).at(1, 0)
}

/// Launches of one turn.
fn launches(nodes: &[Node<'_>]) -> u64 {
    let one = |node: &Node<'_>| match node {
        Node::Launch(_) | Node::Window(_) => 1,
        Node::Repeat(l, inside) => match l.count {
            Count::Const(n) => launches(inside).saturating_mul(n as u64),
            Count::Tokens | Count::Past => launches(inside),
        },
    };
    nodes.iter().map(one).fold(0, u64::saturating_add)
}
