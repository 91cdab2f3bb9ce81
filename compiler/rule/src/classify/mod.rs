//! The class of the recurrence, from the derived expressions alone (docs/mathematics.md).

mod affine;
mod degree;
mod step;

#[cfg(test)]
mod witness;

pub use affine::{Correction, DeltaForm};
pub use degree::{Degree, degree};
pub use step::WrittenOut;
pub(crate) use step::{retained, written_out};

use crate::calculus::fold::times;
use crate::calculus::reverse::broken;
use crate::rule::{Class, ClassKind, Gradient, Inside, Retained, UpdateRule};
use crate::tell::formula;
use miras_base::Diagnostic;
use miras_spec as spec;
use miras_term::{Mismatch, Role, TermId, Terms, VarId};
use std::collections::BTreeSet;

/// What an update rule is made of, before it has a class.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The algorithm.
    pub step: &'a spec::Step,
    /// Its gradients.
    pub gradients: &'a [Gradient],
    /// Retention of each weight.
    pub retention: &'a [Retained],
}

/// The class of a rule with weights.
///
/// # Errors
/// A contradiction inside the derived terms, as a bug.
pub fn classify(layer: &mut spec::Layer, parts: Parts<'_>) -> Result<Class, Diagnostic> {
    let written = step::written_out(layer, parts).map_err(broken)?;
    if let Some(class) = exact(layer, parts, &written)? {
        return Ok(class);
    }
    if let Some(reason) = feedback(layer, parts, &written) {
        return Ok(class(ClassKind::TokenByToken, reason));
    }
    Ok(frozen(layer, parts, &written))
}

/// A class without corrections.
fn class(kind: ClassKind, reason: String) -> Class {
    Class { kind, reason, corrections: 0 }
}

/// The class of a memory that keeps its history.
pub fn nonparametric() -> Class {
    let reason = "The answer is a mean of what was kept, with normalised kernel weights: a running maximum and two \
                  running sums give it exactly, token by token or in blocks.";
    class(ClassKind::NonParametric, reason.into())
}

/// The affine form of what a step adds to the weight (u, times the retention's `write`), for a rule whose
/// class is [`ClassKind::Linear`] or [`ClassKind::Delta`]; None for every other rule.
///
/// The form's `diagonal` adds to the keep of the retention. Terms are in W, k, v and parameters.
///
/// # Errors
/// As for [`classify`].
pub fn delta_form(layer: &mut spec::Layer, parts: Parts<'_>) -> Result<Option<DeltaForm>, Diagnostic> {
    let written = step::written_out(layer, parts).map_err(broken)?;
    match (layer.memory.weights.as_slice(), written.updates.as_slice()) {
        ([weight], [u]) if is_linear(parts.retention) && parts.step.states.is_empty() => {
            let (weight, u) = (weight.var, *u);
            if layer.terms.vars_of(&[u]).into_iter().any(|v| stands_for_weights(layer.terms.var(v).role)) {
                return Ok(None);
            }
            let added = what_is_added(&mut layer.terms, parts, u).map_err(broken)?;
            affine::delta_form(&mut layer.terms, added, weight).map_err(broken)
        }
        _ => Ok(None),
    }
}

impl UpdateRule {
    /// [`delta_form`] of this rule's step; new terms are added to its arena.
    ///
    /// # Errors
    /// As for [`classify`].
    pub fn delta_form(&mut self) -> Result<Option<DeltaForm>, Diagnostic> {
        let spec::Algo::Step(step) = self.layer.algo.clone() else { return Ok(None) };
        let parts = Parts { step: &step, gradients: &self.gradients, retention: &self.retention };
        delta_form(&mut self.layer, parts)
    }
}

/// The step times the factor that retention writes it with. (Repeated steps are added as they are.)
fn what_is_added(terms: &mut Terms, parts: Parts<'_>, u: TermId) -> Result<TermId, Mismatch> {
    let linear = parts.retention.first().and_then(|r| r.linear.as_ref());
    match linear.and_then(|l| l.write) {
        Some(write) if parts.step.repeats <= 1 => times(terms, write, u),
        Some(_) | None => Ok(u),
    }
}

/// Whether every weight is its own carried value, kept by factors, with nothing after the step.
fn is_linear(retention: &[Retained]) -> bool {
    retention.iter().all(|r| r.linear.is_some() && r.value.is_none() && r.finish.is_none())
}

/// Whether a variable of this role hides a dependence on the weights that could not be written out.
fn stands_for_weights(role: Role) -> bool {
    match role {
        Role::Retained(_) | Role::Gradient { .. } | Role::NewWeight(_) | Role::Dual(_) | Role::NewDual(_) => {
            true
        }
        Role::Query | Role::Key | Role::Value | Role::Answer | Role::ReadArgument => false,
        Role::Weight(_) | Role::Update(_) | Role::State(_) | Role::NewState(_) => false,
        Role::Parameter(_) | Role::Bound => false,
    }
}

