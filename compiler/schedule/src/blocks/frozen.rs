//! Blocks with gradients at the chunk's start.

use super::linear::{Varies, entrywise, varies};
use super::{Blocks, Form, applied_only, has_root};
use miras_base::scalar::Fn2;
use miras_rule::{Inside, Retained, UpdateRule};
use miras_spec::{Algo, State, Step};
use miras_term::{Op, Role, TermId, Terms, VarId};

/// Tokens after which weights are written out, where rows or columns are kept by numbers of their own: within so
/// many, each pair of tokens has a product of keeps for each row or column.
const NARROW: u32 = 16;

/// How weights move inside a chunk with frozen gradients.
#[derive(Clone, Debug)]
pub struct Frozen {
    /// Tokens after which the weights are written out; it divides the chunk.
    pub inner: u32,
    /// For each weight the number of the algorithm's state that its step follows. A vector weight is there for every
    /// token: its recurrence costs no more than a sum of what was written would.
    pub states: Vec<Option<usize>>,
}

pub(super) fn blocks(rule: &UpdateRule, chunk: u32) -> Blocks {
    let tokens = Blocks::token_by_token;
    let Algo::Step(step) = &rule.layer.algo else { return tokens("a history has no gradients") };
    let gradients: Vec<TermId> = rule
        .gradients
        .iter()
        .flat_map(|g| &g.by_weight)
        .flat_map(|s| s.products.iter().flat_map(|(a, b)| [*a, *b]).chain(s.rest))
        .collect();
    if has_root(rule.terms(), &gradients) || points_move(rule, step) {
        return tokens(
            "a gradient is found by solving an equation for every token, with as many operations either way",
        );
    }
    let whole = |r: &TermId| rule.terms().shape(*r).rank() == 2;
    if rule.gradients.iter().flat_map(|g| &g.by_weight).any(|s| s.rest.as_ref().is_some_and(whole)) {
        return tokens(
            "a gradient is no sum of outer products: it is a matrix for every token, and takes as many operations and \
             more memory when all are computed at once",
        );
    }
    match low_rank(rule, step) {
        Some((varies, states)) => {
            let inner = if varies.any() { largest_divisor(chunk) } else { chunk };
            Blocks { tokens: chunk, form: Form::Frozen(Frozen { inner, states }) }
        }
        None => Blocks { tokens: chunk, form: Form::Gradients },
    }
}

/// Whether a point of the algorithm depends on anything that changes from token to token beside the weights.
fn points_move(rule: &UpdateRule, step: &Step) -> bool {
    let points: Vec<TermId> = step.points.iter().flat_map(|p| p.at.iter().copied()).collect();
    let allowed = |v: VarId| matches!(rule.terms().var(v).role, Role::Weight(_) | Role::Retained(_));
    !rule.terms().vars_of(&points).into_iter().all(allowed)
}

/// The largest divisor of a chunk that is at most [`NARROW`].
fn largest_divisor(chunk: u32) -> u32 {
    (1..=NARROW.min(chunk)).rev().find(|n| chunk.is_multiple_of(*n)).unwrap_or(1)
}

/// Whether all weights are sums of outer products inside the chunk: how factors vary, and the weights' states.
fn low_rank(rule: &UpdateRule, step: &Step) -> Option<(Varies, Vec<Option<usize>>)> {
    let memory = &rule.layer.memory;
    let vars: Vec<VarId> = memory.weights.iter().map(|w| w.var).collect();
    let one_point = rule.gradients.len() == 1;
    if !one_point || !applied_only(rule.terms(), memory.read?, &vars) {
        return None;
    }
    let (mut all, mut states) = (Varies::default(), Vec::new());
    for (l, retained) in rule.retention.iter().enumerate() {
        let state = state_of(rule, step, l)?;
        let how = follows(rule, step, l, retained, state)?;
        if rule.terms().var(vars[l]).shape.rank() == 2 {
            all = all.and(how);
        }
        states.push(state);
    }
    // States that move on with each of a token's steps would need a place between its tokens' places.
    if step.repeats > 1 && !step.states.is_empty() {
        return None;
    }
    // What no weight's step uses still has to be handed on.
    let used = (0..step.states.len()).all(|s| states.contains(&Some(s)));
    used.then_some((all, states))
}

