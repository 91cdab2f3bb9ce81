//! Chunks with frozen gradients: all gradients at the chunk's start, weights as sums of outer products.

use super::block::{Momentum, Running, Steps, WithMomentum, momentum, running};
use super::exact::{end, last_of};
use super::factors::Factors;
use super::low_rank::{Axes, Factor, LowRank, Part, times};
use super::vector::{self, Vector};
use super::{Body, Build};
use crate::ir::{AxisId, BlockId, Op, ValueId};
use crate::lower::Failure;
use crate::lower::term::TermLowering;
use miras_base::scalar::{Cmp, Fn2};
use miras_rule::Retained;
use miras_schedule::Frozen;
use miras_term::{Shape, VarId};
use std::collections::HashMap;
use std::rc::Rc;

/// Outer products over `from`.
type Products = Vec<(ValueId, ValueId)>;

/// How a weight moves with its outer products. Factors are over `from`.
#[derive(Clone, Copy)]
enum Motion {
    /// Kept by a factor.
    Plain(Factor),
    /// Follows a state of the algorithm, of this number.
    Following(usize, Momentum),
    /// No matrix: its recurrence is followed itself.
    Vector(Vector),
}

/// What becomes of a weight in a part of a chunk.
enum Moved {
    Plain(Running),
    Following(usize, WithMomentum),
    /// What is carried after the part: the weight, and a state of this number.
    Vector(ValueId, Option<(usize, ValueId)>),
}

/// What a part of a chunk works on.
struct Parts {
    vars: HashMap<VarId, ValueId>,
    products: Vec<Products>,
    motions: Vec<Motion>,
    scales: Vec<Option<ValueId>>,
    /// Carried values of weights, then states.
    before: Vec<ValueId>,
}

