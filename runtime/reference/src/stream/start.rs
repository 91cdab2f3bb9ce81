//! Where a stream starts: from initial weights, or from what an earlier run carried.

use super::{Piece, Stream};
use crate::array::Array;
use crate::inputs::{Desk, Source};
use crate::interpret::Env;
use crate::memory::Carry;
use crate::ops::Ops;
use crate::tape::Id;
use crate::trouble::{Made, Trouble};
use miras_host::Remembered;
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
        let mut after = Carry { memory, states, ..Carry::default() };
        if self.weights.frozen.is_some() {
            after.anchor = self.start_anchor(&mut desk, &after.memory)?;
            let mut all = |part| self.start_remembered(&mut desk, part);
            after.threshold = all(Remembered::Threshold)?;
            after.start = all(Remembered::Start)?;
            after.scale = all(Remembered::Scale)?;
        }
        Ok(Piece { desk, outputs: Vec::new(), before: Carry::default(), after })
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

    /// What else is remembered of each weight; 0 where nothing is.
    fn start_remembered(&self, desk: &mut Desk<'_>, part: Remembered) -> Made<Vec<Id>> {
        let mut values = Vec::new();
        for (n, shape) in self.weights.remembered_sizes(part).into_iter().enumerate() {
            let source = Source::Remembered(n, part);
            values.push(if self.continues_chunk() && self.head.plan.inputs.has(source) {
                self.head.state(desk, source, true, &shape)?
            } else {
                desk.tape.constant(Rc::new(Array::filled(&shape, 0.0)))
            });
        }
        Ok(values)
    }
}
