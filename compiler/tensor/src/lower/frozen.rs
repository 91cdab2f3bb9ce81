//! Inside a chunk whose gradients are frozen (docs/mathematics.md), token by token.

use super::Failure;
use super::token::Token;
use crate::ir::{Op, ValueId};
use miras_base::scalar::{Cmp, Fn1, Fn2};
use miras_rule::{Inside, Retained};

/// What the open chunk carries; replaced during a step by what it hands on.
pub(super) struct Chunk {
    /// 1 where this token completes the chunk.
    pub closes: ValueId,
    /// 1 where what holds inside the chunk is made anew (see `lower::FRESH`); None where it is there already.
    pub fresh: Option<ValueId>,
    /// theta_0 of each weight.
    pub anchor: Vec<ValueId>,
    /// Gamma, for weights with a proximal step.
    pub threshold: Vec<Option<ValueId>>,
    /// W_0, for weights that are not their carried values.
    pub start_weight: Vec<Option<ValueId>>,
    /// The scale at the chunk's start, for weights read by one.
    pub scale: Vec<Option<ValueId>>,
}

impl Token<'_, '_> {
    /// The weights at which gradients are taken: W_0, made anew by a fresh token; None outside chunks.
    pub(super) fn open_chunk(&mut self) -> Result<Option<Vec<ValueId>>, Failure> {
        let Some(chunk) = &self.chunk else { return Ok(None) };
        let (anchor, held, scales) = (chunk.anchor.clone(), chunk.start_weight.clone(), chunk.scale.clone());
        let Some(fresh) = chunk.fresh else {
            return Ok(Some(anchor.iter().zip(held).map(|(a, h)| h.unwrap_or(*a)).collect()));
        };
        let fresh = self.flag(fresh);
        let mut weights = Vec::new();
        for l in 0..self.weights() {
            let weight = match held[l] {
                None => anchor[l],
                Some(held) => {
                    let made = self.value(l, anchor[l])?;
                    self.select(fresh, made, held)
                }
            };
            weights.push(weight);
            let scale = match (&self.rule.retention[l].inside, scales[l]) {
                (Inside::FrozenScale(scale), Some(held)) => {
                    let made = self.scale(l, *scale, anchor[l])?;
                    Some(self.select(fresh, made, held))
                }
                _ => None,
            };
            if let Some(chunk) = &mut self.chunk {
                chunk.start_weight[l] = held[l].map(|_| weight);
                chunk.scale[l] = scale;
            }
        }
        Ok(Some(weights))
    }

    /// A scale of the chunk's start, or 1 where theta_0 is exactly 0.
    fn scale(&mut self, l: usize, term: miras_term::TermId, anchor: ValueId) -> Result<ValueId, Failure> {
        let axes = self.at.graph.value(anchor).axes.clone();
        let mut inner = self.at.inner();
        inner.bind(self.rule.retention[l].carried, anchor);
        let scale = inner.lower(term)?;
        let size = self.at.fn1(Fn1::Abs, anchor);
        let largest = self.at.graph.add(self.at.block, Op::Reduce(miras_term::Reduce::Max, axes, size));
        let (zero, one) = (self.at.number(0.0), self.at.number(1.0));
        let nothing = self.at.graph.add(self.at.block, Op::Compare(Cmp::Eq, largest, zero));
        Ok(self.select(nothing, one, scale))
    }

    /// W of the l-th weight inside the chunk, from its carried value.
    pub(super) fn inside(&mut self, l: usize) -> Result<ValueId, Failure> {
        let carried = self.carried[l];
        let missing = || Failure::bug("a chunk lacks what its weight is read by");
        let chunk = self.chunk.as_ref().ok_or_else(missing)?;
        match &self.rule.retention[l].inside {
            Inside::Identity | Inside::ProjectAtEnd => Ok(carried),
            Inside::Mapped | Inside::TokenByToken => self.value(l, carried),
            Inside::Threshold(_) => {
                let threshold = chunk.threshold[l].ok_or_else(missing)?;
                Ok(self.soft(carried, threshold))
            }
            Inside::FrozenScale(_) => {
                let scale = chunk.scale[l].ok_or_else(missing)?;
                Ok(self.at.fn2(Fn2::Mul, carried, scale))
            }
        }
    }

