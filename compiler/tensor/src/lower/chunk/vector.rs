//! Weights that are no matrices, inside a block: there for every token. The recurrence of a vector takes a
//! multiplication for each entry and token; a sum over what was written would take one for each pair of tokens.

use super::block::Steps;
use super::factors::Factors;
use super::frozen::linear;
use super::low_rank::times;
use super::{Body, Build};
use crate::ir::{AxisId, ValueId};
use crate::lower::Failure;
use crate::lower::term::TermLowering;
use miras_base::scalar::Fn2;

/// How such a weight moves: `W' = keep W + through S' + written`. All are over `from`, or the same for every token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vector {
    pub keep: ValueId,
    pub written: ValueId,
    pub state: Option<State>,
}

/// The algorithm's state that it follows: `S' = decay S + gained`.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub number: usize,
    pub decay: ValueId,
    pub gained: ValueId,
    pub through: ValueId,
}

/// The weight before and after each token's step, stacked, and what is carried on.
pub(super) struct Followed {
    pub before: ValueId,
    pub after: ValueId,
    pub weight: ValueId,
    pub state: Option<ValueId>,
}

impl Vector {
    /// Each part changed.
    pub(super) fn map(&self, f: &mut impl FnMut(ValueId) -> ValueId) -> Vector {
        let state = self.state.map(|s| State {
            number: s.number,
            decay: f(s.decay),
            gained: f(s.gained),
            through: f(s.through),
        });
        Vector { keep: f(self.keep), written: f(self.written), state }
    }
}

impl Build<'_> {
    /// How a weight that is no matrix moves, with the gradients of all tokens.
    pub(super) fn vector(
        &mut self,
        body: &Body,
        l: usize,
        gradient: Option<ValueId>,
        state: Option<usize>,
    ) -> Result<Vector, Failure> {
        let (rule, step) = (self.rule, self.step);
        let shape = &rule.layer.memory.weights[l].shape;
        let linear = linear(&rule.retention[l])?;
        let var = step.points.first().and_then(|p| p.gradients.get(l)).copied();
        let var = var.ok_or_else(|| Failure::bug("a step without a gradient"))?;
        let several = step.repeats > 1;
        let axes = self.vector_axes(l)?;
        let mut at = self.at(body.block, body.vars.clone());
        let mut factors = Factors { at: &mut at, axes: &axes, shape };
        let zero = factors.at.number(0.0);
        let gradient = gradient.unwrap_or(zero);
        let keep = factors.term(linear.keep)?;
        // Before several steps retention acts with u = 0.
        let write = linear.write.filter(|_| !several).map(|w| factors.term(w)).transpose()?;
        let of = |factors: &mut Factors<'_, '_>, id, var, value: Option<ValueId>| {
            if !rule.terms().uses(id, var) {
                return Ok(zero);
            }
            let factor = factors.of(id, var)?;
            Ok::<_, Failure>(match (factor, value) {
                (factor, Some(value)) => times(factors.at, value, factor),
                (Some(factor), None) => factor,
                (None, None) => factors.at.number(1.0),
            })
        };
        let past = of(&mut factors, step.direction[l], var, Some(gradient))?;
        let written = times(factors.at, past, write);
        let state = match state {
            None => None,
            Some(s) => {
                let moving = &step.states[s];
                let decay = of(&mut factors, moving.next, moving.old, None)?;
                let gained = of(&mut factors, moving.next, var, Some(gradient))?;
                let through = of(&mut factors, step.direction[l], moving.new, None)?;
                let through = times(factors.at, through, write);
                Some(State { number: s, decay, gained, through })
            }
        };
        Ok(Vector { keep, written, state })
    }
}

/// Follows the recurrence over the tokens of an axis.
pub(super) fn follow(
    at: &mut TermLowering<'_>,
    tokens: AxisId,
    motion: &Vector,
    weight: ValueId,
    state: Option<ValueId>,
) -> Followed {
    let mut steps = Steps::begin(at, tokens);
    let (before, carry) = steps.carry(at, weight, "weight");
    let (keep, written) = (steps.slice(at, motion.keep), steps.slice(at, motion.written));
    let kept = at.fn2(Fn2::Mul, keep, before);
    let mut after = at.fn2(Fn2::Add, kept, written);
    let mut of_state = None;
    if let (Some(moving), Some(first)) = (motion.state, state) {
        let (old, carry) = steps.carry(at, first, "state");
        let [decay, gained, through] =
            [moving.decay, moving.gained, moving.through].map(|v| steps.slice(at, v));
        let kept = at.fn2(Fn2::Mul, decay, old);
        let new = at.fn2(Fn2::Add, kept, gained);
        let step = at.fn2(Fn2::Mul, through, new);
        after = at.fn2(Fn2::Add, after, step);
        steps.becomes(carry, new);
        of_state = Some(carry);
    }
    steps.becomes(carry, after);
    let (first, second) = (steps.stack(before), steps.stack(after));
    let (finals, stacks) = steps.end(at);
    Followed {
        before: stacks[first],
        after: stacks[second],
        weight: finals[carry],
        state: of_state.map(|s| finals[s]),
    }
}
