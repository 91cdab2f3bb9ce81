//! Where a stream starts: from initial weights, or from what an earlier run carried.

use super::{Piece, Stream};
use crate::array::Array;
use crate::inputs::{Desk, Source};
use crate::interpret::Env;
use crate::memory::Carry;
use crate::ops::Ops;
use crate::tape::Id;
use crate::trouble::{Made, Trouble};
use std::rc::Rc;

impl Stream<'_> {
    /// The carry before the first token, made from leaves.
    pub(super) fn start(&self) -> Made<Piece<'_>> {
        let mut desk = Desk::new(&self.head.plan.inputs, self.differentiable);
        let span = self.head.span();
        let env = if span.is_empty() {
            self.head.env(&mut desk)?
        } else {
            self.head.token_env(&mut desk, span.first, 0)?
        };
        let (initial, memory) = self.start_memory(&mut desk, &env)?;
        let states = self.start_states(&mut desk, &env, &initial)?;
        let (mut anchor, mut threshold) = (Vec::new(), Vec::new());
        if self.weights.frozen.is_some() {
            anchor = self.start_anchor(&mut desk, &memory)?;
            threshold = self.start_threshold(&mut desk)?;
        }
        let before =
            Carry { memory: Vec::new(), anchor: Vec::new(), threshold: Vec::new(), states: Vec::new() };
        let after = Carry { memory, anchor, threshold, states };
        Ok(Piece { desk, outputs: Vec::new(), before, after })
    }

    /// The initial weights as the algorithm's states may see them, and the carried values.
    fn start_memory(&self, desk: &mut Desk<'_>, env: &Env<Id>) -> Made<(Vec<Id>, Vec<Id>)> {
        let inputs = &self.head.plan.inputs;
        let (mut initial, mut carried) = (Vec::new(), Vec::new());
        for (n, maps) in self.weights.maps.iter().enumerate() {
            let shape = &self.weights.weight_sizes[n];
            if inputs.has(Source::Memory(n)) {
                let theta = self.head.state(desk, Source::Memory(n), true, shape)?;
                initial.push(theta);
                carried.push(theta);
                continue;
            }
            let weight = if inputs.has(Source::Initial(n)) {
                self.head.state(desk, Source::Initial(n), false, shape)?
            } else {
                let missing = || Trouble::bug("a weight has neither a value nor a start");
                let start = maps.declared_start.as_ref().ok_or_else(missing)?;
                let value = start.run_one(&self.head.scope, &mut desk.tape, env)?;
                desk.tape.spread(&value, shape)?
            };
            initial.push(weight);
            carried.push(match &maps.start {
                None => weight,
                Some(start) => {
                    let mut env = env.clone();
                    env.bind(self.head.plan.layer.memory.weights[n].var, weight);
                    let theta = start.run_one(&self.head.scope, &mut desk.tape, &env)?;
                    desk.tape.spread(&theta, shape)?
                }
            });
        }
        Ok((initial, carried))
    }

    fn start_states(&self, desk: &mut Desk<'_>, env: &Env<Id>, initial: &[Id]) -> Made<Vec<Id>> {
        let mut env = env.clone();
        env.bind_all(self.head.plan.layer.memory.weights.iter().map(|w| w.var), initial);
        let mut states = Vec::new();
        for (n, (programs, shape)) in self.weights.states.iter().zip(&self.weights.state_sizes).enumerate() {
            if self.head.plan.inputs.has(Source::State(n)) {
                states.push(self.head.state(desk, Source::State(n), true, shape)?);
                continue;
            }
            let value = programs.start.run_one(&self.head.scope, &mut desk.tape, &env)?;
            states.push(desk.tape.spread(&value, shape)?);
        }
        Ok(states)
    }

    /// Whether the run begins inside a chunk; at a boundary the chunk's start is what is carried, whatever the data
    /// gives for streams beside this one.
    fn continues_chunk(&self) -> bool {
        self.weights.frozen.is_some_and(|chunk| !self.head.span().position.is_multiple_of(chunk))
    }

    fn start_anchor(&self, desk: &mut Desk<'_>, memory: &[Id]) -> Made<Vec<Id>> {
        let at = |(n, theta): (usize, &Id)| match self.continues_chunk()
            && self.head.plan.inputs.has(Source::Anchor(n))
        {
            true => self.head.state(desk, Source::Anchor(n), true, &self.weights.weight_sizes[n]),
            false => Ok(*theta),
        };
        memory.iter().enumerate().map(at).collect()
    }

    fn start_threshold(&self, desk: &mut Desk<'_>) -> Made<Vec<Id>> {
        let mut thresholds = Vec::new();
        for (n, shape) in self.weights.weight_sizes.iter().enumerate() {
            thresholds.push(if self.continues_chunk() && self.head.plan.inputs.has(Source::Threshold(n)) {
                self.head.state(desk, Source::Threshold(n), true, shape)?
            } else {
                desk.tape.constant(Rc::new(Array::filled(shape, 0.0)))
            });
        }
        Ok(thresholds)
    }
}
