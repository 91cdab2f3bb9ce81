//! How the tokens of a chunk are computed: together, by products, or one after the other.
//!
//! Inside a block of tokens a weight is never an array for each token. It is a sum of the weights at the block's
//! start, kept by factors, and of outer products `left (x) right`, one or more for each token before
//! (`W_t = K(t, 0) W_0 + sum over i <= t of K(t, i) left_i (x) right_i`), which a read turns into products of
//! small matrices. The conditions for that are found here, in the rule's terms.

mod exact;
mod frozen;
mod linear;

pub use exact::{Affine, Correction, Family};
pub use frozen::Frozen;
pub use linear::Factors;

use crate::plan::Schedule;
use miras_base::Diagnostic;
use miras_base::scalar::{Fn1, Fn2};
use miras_rule::UpdateRule;
use miras_term::{Op, TermId, Terms, VarId};

/// How many tokens are computed at a time, and in what form.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// Tokens at a time; where gradients are frozen, the whole chunk.
    pub tokens: u32,
    /// The form.
    pub form: Form,
}

/// The form in which a block of tokens is computed.
#[derive(Clone, Debug)]
pub enum Form {
    /// One token after the other; why.
    TokenByToken(String),
    /// Affine in the weights: masked products and, where there are corrections, a unit-triangular system.
    Affine(Affine),
    /// Gradients at the chunk's start, weights as sums of outer products.
    Frozen(Frozen),
    /// Gradients at the chunk's start, all at once; retention and reads one token after the other.
    Gradients,
}

impl Blocks {
    fn token_by_token(reason: impl Into<String>) -> Blocks {
        Blocks { tokens: 1, form: Form::TokenByToken(reason.into()) }
    }

    /// Whether tokens are computed together.
    pub fn together(&self) -> bool {
        !matches!(self.form, Form::TokenByToken(_))
    }
}

/// The blocks of a rule under a schedule. New terms are added to the rule's arena.
///
/// # Errors
/// A contradiction inside the derived terms, as a bug.
pub(crate) fn blocks(rule: &mut UpdateRule, schedule: Schedule) -> Result<Blocks, Diagnostic> {
    match schedule {
        Schedule::Recurrent => Ok(Blocks::token_by_token("that is the schedule")),
        Schedule::ChunkedExact(1) | Schedule::ChunkedFrozen(1) => {
            Ok(Blocks::token_by_token("a chunk of one token is a step"))
        }
        Schedule::ChunkedExact(chunk) => exact::blocks(rule, chunk),
        Schedule::ChunkedFrozen(chunk) => Ok(frozen::blocks(rule, chunk)),
    }
}

/// Whether matrix weights stand in a term only where they are applied to vectors: as `W @ x`, or in a matrix that is
/// made of them linearly ([`operator`]). Then it can be read from sums of outer products. Vector weights may stand
/// anywhere: they are small enough to be there for every token.
fn applied_only(terms: &Terms, id: TermId, weights: &[VarId]) -> bool {
    let uses = |t: TermId| weights.iter().any(|w| terms.uses(t, *w));
    terms.reachable(&[id]).into_iter().filter(|t| uses(*t)).all(|t| match terms.op(t) {
        Op::Root(_) => false,
        // A matrix is judged where it is applied.
        _ if terms.shape(t).rank() == 2 => true,
        Op::Var(_) => true,
        Op::MatMul(a, x) => !uses(*a) || (terms.shape(*x).rank() == 1 && operator(terms, *a, weights)),
        _ => terms.operands(t).into_iter().all(|o| !uses(o) || terms.shape(o).rank() < 2),
    }) && (terms.shape(id).rank() < 2 || !uses(id))
}

/// Whether a matrix can be applied to a vector by way of the weights in it: a weight, its transpose, and sums, products
/// and multiples (by a number, or by one for each row or column) of such.
fn operator(terms: &Terms, id: TermId, weights: &[VarId]) -> bool {
    let uses = |t: TermId| weights.iter().any(|w| terms.uses(t, *w));
    let of = |t: TermId| if uses(t) { operator(terms, t, weights) } else { whole(terms, t) };
    match terms.op(id) {
        Op::Var(_) => true,
        Op::Fn1(Fn1::Neg, a) | Op::Transpose(a) => of(*a),
        Op::Fn2(Fn2::Add | Fn2::Sub, a, b) => whole(terms, *a) && whole(terms, *b) && of(*a) && of(*b),
        Op::MatMul(a, b) => of(*a) && of(*b),
        Op::Fn2(Fn2::Mul, a, b) => {
            let (inner, factor) = if uses(*a) { (*a, *b) } else { (*b, *a) };
            !uses(factor) && !linear::varies(terms, factor).both() && of(inner)
        }
        _ => false,
    }
}

/// Whether a matrix has no side of length 1, along which a sum would repeat it.
fn whole(terms: &Terms, id: TermId) -> bool {
    let shape = terms.shape(id);
    shape.rank() == 2 && !shape.0.iter().any(miras_base::Dim::is_one)
}

/// Whether some equation is solved for by steps, in these terms: those are not computed for many tokens at once.
fn has_root(terms: &Terms, ids: &[TermId]) -> bool {
    terms.reachable(ids).into_iter().any(|t| matches!(terms.op(t), Op::Root(_)))
}
