//! Formulas with the derivation's own names for intermediate results.

use miras_rule::{DerivationStep, UpdateRule};
use miras_term::{PrintOptions, TermId, print};
use std::collections::HashMap;

/// Names of intermediate results, of all gradients.
pub(crate) fn names(rule: &UpdateRule) -> HashMap<TermId, String> {
    let named = rule.gradients.iter().flat_map(|g| &g.named);
    named.map(|n| (n.term, n.name.clone())).collect()
}

/// The equations of a step as (left, right), with intermediate results by name except where they are defined.
pub(crate) fn equations(rule: &UpdateRule, step: &DerivationStep) -> Vec<(String, String)> {
    let names = names(rule);
    (step.equations.iter())
        .map(|e| {
            let mut own = names.clone();
            if own.get(&e.right) == Some(&e.left) {
                own.remove(&e.right);
            }
            (e.left.clone(), print(rule.terms(), e.right, &PrintOptions { names: own }))
        })
        .collect()
}
