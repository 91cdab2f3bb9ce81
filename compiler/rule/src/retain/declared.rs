//! Declared maps, and what lazy and declared duals have in common: the recurrence of the dual.

use super::Solved;
use super::refuse::Tried;
use super::tell::step;
use crate::algebra::poly::{Exponent, Monomial};
use crate::algebra::ring::Ring;
use crate::algebra::{Facts, collect_linear, is_var, simplify};
use crate::rule::{DerivationStep, InitialDomain, Inside, Linear, Retained};
use miras_base::scalar::Fn2;
use miras_spec as spec;
use miras_term::{Op, TermId, Terms, VarId};
use std::collections::HashMap;

/// A dual with its recurrence, and the weights as a map of it.
pub(super) struct Dual {
    /// A and A'.
    pub vars: [VarId; 2],
    /// A' in terms of A, u and parameters.
    pub next: TermId,
    /// W' in terms of A' and parameters.
    pub map: TermId,
    /// How the map was found.
    pub told: Vec<DerivationStep>,
    /// How chunks treat the map.
    pub inside: Inside,
}

/// A declared map of a dual: taken as it stands.
pub(super) fn dual(
    layer: &mut spec::Layer,
    index: usize,
    vars: [VarId; 2],
    next: TermId,
    map: TermId,
) -> Tried<Solved> {
    let facts = Facts::of_params(&layer.params);
    let at_carried = carried(&mut layer.terms, map, vars)?;
    let inside = match scale_of(&mut layer.terms, at_carried, vars[0], &facts)? {
        Some(scale) if layer.terms.uses(scale, vars[0]) => Inside::FrozenScale(scale),
        _ => Inside::Mapped,
    };
    let name = layer.terms.var(layer.retention[index].new_weight).name.clone();
    let why = "declared as a map of the dual, not derived from an objective.";
    let told = vec![step("declared map", vec![(name, map)], why.into())];
    accumulated(layer, index, Dual { vars, next, map, told, inside })
}

/// A declared map of the weights: taken as it stands.
pub(super) fn map(layer: &mut spec::Layer, index: usize, next: TermId) -> Tried<Solved> {
    let facts = Facts::of_params(&layer.params);
    let (old, retention) = (layer.memory.weights[index].var, layer.retention[index].clone());
    let linear = linear_of(&mut layer.terms, next, [old, retention.update], &facts);
    let retained = at_rest(&mut layer.terms, next, retention.update, &facts)?;
    let name = layer.terms.var(retention.new_weight).name.clone();
    let why = "declared as a map of the weights and u, not derived from an objective.";
    let told = vec![step("declared map", vec![(name, next)], why.into())];
    let solved = Retained {
        carried: old,
        update: retention.update,
        start: None,
        initial: InitialDomain::Any,
        advance: next,
        inside: if linear.is_some() { Inside::Identity } else { Inside::TokenByToken },
        linear,
        value: None,
        finish: None,
        retained: Some(retained),
    };
    Ok((solved, told))
}

/// The retention of a dual with a map: the dual is carried, the initial tensor is its first value.
pub(super) fn accumulated(layer: &mut spec::Layer, index: usize, found: Dual) -> Tried<Solved> {
    let Dual { vars, next, map, mut told, inside } = found;
    let facts = Facts::of_params(&layer.params);
    let update = layer.retention[index].update;
    let linear = linear_of(&mut layer.terms, next, [vars[0], update], &facts);
    let value = carried(&mut layer.terms, map, vars)?;
    let identity = is_var(&layer.terms, value, vars[0]);
    let name = layer.terms.var(vars[1]).name.clone();
    let why = match &linear {
        Some(_) => "declared; it is linear in the dual and in u.",
        None => "declared.",
    };
    told.insert(0, step("dual", vec![(name, next)], why.into()));
    let solved = Retained {
        carried: vars[0],
        update,
        start: None,
        initial: InitialDomain::Any,
        advance: next,
        linear,
        value: (!identity).then_some(value),
        finish: None,
        retained: None,
        inside: if identity { Inside::Identity } else { inside },
    };
    Ok((solved, told))
}

/// The map in terms of the carried dual.
fn carried(terms: &mut Terms, map: TermId, vars: [VarId; 2]) -> Tried<TermId> {
    let dual = terms.use_var(vars[0]);
    Ok(terms.substitute_one(map, &HashMap::from([(vars[1], dual)]))?)
}

/// keep * carried + write * u + shift, where a recurrence is that.
fn linear_of(terms: &mut Terms, next: TermId, vars: [VarId; 2], facts: &Facts) -> Option<Linear> {
    let (keep, rest) = collect_linear(terms, next, vars[0], facts)?;
    let (write, shift) = collect_linear(terms, rest, vars[1], facts)?;
    if terms.as_num(write) == Some(0.0) || terms.uses(keep, vars[1]) {
        return None;
    }
    let write = (terms.as_num(write) != Some(1.0)).then_some(write);
    let shift = (terms.as_num(shift) != Some(0.0)).then_some(shift);
    Some(Linear { keep, write, shift })
}

fn at_rest(terms: &mut Terms, next: TermId, update: VarId, facts: &Facts) -> Tried<TermId> {
    let zero = terms.fill(0.0, terms.var(update).shape.clone());
    let rest = terms.substitute_one(next, &HashMap::from([(update, zero)]))?;
    Ok(simplify(terms, rest, facts))
}

/// The scale, where a map is one number times the dual.
fn scale_of(terms: &mut Terms, map: TermId, dual: VarId, facts: &Facts) -> Tried<Option<TermId>> {
    if let Op::Fn2(f @ (Fn2::Mul | Fn2::Div), a, b) = *terms.op(map) {
        let is_dual = |t: TermId, terms: &Terms| is_var(terms, t, dual);
        let number = |t: TermId, terms: &Terms| terms.shape(t).rank() == 0;
        match f {
            Fn2::Mul if is_dual(a, terms) && number(b, terms) => return Ok(Some(b)),
            Fn2::Mul if is_dual(b, terms) && number(a, terms) => return Ok(Some(a)),
            Fn2::Div if is_dual(a, terms) && number(b, terms) => {
                let one = terms.num(1.0);
                return Ok(Some(terms.div(one, b)?));
            }
            _ => {}
        }
    }
    let mut ring = Ring::new(terms, facts.clone());
    let p = ring.poly(map)?;
    let atom = ring.terms.use_var(dual);
    let linear = p.monomials.keys().all(|m| m.exponent(atom) == Exponent::one());
    if p.is_zero() || !linear {
        return Ok(None);
    }
    let scale = p.raw_shift(&Monomial::power(atom, Exponent::number(-1.0)));
    let numbers = scale.monomials.keys().all(|m| m.0.iter().all(|(t, _)| ring.terms.shape(*t).rank() == 0));
    if !numbers {
        return Ok(None);
    }
    Ok(Some(ring.write_factored(&scale)?))
}
