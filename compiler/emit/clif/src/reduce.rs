//! Reductions at a point: in order, or with partial sums along lanes.
//!
//! Where the machine has an instruction for it, a product is added without being rounded first.
//! Along lanes the sum of n values is formed so, whatever surrounds it: value i < 16 (n / 16) goes to partial
//! sum i mod 16, the following whole fours to partial sums 0 to 3, the rest to a sum of its own; then
//! pairwise from partial sum to total, the rest last. Otherwise values are added one after the other.

use crate::arith::{LANES, Width};
use crate::body::Emitter;
use crate::nest::{Lane, State, Val};
use crate::plan::Place;
use cranelift::prelude::*;
use miras_base::Diagnostic;
use miras_base::scalar::Fn2;
use miras_base::scalar::single::Binary;
use miras_kernel::{Expr, Op, ReductionId};

/// Vectors of partial sums.
const VECTORS: usize = 4;

/// What a reduction takes at one place.
enum Summand {
    Value(Val),
    /// A product that is added without being rounded first.
    Product(Val, Val),
}

impl Emitter<'_, '_> {
    /// The result of a reduction at the place reached.
    pub(crate) fn reduction(&mut self, s: &mut State<'_>, r: ReductionId) -> Result<Val, Diagnostic> {
        let reducing = &s.plan.reductions[r.0 as usize];
        if reducing.lanes {
            return self.along_lanes(s, r);
        }
        let inside = reducing.depth == s.plan.loops.len();
        let lane = s.lane.filter(|_| inside);
        self.in_order(s, r, lane)
    }

    fn in_order(&mut self, s: &mut State<'_>, r: ReductionId, lane: Option<Lane>) -> Result<Val, Diagnostic> {
        let nest = s.nest;
        let reduction = &nest.reductions[r.0 as usize];
        let (width, count) = match lane {
            Some(lane) => (Width::Four, lane.vectors),
            None => (Width::One, 1),
        };
        let sums: Vec<Variable> = (0..count).map(|_| self.accumulator(reduction.op, width)).collect();
        self.inside(s, r, 0, false, &mut |me, s| {
            let value = me.summand(s, r)?;
            me.accumulate(reduction.op, &sums, width, &value);
            Ok(())
        })?;
        let results: Vec<Value> = sums.iter().map(|&v| self.builder.use_var(v)).collect();
        match (width, results.first()) {
            (Width::One, Some(&one)) => Ok(Val::One(one)),
            (Width::One | Width::Four, _) => Ok(Val::Many(results)),
        }
    }

    fn along_lanes(&mut self, s: &mut State<'_>, r: ReductionId) -> Result<Val, Diagnostic> {
        let nest = s.nest;
        let reduction = &nest.reductions[r.0 as usize];
        let op = reduction.op;
        let extent = reduction.loops.last().map_or(0, |a| a.extent);
        let partial = match extent {
            0..LANES => 0,
            LANES..16 => 1,
            _ => VECTORS,
        };
        let sums: Vec<Variable> = (0..partial).map(|_| self.accumulator(op, Width::Four)).collect();
        let rest = (!extent.is_multiple_of(LANES)).then(|| self.accumulator(op, Width::One));
        self.inside(s, r, 0, true, &mut |me, s| {
            let value = me.summand(s, r)?;
            match (s.lane, rest) {
                (Some(lane), _) => me.accumulate(op, &sums[..lane.vectors], Width::Four, &value),
                (None, Some(rest)) => me.accumulate(op, &[rest], Width::One, &value),
                (None, None) => {
                    return Err(Diagnostic::bug("a sum along lanes has a rest that was not expected"));
                }
            }
            Ok(())
        })?;
        self.total(op, &sums, rest).map(Val::One)
    }

    /// The reduction's loops from `depth` on, with `leaf` inside the last.
    fn inside(
        &mut self,
        s: &mut State<'_>,
        r: ReductionId,
        depth: usize,
        lanes: bool,
        leaf: &mut crate::nest::Inside<'_>,
    ) -> Result<(), Diagnostic> {
        let nest = s.nest;
        let Some(&axis) = nest.reductions[r.0 as usize].loops.get(depth) else {
            return leaf(self, s);
        };
        let innermost = depth + 1 == nest.reductions[r.0 as usize].loops.len();
        let mut body = |me: &mut Emitter<'_, '_>, s: &mut State<'_>| {
            me.compute(s, Place::Within(r, depth + 1))?;
            me.inside(s, r, depth + 1, lanes, &mut *leaf)
        };
        if lanes && innermost {
            self.lanes(s, axis, VECTORS, &mut body)
        } else {
            self.each(s, axis, &mut body)
        }
    }

    fn accumulator(&mut self, op: Op, width: Width) -> Variable {
        let start = match op {
            Op::Sum => 0.0,
            Op::Max => f32::NEG_INFINITY,
            Op::Min => f32::INFINITY,
        };
        let variable = self.builder.declare_var(width.float());
        let start = self.arith(width).number(start);
        self.builder.def_var(variable, start);
        variable
    }

    /// What is accumulated at the place reached.
    fn summand(&self, s: &State<'_>, r: ReductionId) -> Result<Summand, Diagnostic> {
        let reduction = &s.nest.reductions[r.0 as usize];
        match s.nest.exprs[reduction.value.0 as usize] {
            Expr::Fn2(Fn2::Mul, a, b) if self.fuses && reduction.op == Op::Sum => {
                Ok(Summand::Product(s.value(a)?, s.value(b)?))
            }
            _ => s.value(reduction.value).map(Summand::Value),
        }
    }

    fn accumulate(&mut self, op: Op, sums: &[Variable], width: Width, summand: &Summand) {
        for (at, &sum) in sums.iter().enumerate() {
            let before = self.builder.use_var(sum);
            let mut part = |value: &Val| match value {
                Val::One(one) => self.arith(width).spread(*one),
                Val::Many(many) => many[at],
            };
            let after = match summand {
                Summand::Value(value) => {
                    let value = part(value);
                    self.arith(width).binary(binary(op), before, value)
                }
                Summand::Product(a, b) => {
                    let (a, b) = (part(a), part(b));
                    self.builder.ins().fma(a, b, before)
                }
            };
            self.builder.def_var(sum, after);
        }
    }

    fn total(&mut self, op: Op, sums: &[Variable], rest: Option<Variable>) -> Result<Value, Diagnostic> {
        let mut values: Vec<Value> = sums.iter().map(|&v| self.builder.use_var(v)).collect();
        values = self.pairwise(op, Width::Four, values);
        let lanes = match values.first() {
            Some(&vector) => (0..LANES as u8).map(|i| self.builder.ins().extractlane(vector, i)).collect(),
            None => Vec::new(),
        };
        let mut values = self.pairwise(op, Width::One, lanes);
        values.extend(rest.map(|v| self.builder.use_var(v)));
        let total = self.pairwise(op, Width::One, values).first().copied();
        total.ok_or_else(|| Diagnostic::bug("a reduction is empty"))
    }

    /// Neighbours combined until at most one value is left.
    fn pairwise(&mut self, op: Op, width: Width, mut values: Vec<Value>) -> Vec<Value> {
        while values.len() > 1 {
            values = values
                .chunks(2)
                .map(|pair| match *pair {
                    [a, b] => self.arith(width).binary(binary(op), a, b),
                    _ => pair[0],
                })
                .collect();
        }
        values
    }
}

fn binary(op: Op) -> Binary {
    match op {
        Op::Sum => Binary::Add,
        Op::Max => Binary::Max,
        Op::Min => Binary::Min,
    }
}
