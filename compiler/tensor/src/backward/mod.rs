//! Reverse mode: from the graph of a stream to the programs that give the gradients of its inputs.
//!
//! One token's step is pulled back by a table with one entry for each operation ([`rules`]). A stream is gone
//! through forwards with its carries remembered before some tokens (checkpoints), then backwards stretch by
//! stretch: the stretch is performed once more from its checkpoint with every carry written down (the tape),
//! and then its tokens are visited last first. What happens before the first token is pulled back at the end.
//!
//! Derivatives of scalar functions are those of the table in `base`, with the values that it defines at
//! singular points. Choices pass the cotangent to the chosen side (they do not multiply), so what is masked
//! cannot turn a zero into a NaN.

mod build;
mod copy;
mod reverse;
mod rules;
mod scan;
mod stream;
#[cfg(test)]
mod witness;

pub(crate) use copy::{Map, copy};
pub(crate) use reverse::Reverse;
pub use stream::{Backward, Tape, backward};

/// Names of what goes between the programs of a stream: a prefix, then a number or a tensor's name. They begin
/// with a character that no tensor of a file has.
pub mod name {
    /// The carry of this number: before the first token, or after the last.
    pub const CARRY: &str = "@carry.";
    /// For each token the carry of this number before it.
    pub const TAPE: &str = "@tape.";
    /// The cotangent of the carry of this number: after the last token coming in, before the first going out.
    pub const COTANGENT: &str = "@cotangent.";
    /// The gradient of a per-head tensor of this name, summed over what was gone through so far.
    pub const SUM: &str = "@sum.";
    /// The cotangent of a result, as files call it.
    pub const GRAD: &str = "grad.";
    /// The gradient of an input, as files call it.
    pub const D: &str = "d.";
}
