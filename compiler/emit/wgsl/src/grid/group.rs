//! Statements gathered into jobs, and jobs into launches.

use super::point::{Order, Touch, count};
use super::tile;
use super::{Job, Kind, MAX_ROUNDS, Node};
use crate::LANES;
use crate::fence::{Touched, touched_within};
use crate::stage;
use miras_kernel::{Count, Loop, Stmt};

/// Turns of a lane up to which a statement is done by one workgroup for each task: a launch of its own costs more.
const SMALL: u64 = 32;

/// Turns of a lane in one turn of a loop from which the turn is worth launches.
const HEAVY: u64 = 512;

/// Turns of a lane from which a loop in one kernel has its turns shared out over launches.
const LONG: u64 = 16_384;

/// Turns of a lane in one kernel of small and sequential statements, at most.
const TOGETHER: u64 = 2 * LONG;

/// Jobs side by side in a launch, at most: their workgroups together stay below 65,536.
const MAX_JOBS: usize = 12;

/// Statements that share an invocation for each point, at most: texts stay readable, and compile.
const MAX_CHAIN: usize = 24;

/// Statements that belong together.
struct Group<'p> {
    work: Work<'p>,
    statements: Vec<&'p Stmt>,
    touched: Touched,
    /// Turns of a lane where a workgroup does all of it.
    cost: u64,
    /// Not before the groups of lower levels.
    level: usize,
}

enum Work<'p> {
    Job(Kind<'p>),
    Window(&'p Loop),
    Repeat(&'p Loop),
}

/// The launches of a body in order, inside so many repeated loops.
pub(super) fn nodes(body: &[Stmt], depth: usize) -> Vec<Node<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for stmt in body {
        gather(&mut groups, stmt, depth);
    }
    for at in 0..groups.len() {
        let before = groups[..at].iter().filter(|g| g.touched.conflict(&groups[at].touched).is_some());
        groups[at].level = before.map(|g| g.level + 1).max().unwrap_or(0);
    }
    groups.sort_by_key(|g| g.level);
    let mut nodes = Vec::new();
    for level in groups.chunk_by(|a, b| a.level == b.level) {
        launches(level, depth, &mut nodes);
    }
    nodes
}

/// The launches of groups that have nothing to do with one another.
fn launches<'p>(level: &[Group<'p>], depth: usize, nodes: &mut Vec<Node<'p>>) {
    let mut jobs = Vec::new();
    for group in level {
        match group.work {
            Work::Job(kind) => jobs.push(Job { kind, statements: group.statements.clone() }),
            Work::Window(l) => nodes.push(Node::Window(l)),
            Work::Repeat(l) => nodes.push(Node::Repeat(l, self::nodes(&l.body, depth + 1))),
        }
    }
    while jobs.len() > MAX_JOBS {
        let rest = jobs.split_off(MAX_JOBS);
        nodes.push(Node::Launch(std::mem::replace(&mut jobs, rest)));
    }
    if !jobs.is_empty() {
        nodes.push(Node::Launch(jobs));
    }
}

/// Puts a statement into a group that is there, or a new one. It may join any group behind the last one that it meets:
/// it has nothing to do with those in between.
fn gather<'p>(groups: &mut Vec<Group<'p>>, stmt: &'p Stmt, depth: usize) {
    let (touched, cost) = (touched_within(stmt), turns(stmt));
    let last = groups.iter().rposition(|g| g.touched.conflict(&touched).is_some());
    let own = work(stmt, depth);
    let from = last.unwrap_or(0);
    let place = match (&own, stmt) {
        (Work::Window(_) | Work::Repeat(_) | Work::Job(Kind::Tiles(..)), _) => None,
        (Work::Job(_), Stmt::Loop(_)) => (from..groups.len()).find(|at| groups[*at].takes(cost)),
        (Work::Job(kind), _) => match last.filter(|at| groups[*at].follows(stmt)) {
            Some(at) => Some(at),
            None if matches!(kind, Kind::Together) => (from..groups.len()).find(|at| groups[*at].takes(cost)),
            None => (from..groups.len()).find(|at| groups[*at].is_points() && groups[*at].follows(stmt)),
        },
    };
    match place {
        Some(at) => groups[at].add(stmt, &touched, cost),
        None => {
            let statements = if matches!(own, Work::Job(Kind::Tiles(..))) { vec![] } else { vec![stmt] };
            groups.push(Group { work: own, statements, touched, cost, level: 0 });
        }
    }
}