impl Build<'_> {
    pub(super) fn frozen(
        &mut self,
        body: &Body,
        frozen: &Frozen,
    ) -> Result<(ValueId, Vec<ValueId>), Failure> {
        let (weights, scales) = self.starts(body)?;
        let (mut products, mut motions) = (Vec::<Products>::new(), Vec::new());
        for (j, body) in self.each_step(body).iter().enumerate() {
            let mut all = self.gradients_at(body, &weights)?;
            let gradients = if all.is_empty() { Vec::new() } else { all.swap_remove(0) };
            for (l, given) in gradients.into_iter().enumerate() {
                let (p, m) = match self.rule.layer.memory.weights[l].shape.rank() {
                    2 => self.motion(body, l, given.products, frozen.states[l])?,
                    _ => {
                        let vector = self.vector(body, l, given.rest, frozen.states[l])?;
                        (Products::new(), Motion::Vector(vector))
                    }
                };
                match motions.get_mut(l) {
                    None => {
                        products.push(p);
                        motions.push(m);
                    }
                    // The steps of a token differ in what they write alone.
                    Some(first) => {
                        products[l].extend(p);
                        if let (Motion::Vector(first), Motion::Vector(more)) = (first, m) {
                            first.written = self.sum(body.block, first.written, more.written);
                        }
                    }
                }
            }
            debug_assert!(j == 0 || self.step.states.is_empty(), "states move with each step");
        }
        let parts = Parts { vars: body.vars.clone(), products, motions, scales, before: body.before.clone() };
        let (answers, after) = match self.part {
            None => self.part(body.block, &parts)?,
            Some(axis) => self.each_part(body.block, axis, &parts)?,
        };
        self.close(body, answers, after)
    }

    /// The outer products of a weight's step, and how they move the weight.
    fn motion(
        &mut self,
        body: &Body,
        l: usize,
        mut products: Products,
        state: Option<usize>,
    ) -> Result<(Products, Motion), Failure> {
        let axes = self.weight_axes(l)?;
        let (rule, step) = (self.rule, self.step);
        let shape = &rule.layer.memory.weights[l].shape;
        let linear = linear(&rule.retention[l])?;
        let gradient = step.points.first().and_then(|p| p.gradients.get(l)).copied();
        let gradient = gradient.ok_or_else(|| Failure::bug("a step without a gradient"))?;
        let direct = rule.terms().uses(step.direction[l], gradient);
        let mut at = self.at(body.block, body.vars.clone());
        let mut factors = Factors { at: &mut at, axes: &axes, shape };
        let keep = factors.term(linear.keep)?;
        // Before several steps retention acts with u = 0.
        let several = step.repeats > 1;
        let write = linear.write.filter(|_| !several).map(|w| factors.term(w)).transpose()?;
        let past = if direct { factors.of(step.direction[l], gradient)? } else { None };
        let Some(s) = state else {
            for factor in [past, write].into_iter().flatten() {
                factors.fold(&mut products, factor);
            }
            return Ok((products, Motion::Plain(as_factor(factors.at, &axes, keep))));
        };
        let state = &step.states[s];
        let decay = factors.of(state.next, state.old)?.unwrap_or_else(|| factors.at.number(1.0));
        let through = factors.of(step.direction[l], state.new)?;
        let gain = if rule.terms().uses(state.next, gradient) {
            factors.of(state.next, gradient)?
        } else {
            Some(factors.at.number(0.0))
        };
        let one = factors.at.number(1.0);
        let gain = match gain {
            Some(gain) if !direct => {
                factors.fold(&mut products, gain);
                None
            }
            gain => gain,
        };
        let past = direct.then(|| past.unwrap_or(one)).map(|p| times(factors.at, p, write));
        let through = times(factors.at, through.unwrap_or(one), write);
        let momentum = Momentum { keep: Some(keep), decay, gain, through, past };
        Ok((products, Motion::Following(s, momentum)))
    }

    /// The body as each step of a token sees it: with one entry of what is repeated.
    pub(super) fn each_step(&mut self, body: &Body) -> Vec<Body> {
        let Some(axis) = self.repeat else { return vec![body.clone()] };
        let mut of_step = |j| {
            let mut own = body.clone();
            for (var, all) in &body.repeated {
                own.vars.insert(*var, self.graph.add(body.block, Op::At(*all, axis, j)));
            }
            own
        };
        (0..self.step.repeats as usize).map(&mut of_step).collect()
    }

    fn sum(&mut self, block: BlockId, a: ValueId, b: ValueId) -> ValueId {
        self.at(block, HashMap::new()).fn2(Fn2::Add, a, b)
    }

    /// One part after the other.
    fn each_part(
        &mut self,
        block: BlockId,
        axis: AxisId,
        whole: &Parts,
    ) -> Result<(ValueId, Vec<ValueId>), Failure> {
        let mut at = self.at(block, HashMap::new());
        let mut steps = Steps::begin(&mut at, axis);
        let inside = at.block;
        let mut slice = |v: ValueId| steps.slice(&mut at, v);
        let vars = whole.vars.iter().map(|(var, value)| (*var, slice(*value))).collect();
        let products = (whole.products.iter())
            .map(|of_weight| of_weight.iter().map(|(a, b)| (slice(*a), slice(*b))).collect())
            .collect();
        let motions = whole.motions.iter().map(|m| m.map(&mut slice)).collect();
        let (mut before, mut carries) = (Vec::new(), Vec::new());
        for first in &whole.before {
            let (value, carry) = steps.carry(&mut at, *first, "at the start of a part");
            before.push(value);
            carries.push(carry);
        }
        let parts = Parts { vars, products, motions, scales: whole.scales.clone(), before };
        let (answers, after) = self.part(inside, &parts)?;
        carries.into_iter().zip(after).for_each(|(carry, value)| steps.becomes(carry, value));
        steps.stack(answers);
        let mut at = self.at(inside, HashMap::new());
        let (finals, stacks) = steps.end(&mut at);
        Ok((stacks[0], finals))
    }

    /// The answers of a part's tokens, and what is carried after it.
    fn part(&mut self, block: BlockId, parts: &Parts) -> Result<(ValueId, Vec<ValueId>), Failure> {
        let read_before = self.rule.layer.read_before;
        let (mut lows, mut kept) = (HashMap::new(), Vec::new());
        let (weights, mut vars) = (parts.products.len(), parts.vars.clone());
        for (l, products) in parts.products.iter().enumerate() {
            let var = self.rule.layer.memory.weights[l].var;
            let (weight, scale) = (parts.before[l], parts.scales[l]);
            if let Motion::Vector(motion) = &parts.motions[l] {
                let state = motion.state.map(|s| parts.before[weights + s.number]);
                let tokens = self.from;
                let mut at = self.at(block, HashMap::new());
                let made = vector::follow(&mut at, tokens, motion, weight, state);
                let seen = if read_before { made.before } else { made.after };
                vars.insert(var, times(&mut at, seen, scale));
                kept.push(Moved::Vector(made.weight, motion.state.map(|s| s.number).zip(made.state)));
                continue;
            }
            let axes = self.weight_axes(l)?;
            let mut at = self.at(block, HashMap::new());
            let mut low = LowRank { axes, wholes: Vec::new(), parts: Vec::new(), own: !read_before, scale };
            match parts.motions[l] {
                Motion::Plain(keep) => {
                    let made = running(&mut at, &axes, keep);
                    let seen = if read_before { made.before } else { made.after };
                    low.wholes.push((weight, seen.whole));
                    low.parts.extend(over(products, seen.parts));
                    kept.push(Moved::Plain(made));
                }
                Motion::Following(s, motion) => {
                    let state = parts.before[weights + s];
                    let made = momentum(&mut at, &axes, motion);
                    let seen = if read_before { made.before } else { made.after };
                    for (matrix, value) in [weight, state].into_iter().zip(seen.wholes) {
                        low.wholes.push((matrix, as_factor(&at, &axes, value)));
                    }
                    low.parts.extend(over(products, as_factor(&at, &axes, seen.parts)));
                    kept.push(Moved::Following(s, made));
                }
                Motion::Vector(_) => {}
            }
            lows.insert(var, Rc::new(low));
        }
        // Reads come first: what they read can then be moved on in place.
        let answers = self.read(block, &vars, lows)?;
        let mut after = parts.before.clone();
        for (l, moved) in kept.into_iter().enumerate() {
            if let Moved::Vector(weight, state) = moved {
                after[l] = weight;
                if let Some((s, state)) = state {
                    after[weights + s] = state;
                }
                continue;
            }
            let axes = self.weight_axes(l)?;
            let mut at = self.at(block, HashMap::new());
            let (weight, products) = (parts.before[l], &parts.products[l]);
            match moved {
                Moved::Plain(made) => {
                    let whole = end(&mut at, &axes, made.after.whole);
                    let factor = end(&mut at, &axes, made.after.parts);
                    let whole = axes.kept(&mut at, weight, whole);
                    after[l] = summed(&mut at, &axes, whole, over(products, factor));
                }
                Moved::Following(s, made) => {
                    let state = parts.before[weights + s];
                    let mut last = |value: ValueId| {
                        let value = last_of(&mut at, axes.to, value);
                        as_factor(&at, &axes, value)
                    };
                    let [of_weight, of_state] = made.after.wholes.map(&mut last);
                    let of_parts = last(made.after.parts);
                    let own = axes.kept(&mut at, weight, of_weight);
                    let from_state = axes.kept(&mut at, state, of_state);
                    let whole = at.fn2(Fn2::Add, own, from_state);
                    after[l] = summed(&mut at, &axes, whole, over(products, of_parts));
                    let [of_parts, of_state] = made.state.map(|v| as_factor(&at, &axes, v));
                    let whole = axes.kept(&mut at, state, of_state);
                    after[weights + s] = summed(&mut at, &axes, whole, over(products, of_parts));
                }
                Moved::Vector(..) => {}
            }
        }
        Ok((answers, after))
    }

    /// Ends a chunk: the retention's last maps, and the token that completes the chunk reads what they give.
    fn close(
        &mut self,
        body: &Body,
        answers: ValueId,
        mut after: Vec<ValueId>,
    ) -> Result<(ValueId, Vec<ValueId>), Failure> {
        let retention = &self.rule.retention;
        if retention.iter().all(|r| r.finish.is_none() && r.value.is_none()) {
            return Ok((answers, after));
        }
        let vars = self.vars_of_token(body, true);
        let mut weights = Vec::new();
        for (l, retained) in retention.iter().enumerate() {
            if let Some(finish) = retained.finish {
                after[l] = self.mapped(body.block, &vars, l, after[l], finish)?;
            }
            weights.push(match retained.value {
                Some(value) => self.mapped(body.block, &vars, l, after[l], value)?,
                None => after[l],
            });
        }
        if self.rule.layer.read_before {
            return Ok((answers, after));
        }
        let memory = &self.rule.layer.memory;
        let (read, query) = (memory.read, vars.get(&self.rule.layer.query).copied());
        let (Some(read), Some(query)) = (read, query) else {
            return Err(Failure::bug("a memory without a read"));
        };
        let axes: Vec<AxisId> = [self.from].into_iter().chain(self.part).collect();
        let own = self.rule.terms().shape(read).clone();
        let mut at = self.at(body.block, vars);
        at.bind(memory.argument, query);
        for (weight, value) in memory.weights.iter().zip(weights) {
            at.bind(weight.var, value);
        }
        let last = at.lower(read)?;
        let last = at.fit_value(last, &own, &Shape::vector(miras_base::Dim::dv()))?;
        let mut seen = last;
        for axis in axes {
            let crate::ir::Size::Fixed(n) = at.graph.axis(axis).size else { continue };
            let (index, end) = (at.add(Op::Index(axis)), at.number((n - 1) as f64));
            let ends = at.add(Op::Compare(Cmp::Eq, index, end));
            seen = at.add(Op::Select(ends, seen, answers));
        }
        Ok((seen, after))
    }
}

