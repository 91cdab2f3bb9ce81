//! What a block of tokens keeps of what: products of keeps, and momenta.

use super::low_rank::{Axes, Factor};
use crate::ir::{AxisId, BlockId, Carry, Op, Order, Scan, Slice, ValueId};
use crate::lower::Failure;
use crate::lower::term::TermLowering;
use miras_base::scalar::{Cmp, Fn2};
use miras_schedule::Factors;
use miras_term::{Shape, TermId};

/// What is kept, for each token of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    /// Of what token i wrote, after token t: over `to` and `from`.
    pub parts: Factor,
    /// Of what was there before the block: over `to`.
    pub whole: Factor,
}

/// What is kept after a token's step, and before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Running {
    pub after: Kept,
    pub before: Kept,
}

/// A scan over the tokens of a block that is being built.
pub(super) struct Steps {
    axis: AxisId,
    outer: BlockId,
    body: BlockId,
    carries: Vec<Carry>,
    slices: Vec<Slice>,
    stacked: Vec<ValueId>,
}

impl Steps {
    /// Begins a scan over `axis`; the lowering goes on in its body.
    pub(super) fn begin(at: &mut TermLowering<'_>, axis: AxisId) -> Steps {
        let (outer, body) = (at.block, at.graph.add_block(at.block));
        at.block = body;
        Steps { axis, outer, body, carries: Vec::new(), slices: Vec::new(), stacked: Vec::new() }
    }

    /// A value of this step: its slice along the scan's axis, if it has that.
    pub(super) fn slice(&mut self, at: &mut TermLowering<'_>, whole: ValueId) -> ValueId {
        if !at.has(whole, self.axis) {
            return whole;
        }
        if let Some(known) = self.slices.iter().find(|s| s.whole == whole) {
            return known.slice;
        }
        let axes = at.graph.value(whole).axes.iter().copied().filter(|a| *a != self.axis).collect();
        let name = at.graph.value(whole).name.clone().unwrap_or_default();
        let slice = at.graph.given(self.body, axes, name);
        self.slices.push(Slice { whole, slice });
        slice
    }

    /// Something carried: its value before a step, and where to put the one after it.
    pub(super) fn carry(
        &mut self,
        at: &mut TermLowering<'_>,
        first: ValueId,
        name: &str,
    ) -> (ValueId, usize) {
        let axes = at.graph.value(first).axes.clone();
        let before = at.graph.given(self.body, axes, name);
        self.carries.push(Carry { first, before, after: before });
        (before, self.carries.len() - 1)
    }

    /// The block of one step.
    pub(super) fn block(&self) -> BlockId {
        self.body
    }

    /// Sets what a carry becomes.
    pub(super) fn becomes(&mut self, carry: usize, after: ValueId) {
        self.carries[carry].after = after;
    }

    /// Stacks a value of each step.
    pub(super) fn stack(&mut self, value: ValueId) -> usize {
        self.stacked.push(value);
        self.stacked.len() - 1
    }

    /// The final carries and the stacks; the lowering goes on outside.
    pub(super) fn end(self, at: &mut TermLowering<'_>) -> (Vec<ValueId>, Vec<ValueId>) {
        at.block = self.outer;
        let scan = Scan {
            axis: self.axis,
            order: Order::Ascending,
            body: self.body,
            carries: self.carries,
            slices: self.slices,
            stacked: self.stacked,
        };
        at.graph.add_scan(self.outer, scan)
    }

    /// Where `from` is the token of this step.
    pub(super) fn own(&self, at: &mut TermLowering<'_>, from: AxisId) -> ValueId {
        let (index, step) = (at.add(Op::Index(from)), at.add(Op::Step(self.axis)));
        at.add(Op::Compare(Cmp::Eq, index, step))
    }
}

/// A factor's terms for each token of a block, with rows called as a vector's.
pub(super) fn factor(
    at: &mut TermLowering<'_>,
    axes: &Axes,
    terms: &Factors,
    shape: &Shape,
) -> Result<Factor, Failure> {
    let mut one = |term: Option<TermId>| term.map(|t| entrywise(at, axes, t, shape)).transpose();
    Ok(Factor { rows: one(terms.rows)?, cols: one(terms.cols)? })
}