impl<'p> Group<'p> {
    /// Whether a small or sequential statement may join.
    fn takes(&self, cost: u64) -> bool {
        matches!(self.work, Work::Job(Kind::Together)) && self.cost.saturating_add(cost) <= TOGETHER
    }

    fn is_points(&self) -> bool {
        matches!(self.work, Work::Job(Kind::Points(_)))
    }

    /// Whether a statement may follow at each point by itself.
    fn follows(&mut self, stmt: &Stmt) -> bool {
        let after = Touch::of(stmt);
        let chained = |groups: &Group<'p>| {
            let before = groups.statements.iter().map(|s| Touch::of(s));
            before.into_iter().all(|b| b.stores_once() && b.meets_at_points_only(&after))
        };
        if !after.stores_once() || self.statements.len() >= MAX_CHAIN {
            return false;
        }
        match self.work {
            Work::Job(Kind::Points(n)) => count(stmt) == Some(n) && chained(self),
            Work::Job(Kind::Tiles(p, order)) => {
                let orders = [Order::Rows, Order::Columns];
                let fresh = self.statements.is_empty();
                let mut fits = orders.into_iter().filter(|o| fresh || *o == order);
                let found = fits.find(|o| Touch::of_product(p, *o).meets_at_points_only(&after));
                let Some(found) = found else { return false };
                if count(stmt) != p.m.checked_mul(p.n) || !chained(self) {
                    return false;
                }
                self.work = Work::Job(Kind::Tiles(p, found));
                true
            }
            Work::Job(Kind::Together) | Work::Window(_) | Work::Repeat(_) => false,
        }
    }

    fn add(&mut self, stmt: &'p Stmt, touched: &Touched, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        self.statements.push(stmt);
        self.touched.add(touched);
    }
}

/// How a statement is done by itself.
fn work(stmt: &Stmt, depth: usize) -> Work<'_> {
    let (cost, points) = (turns(stmt), count(stmt).unwrap_or(0));
    match stmt {
        Stmt::Loop(l) if repeats(l, depth) => Work::Repeat(l),
        Stmt::Loop(l) if cost > LONG => Work::Window(l),
        Stmt::Product(p) if cost > SMALL && tile::worth(p) => Work::Job(Kind::Tiles(p, Order::Rows)),
        // Points of one workgroup gain nothing from others, and lanes can share their sums there.
        Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) if cost > SMALL && points > LANES as usize => {
            Work::Job(Kind::Points(points))
        }
        Stmt::Loop(_) | Stmt::Product(_) | Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) => {
            Work::Job(Kind::Together)
        }
    }
}

/// Whether the host repeats a loop: over tokens, with products in it, or with long turns.
fn repeats(l: &Loop, depth: usize) -> bool {
    let heavy = l.body.iter().map(turns).fold(0, u64::saturating_add) > HEAVY;
    let inside = depth + 1 < MAX_ROUNDS && (heavy || has_tiles(&l.body));
    l.count == Count::Tokens || inside
}

fn has_tiles(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Loop(l) => has_tiles(&l.body),
        Stmt::Product(p) => turns(stmt) > SMALL && tile::worth(p),
        Stmt::Nest(_) | Stmt::Apply(_) | Stmt::Copy(_) => false,
    })
}

/// Turns of a lane where a workgroup does all of a statement, for one token where there are more.
fn turns(stmt: &Stmt) -> u64 {
    stage::block(std::slice::from_ref(stmt), LANES as usize).at(1, 0)
}