    /// Whether a step ends with the retention's last map, or that waits for the chunk's end.
    pub(super) fn finishes_each_step(&self, retained: &Retained) -> bool {
        match retained.inside {
            Inside::TokenByToken => true,
            Inside::Identity
            | Inside::Mapped
            | Inside::Threshold(_)
            | Inside::FrozenScale(_)
            | Inside::ProjectAtEnd => self.chunk.is_none(),
        }
    }

    /// Gamma' = keep * Gamma + threshold, for a weight with a proximal step.
    pub(super) fn raise_threshold(&mut self, l: usize) -> Result<(), Failure> {
        let retained = &self.rule.retention[l];
        let Some(old) = self.chunk.as_ref().and_then(|c| c.threshold[l]) else { return Ok(()) };
        let (Inside::Threshold(threshold), Some(linear)) = (&retained.inside, &retained.linear) else {
            return Err(Failure::bug("a threshold without a linear recurrence"));
        };
        let shape = self.shape(l);
        let (keep, more) =
            (self.at.lower_whole(linear.keep, &shape)?, self.at.lower_whole(*threshold, &shape)?);
        let kept = self.at.fn2(Fn2::Mul, keep, old);
        let raised = self.at.fn2(Fn2::Add, kept, more);
        if let Some(chunk) = &mut self.chunk {
            chunk.threshold[l] = Some(raised);
        }
        Ok(())
    }

    /// Ends the step: where the token completes the chunk, the retention's last map is applied and the next
    /// chunk's anchor set. Gives the weights as this token reads them.
    pub(super) fn close_chunk(&mut self) -> Result<Vec<ValueId>, Failure> {
        let Some(closes) = self.chunk.as_ref().map(|c| c.closes) else {
            return (0..self.weights()).map(|l| self.value(l, self.carried[l])).collect();
        };
        let closes = self.flag(closes);
        let mut seen = Vec::new();
        for l in 0..self.weights() {
            let inside = self.inside(l)?;
            let carried = self.carried[l];
            let retained = &self.rule.retention[l];
            let closed = match (&retained.inside, retained.finish) {
                (Inside::TokenByToken, _) => carried,
                (Inside::Threshold(_), _) => inside,
                (_, None) => carried,
                (_, Some(finish)) => self.mapped(l, retained.carried, carried, finish)?,
            };
            self.carried[l] = self.select(closes, closed, carried);
            let whole = match &retained.inside {
                Inside::Identity | Inside::ProjectAtEnd => self.carried[l],
                Inside::Mapped | Inside::TokenByToken if closed == carried => inside,
                Inside::Threshold(_) => inside,
                Inside::Mapped | Inside::TokenByToken | Inside::FrozenScale(_) => {
                    let value = self.value(l, closed)?;
                    self.select(closes, value, inside)
                }
            };
            seen.push(whole);
            self.move_anchor(l, closes);
        }
        Ok(seen)
    }

    fn move_anchor(&mut self, l: usize, closes: ValueId) {
        let carried = self.carried[l];
        let Some(chunk) = &self.chunk else { return };
        let (anchor, threshold) = (chunk.anchor[l], chunk.threshold[l]);
        let anchor = self.select(closes, carried, anchor);
        let zero = self.at.number(0.0);
        let threshold = threshold.map(|gamma| self.select(closes, zero, gamma));
        if let Some(chunk) = &mut self.chunk {
            chunk.anchor[l] = anchor;
            chunk.threshold[l] = threshold;
        }
    }

    /// sign(z) max(|z| - gamma, 0).
    fn soft(&mut self, z: ValueId, gamma: ValueId) -> ValueId {
        let (sign, size) = (self.at.fn1(Fn1::Sign, z), self.at.fn1(Fn1::Abs, z));
        let above = self.at.fn2(Fn2::Sub, size, gamma);
        let zero = self.at.number(0.0);
        let rest = self.at.fn2(Fn2::Max, above, zero);
        self.at.fn2(Fn2::Mul, sign, rest)
    }

    fn flag(&mut self, value: ValueId) -> ValueId {
        let half = self.at.number(0.5);
        self.at.graph.add(self.at.block, Op::Compare(Cmp::Gt, value, half))
    }

    fn select(&mut self, condition: ValueId, yes: ValueId, no: ValueId) -> ValueId {
        if yes == no { yes } else { self.at.graph.add(self.at.block, Op::Select(condition, yes, no)) }
    }
}