/// The state that a weight's step uses, if it uses one; None outside where it uses several, or another's.
fn state_of(rule: &UpdateRule, step: &Step, l: usize) -> Option<Option<usize>> {
    let used = rule.terms().vars_of(&[step.direction[l]]);
    let mut found = None;
    for (s, state) in step.states.iter().enumerate() {
        if used.contains(&state.old) {
            return None;
        }
        if used.contains(&state.new) && found.replace(s).is_some() {
            return None;
        }
    }
    Some(found)
}

/// Whether a weight follows a recurrence that is linear entry by entry in its gradient, and how its factors vary.
fn follows(
    rule: &UpdateRule,
    step: &Step,
    l: usize,
    retained: &Retained,
    state: Option<usize>,
) -> Option<Varies> {
    let terms = rule.terms();
    match retained.inside {
        Inside::Identity | Inside::ProjectAtEnd if retained.value.is_none() => {}
        Inside::FrozenScale(_) => {}
        Inside::Identity
        | Inside::ProjectAtEnd
        | Inside::Mapped
        | Inside::Threshold(_)
        | Inside::TokenByToken => return None,
    }
    let linear = retained.linear.as_ref()?;
    if linear.shift.is_some() || has_root(terms, &[linear.keep, step.direction[l]]) {
        return None;
    }
    let gradient = *step.points.first()?.gradients.get(l)?;
    let own: Vec<VarId> = state.map(|s| step.states[s].new).into_iter().chain([gradient]).collect();
    if !entrywise(terms, step.direction[l], &own) || !given_only(rule, step.direction[l], &own) {
        return None;
    }
    let matrix = terms.var(gradient).shape.rank() == 2;
    let folded = along(terms, step.direction[l], gradient);
    let written = linear.write.map(|w| varies(terms, w)).unwrap_or_default();
    if matrix && (folded.both() || written.both()) {
        return None;
    }
    let keep = varies(terms, linear.keep);
    let how = match state.map(|s| &step.states[s]) {
        None => keep,
        Some(state) => {
            let mut all = keep.and(follows_state(rule, state, gradient)?);
            all = all.and(along(terms, step.direction[l], state.new));
            if matrix && along(terms, state.next, gradient).both() {
                return None;
            }
            if terms.uses(step.direction[l], gradient) {
                // Else the gradient's own factors go into the outer products.
                all = all.and(along(terms, step.direction[l], gradient));
                all = all.and(along(terms, state.next, gradient));
            }
            all.and(written)
        }
    };
    (!matrix || !how.both()).then_some(how)
}

/// How the factor of a state's old value varies; None where its recurrence is not linear entry by entry.
fn follows_state(rule: &UpdateRule, state: &State, gradient: VarId) -> Option<Varies> {
    let terms = rule.terms();
    let own = [state.old, gradient];
    let shaped = terms.var(state.new).shape == terms.var(gradient).shape;
    let fits = shaped
        && entrywise(terms, state.next, &own)
        && given_only(rule, state.next, &own)
        && !has_root(terms, &[state.next]);
    fits.then(|| along(terms, state.next, state.old))
}

/// How the factors of a variable vary in a term that is linear in it entry by entry.
fn along(terms: &Terms, id: TermId, var: VarId) -> Varies {
    let mut all = Varies::default();
    for t in terms.reachable(&[id]).into_iter().filter(|t| terms.uses(*t, var)) {
        match terms.op(t) {
            Op::Fn2(Fn2::Mul | Fn2::Div, a, b) => {
                let factor = if terms.uses(*a, var) { b } else { a };
                all = all.and(varies(terms, *factor));
            }
            Op::Select(condition, ..) => all = all.and(varies(terms, *condition)),
            _ => {}
        }
    }
    all
}

/// Whether, beside these variables, a term uses only what the token brings.
fn given_only(rule: &UpdateRule, id: TermId, own: &[VarId]) -> bool {
    let given = |v: VarId| {
        own.contains(&v)
            || matches!(rule.terms().var(v).role, Role::Query | Role::Key | Role::Value | Role::Parameter(_))
    };
    rule.terms().vars_of(&[id]).into_iter().all(given)
}