/// A term that multiplies a weight, with rows called as a vector's.
fn entrywise(
    at: &mut TermLowering<'_>,
    axes: &Axes,
    term: TermId,
    shape: &Shape,
) -> Result<ValueId, Failure> {
    let own = at.terms.shape(term).clone();
    let value = at.lower(term)?;
    let value = at.fit_value(value, &own, shape)?;
    Ok(at.rename(value, axes.row, axes.rows))
}

/// The products of keeps between the tokens of a block, and since its start. `keep` is over `from`.
pub(super) fn running(at: &mut TermLowering<'_>, axes: &Axes, keep: Factor) -> Running {
    let (rows, cols) = (one_running(at, axes, keep.rows), one_running(at, axes, keep.cols));
    let kept = |pick: fn(&Products) -> [ValueId; 2]| {
        let [r, c] = [&rows, &cols].map(|p| p.as_ref().map(pick));
        Kept {
            parts: Factor { rows: r.map(|x| x[0]), cols: c.map(|x| x[0]) },
            whole: Factor { rows: r.map(|x| x[1]), cols: c.map(|x| x[1]) },
        }
    };
    Running { after: kept(|p| [p.after, p.start_after]), before: kept(|p| [p.before, p.start_before]) }
}

/// Products of one keep, stacked over `to`.
struct Products {
    after: ValueId,
    before: ValueId,
    start_after: ValueId,
    start_before: ValueId,
}

/// Running products: nothing from before (i, t] enters that of i and t, and nothing is divided by.
fn one_running(at: &mut TermLowering<'_>, axes: &Axes, keep: Option<ValueId>) -> Option<Products> {
    let keep = at.spread(keep?, &[axes.from]);
    let along: Vec<AxisId> = at.graph.value(keep).axes.iter().copied().filter(|a| *a != axes.from).collect();
    let keep = at.rename(keep, axes.from, axes.to);
    let (zero, one) = (at.number(0.0), at.number(1.0));
    let pairs: Vec<AxisId> = std::iter::once(axes.from).chain(along.iter().copied()).collect();
    let (zeros, ones) = (at.spread(zero, &pairs), at.spread(one, &along));
    let mut steps = Steps::begin(at, axes.to);
    let now = steps.slice(at, keep);
    let (before, pair) = steps.carry(at, zeros, "kept");
    let (start_before, start) = steps.carry(at, ones, "kept since the start");
    let product = at.fn2(Fn2::Mul, before, now);
    let (own, one) = (steps.own(at, axes.from), at.number(1.0));
    let after = at.add(Op::Select(own, one, product));
    let start_after = at.fn2(Fn2::Mul, start_before, now);
    steps.becomes(pair, after);
    steps.becomes(start, start_after);
    for value in [after, before, start_after, start_before] {
        steps.stack(value);
    }
    let (_, stacks) = steps.end(at);
    let [after, before, start_after, start_before] = [stacks[0], stacks[1], stacks[2], stacks[3]];
    Some(Products { after, before, start_after, start_before })
}

/// A weight that follows a state: `S' = decay S + gain g`, `W' = keep W + through S' + past g`. Every factor is over
/// `from`; a gain of None is in the outer products of g already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Momentum {
    pub keep: Option<ValueId>,
    pub decay: ValueId,
    pub gain: Option<ValueId>,
    pub through: ValueId,
    pub past: Option<ValueId>,
}

/// What momentum makes of the outer products and of both wholes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    /// Of g_i in W, over `to` and `from`.
    pub parts: ValueId,
    /// Of W and S before the block in W, over `to`.
    pub wholes: [ValueId; 2],
}

/// [`Carried`] after and before each token's step, and at the end of the block what S is made of: of g_i, over
/// `from`, and of S before the block.
pub(super) struct WithMomentum {
    pub after: Carried,
    pub before: Carried,
    pub state: [ValueId; 2],
}

