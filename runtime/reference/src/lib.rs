//! # miras-reference: the definition, executed
//!
//! **Purpose.** The oracle: plain float64 evaluation of a layer's definition, recurrent or chunked, with
//! outer gradients. Everything is materialised and nothing is clever, so that what the compiled backends
//! give can be judged by it.
//!
//! **Takes** a [`rule::UpdateRule`] and the [`host::Bound`] data. **Gives** the results as a
//! [`host::Bundle`] in float64. **May touch** base, term, spec, rule, host.
//! **Must not** use schedule, tensor, kernel or emit; nor the rule's gradients or slope, nor the derivative
//! column of the scalar table: the inner gradient is reverse mode through `read` and `loss` as the layer
//! defines them, with scalar derivatives written here. From the rule it takes retention's maps, the answer
//! of a memory with a history, and the class.
//!
//! **Invariants.** Operations are recorded on a tape in the order in which they are performed, the inner
//! gradient among them, so that the outer gradient passes through it (second order is never dropped). A
//! stream is performed in pieces (a chunk, or a stretch of tokens); going back, each piece is performed once
//! more from the carry remembered at its start, so memory grows with the number of tokens by the carries
//! only. No recursion follows the length of the data.

mod array;
mod head;
mod history;
mod inputs;
mod interpret;
mod memory;
mod ops;
mod plan;
mod pull;
mod root;
mod run;
mod slope;
mod stream;
mod tape;
mod trouble;
#[cfg(test)]
mod witness;

pub use ops::Arithmetic;

use miras_base::Diagnostic;
use miras_host as host;
use miras_rule as rule;

/// Runs a layer on bound data, by the bound schedule, with gradients where cotangents are bound.
///
/// Results (all float64, positions and chunk int64; B rows, H heads, T tokens, N streams):
/// `o` [B, H, T, dv]; `state.memory.*`, `state.algo.*` [N, H, ...]; `state.cache.*`; by the chunked schedule
/// `state.position` [N], `state.chunk` [1] and, where a frozen-gradient stream stops inside a chunk,
/// `state.anchor.*`; with cotangents `d.<name>` for each given input, in its shape.
///
/// # Errors
/// E0402 where the run needs something that the data cannot hold (see the message); E0901 where an invariant
/// of an earlier room does not hold.
pub fn run(rule: &rule::UpdateRule, bound: &host::Bound) -> Result<host::Bundle, Vec<Diagnostic>> {
    run_in(rule, bound, Arithmetic::Float64)
}

/// [`run`] with another arithmetic; results are float64 tensors all the same.
///
/// # Errors
/// Those of [`run`].
pub fn run_in(
    rule: &rule::UpdateRule,
    bound: &host::Bound,
    arithmetic: Arithmetic,
) -> Result<host::Bundle, Vec<Diagnostic>> {
    let results = plan::Plan::new(rule, bound, arithmetic).and_then(|plan| run::run(&plan));
    results.map_err(|trouble| vec![trouble.diagnostic()])
}
