//! What one step does to a memory with weights, from the definition.

mod frozen;

use crate::array::Array;
use crate::inputs::Desk;
use crate::interpret::{Env, Scope};
use crate::ops::Ops;
use crate::plan::{Bias, Maps, Plan, Weights};
use crate::tape::Id;
use crate::trouble::{Made, Trouble};
use std::rc::Rc;

/// What a stream carries from token to token; inside chunks with frozen gradients also what belongs to the open one.
#[derive(Clone)]
pub(crate) struct Carry<V> {
    /// Each weight's carried value.
    pub memory: Vec<V>,
    /// The same at the start of the open chunk.
    pub anchor: Vec<V>,
    /// The threshold since then.
    pub threshold: Vec<V>,
    /// W_0 of the open chunk, where the stream remembers it.
    pub start: Vec<V>,
    /// The frozen scales, where the stream remembers them.
    pub scale: Vec<V>,
    /// The algorithm's states.
    pub states: Vec<V>,
}

/// The definition at work on a tape.
pub(crate) struct Memory<'a> {
    pub plan: &'a Plan<'a>,
    pub weights: &'a Weights<'a>,
    pub scope: &'a Scope<'a>,
}

impl<V> Default for Carry<V> {
    fn default() -> Carry<V> {
        let [memory, anchor, threshold, start, scale, states] = [(); 6].map(|()| Vec::new());
        Carry { memory, anchor, threshold, start, scale, states }
    }
}

impl<V> Carry<V> {
    pub fn iter(&self) -> impl Iterator<Item = &V> {
        let chunk = self.threshold.iter().chain(&self.start).chain(&self.scale);
        self.memory.iter().chain(&self.anchor).chain(chunk).chain(&self.states)
    }

    pub fn map<U, E>(&self, mut f: impl FnMut(&V) -> Result<U, E>) -> Result<Carry<U>, E> {
        let mut all = |xs: &[V]| xs.iter().map(&mut f).collect::<Result<Vec<U>, E>>();
        Ok(Carry {
            memory: all(&self.memory)?,
            anchor: all(&self.anchor)?,
            threshold: all(&self.threshold)?,
            start: all(&self.start)?,
            scale: all(&self.scale)?,
            states: all(&self.states)?,
        })
    }
}