/// The two recurrences followed by numbers in place of matrices.
pub(super) fn momentum(at: &mut TermLowering<'_>, axes: &Axes, motion: Momentum) -> WithMomentum {
    let values: Vec<ValueId> =
        [motion.keep, Some(motion.decay), motion.gain, Some(motion.through), motion.past]
            .into_iter()
            .flatten()
            .collect();
    let mut along: Vec<AxisId> = Vec::new();
    for axis in values.iter().flat_map(|v| at.graph.value(*v).axes.clone()) {
        if axis != axes.from && !along.contains(&axis) {
            along.push(axis);
        }
    }
    let pairs: Vec<AxisId> = std::iter::once(axes.from).chain(along.iter().copied()).collect();
    let (zero, one) = (at.number(0.0), at.number(1.0));
    let (no_pairs, none, all) = (at.spread(zero, &pairs), at.spread(zero, &along), at.spread(one, &along));
    let seen = |at: &mut TermLowering<'_>, v: ValueId| {
        let v = at.spread(v, &[axes.from]);
        at.rename(v, axes.from, axes.to)
    };
    let over_to = |at: &mut TermLowering<'_>, v: Option<ValueId>| v.map(|v| seen(at, v));
    let [keep, gain, past] = [motion.keep, motion.gain, motion.past].map(|v| over_to(at, v));
    let (decay, through) = (seen(at, motion.decay), seen(at, motion.through));

    let mut steps = Steps::begin(at, axes.to);
    let [keep, gain, past] = [keep, gain, past].map(|v| v.map(|v| steps.slice(at, v)));
    let (decay, through) = (steps.slice(at, decay), steps.slice(at, through));
    let (s, s_at) = steps.carry(at, no_pairs, "g in S");
    let (c, c_at) = steps.carry(at, no_pairs, "g in W");
    let (s_of_s, ss_at) = steps.carry(at, all, "S in S");
    let (s_in_w, sw_at) = steps.carry(at, none, "S in W");
    let (w_in_w, ww_at) = steps.carry(at, all, "W in W");
    let own = steps.own(at, axes.from);
    let (zero, one) = (at.number(0.0), at.number(1.0));
    let only_own = |at: &mut TermLowering<'_>, v: Option<ValueId>| {
        let value = v.unwrap_or(one);
        let value = at.spread(value, &along);
        at.add(Op::Select(own, value, zero))
    };
    let fresh = only_own(at, gain);
    let added = past.map(|p| only_own(at, Some(p)));
    let kept = at.fn2(Fn2::Mul, decay, s);
    let s_after = at.fn2(Fn2::Add, kept, fresh);
    let s_of_s_after = at.fn2(Fn2::Mul, decay, s_of_s);
    let moved = |at: &mut TermLowering<'_>, old: ValueId, state: ValueId, more: Option<ValueId>| {
        let kept = keep.map_or(old, |k| at.fn2(Fn2::Mul, k, old));
        let step = at.fn2(Fn2::Mul, through, state);
        let sum = at.fn2(Fn2::Add, kept, step);
        more.map_or(sum, |m| at.fn2(Fn2::Add, sum, m))
    };
    let c_after = moved(at, c, s_after, added);
    let s_in_w_after = moved(at, s_in_w, s_of_s_after, None);
    let w_in_w_after = keep.map_or(w_in_w, |k| at.fn2(Fn2::Mul, k, w_in_w));
    let afters = [
        (s_at, s_after),
        (c_at, c_after),
        (ss_at, s_of_s_after),
        (sw_at, s_in_w_after),
        (ww_at, w_in_w_after),
    ];
    for (at, value) in afters {
        steps.becomes(at, value);
    }
    for value in [c_after, w_in_w_after, s_in_w_after, c, w_in_w, s_in_w] {
        steps.stack(value);
    }
    let (finals, stacks) = steps.end(at);
    let carried = |i: usize| Carried { parts: stacks[i], wholes: [stacks[i + 1], stacks[i + 2]] };
    WithMomentum { after: carried(0), before: carried(3), state: [finals[s_at], finals[ss_at]] }
}
