//! Notes that follow from the structure of a rule.

use super::formula::formula;
use crate::algebra::{self, Facts};
use crate::rule::{Gradient, Retained, UpdateRule};
use miras_spec as spec;
use miras_term::{Op, Role, TermId, VarId};

/// What a reader of the papers should know about this rule, one sentence or two each.
pub(crate) fn notes(rule: &mut UpdateRule, facts: &Facts) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(weights_of_retention(rule, facts));
    notes.extend(follow_the_leader(rule));
    notes.extend(point_of_the_gradient(rule));
    notes.extend(without_the_bias(rule));
    notes.extend(order(rule));
    notes
}

/// How the papers' step sizes map to a forgotten fraction, where the keep is 1 - alpha.
fn weights_of_retention(rule: &mut UpdateRule, facts: &Facts) -> Option<String> {
    let both = rule
        .layer
        .retention
        .iter()
        .any(|r| matches!(&r.form, spec::Form::Objective { local: Some(_), global: Some(_), .. }));
    let keep = rule.retention.iter().find_map(|r| r.linear.as_ref()).map(|l| l.keep)?;
    let forgotten = forgotten(rule, keep, facts)?;
    if !both {
        return None;
    }
    let a = formula(&rule.layer.terms, forgotten);
    Some(format!(
        "In the papers' form, with D / eta_D and G / alpha_G in place of (1 - {a}) D and {a} G, the same step has {a} = \
         (1/alpha_G) / (1/eta_D + 1/alpha_G) and u = -g / (1/eta_D + 1/alpha_G)."
    ))
}

/// The parameter a of a keep 1 - a.
fn forgotten(rule: &mut UpdateRule, keep: TermId, facts: &Facts) -> Option<TermId> {
    let terms = &mut rule.layer.terms;
    let one = terms.num(1.0);
    let rest = terms.sub(one, keep).ok()?;
    let rest = algebra::simplify(terms, rest, facts);
    let inner = match terms.op(rest) {
        Op::Spread(inner, _) | Op::Row(inner) | Op::Col(inner) => *inner,
        _ => rest,
    };
    match terms.op(inner) {
        Op::Var(v) if matches!(terms.var(*v).role, Role::Parameter(_)) => Some(inner),
        _ => None,
    }
}

/// The follow-the-regularised-leader form beside the learning-retaining one (Miras Prop 3.2).
fn follow_the_leader(rule: &UpdateRule) -> Option<String> {
    let terms = &rule.layer.terms;
    let text = |id: TermId| formula(terms, id);
    let r: &Retained = rule.retention.iter().find(|r| r.value.is_some() && r.start.is_some())?;
    let (start, carried) = (r.start?, &terms.var(r.carried).name);
    let keep = r.linear.as_ref().and_then(|l| terms.as_num(l.keep));
    let weight =
        terms.vars_of(&[start]).into_iter().find(|v| matches!(terms.var(*v).role, Role::Weight(_)))?;
    let w = &terms.var(weight).name;
    let sum = if keep == Some(1.0) { "sum_i <-u_i, W>" } else { "sum_i keep(i, t) <-u_i, W>" };
    Some(format!(
        "Follow-the-regularised-leader form (Miras Proposition 3.2): with {carried} = {}, the same {w} at token t is argmin \
         over W of {sum} + F(W) - keep(0, t) <{carried}_0, W>, where F' is that map of W and keep(i, t) is the product of \
         the keeps after i.",
        text(start)
    ))
}

/// Whether the gradient is taken before or after the weights decay.
fn point_of_the_gradient(rule: &UpdateRule) -> Option<String> {
    let spec::Algo::Step(step) = &rule.layer.algo else { return None };
    if step.repeats > 1 {
        return None;
    }
    let terms = &rule.layer.terms;
    let depends = |g: &Gradient| {
        g.by_weight.iter().filter_map(|s| s.whole).any(|w| g.at_vars.iter().any(|v| terms.uses(w, *v)))
    };
    if !rule.gradients.iter().any(depends) {
        return None;
    }
    let decays = rule.retention.iter().any(|r| r.retained.is_none_or(|t| !is_weight(rule, t)));
    let point = step.points.first()?;
    let at = *point.at.first()?;
    let is = |vars: &[VarId]| matches!(terms.op(at), Op::Var(v) if vars.contains(v));
    let own: Vec<VarId> = rule.layer.memory.weights.iter().map(|w| w.var).collect();
    match (decays, is(&own), is(&step.retained)) {
        (true, true, _) => Some(
            "The gradient is taken at the weights before retention acts on them, as in Titans; taking it at what retention \
             leaves of them, as Gated DeltaNet does, is another rule."
                .into(),
        ),
        (true, _, true) => Some(
            "The gradient is taken at what retention leaves of the weights, as in Gated DeltaNet; Titans takes it before \
             retention acts, which is another rule."
                .into(),
        ),
        _ => None,
    }
}

fn is_weight(rule: &UpdateRule, id: TermId) -> bool {
    matches!(rule.layer.terms.op(id), Op::Var(v) if matches!(rule.layer.terms.var(*v).role, Role::Weight(_)))
}

/// Whether a step is written out without the gradient of the bias.
fn without_the_bias(rule: &UpdateRule) -> Option<String> {
    let spec::Algo::Step(step) = &rule.layer.algo else { return None };
    let used: Vec<TermId> =
        step.direction.iter().copied().chain(step.states.iter().map(|s| s.next)).collect();
    let terms = &rule.layer.terms;
    let gradient =
        terms.vars_of(&used).into_iter().any(|v| matches!(terms.var(v).role, Role::Gradient { .. }));
    (!gradient)
        .then(|| "The step is written out in full: the gradient of the bias takes no part in it.".into())
}

/// The order of read, gradient, decay and write.
fn order(rule: &UpdateRule) -> Option<String> {
    if rule.layer.memory.history {
        return None;
    }
    let read = if rule.layer.read_before {
        "q is read first, from the weights before the step"
    } else {
        "q is read last, from the weights after the step"
    };
    let steps = match rule.layer.repeats() {
        1 => "Per token: gradient, retention and write together".to_string(),
        n => format!("Per token: retention once, then {n} times gradient and write"),
    };
    Some(format!("{steps}; {read}."))
}
