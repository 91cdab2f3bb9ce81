//! The inner gradient: d loss / d W_l at each point of the algorithm, as sums of outer products.

mod names;
pub mod outer;

#[cfg(test)]
pub(crate) mod witness;

use crate::algebra::Facts;
use crate::calculus::reverse::{broken, contributions};
use crate::calculus::simplify::{Simplified, simplify, simplify_one};
use crate::calculus::{fold, gradient};
use crate::rule::{Gradient, OuterSum};
use miras_base::Diagnostic;
use miras_spec as spec;
use miras_term::{Mismatch, Op, Role, TermId, Terms, VarId};
use std::collections::HashMap;

/// dloss/dy, [dv], in terms of Answer, Value and parameters, with the rules that shortened it: the
/// declared slope where there is one, else the simplified derivative of the loss.
///
/// # Errors
/// E0301 where the loss has no derivative by the answer.
pub fn slope(layer: &mut spec::Layer, facts: &Facts) -> Result<Simplified, Diagnostic> {
    if let Some(declared) = layer.bias.slope {
        return Ok(Simplified { terms: vec![declared], used: Vec::new() });
    }
    let derived = gradient(&mut layer.terms, layer.bias.loss, &[layer.bias.answer])?;
    simplify(&mut layer.terms, &derived, facts).map_err(broken)
}

/// The gradients at every point of a step, given the slope of the bias.
///
/// # Errors
/// E0301 where the memory's read has no derivative by a weight.
pub fn gradients(
    layer: &mut spec::Layer,
    step: &spec::Step,
    slope: TermId,
    facts: &Facts,
) -> Result<Vec<Gradient>, Diagnostic> {
    let Some(read) = layer.memory.read else {
        return Err(Diagnostic::bug("an algorithm takes gradients of a memory that has no read"));
    };
    let points = step.points.iter();
    points.map(|point| at_point(layer, step, point, read, slope, facts)).collect()
}

fn at_point(
    layer: &mut spec::Layer,
    step: &spec::Step,
    point: &spec::Point,
    read: TermId,
    slope: TermId,
    facts: &Facts,
) -> Result<Gradient, Diagnostic> {
    let at_vars = at_vars(layer, step, point);
    let answer = answer_at(layer, read, &at_vars).map_err(broken)?;
    let answer_var = layer.bias.answer;
    let terms = &mut layer.terms;
    let cotangent = terms.substitute_one(slope, &HashMap::from([(answer_var, answer)])).map_err(broken)?;
    let parts = contributions(terms, &[(answer, cotangent)], &at_vars)?;
    let mut by_weight = Vec::with_capacity(at_vars.len());
    for (var, parts) in at_vars.iter().zip(parts) {
        by_weight.push(outer_sum(terms, *var, &parts, facts).map_err(broken)?);
    }
    let mut gradient = Gradient { answer, at_vars, named: Vec::new(), by_weight };
    gradient.named = names::intermediates(layer, &gradient, cotangent).map_err(broken)?;
    Ok(gradient)
}

/// The weights' own variables where the point is the weights as they are; else new ones.
fn at_vars(layer: &mut spec::Layer, step: &spec::Step, point: &spec::Point) -> Vec<VarId> {
    let own: Vec<VarId> = layer.memory.weights.iter().map(|w| w.var).collect();
    let is = |terms: &Terms, at: &TermId, var: &VarId| matches!(terms.op(*at), Op::Var(v) if v == var);
    if point.at.iter().zip(&own).all(|(at, var)| is(&layer.terms, at, var)) {
        return own;
    }
    let mut vars = Vec::with_capacity(own.len());
    for (l, (at, weight)) in point.at.iter().zip(&layer.memory.weights).enumerate() {
        let retained = step.retained.get(l).is_some_and(|r| is(&layer.terms, at, r));
        let name =
            if retained { format!("retained({})", weight.display) } else { format!("{}~", weight.display) };
        vars.push(layer.terms.add_var(name, Role::Weight(l as u32), weight.shape.clone(), weight.span));
    }
    vars
}

/// y = read(k) with the weights' variables replaced.
fn answer_at(layer: &mut spec::Layer, read: TermId, at_vars: &[VarId]) -> Result<TermId, Mismatch> {
    let key = layer.terms.use_var(layer.key);
    let mut replace = HashMap::from([(layer.memory.argument, key)]);
    for (weight, at) in layer.memory.weights.iter().zip(at_vars) {
        if weight.var != *at {
            let at = layer.terms.use_var(*at);
            replace.insert(weight.var, at);
        }
    }
    layer.terms.substitute_one(read, &replace)
}

/// The summands of a gradient as outer products and a rest.
fn outer_sum(terms: &mut Terms, var: VarId, parts: &[TermId], facts: &Facts) -> Result<OuterSum, Mismatch> {
    let mut products: Vec<(TermId, TermId)> = Vec::new();
    let mut rest = None;
    for part in parts {
        let part = simplify_one(terms, *part, facts)?;
        for summand in outer::summands(terms, part)? {
            match outer::as_outer(terms, summand)? {
                Some((left, right)) => outer::join(terms, &mut products, left, right)?,
                None => rest = Some(rest.map_or(Ok(summand), |r| fold::plus(terms, r, summand))?),
            }
        }
    }
    for (left, _) in &mut products {
        *left = simplify_one(terms, *left, facts)?;
    }
    products.retain(|(left, _)| terms.as_num(*left) != Some(0.0));
    let shape = terms.var(var).shape.clone();
    let mut whole = terms.fill(0.0, shape);
    for (left, right) in &products {
        let product = fold::outer(terms, *left, *right)?;
        whole = fold::plus(terms, whole, product)?;
    }
    if let Some(rest) = rest {
        whole = fold::plus(terms, whole, rest)?;
    }
    Ok(OuterSum { products, rest, whole: Some(whole) })
}
