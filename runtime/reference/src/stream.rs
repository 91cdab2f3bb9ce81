//! One head of one stream through time: forwards, and back again from remembered carries.

use crate::array::Array;
use crate::head::Head;
use crate::inputs::{Desk, Gradients, Source};
use crate::interpret::Env;
use crate::memory::{Carry, Memory};
use crate::ops::Ops;
use crate::plan::Weights;
use crate::tape::Id;
use crate::trouble::{Made, Trouble};
use std::ops::Range;
use std::rc::Rc;

/// Tokens on one tape where no chunk says how many.
const STRETCH: usize = 16;

/// A stream of a memory with weights.
pub(crate) struct Stream<'a> {
    pub head: &'a Head<'a>,
    pub weights: &'a Weights<'a>,
    pub differentiable: bool,
}

/// What comes out.
pub(crate) struct Flow {
    /// o_t of each token.
    pub outputs: Vec<Rc<Array>>,
    /// The carry after the last token.
    pub last: Carry<Rc<Array>>,
    /// The carry before each piece of the stream.
    checkpoints: Vec<Carry<Rc<Array>>>,
}

/// A piece of the stream on a tape.
struct Piece<'a> {
    desk: Desk<'a>,
    outputs: Vec<Id>,
    before: Carry<Id>,
    after: Carry<Id>,
}

impl Stream<'_> {
    pub fn forward(&self) -> Made<Flow> {
        let start = self.start()?;
        let mut carry = settle(&start.desk, &start.after)?;
        let (mut outputs, mut checkpoints) = (Vec::new(), Vec::new());
        for tokens in self.pieces() {
            let piece = self.piece(&carry, tokens)?;
            if self.differentiable {
                checkpoints.push(carry);
            }
            carry = settle(&piece.desk, &piece.after)?;
            outputs.extend(piece.outputs.iter().map(|o| piece.desk.tape.array(o)));
        }
        Ok(Flow { outputs, last: carry, checkpoints })
    }

    /// Adds to `gradients` what the cotangents of the outputs and of the last carry say. Each piece is
    /// performed once more from its checkpoint.
    pub fn backward(
        &self,
        flow: &Flow,
        outputs: &[Rc<Array>],
        last: Carry<Rc<Array>>,
        gradients: &mut Gradients,
    ) -> Made<()> {
        let first = self.head.span().first;
        let mut cotangent = last;
        for (tokens, carry) in self.pieces().into_iter().zip(&flow.checkpoints).rev() {
            let piece = self.piece(carry, tokens.clone())?;
            let mut seeds = seeds(&piece.after, &cotangent);
            let given = &outputs[tokens.start - first..tokens.end - first];
            seeds.extend(piece.outputs.iter().copied().zip(given.iter().cloned()));
            let before: Vec<Id> = piece.before.iter().copied().collect();
            let mut found = piece.desk.backward(&seeds, &before, gradients)?.into_iter();
            cotangent = carry.map(|array| {
                let zero = || Rc::new(Array::filled(&array.shape, 0.0));
                Made::Ok(found.next().flatten().unwrap_or_else(zero))
            })?;
        }
        let start = self.start()?;
        start.desk.backward(&seeds(&start.after, &cotangent), &[], gradients)?;
        Ok(())
    }

    /// The ranges of tokens that are performed on one tape each: chunks, or stretches of the recurrence.
    fn pieces(&self) -> Vec<Range<usize>> {
        let span = self.head.span();
        let mut pieces = Vec::new();
        let mut at = span.first;
        while at < span.last {
            let left = match self.weights.frozen {
                Some(chunk) => chunk - self.position(at) % chunk,
                None => STRETCH as u64,
            };
            let end = usize::try_from(left).map_or(span.last, |n| at.saturating_add(n).min(span.last));
            pieces.push(at..end);
            at = end;
        }
        pieces
    }

    /// Tokens of the stream before this one.
    fn position(&self, token: usize) -> u64 {
        let span = self.head.span();
        span.position + (token - span.first) as u64
    }

    fn piece(&self, carry: &Carry<Rc<Array>>, tokens: Range<usize>) -> Made<Piece<'_>> {
        let mut desk = Desk::new(&self.head.plan.inputs, self.differentiable);
        let before = carry.map(|array| desk.tape.variable(array.clone()))?;
        let memory = self.memory();
        let (outputs, after) = match self.weights.frozen {
            Some(chunk) => self.frozen(&memory, &mut desk, &before, tokens, chunk)?,
            None => self.recurrent(&memory, &mut desk, &before, tokens)?,
        };
        Ok(Piece { desk, outputs, before, after })
    }

    fn memory(&self) -> Memory<'_> {
        Memory { plan: self.head.plan, weights: self.weights, scope: &self.head.scope }
    }
}

