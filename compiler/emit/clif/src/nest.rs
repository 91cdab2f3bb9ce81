//! Nests: the loops over points, lanes along the innermost, stores at the bottom.

use crate::arith::{Arith, LANES, Width};
use crate::body::{Emitter, FLOAT, Trip};
use crate::plan::{Place, Plan, plan};
use crate::size;
use cranelift::prelude::*;
use miras_base::Diagnostic;
use miras_kernel::{Axis, ExprId, Nest, VarId};

/// A value at a point: one number, or one per lane as several vectors.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    One(Value),
    Many(Vec<Value>),
}

/// Lanes along a loop: so many vectors at once, from the variable's value on.
#[derive(Clone, Copy)]
pub(crate) struct Lane {
    pub var: VarId,
    pub vectors: usize,
}

/// The nest being emitted, and what has been computed at the place reached.
pub(crate) struct State<'n> {
    pub nest: &'n Nest,
    pub plan: Plan,
    pub lane: Option<Lane>,
    values: Vec<Option<Val>>,
    /// Expressions computed so far, those of inner loops last.
    trail: Vec<usize>,
}

impl State<'_> {
    /// The value of an expression computed before.
    pub(crate) fn value(&self, id: ExprId) -> Result<Val, Diagnostic> {
        let value = self.values.get(id.0 as usize).cloned().flatten();
        value.ok_or_else(|| {
            Diagnostic::bug(format!("`{}` uses a value before it is there", self.nest.equation))
        })
    }

    fn set(&mut self, at: usize, value: Val) {
        self.values[at] = Some(value);
        self.trail.push(at);
    }

    fn leave(&mut self, mark: usize) {
        for at in self.trail.drain(mark..) {
            self.values[at] = None;
        }
    }
}

/// What is emitted inside loops.
pub(crate) type Inside<'f> = dyn FnMut(&mut Emitter<'_, '_>, &mut State<'_>) -> Result<(), Diagnostic> + 'f;

impl<'b> Emitter<'_, 'b> {
    pub(crate) fn nest(&mut self, nest: &Nest) -> Result<(), Diagnostic> {
        let plan = plan(nest).ok_or_else(|| Diagnostic::bug(format!("`{}` is no nest", nest.equation)))?;
        let values = vec![None; nest.exprs.len()];
        let mut state = State { nest, plan, lane: None, values, trail: Vec::new() };
        self.point(&mut state, 0)
    }

    /// Everything inside the first `depth` loops.
    fn point(&mut self, s: &mut State<'_>, depth: usize) -> Result<(), Diagnostic> {
        self.compute(s, Place::Point(depth))?;
        match s.plan.loops.get(depth).copied() {
            None => self.stores(s),
            Some(axis) if s.plan.lanes && depth + 1 == s.plan.loops.len() => {
                let vectors = vectors(s);
                self.lanes(s, axis, vectors, &mut |me, s| me.point(s, depth + 1))
            }
            Some(axis) => self.each(s, axis, &mut |me, s| me.point(s, depth + 1)),
        }
    }

    /// The expressions of one place, in order.
    pub(crate) fn compute(&mut self, s: &mut State<'_>, place: Place) -> Result<(), Diagnostic> {
        for at in 0..s.nest.exprs.len() {
            if s.plan.places[at] == Some(place) {
                let value = self.expr(s, at)?;
                s.set(at, value);
            }
        }
        Ok(())
    }

    /// One turn after the other.
    pub(crate) fn each(
        &mut self,
        s: &mut State<'_>,
        axis: Axis,
        inside: &mut Inside<'_>,
    ) -> Result<(), Diagnostic> {
        self.part(s, axis.var, (0, 1, axis.extent), inside)
    }

    /// `vectors` at once as often as they fit, then single vectors, then single numbers.
    pub(crate) fn lanes(
        &mut self,
        s: &mut State<'_>,
        axis: Axis,
        vectors: usize,
        inside: &mut Inside<'_>,
    ) -> Result<(), Diagnostic> {
        let mut done = 0;
        for at_once in [vectors, 1, 0] {
            let step = (at_once * LANES).max(1);
            let count = (axis.extent - done) / step;
            if count > 0 {
                s.lane = (at_once > 0).then_some(Lane { var: axis.var, vectors: at_once });
                self.part(s, axis.var, (done, step, count), inside)?;
                done += count * step;
            }
        }
        s.lane = None;
        Ok(())
    }

    /// The variable runs over `start`, `start + step`, ..., `count` values.
    fn part(
        &mut self,
        s: &mut State<'_>,
        var: VarId,
        (start, step, count): (usize, usize, usize),
        inside: &mut Inside<'_>,
    ) -> Result<(), Diagnostic> {
        self.turns(Trip::Const(count), |me, turn| {
            let scaled = me.builder.ins().imul_imm_s(turn, step as i64);
            let value = me.builder.ins().iadd_imm_s(scaled, start as i64);
            let mark = s.trail.len();
            me.with(var, value, |me| inside(me, s))?;
            s.leave(mark);
            Ok(())
        })
    }

    fn stores(&mut self, s: &mut State<'_>) -> Result<(), Diagnostic> {
        for store in &s.nest.stores {
            let value = s.value(store.value)?;
            let flags = self.flags(store.target.array);
            let address = self.address(&store.target);
            let values = match (value, s.lane) {
                (Val::One(one), None) => vec![one],
                (Val::One(one), Some(lane)) => vec![self.arith(Width::Four).spread(one); lane.vectors],
                (Val::Many(many), _) => many,
            };
            for (at, value) in values.into_iter().enumerate() {
                self.builder.ins().store(flags, value, address, vector_offset(at));
            }
        }
        Ok(())
    }

    pub(crate) fn arith(&mut self, width: Width) -> Arith<'_, 'b> {
        Arith::new(&mut self.builder, width)
    }
}

/// Bytes from the first to the n-th vector.
pub(crate) fn vector_offset(at: usize) -> i32 {
    (at * LANES) as i32 * FLOAT as i32
}

/// How many vectors to run at once: enough to hide the latency of sums, few where much is kept in registers.
fn vectors(s: &State<'_>) -> usize {
    let innermost = s.plan.loops.len();
    let cost: usize = s
        .nest
        .exprs
        .iter()
        .zip(&s.plan.places)
        .filter(|(_, p)| match p {
            Some(Place::Point(depth)) => *depth == innermost,
            Some(Place::Within(r, _)) => s.plan.reductions[r.0 as usize].depth == innermost,
            None => false,
        })
        .map(|(e, _)| size::steps(e))
        .sum();
    let sums = s.plan.reductions.iter().any(|r| r.depth == innermost);
    match (cost, sums) {
        (0..=40, true) => 4,
        (0..=24, false) => 2,
        _ => 1,
    }
}
