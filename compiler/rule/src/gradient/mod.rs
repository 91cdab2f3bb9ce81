//! The inner gradient: d loss / d W_l at each point of the algorithm, as sums of outer products.

mod names;
pub mod outer;

#[cfg(test)]
pub(crate) mod witness;

use crate::algebra::Facts;
use crate::calculus::reverse::{broken, contributions};
use crate::calculus::simplify::{Simplified, simplify};
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
    let by_weight = outer_sums(terms, &at_vars, &parts, facts).map_err(broken)?;
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

/// The summands of each weight's gradient as outer products and a rest, simplified all together.
fn outer_sums(
    terms: &mut Terms,
    vars: &[VarId],
    parts: &[Vec<TermId>],
    facts: &Facts,
) -> Result<Vec<OuterSum>, Mismatch> {
    let mut simple = simplify(terms, &parts.concat(), facts)?.terms.into_iter();
    let mut sums = Vec::with_capacity(vars.len());
    for parts in parts {
        sums.push(separated(terms, simple.by_ref().take(parts.len()))?);
    }
    let lefts: Vec<TermId> = sums.iter().flat_map(|s| s.products.iter().map(|(left, _)| *left)).collect();
    let mut lefts = simplify(terms, &lefts, facts)?.terms.into_iter();
    for (var, sum) in vars.iter().zip(&mut sums) {
        for ((left, _), simple) in sum.products.iter_mut().zip(lefts.by_ref()) {
            *left = simple;
        }
        add_up(terms, *var, sum)?;
    }
    Ok(sums)
}

/// Outer products and the rest of a sum.
fn separated(terms: &mut Terms, parts: impl Iterator<Item = TermId>) -> Result<OuterSum, Mismatch> {
    let mut sum = OuterSum::default();
    for part in parts {
        for summand in outer::summands(terms, part)? {
            match outer::as_outer(terms, summand)? {
                Some((left, right)) => outer::join(terms, &mut sum.products, left, right)?,
                None => sum.rest = Some(sum.rest.map_or(Ok(summand), |r| fold::plus(terms, r, summand))?),
            }
        }
    }
    Ok(sum)
}

/// The whole gradient; products that are 0 are dropped.
fn add_up(terms: &mut Terms, var: VarId, sum: &mut OuterSum) -> Result<(), Mismatch> {
    sum.products.retain(|(left, _)| terms.as_num(*left) != Some(0.0));
    let shape = terms.var(var).shape.clone();
    let mut whole = terms.fill(0.0, shape);
    for (left, right) in &sum.products {
        let product = fold::outer(terms, *left, *right)?;
        whole = fold::plus(terms, whole, product)?;
    }
    if let Some(rest) = sum.rest {
        whole = fold::plus(terms, whole, rest)?;
    }
    sum.whole = Some(whole);
    Ok(())
}
