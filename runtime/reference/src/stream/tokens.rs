//! Through tokens: the recurrence, or a chunk with frozen gradients.

use super::Stream;
use crate::array::Array;
use crate::inputs::Desk;
use crate::interpret::Env;
use crate::memory::{Carry, Memory};
use crate::ops::Ops;
use crate::tape::Id;
use crate::trouble::Made;
use miras_host::Remembered;
use std::ops::Range;
use std::rc::Rc;

impl Stream<'_> {
    /// The recurrence itself, as rule::UpdateRule states it.
    pub(super) fn recurrent(
        &self,
        memory: &Memory<'_>,
        desk: &mut Desk<'_>,
        before: &Carry<Id>,
        tokens: Range<usize>,
    ) -> Made<(Vec<Id>, Carry<Id>)> {
        let (mut carry, mut outputs) = (before.clone(), Vec::new());
        for token in tokens {
            let env = self.head.token_env(desk, token, 0)?;
            let old = memory.values(desk, &env, &carry.memory)?;
            if self.repeats() == 1 {
                let (updates, states) =
                    memory.update(desk, &env, [&old, &carry.memory, &carry.states], None)?;
                let after = memory.advance(desk, &env, &carry.memory, Some(&updates))?;
                carry.memory = memory.finish(desk, &env, &after)?;
                carry.states = states;
            } else {
                let after = memory.advance(desk, &env, &carry.memory, None)?;
                carry.memory = memory.finish(desk, &env, &after)?;
                self.steps(desk, &mut carry, token, |desk, env, carry| {
                    let weights = memory.values(desk, env, &carry.memory)?;
                    memory.update(desk, env, [&weights, &carry.memory, &carry.states], None)
                })?;
            }
            let seen = if self.reads_before() { old } else { memory.values(desk, &env, &carry.memory)? };
            outputs.push(memory.read(desk, &env, &seen)?);
        }
        Ok((outputs, carry))
    }

    /// Tokens of one chunk, gradients at its starting weights (docs/mathematics.md).
    pub(super) fn frozen(
        &self,
        memory: &Memory<'_>,
        desk: &mut Desk<'_>,
        before: &Carry<Id>,
        tokens: Range<usize>,
        chunk: u64,
    ) -> Made<(Vec<Id>, Carry<Id>)> {
        let (mut carry, mut outputs) = (before.clone(), Vec::new());
        let env = self.head.token_env(desk, tokens.start, 0)?;
        let opens = self.position(tokens.start).is_multiple_of(chunk);
        let frozen = match !opens && self.head.plan.rule.remembers_start() {
            true => memory.unfreeze(&carry),
            false => memory.freeze(desk, &env, &carry.anchor)?,
        };
        if self.head.plan.rule.remembers_start() {
            (carry.start, carry.scale) = (frozen.weights.clone(), memory.scales(desk, &frozen));
        }
        let at = Some(frozen.weights.as_slice());
        for token in tokens {
            let env = self.head.token_env(desk, token, 0)?;
            let old = memory.inside(desk, &env, &carry, &frozen)?;
            if self.repeats() == 1 {
                let (updates, states) =
                    memory.update(desk, &env, [&old, &carry.memory, &carry.states], at)?;
                let after = memory.advance(desk, &env, &carry.memory, Some(&updates))?;
                carry.memory = memory.finish_inside(desk, &env, &after)?;
                carry.states = states;
                carry.threshold = memory.raise_threshold(desk, &env, &carry.threshold)?;
            } else {
                let after = memory.advance(desk, &env, &carry.memory, None)?;
                carry.memory = memory.finish_inside(desk, &env, &after)?;
                carry.threshold = memory.raise_threshold(desk, &env, &carry.threshold)?;
                self.steps(desk, &mut carry, token, |desk, env, carry| {
                    let weights = memory.inside(desk, env, carry, &frozen)?;
                    memory.update(desk, env, [&weights, &carry.memory, &carry.states], at)
                })?;
            }
            let full = (self.position(token) + 1).is_multiple_of(chunk);
            let mut new = None;
            if full {
                carry.memory = memory.close(desk, &env, &carry)?;
                carry.anchor = carry.memory.clone();
                carry.threshold = self.nothing(desk, Remembered::Threshold);
                carry.start = self.nothing(desk, Remembered::Start);
                carry.scale = self.nothing(desk, Remembered::Scale);
                new = Some(memory.values(desk, &env, &carry.memory)?);
            }
            let seen = match (self.reads_before(), new) {
                (true, _) => old,
                (false, Some(new)) => new,
                (false, None) => memory.inside(desk, &env, &carry, &frozen)?,
            };
            outputs.push(memory.read(desk, &env, &seen)?);
        }
        Ok((outputs, carry))
    }

    /// The repeated steps of a token: carried += u, one after another.
    fn steps(
        &self,
        desk: &mut Desk<'_>,
        carry: &mut Carry<Id>,
        token: usize,
        update: impl Fn(&mut Desk<'_>, &Env<Id>, &Carry<Id>) -> Made<(Vec<Id>, Vec<Id>)>,
    ) -> Made<()> {
        for step in 0..self.repeats() {
            let env = self.head.token_env(desk, token, step)?;
            let (updates, states) = update(desk, &env, carry)?;
            for (carried, u) in carry.memory.iter_mut().zip(&updates) {
                *carried = desk.tape.add(carried, u)?;
            }
            carry.states = states;
        }
        Ok(())
    }

    fn nothing(&self, desk: &mut Desk<'_>, part: Remembered) -> Vec<Id> {
        let zero = |shape: &Vec<usize>| desk.tape.constant(Rc::new(Array::filled(shape, 0.0)));
        self.weights.remembered_sizes(part).iter().map(zero).collect()
    }

    fn repeats(&self) -> usize {
        self.head.plan.bound.repeats
    }

    fn reads_before(&self) -> bool {
        self.head.plan.layer.read_before
    }
}
