//! A step written out: gradients, points, retained weights and new states put in place of their variables.

use super::Parts;
use crate::calculus::simplify::refold;
use miras_spec as spec;
use miras_term::{Mismatch, TermId, VarId};
use std::collections::HashMap;

/// The step in terms of weights, old states, k, v and parameters.
#[derive(Clone, Debug)]
pub struct WrittenOut {
    /// u for each weight.
    pub updates: Vec<TermId>,
    /// The new value of each state.
    pub states: Vec<TermId>,
    /// The same with the gradients' variables left in place.
    pub given_gradients: GivenGradients,
}

/// Updates and states in terms of the gradients' variables.
#[derive(Clone, Debug)]
pub struct GivenGradients {
    /// u for each weight.
    pub updates: Vec<TermId>,
    /// The new value of each state.
    pub states: Vec<TermId>,
}

/// Writes a step out.
pub(crate) fn written_out(layer: &mut spec::Layer, parts: Parts<'_>) -> Result<WrittenOut, Mismatch> {
    let retained = retained(parts);
    let gradients = gradients(layer, parts, &retained)?;
    let terms = &mut layer.terms;
    let mut replace = retained;
    let (mut states, mut given_states) = (Vec::new(), Vec::new());
    for state in &parts.step.states {
        let given = terms.substitute_one(state.next, &replace)?;
        replace.insert(state.new, given);
        given_states.push(given);
        let full = terms.substitute_one(given, &gradients)?;
        states.push(refold(terms, full)?);
    }
    let given_updates = terms.substitute(&parts.step.direction, &replace)?;
    let mut updates = terms.substitute(&given_updates, &gradients)?;
    for u in &mut updates {
        *u = refold(terms, *u)?;
    }
    Ok(WrittenOut {
        updates,
        states,
        given_gradients: GivenGradients { updates: given_updates, states: given_states },
    })
}

/// What retention makes of each weight when u = 0, where it can be written.
pub(crate) fn retained(parts: Parts<'_>) -> HashMap<VarId, TermId> {
    let pairs = parts.step.retained.iter().zip(parts.retention);
    pairs.filter_map(|(var, r)| r.retained.map(|t| (*var, t))).collect()
}

/// The gradients' variables as terms at the points' weights.
fn gradients(
    layer: &mut spec::Layer,
    parts: Parts<'_>,
    retained: &HashMap<VarId, TermId>,
) -> Result<HashMap<VarId, TermId>, Mismatch> {
    let mut found = HashMap::new();
    for (point, gradient) in parts.step.points.iter().zip(parts.gradients) {
        let mut replace = retained.clone();
        replace.extend(&found);
        let at = layer.terms.substitute(&point.at, &replace)?;
        let place: HashMap<VarId, TermId> = gradient.at_vars.iter().copied().zip(at).collect();
        for (var, sum) in point.gradients.iter().zip(&gradient.by_weight) {
            if let Some(whole) = sum.whole {
                found.insert(*var, layer.terms.substitute_one(whole, &place)?);
            }
        }
    }
    Ok(found)
}
