//! W0303: a parameter that reaches neither the output nor the state.

use crate::algebra::{self, Facts};
use crate::rule::UpdateRule;
use miras_base::Diagnostic;
use miras_base::diagnostic::code;
use miras_spec as spec;
use miras_term::{TermId, VarId};
use std::collections::{BTreeSet, HashMap};

/// A warning for each parameter that nothing depends on.
pub(super) fn unused_parameters(rule: &mut UpdateRule, facts: &Facts) -> Vec<Diagnostic> {
    let live = live_vars(rule, facts);
    let rule = &*rule;
    let unused = rule.layer.params.iter().filter(|p| !live.contains(&p.var));
    unused.map(|p| warning(rule, p)).collect()
}

fn warning(rule: &UpdateRule, param: &spec::Param) -> Diagnostic {
    let name = &rule.layer.terms.var(param.var).name;
    Diagnostic::new(code::UNUSED_GATE, format!("`{}` reaches neither the output nor the state", param.tensor))
        .at_opt(param.span, format!("nothing that is computed depends on {name}"))
        .with_help("drop it, give it a constant, or choose partners that use it")
        .with_note(format!("asked for by {}", param.asked_by))
}

/// The variables that the output and the state depend on. All states are outputs.
fn live_vars(rule: &mut UpdateRule, facts: &Facts) -> BTreeSet<VarId> {
    let memory = &rule.layer.memory;
    let mut roots: Vec<TermId> =
        memory.read.into_iter().chain(memory.weights.iter().filter_map(|w| w.start)).collect();
    for r in &rule.retention {
        roots.extend([r.start, Some(r.advance), r.value, r.finish].into_iter().flatten());
    }
    if let Some(answer) = &rule.answer {
        roots.extend([answer.log_kernel, answer.averaged]);
    }
    let mut live = rule.layer.terms.vars_of(&roots);
    if let spec::Algo::Step(step) = rule.layer.algo.clone() {
        let own = without_zero_gradients(rule, &step, facts);
        follow_step(rule, &step, &own, &mut live);
    }
    live
}

/// The directions and states of a step; gradients that are 0 everywhere are written as 0, so that what only
/// scales them drops out.
fn without_zero_gradients(rule: &mut UpdateRule, step: &spec::Step, facts: &Facts) -> Vec<TermId> {
    let terms = &mut rule.layer.terms;
    let own = step.direction.iter().copied().chain(step.states.iter().flat_map(|s| [s.next, s.start]));
    let mut zeros = HashMap::new();
    for (point, gradient) in step.points.iter().zip(&rule.gradients) {
        for (var, sum) in point.gradients.iter().zip(&gradient.by_weight) {
            if sum.whole.is_none_or(|whole| terms.as_num(whole) == Some(0.0)) {
                let shape = terms.var(*var).shape.clone();
                zeros.insert(*var, terms.fill(0.0, shape));
            }
        }
    }
    if zeros.is_empty() {
        return own.collect();
    }
    own.map(|term| match terms.substitute_one(term, &zeros) {
        Ok(term) => algebra::simplify(terms, term, facts),
        Err(_) => term,
    })
    .collect()
}

/// Adds what a step uses: gradients only where a direction or a state uses them.
fn follow_step(rule: &UpdateRule, step: &spec::Step, own: &[TermId], live: &mut BTreeSet<VarId>) {
    let terms = &rule.layer.terms;
    live.extend(terms.vars_of(own));
    for (point, gradient) in step.points.iter().zip(&rule.gradients).rev() {
        let used = point.gradients.iter().zip(&gradient.by_weight).filter(|(var, _)| live.contains(var));
        let wholes: Vec<TermId> = used.filter_map(|(_, sum)| sum.whole).collect();
        if !wholes.is_empty() {
            live.extend(terms.vars_of(&wholes));
            live.extend(terms.vars_of(&point.at));
        }
    }
    for (var, r) in step.retained.iter().zip(&rule.retention) {
        if live.contains(var) {
            live.extend(terms.vars_of(&r.retained.into_iter().collect::<Vec<_>>()));
        }
    }
}
