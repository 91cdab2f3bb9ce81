//! Binding: the tensors of a file against what an update rule asks for.

mod bound;

pub use bound::{
    BindOptions, Bound, BoundCache, BoundParam, BoundState, BoundWeight, Cotangents, Layout, Schedule, Stream,
};

use crate::bundle::Bundle;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_rule as rule;

/// Checks every tensor that the rule needs and hands on a problem that a backend can run as it stands.
///
/// All errors are found at once (codes E0501 to E0511, SPEC section 6); `Bound::notes` says what else
/// the user should know.
pub fn bind(
    _rule: &rule::UpdateRule,
    _bundle: &Bundle,
    _options: &BindOptions,
) -> Result<Bound, Vec<Diagnostic>> {
    Err(vec![Diagnostic::new(code::UNSUPPORTED, "binding of inputs is not there yet")])
}