/// Where the stream starts.
impl Stream<'_> {
    fn start(&self) -> Made<Piece<'_>> {
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

    fn start_anchor(&self, desk: &mut Desk<'_>, memory: &[Id]) -> Made<Vec<Id>> {
        let at = |(n, theta): (usize, &Id)| match self.head.plan.inputs.has(Source::Anchor(n)) {
            true => self.head.state(desk, Source::Anchor(n), true, &self.weights.weight_sizes[n]),
            false => Ok(*theta),
        };
        memory.iter().enumerate().map(at).collect()
    }

    fn start_threshold(&self, desk: &mut Desk<'_>) -> Made<Vec<Id>> {
        let mut thresholds = Vec::new();
        for (n, shape) in self.weights.weight_sizes.iter().enumerate() {
            thresholds.push(if self.head.plan.inputs.has(Source::Threshold(n)) {
                self.head.state(desk, Source::Threshold(n), true, shape)?
            } else {
                desk.tape.constant(Rc::new(Array::filled(shape, 0.0)))
            });
        }
        Ok(thresholds)
    }
}

/// Through tokens.
impl Stream<'_> {
    fn recurrent(
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

    /// Tokens of one chunk, gradients at its starting weights.
    fn frozen(
        &self,
        memory: &Memory<'_>,
        desk: &mut Desk<'_>,
        before: &Carry<Id>,
        tokens: Range<usize>,
        chunk: u64,
    ) -> Made<(Vec<Id>, Carry<Id>)> {
        let (mut carry, mut outputs) = (before.clone(), Vec::new());
        self.refuse_lost_parameters(tokens.start, chunk)?;
        let env = self.head.token_env(desk, tokens.start, 0)?;
        let frozen = memory.freeze(desk, &env, &carry.anchor)?;
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
            let full = (self.position(token) + 1) % chunk == 0;
            let mut new = None;
            if full {
                carry.memory = memory.close(desk, &env, &carry)?;
                carry.anchor = carry.memory.clone();
                carry.threshold = self.no_threshold(desk);
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

    fn no_threshold(&self, desk: &mut Desk<'_>) -> Vec<Id> {
        let zero = |shape: &Vec<usize>| desk.tape.constant(Rc::new(Array::filled(shape, 0.0)));
        self.weights.weight_sizes.iter().map(zero).collect()
    }

    /// A state carries theta only (SPEC section 5). Inside a chunk that is not enough where W_0 depends on
    /// the parameters of the chunk's first token, which an earlier run has seen.
    fn refuse_lost_parameters(&self, token: usize, chunk: u64) -> Made<()> {
        let layer = self.head.plan.layer;
        let per_token =
            |param: &miras_host::BoundParam| matches!(param.layout, miras_host::Layout::PerToken { .. });
        let lost = |maps: &crate::plan::Maps<'_>| {
            let scale = match &maps.rule.inside {
                miras_rule::Inside::FrozenScale(scale) => Some(*scale),
                miras_rule::Inside::Identity
                | miras_rule::Inside::Mapped
                | miras_rule::Inside::Threshold(_)
                | miras_rule::Inside::ProjectAtEnd
                | miras_rule::Inside::TokenByToken => None,
            };
            let used: Vec<_> = maps.rule.value.into_iter().chain(scale).collect();
            let vars = layer.terms.vars_of(&used);
            self.head.plan.bound.params.iter().any(|p| per_token(p) && vars.contains(&p.var))
        };
        let inside = self.position(token) % chunk != 0;
        if inside && self.weights.maps.iter().any(lost) {
            return Err(Trouble::limit(
                "this stream stopped inside a chunk, and its starting weights depend on a gate of the chunk's \
                 first token, which the state does not hold; stop at a multiple of the chunk length instead",
            ));
        }
        Ok(())
    }

    fn repeats(&self) -> usize {
        self.head.plan.bound.repeats
    }

    fn reads_before(&self) -> bool {
        self.head.plan.layer.read_before
    }
}

fn settle(desk: &Desk<'_>, carry: &Carry<Id>) -> Made<Carry<Rc<Array>>> {
    carry.map(|id| Ok(desk.tape.array(id)))
}

fn seeds(carry: &Carry<Id>, cotangent: &Carry<Rc<Array>>) -> Vec<(Id, Rc<Array>)> {
    carry.iter().copied().zip(cotangent.iter().cloned()).collect()
}
