//! Weights that are no matrices, inside a block: there for every token. The recurrence of a vector takes a
//! multiplication for each entry and token; a sum over what was written would take one for each pair of tokens.

use super::block::Steps;
use crate::ir::{AxisId, ValueId};
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
