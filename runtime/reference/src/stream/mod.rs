//! One head of one stream through time: forwards, and back again from remembered carries.

mod start;
mod tokens;

use crate::array::Array;
use crate::head::Head;
use crate::inputs::{Desk, Gradients};
use crate::memory::{Carry, Memory};
use crate::ops::Ops;
use crate::plan::Weights;
use crate::tape::Id;
use crate::trouble::Made;
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

fn settle(desk: &Desk<'_>, carry: &Carry<Id>) -> Made<Carry<Rc<Array>>> {
    carry.map(|id| Ok(desk.tape.array(id)))
}

fn seeds(carry: &Carry<Id>, cotangent: &Carry<Rc<Array>>) -> Vec<(Id, Rc<Array>)> {
    carry.iter().copied().zip(cotangent.iter().cloned()).collect()
}
