//! One head of one stream: where its numbers lie.

use crate::inputs::{Desk, Source};
use crate::interpret::{Env, Scope};
use crate::plan::Plan;
use crate::tape::Id;
use crate::trouble::Made;
use miras_host as host;

/// One head of one stream.
pub(crate) struct Head<'a> {
    pub plan: &'a Plan<'a>,
    /// The stream's number.
    pub stream: usize,
    pub head: usize,
    pub scope: Scope<'a>,
}

impl<'a> Head<'a> {
    pub fn new(plan: &'a Plan<'a>, stream: usize, head: usize) -> Head<'a> {
        let bound = plan.bound;
        let scope = Scope {
            terms: &plan.layer.terms,
            dims: &bound.dims,
            head: head as u64,
            heads: bound.heads as u64,
            layer: bound.layer.0,
            layers: bound.layer.1,
        };
        Head { plan, stream, head, scope }
    }

    /// The stream.
    pub fn span(&self) -> host::Stream {
        self.plan.bound.streams[self.stream]
    }

    /// What does not depend on the token.
    pub fn env(&self, desk: &mut Desk<'_>) -> Made<Env<Id>> {
        let mut env = Env::new(&self.plan.layer.terms);
        self.bind_params(desk, &mut env, None)?;
        Ok(env)
    }

    /// What a step of a token sees: q, k, v and parameters.
    pub fn token_env(&self, desk: &mut Desk<'_>, token: usize, step: usize) -> Made<Env<Id>> {
        let layer = self.plan.layer;
        let mut env = Env::new(&layer.terms);
        let dk = self.plan.dk;
        let entry = token * self.plan.bound.repeats + step;
        env.bind(layer.query, desk.leaf(Source::Query, self.row(self.plan.bound.tokens, token) * dk, &[dk])?);
        env.bind(layer.key, self.key(desk, entry)?);
        env.bind(layer.value, self.value(desk, entry)?);
        self.bind_params(desk, &mut env, Some((token, step)))?;
        Ok(env)
    }

    /// k of an entry of the sequence.
    pub fn key(&self, desk: &mut Desk<'_>, entry: usize) -> Made<Id> {
        let dk = self.plan.dk;
        desk.leaf(Source::Key, self.row(self.entries(), entry) * dk, &[dk])
    }

    /// v of an entry of the sequence.
    pub fn value(&self, desk: &mut Desk<'_>, entry: usize) -> Made<Id> {
        let dv = self.plan.dv;
        desk.leaf(Source::Value, self.row(self.entries(), entry) * dv, &[dv])
    }

    /// A tensor [N, H, ...] or [H, ...] at this stream and head.
    pub fn state(&self, desk: &mut Desk<'_>, source: Source, per_stream: bool, shape: &[usize]) -> Made<Id> {
        let size: usize = shape.iter().product();
        let index = if per_stream { self.index() } else { self.head };
        desk.leaf(source, index * size, shape)
    }

    /// Which of the states [N, H, ...] is this one's.
    pub fn index(&self) -> usize {
        self.stream * self.plan.bound.heads + self.head
    }

    /// Which of the vectors of [B, H, length, d] belongs to a place along the third axis.
    pub fn row(&self, length: usize, place: usize) -> usize {
        (self.span().row * self.plan.bound.heads + self.head) * length + place
    }

    fn entries(&self) -> usize {
        self.plan.bound.tokens * self.plan.bound.repeats
    }

    fn bind_params(&self, desk: &mut Desk<'_>, env: &mut Env<Id>, at: Option<(usize, usize)>) -> Made<()> {
        let bound = self.plan.bound;
        for (n, param) in bound.params.iter().enumerate() {
            let (token, step) = match (param.layout, at) {
                (host::Layout::PerHead, _) => (0, 0),
                (host::Layout::PerToken { .. }, Some(at)) => at,
                (host::Layout::PerToken { .. }, None) => continue,
            };
            let start = param.offset(bound.heads, bound.tokens, [self.span().row, self.head, token, step]);
            env.bind(param.var, desk.leaf(Source::Param(n), start, &param.shape)?);
        }
        Ok(())
    }
}
