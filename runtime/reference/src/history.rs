//! One head of one stream of a memory that keeps its past: the weighted answer, pair by pair.

use crate::array::Array;
use crate::head::Head;
use crate::inputs::{Desk, Gradients, Source};
use crate::interpret::{Env, softmax};
use crate::ops::{Ops, Prim};
use crate::plan::{History, Plan};
use crate::tape::Id;
use crate::trouble::{Made, Trouble};
use miras_term::Axis;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Tokens on one tape.
const STRETCH: usize = 16;

/// A stream of a memory that keeps its past.
pub(crate) struct Past<'a> {
    pub head: &'a Head<'a>,
    pub history: &'a History<'a>,
    pub differentiable: bool,
}

/// Where a past token's key and value are: in the cache, or in this run.
#[derive(Clone, Copy)]
enum Where {
    Cached(usize),
    Entry(usize),
}

impl Past<'_> {
    /// o_t of each token.
    pub fn forward(&self) -> Made<Vec<Rc<Array>>> {
        let mut outputs = Vec::new();
        for tokens in self.pieces() {
            let mut desk = Desk::new(&self.head.plan.inputs, self.differentiable);
            let answers = self.answers(&mut desk, tokens)?;
            outputs.extend(answers.iter().map(|o| desk.tape.array(o)));
        }
        Ok(outputs)
    }

    /// Adds to `gradients` what the cotangents of the outputs, and of the kept keys and values, say.
    pub fn backward(
        &self,
        outputs: &[Rc<Array>],
        [keys, values]: [Option<&[f64]>; 2],
        gradients: &mut Gradients,
    ) -> Made<()> {
        let first = self.head.span().first;
        for tokens in self.pieces() {
            let mut desk = Desk::new(&self.head.plan.inputs, true);
            let answers = self.answers(&mut desk, tokens.clone())?;
            let given = outputs[tokens.start - first..tokens.end - first].iter().cloned();
            let seeds: Vec<(Id, Rc<Array>)> = answers.into_iter().zip(given).collect();
            desk.backward(&seeds, &[], gradients)?;
        }
        for (n, token) in self.kept().enumerate() {
            for (cotangent, is_key) in [(keys, true), (values, false)] {
                self.add_kept(gradients, cotangent, is_key, n, token)?;
            }
        }
        Ok(())
    }

    /// Number of tokens that the state keeps.
    pub fn kept_count(&self) -> usize {
        self.kept().count()
    }

    /// The keys and values that the state keeps, one after another.
    pub fn state(&self) -> Made<[Vec<f64>; 2]> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for token in self.kept() {
            for (into, is_key) in [(&mut keys, true), (&mut values, false)] {
                let (source, start, size) = self.place(token, is_key);
                into.extend(self.head.plan.inputs.part(source, start, &[size])?.data);
            }
        }
        Ok([keys, values])
    }

    fn add_kept(
        &self,
        to: &mut Gradients,
        cotangent: Option<&[f64]>,
        is_key: bool,
        n: usize,
        token: Where,
    ) -> Made<()> {
        let Some(cotangent) = cotangent else { return Ok(()) };
        let (source, start, size) = self.place(token, is_key);
        let part = cotangent
            .get(n * size..(n + 1) * size)
            .ok_or_else(|| Trouble::bug("a cotangent is too short"))?;
        to.add(&self.head.plan.inputs, source, start, &Array::new(vec![size], part.to_vec())?);
        Ok(())
    }

    fn pieces(&self) -> Vec<Range<usize>> {
        let span = self.head.span();
        (span.first..span.last).step_by(STRETCH).map(|a| a..(a + STRETCH).min(span.last)).collect()
    }

    /// The past of the stream that the data gave, along the third axis of the cache.
    fn cached(&self) -> Range<usize> {
        let range = self.head.plan.bound.cache.as_ref().and_then(|c| c.ranges.get(self.head.stream));
        range.map_or(0..0, |(first, last)| *first..*last)
    }

    /// Tokens up to (not including) `end` of this run, at most the last `window` of them.
    fn tokens(&self, end: usize, window: Option<usize>) -> impl Iterator<Item = Where> + use<> {
        let (cached, first) = (self.cached(), self.head.span().first);
        let count = cached.len() + (end - first);
        let all = cached.map(Where::Cached).chain((first..end).map(Where::Entry));
        all.skip(window.map_or(0, |n| count.saturating_sub(n)))
    }

    /// What the state keeps: everything, or what a window will still reach.
    fn kept(&self) -> impl Iterator<Item = Where> + use<> {
        self.tokens(self.head.span().last, self.history.weigh.window.map(|n| (n as usize).saturating_sub(1)))
    }

    fn place(&self, token: Where, is_key: bool) -> (Source, usize, usize) {
        let Plan { bound, dk, dv, .. } = self.head.plan;
        let size = if is_key { *dk } else { *dv };
        let length = bound.cache.as_ref().and_then(|c| c.keys.shape.get(2).copied()).unwrap_or(0);
        let (source, row) = match (token, is_key) {
            (Where::Cached(n), true) => (Source::CacheKey, self.head.row(length, n)),
            (Where::Cached(n), false) => (Source::CacheValue, self.head.row(length, n)),
            (Where::Entry(n), true) => (Source::Key, self.head.row(bound.tokens, n)),
            (Where::Entry(n), false) => (Source::Value, self.head.row(bound.tokens, n)),
        };
        (source, row * size, size)
    }

    fn leaf(&self, desk: &mut Desk<'_>, token: Where, is_key: bool) -> Made<Id> {
        let (source, start, size) = self.place(token, is_key);
        desk.leaf(source, start, &[size])
    }

    fn answers(&self, desk: &mut Desk<'_>, tokens: Range<usize>) -> Made<Vec<Id>> {
        let mut averaged = HashMap::new();
        tokens.map(|token| self.answer(desk, token, &mut averaged)).collect()
    }

    /// argmin over y of the weighted bias: after the refinements of q, the average of what the rule
    /// averages, with the normalised kernel for weights.
    fn answer(&self, desk: &mut Desk<'_>, token: usize, averaged: &mut HashMap<Id, Id>) -> Made<Id> {
        let layer = self.head.plan.layer;
        let mut env = self.head.token_env(desk, token, 0)?;
        let window = self.history.weigh.window.map(|n| n as usize);
        let past: Vec<Where> = self.tokens(token + 1, window).collect();
        let keys = past.iter().map(|at| self.leaf(desk, *at, true)).collect::<Made<Vec<Id>>>()?;
        for _ in 0..self.history.weigh.refinements {
            let weights = self.kernel(desk, &env, &keys)?;
            let query = average(desk, &weights, keys.clone())?;
            env.bind(layer.query, query);
        }
        let weights = self.kernel(desk, &env, &keys)?;
        let mut values = Vec::new();
        for at in past {
            let value = self.leaf(desk, at, false)?;
            values.push(match averaged.get(&value) {
                Some(known) if self.history.averaged_alone => *known,
                _ => {
                    env.bind(layer.value, value);
                    let made = self.history.averaged.run_one(&self.head.scope, &mut desk.tape, &env)?;
                    averaged.insert(value, made);
                    made
                }
            });
        }
        average(desk, &weights, values)
    }

    /// The normalised kernel of the query with each key.
    fn kernel(&self, desk: &mut Desk<'_>, env: &Env<Id>, keys: &[Id]) -> Made<Id> {
        let mut env = env.clone();
        let mut scores = Vec::new();
        for key in keys {
            env.bind(self.head.plan.layer.key, *key);
            scores.push(self.history.log_kernel.run_one(&self.head.scope, &mut desk.tape, &env)?);
        }
        let scores = desk.tape.apply(Prim::Stack(scores))?;
        softmax(&mut desk.tape, Axis::All, &scores)
    }
}

/// sum of weights_i * items_i.
fn average(desk: &mut Desk<'_>, weights: &Id, items: Vec<Id>) -> Made<Id> {
    let rows = desk.tape.apply(Prim::Stack(items))?;
    let columns = desk.tape.transpose(&rows)?;
    desk.tape.matmul(&columns, weights)
}