impl Motion {
    fn map(&self, f: &mut impl FnMut(ValueId) -> ValueId) -> Motion {
        match self {
            Motion::Plain(keep) => Motion::Plain(keep.map(f)),
            Motion::Following(s, m) => Motion::Following(
                *s,
                Momentum {
                    keep: m.keep.map(&mut *f),
                    decay: f(m.decay),
                    gain: m.gain.map(&mut *f),
                    through: f(m.through),
                    past: m.past.map(&mut *f),
                },
            ),
            Motion::Vector(v) => Motion::Vector(v.map(f)),
        }
    }
}

/// Outer products with a factor.
fn over(products: &Products, factor: Factor) -> impl Iterator<Item = Part> + '_ {
    products.iter().map(move |(left, right)| Part { left: *left, right: *right, factor })
}

/// A matrix and the outer products that were added to it.
fn summed(
    at: &mut TermLowering<'_>,
    axes: &Axes,
    whole: ValueId,
    parts: impl Iterator<Item = Part>,
) -> ValueId {
    let mut sum = whole;
    for part in parts {
        let more = axes.gathered(at, part.left, part.right, part.factor);
        sum = at.fn2(Fn2::Add, sum, more);
    }
    sum
}

pub(super) fn linear(retained: &Retained) -> Result<&miras_rule::Linear, Failure> {
    retained
        .linear
        .as_ref()
        .ok_or_else(|| Failure::bug("a sum of outer products without a linear recurrence"))
}

/// A value as the factor that its axes make it.
fn as_factor(at: &TermLowering<'_>, axes: &Axes, value: ValueId) -> Factor {
    if at.has(value, axes.cols) && !at.has(value, axes.rows) {
        return Factor { rows: None, cols: Some(value) };
    }
    Factor { rows: Some(value), cols: None }
}
