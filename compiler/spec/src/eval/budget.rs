//! Limits on what one elaboration may cost, so that any text is answered in bounded time and memory.

use super::{Eval, fail_help};
use base::Span;
use base::diagnostic::code;
use miras_base as base;
use miras_term::{TermId, Terms};

/// Expressions and loop rounds that one elaboration evaluates.
const MAX_STEPS: u64 = 1_000_000;
/// Terms in a layer's arena.
const MAX_TERMS: usize = 200_000;
/// Operations inside one another in a formula: later rooms walk formulas, and print them, depth first.
const MAX_FORMULA: u32 = 1000;
/// Expressions inside one another, calls of functions included.
const MAX_DEPTH: u32 = 400;
/// The largest whole number that a `nat` may be, and the largest size's factor.
pub(crate) const MAX_NAT: i64 = 1_000_000;
/// Weights of a memory.
pub(crate) const MAX_WEIGHTS: usize = 256;
/// State tensors of an algorithm.
pub(crate) const MAX_STATES: usize = 1024;
/// Points at which an algorithm takes gradients.
pub(crate) const MAX_POINTS: usize = 64;
/// Steps per token, retrievals, Newton steps.
pub(crate) const MAX_REPEATS: i64 = 1024;
/// Tokens in a chunk.
pub(crate) const MAX_CHUNK: i64 = 65_536;

/// What has been used of the limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    steps: u64,
    depth: u32,
    /// How deep each term of the arena is.
    depths: Vec<u32>,
}

impl Budget {
    /// Counts one evaluation and one level of depth.
    pub(crate) fn enter(&mut self, span: Span) -> Eval<()> {
        self.step(span)?;
        if self.depth == MAX_DEPTH {
            let message = format!("expressions are nested more than {MAX_DEPTH} deep, calls included");
            return fail_help(
                code::NESTING,
                span,
                message,
                "too deep here",
                "bind parts with `let`, call fewer functions inside one another",
            );
        }
        self.depth += 1;
        Ok(())
    }

    /// Ends what [`Budget::enter`] began.
    pub(crate) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Counts one evaluation or loop round.
    pub(crate) fn step(&mut self, span: Span) -> Eval<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            let message = format!("unrolling this layer takes more than {MAX_STEPS} steps");
            return fail_help(
                code::UNROLL,
                span,
                message,
                "stopped here",
                "make the compile-time loops shorter",
            );
        }
        Ok(())
    }

    /// Refuses an arena that has grown too large, and formulas that have grown too deep.
    pub(crate) fn check_terms(&mut self, terms: &Terms, span: Span) -> Eval<()> {
        let help = "make the compile-time loops shorter";
        if terms.len() > MAX_TERMS {
            let message = format!("the layer's formulas have more than {MAX_TERMS} terms");
            return fail_help(code::UNROLL, span, message, "stopped here", help);
        }
        for id in self.depths.len()..terms.len() {
            let inner =
                terms.operands(TermId(id as u32)).into_iter().filter_map(|o| self.depths.get(o.0 as usize));
            let depth = inner.max().map_or(0, |d| d + 1);
            self.depths.push(depth);
            if depth > MAX_FORMULA {
                let message = format!("a formula is more than {MAX_FORMULA} operations deep");
                return fail_help(code::UNROLL, span, message, "stopped here", help);
            }
        }
        Ok(())
    }

    /// Forgets the terms from `count` on, which the arena has forgotten.
    pub(crate) fn shrink(&mut self, count: usize) {
        self.depths.truncate(count);
    }
}