/// Linear and delta: one weight that is read linearly.
fn exact(
    layer: &mut spec::Layer,
    parts: Parts<'_>,
    written: &WrittenOut,
) -> Result<Option<Class>, Diagnostic> {
    let Some(form) = delta_form(layer, parts)? else { return Ok(None) };
    let ([weight], Some(read)) = (layer.memory.weights.as_slice(), layer.memory.read) else {
        return Ok(None);
    };
    let (var, display) = (weight.var, weight.display.clone());
    if affine_read(&mut layer.terms, read, var)?.is_none() {
        return Ok(None);
    }
    let u = what_is_added(&mut layer.terms, parts, written.updates[0]).map_err(broken)?;
    let u = formula(&layer.terms, u);
    let keep =
        parts.retention[0].linear.as_ref().map_or_else(|| "1".into(), |l| formula(&layer.terms, l.keep));
    let scaled = parts.retention[0].linear.as_ref().is_some_and(|l| l.write.is_some());
    let step = if scaled { "What a step adds," } else { "The step u =" };
    if form.corrections.is_empty() && form.diagonal.is_none() {
        let reason = format!(
            "{step} {u} does not contain {display}, {display} is read linearly, and retention keeps each entry by \
             the factor {keep}: a chunk is a masked product, exact for any chunk length."
        );
        return Ok(Some(class(ClassKind::Linear, reason)));
    }
    let corrections = form.corrections.len() as u64 * u64::from(parts.step.repeats.max(1));
    let how = match corrections {
        0 => "entry by entry".into(),
        1 => "with one correction of rank one per token".into(),
        n => format!("with {n} corrections of rank one per token"),
    };
    let reason = format!(
        "{step} {u} is affine in {display} {how}, {display} is read linearly, and retention keeps each entry by \
         the factor {keep}: a chunk is a unit-triangular system (WY form), exact for any chunk length."
    );
    Ok(Some(Class { corrections, ..class(ClassKind::Delta, reason) }))
}

fn affine_read(terms: &mut Terms, read: TermId, weight: VarId) -> Result<Option<()>, Diagnostic> {
    if degree(terms, read, &BTreeSet::from([weight])) == Degree::Other {
        return Ok(None);
    }
    if terms.var(weight).shape.rank() != 2 {
        return Ok(Some(()));
    }
    Ok(affine::affine_vector(terms, read, weight).map_err(broken)?.map(|_| ()))
}

/// Why the algorithm must run token by token, if it must.
fn feedback(layer: &spec::Layer, parts: Parts<'_>, written: &WrittenOut) -> Option<String> {
    let terms = &layer.terms;
    let states: BTreeSet<_> = parts.step.states.iter().map(|s| s.old).collect();
    for (state, next) in parts.step.states.iter().zip(&written.given_gradients.states) {
        if degree(terms, *next, &states) == Degree::Other {
            let name = &terms.var(state.old).name;
            return Some(format!(
                "The state {name} feeds back on itself through {name}' = {}, which is not affine in the algorithm's \
                 state: a chunk gains nothing, and every token is a step.",
                formula(terms, *next)
            ));
        }
    }
    let given = &written.given_gradients;
    for id in given.states.iter().chain(&given.updates) {
        let weight =
            terms.vars_of(&[*id]).into_iter().find(|v| matches!(terms.var(*v).role, Role::Weight(_)));
        if let Some(weight) = weight {
            return Some(format!(
                "The step uses {} itself beside the gradient, in {}: only the weights of the token before give it \
                 exactly, so every token is a step.",
                terms.var(weight).name,
                formula(terms, *id)
            ));
        }
    }
    None
}

/// Dual-linear and general.
fn frozen(layer: &spec::Layer, parts: Parts<'_>, written: &WrittenOut) -> Class {
    let terms = &layer.terms;
    let step_by_step = |r: &&Retained| r.linear.is_none() || matches!(r.inside, Inside::TokenByToken);
    if let Some(r) = parts.retention.iter().find(step_by_step) {
        let carried = &terms.var(r.carried).name;
        let then =
            r.finish.map_or_else(String::new, |f| format!(", then {carried}' = {}", formula(terms, f)));
        let reason = format!(
            "Retention has no linear recurrence: {carried}' = {}{then}. In a chunk the gradients are taken at its \
             starting weights, and retention runs token by token.",
            formula(terms, r.advance)
        );
        return class(ClassKind::General, reason);
    }
    let carried: Vec<&str> = parts.retention.iter().map(|r| terms.var(r.carried).name.as_str()).collect();
    let carried = match carried.as_slice() {
        [first, .., last] if carried.len() > 4 => format!("{first}, ..., {last}"),
        all => all.join(", "),
    };
    let written: Vec<TermId> = written.updates.iter().chain(&written.states).copied().collect();
    let is_weight = |v: VarId| matches!(terms.var(v).role, Role::Weight(_) | Role::Dual(_));
    let gradients = if terms.vars_of(&written).into_iter().any(is_weight) {
        let alone = if at_start(layer) { "; with chunks of one token there is none" } else { "" };
        format!(
            "the gradients depend on the weights. A chunk takes them at its starting weights (an approximation{alone}), \
             everything after them exactly"
        )
    } else {
        "the gradients do not depend on the weights, so that a chunk that takes them at its starting weights neglects \
         nothing"
            .into()
    };
    let reason =
        format!("The carried value ({carried}) follows a linear recurrence in the step; {gradients}.");
    class(ClassKind::DualLinear, reason)
}

/// Whether the gradients of a chunk of one token are the recurrence's: one step per token, and not at what retention
/// makes of the weights (a chunk takes those at its starting weights as they are).
fn at_start(layer: &spec::Layer) -> bool {
    let spec::Algo::Step(step) = &layer.algo else { return true };
    let points: Vec<TermId> = step.points.iter().flat_map(|p| p.at.iter().copied()).collect();
    let retained = |v: VarId| step.retained.contains(&v);
    step.repeats == 1 && !layer.terms.vars_of(&points).into_iter().any(retained)
}