impl Memory<'_> {
    /// M(q; W).
    pub fn read(&self, desk: &mut Desk<'_>, env: &Env<Id>, weights: &[Id]) -> Made<Id> {
        let query = env.get(self.plan.layer.query).copied();
        let query = query.ok_or_else(|| Trouble::bug("a token without a query"))?;
        self.answer(desk, env, weights, query)
    }

    fn answer(&self, desk: &mut Desk<'_>, env: &Env<Id>, weights: &[Id], argument: Id) -> Made<Id> {
        let memory = &self.plan.layer.memory;
        let mut env = env.clone();
        env.bind(memory.argument, argument);
        env.bind_all(memory.weights.iter().map(|w| w.var), weights);
        self.weights.read.run_one(self.scope, &mut desk.tape, &env)
    }

    /// d loss(M(k; W), v) / dW by reverse mode through the definition.
    fn gradient(&self, desk: &mut Desk<'_>, env: &Env<Id>, at: &[Id]) -> Made<Vec<Id>> {
        let layer = self.plan.layer;
        let key = env.get(layer.key).copied().ok_or_else(|| Trouble::bug("a token without a key"))?;
        let at = at.iter().map(|w| desk.tape.alias(*w)).collect::<Made<Vec<Id>>>()?;
        let answer = self.answer(desk, env, &at, key)?;
        let mut env = env.clone();
        env.bind(layer.bias.answer, answer);
        match &self.weights.bias {
            Bias::Loss(loss) => {
                let loss = loss.run_one(self.scope, &mut desk.tape, &env)?;
                let one = desk.tape.num(1.0);
                desk.tape.gradient(loss, one, &at)
            }
            Bias::Slope(slope) => {
                let slope = slope.run_one(self.scope, &mut desk.tape, &env)?;
                let shape = desk.tape.array(&answer).shape.clone();
                let slope = desk.tape.spread(&slope, &shape)?;
                desk.tape.gradient(answer, slope, &at)
            }
        }
    }

    /// u for each weight, and the algorithm's states after the step.
    ///
    /// `weights` are W_{t-1}, made from `carried`. Where `frozen` are given, gradients are taken there.
    pub fn update(
        &self,
        desk: &mut Desk<'_>,
        env: &Env<Id>,
        [weights, carried, states]: [&[Id]; 3],
        frozen: Option<&[Id]>,
    ) -> Made<(Vec<Id>, Vec<Id>)> {
        let (layer, step) = (self.plan.layer, self.weights.step);
        let weight_vars = || layer.memory.weights.iter().map(|w| w.var);
        let mut env = env.clone();
        env.bind_all(weight_vars(), weights);
        if self.weights.asks_retained {
            let retained = self.retained(desk, &env, carried)?;
            env.bind_all(step.retained.iter().copied(), &retained);
        }
        env.bind_all(step.states.iter().map(|s| s.old), states);
        for (point, program) in step.points.iter().zip(&self.weights.points) {
            let mut place = env.clone();
            if let Some(frozen) = frozen {
                place.bind_all(weight_vars(), frozen);
                place.bind_all(step.retained.iter().copied(), frozen);
            }
            let at = program.run(self.scope, &mut desk.tape, &place)?;
            let gradients = self.gradient(desk, &env, &at)?;
            env.bind_all(point.gradients.iter().copied(), &gradients);
        }
        let mut after = Vec::new();
        for ((state, programs), shape) in
            step.states.iter().zip(&self.weights.states).zip(&self.weights.state_sizes)
        {
            let next = programs.next.run_one(self.scope, &mut desk.tape, &env)?;
            let next = desk.tape.spread(&next, shape)?;
            env.bind(state.new, next);
            after.push(next);
        }
        let direction = self.weights.direction.run(self.scope, &mut desk.tape, &env)?;
        let shapes = &self.weights.weight_sizes;
        let spread = direction.iter().zip(shapes).map(|(u, shape)| desk.tape.spread(u, shape));
        Ok((spread.collect::<Made<_>>()?, after))
    }

    /// What retention makes of the weights when u = 0.
    fn retained(&self, desk: &mut Desk<'_>, env: &Env<Id>, carried: &[Id]) -> Made<Vec<Id>> {
        let after = self.advance(desk, env, carried, None)?;
        let after = self.finish(desk, env, &after)?;
        self.values(desk, env, &after)
    }

    /// The carried values after a step by `updates` (None: u = 0), before what ends the step.
    pub fn advance(
        &self,
        desk: &mut Desk<'_>,
        env: &Env<Id>,
        carried: &[Id],
        updates: Option<&[Id]>,
    ) -> Made<Vec<Id>> {
        let mut after = Vec::new();
        for (n, maps) in self.weights.maps.iter().enumerate() {
            let shape = &self.weights.weight_sizes[n];
            let update = match updates.and_then(|u| u.get(n)) {
                Some(u) => *u,
                None => desk.tape.constant(Rc::new(Array::filled(shape, 0.0))),
            };
            let mut env = env.clone();
            env.bind(maps.rule.carried, carried[n]);
            env.bind(maps.rule.update, update);
            let next = maps.advance.run_one(self.scope, &mut desk.tape, &env)?;
            after.push(desk.tape.spread(&next, shape)?);
        }
        Ok(after)
    }

    /// What ends a step: a projection or a proximal map, where there is one.
    pub fn finish(&self, desk: &mut Desk<'_>, env: &Env<Id>, carried: &[Id]) -> Made<Vec<Id>> {
        self.each(carried, |n, maps| self.finish_one(desk, env, maps, n, carried[n]))
    }

    fn finish_one(
        &self,
        desk: &mut Desk<'_>,
        env: &Env<Id>,
        maps: &Maps<'_>,
        n: usize,
        carried: Id,
    ) -> Made<Id> {
        let Some(finish) = &maps.finish else { return Ok(carried) };
        let mut env = env.clone();
        env.bind(maps.rule.carried, carried);
        let next = finish.run_one(self.scope, &mut desk.tape, &env)?;
        desk.tape.spread(&next, &self.weights.weight_sizes[n])
    }

    /// W from the carried values, with the parameters of the token at hand.
    pub fn values(&self, desk: &mut Desk<'_>, env: &Env<Id>, carried: &[Id]) -> Made<Vec<Id>> {
        self.each(carried, |n, maps| self.value(desk, env, maps, n, carried[n]))
    }

    fn value(&self, desk: &mut Desk<'_>, env: &Env<Id>, maps: &Maps<'_>, n: usize, carried: Id) -> Made<Id> {
        let Some(value) = &maps.value else { return Ok(carried) };
        let mut env = env.clone();
        env.bind(maps.rule.carried, carried);
        let weight = value.run_one(self.scope, &mut desk.tape, &env)?;
        desk.tape.spread(&weight, &self.weights.weight_sizes[n])
    }

    fn each(&self, carried: &[Id], mut f: impl FnMut(usize, &Maps<'_>) -> Made<Id>) -> Made<Vec<Id>> {
        self.weights.maps.iter().take(carried.len()).enumerate().map(|(n, maps)| f(n, maps)).collect()
    }
}
