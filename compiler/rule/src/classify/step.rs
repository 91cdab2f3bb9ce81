//! A step written out: gradients, points, retained weights and new states put in place of their variables.

use super::Parts;
use crate::calculus::simplify::refold;
use crate::rule::Retained;
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
    let retained = retained(layer, parts)?;
    let gradients = gradients(layer, parts, &retained)?;
    let terms = &mut layer.terms;
    let mut replace = retained;
    let mut given_states = Vec::new();
    for state in &parts.step.states {
        let given = terms.substitute_one(state.next, &replace)?;
        replace.insert(state.new, given);
        given_states.push(given);
    }
    let given_updates = terms.substitute(&parts.step.direction, &replace)?;
    let (states, updates) =
        (terms.substitute(&given_states, &gradients)?, terms.substitute(&given_updates, &gradients)?);
    Ok(WrittenOut {
        updates: refold(terms, &updates)?,
        states: refold(terms, &states)?,
        given_gradients: GivenGradients { updates: given_updates, states: given_states },
    })
}

/// What retention makes of each weight when u = 0: in terms of the weight, or of the carried value where
/// it cannot be written otherwise.
pub(crate) fn retained(
    layer: &mut spec::Layer,
    parts: Parts<'_>,
) -> Result<HashMap<VarId, TermId>, Mismatch> {
    let mut found = HashMap::new();
    for (var, r) in parts.step.retained.iter().zip(parts.retention) {
        let term = match r.retained {
            Some(term) => term,
            None => from_carried(layer, r)?,
        };
        found.insert(*var, term);
    }
    Ok(found)
}

/// advance with u = 0, then finish, then value.
fn from_carried(layer: &mut spec::Layer, r: &Retained) -> Result<TermId, Mismatch> {
    let shape = layer.terms.var(r.update).shape.clone();
    let zero = layer.terms.fill(0.0, shape);
    let mut term = layer.terms.substitute_one(r.advance, &HashMap::from([(r.update, zero)]))?;
    for map in r.finish.iter().chain(&r.value) {
        term = layer.terms.substitute_one(*map, &HashMap::from([(r.carried, term)]))?;
    }
    Ok(term)
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
        let known = point.gradients.iter().zip(&gradient.by_weight);
        let (vars, wholes): (Vec<VarId>, Vec<TermId>) =
            known.filter_map(|(var, sum)| Some((*var, sum.whole?))).unzip();
        let wholes = layer.terms.substitute(&wholes, &place)?;
        found.extend(vars.into_iter().zip(wholes));
    }
    Ok(found)
}
