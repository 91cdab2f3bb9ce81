//! Notes that follow from the structure of a rule.

use crate::rule::{Gradient, UpdateRule};
use miras_spec as spec;
use miras_term::{Op, Role, TermId, VarId};

/// What a reader of the papers should know about this rule, one sentence or two each.
pub(crate) fn notes(rule: &UpdateRule) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(point_of_the_gradient(rule));
    notes.extend(without_the_bias(rule));
    notes.extend(order(rule));
    notes
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
