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

/// Turns of a lane that a launch must save to be worth it.
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
    /// (fewer than [`MANY_TASKS`]) and each launch of a turn of the loop over tokens saves at least [`WORTH`] turns of a lane,
    /// on the average. Also where one kernel makes more turns of loops at a time than the device
    /// does before it stops an invocation, if it does.
    pub fn of(program: &Program, tasks: usize, stops: Option<u64>) -> Structure {
        let Some(nodes) = grid::nodes(program) else { return Structure::OneKernel };
        if stops.is_some_and(|most| longest(program) > most) {
            return Structure::SeveralLaunches;
        }
        if tasks >= MANY_TASKS {
            return Structure::OneKernel;
        }
        let (mut saved, mut count) = (0_u64, 0_u64);
        for node in &nodes {
            if let Node::Repeat(l, inside) = node {
                let (launches, turns) = launches(inside);
                saved = saved.saturating_add(turn(l).saturating_sub(turns));
                count = count.saturating_add(launches);
            }
        }
        if count > 0 && saved / count >= WORTH { Structure::SeveralLaunches } else { Structure::OneKernel }
    }
}

/// The most turns of loops that an invocation of one kernel makes at a time, for one token where there are loops over
/// tokens inside.
fn longest(program: &Program) -> u64 {
    let (parts, _) = stage::parts(program);
    let turns = parts.iter().map(|part| stage::stage(String::new(), *part).cost.at(1, 0));
    turns.max().unwrap_or(0).saturating_add(1)
}

/// Turns of a lane in one turn of a loop, where a workgroup does it.
fn turn(l: &Loop) -> u64 {
    stage::block(&l.body, LANES as usize).at(1, 0)
}

/// Launches of one turn, and the turns of a lane in all of them.
fn launches(nodes: &[Node<'_>]) -> (u64, u64) {
    let one = |node: &Node<'_>| match node {
        Node::Launch(jobs) => (1, jobs.iter().map(grid::turns).max().unwrap_or(0)),
        Node::Window(l) => (1, turn(l).saturating_mul(times(l.count))),
        Node::Repeat(l, inside) => {
            let (often, (count, turns)) = (times(l.count), launches(inside));
            (count.saturating_mul(often), turns.saturating_mul(often))
        }
    };
    let add =
        |(n, t): (u64, u64), (more, turns): (u64, u64)| (n.saturating_add(more), t.saturating_add(turns));
    nodes.iter().map(one).fold((0, 0), add)
}

/// How often a loop turns, for one token.
fn times(count: Count) -> u64 {
    match count {
        Count::Const(n) => n as u64,
        Count::Tokens | Count::Past => 1,
    }
}
