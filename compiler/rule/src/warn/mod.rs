//! Derived facts that would surprise a user, as warnings with codes.

mod declared;
mod inert;
mod keys;
mod signal;
mod unused;

#[cfg(test)]
mod witness;

use crate::algebra::Facts;
use crate::rule::UpdateRule;
use miras_base::Diagnostic;
use miras_term::TermId;

/// All warnings and notes of a rule, in the order of their codes.
///
/// `derived` is the loss's own slope where the bias declares another one.
///
/// # Errors
/// A contradiction inside the derived terms, as a bug.
pub fn warnings(
    rule: &mut UpdateRule,
    derived: Option<TermId>,
    facts: &Facts,
) -> Result<Vec<Diagnostic>, Diagnostic> {
    let mut found = inert::inert_terms(rule, facts)?;
    found.extend(signal::weak_signals(rule));
    found.extend(unused::unused_parameters(rule, facts));
    found.extend(keys::unbounded_keys(rule)?);
    found.extend(declared::declared(rule, derived));
    Ok(found)
}
